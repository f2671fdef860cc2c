(() => {
  "use strict";
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const one = (selector, within = document) => within.querySelector(selector);

  // Theme: as the system has it, light, dark.
  const themes = ["auto", "light", "dark"], button = one("#theme");
  const kept = () => { try { return localStorage.getItem("varcal-theme"); } catch { return null; } };
  const paint = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
    try { localStorage.setItem("varcal-theme", theme); } catch { /* not kept */ }
  };
  let chosen = Math.max(0, themes.indexOf(kept()));
  paint(themes[chosen]);
  button.hidden = false;
  button.addEventListener("click", () => paint(themes[chosen = (chosen + 1) % themes.length]));

  // Search: rows of the ranking and cards whose name holds the text.
  const search = one("#search");
  if (search) {
    const cards = all(".card"), fold = one("#ranking details");
    search.closest(".tools").hidden = false;
    search.addEventListener("input", () => {
      const wanted = search.value.trim().toLowerCase();
      let shown = 0;
      for (const card of cards) {
        const hit = one("h3", card).textContent.toLowerCase().includes(wanted);
        card.hidden = !hit;
        for (const row of all(`#ranking tr[data-v="${card.dataset.v}"]`)) row.hidden = !hit;
        shown += hit;
      }
      if (wanted && fold) fold.open = true;
      one("#none").hidden = shown > 0;
      one("#found").textContent = `${shown} of ${cards.length} shown`;
    });
  }

  // Sortable tables: a button in each head whose cells have a value (data-s).
  for (const table of all("table.sortable")) {
    const body = table.tBodies[0];
    for (const head of all("thead th", table)) {
      const value = (row) => row.cells[head.cellIndex]?.dataset.s;
      if (!body.rows.length || value(body.rows[0]) === undefined) continue;
      const sorter = Object.assign(document.createElement("button"), { type: "button", className: "sort" });
      sorter.append(...head.childNodes);
      head.append(sorter);
      sorter.addEventListener("click", () => {
        const rows = [...body.rows], before = head.getAttribute("aria-sort");
        const numbers = rows.every((row) => !Number.isNaN(Number(value(row))));
        const up = before ? before === "descending" : !numbers;
        for (const other of all("th[aria-sort]", table)) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        rows.sort((a, b) => (up ? 1 : -1) * (numbers ? value(a) - value(b) : value(a).localeCompare(value(b))));
        body.append(...rows);
      });
    }
  }

  // Code that can be copied.
  for (const copy of navigator.clipboard ? all("button.copy") : []) {
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(copy.previousElementSibling.textContent);
        copy.textContent = "copied";
      } catch { copy.textContent = "not copied"; }
      setTimeout(() => { copy.textContent = "copy"; }, 2000);
    });
  }

  // Values of charts, by pointer, touch or arrow keys; the title of a part becomes its tooltip.
  const tip = Object.assign(document.createElement("div"), { className: "tooltip", hidden: true, ariaHidden: "true" });
  document.body.append(tip);
  for (const title of all(".tip > title")) {
    title.parentNode.dataset.tip = title.parentNode.ariaLabel = title.textContent;
    title.remove();
  }
  for (const svg of all("svg:not([aria-hidden], svg svg)")) {
    all("[data-tip]", svg).forEach((part, k) => part.setAttribute("tabindex", k ? -1 : 0));
  }
  const hide = () => { tip.hidden = true; };
  const show = (event) => {
    const part = event.target.closest?.("[data-tip]");
    if (!part) return hide();
    tip.textContent = part.dataset.tip;
    tip.hidden = false;
    const box = part.getBoundingClientRect(), most = document.documentElement.clientWidth - tip.offsetWidth - 4;
    const above = box.top - tip.offsetHeight - 6;
    tip.style.left = `${Math.max(4, Math.min(box.left + (box.width - tip.offsetWidth) / 2, most)) + scrollX}px`;
    tip.style.top = `${(above < 0 ? box.bottom + 6 : above) + scrollY}px`;
  };
  for (const heard of ["pointerover", "focusin"]) document.addEventListener(heard, show);
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], part = event.target.closest?.("[data-tip]");
    if (!step || !part) return;
    const parts = all("[data-tip]", part.ownerSVGElement);
    parts[parts.indexOf(part) + step]?.focus();
    event.preventDefault();
  });

  // A link to a folded card opens it; printing opens everything.
  const open = (hash) => {
    const target = hash && document.getElementById(hash.slice(1));
    for (let at = target; at; at = at.parentElement) {
      if (at instanceof HTMLDetailsElement) at.open = true;
    }
  };
  // A second click on the same link changes no hash, so clicks are heard too.
  for (const link of all("a[href^='#']")) link.addEventListener("click", () => open(link.hash));
  addEventListener("hashchange", () => open(location.hash));
  open(location.hash);
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details:not([open])");
    for (const details of folded) details.open = true;
  });
  addEventListener("afterprint", () => { for (const details of folded) details.open = false; });
})();
