(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const one = (selector, within = document) => within.querySelector(selector);

  // Theme: as the system has it, light, dark.
  const themes = ["auto", "light", "dark"];
  const button = one("#theme");
  const kept = () => { try { return localStorage.getItem("varcal-theme"); } catch { return null; } };
  const paint = (theme) => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
    try { localStorage.setItem("varcal-theme", theme); } catch { /* not kept */ }
  };
  let theme = themes.includes(kept()) ? kept() : "auto";
  paint(theme);
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    paint(theme);
  });

  // Sorting: numbers by data-sort, names by their text.
  const table = one("#ranking-table");
  if (table) {
    const body = one("tbody", table);
    const heads = all("thead th", table);
    const value = (row, column) => {
      const cell = row.cells[column];
      return "sort" in cell.dataset ? Number(cell.dataset.sort) : cell.textContent.toLowerCase();
    };
    for (const [column, head] of heads.entries()) {
      one("button", head)?.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") === "none"
          ? !["vece", "beyond"].includes(head.className)
          : head.getAttribute("aria-sort") !== "ascending";
        for (const other of heads) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...body.rows].sort((a, b) => {
          const x = value(a, column), y = value(b, column);
          const order = typeof x === "number" ? x - y : x.localeCompare(y);
          return (up ? order : -order) || Number(a.dataset.v) - Number(b.dataset.v);
        });
        body.append(...rows);
      });
    }

    // Search: rows and cards whose name holds the text.
    const search = one("#search"), status = one("#found");
    search.closest(".tools").hidden = false;
    const cards = new Map(all(".card").map((card) => [card.dataset.v, card]));
    search.addEventListener("input", () => {
      const wanted = search.value.trim().toLowerCase();
      let shown = 0;
      for (const row of body.rows) {
        const card = cards.get(row.dataset.v);
        const name = (one("h3", card) ?? one(".name", row)).textContent.toLowerCase();
        const hit = name.includes(wanted);
        row.hidden = !hit;
        if (card) card.hidden = !hit;
        shown += hit;
      }
      one("#none").hidden = shown > 0;
      status.textContent = `${shown} of ${body.rows.length} shown`;
    });
  }

  // Read-out: what a chart shows at one point, by pointer, touch or arrow keys.
  const words = data.words;
  const percent = (tenths) => `${(tenths / 10).toFixed(1)}%`;
  const say = (chart, k) => {
    const gap = words.risk ? chart.p[k] - chart.a[k] : chart.a[k] - chart.p[k];
    const rows = chart.n.length ? ` (${chart.n[k].toLocaleString("en")} ${chart.n[k] === 1 ? "row" : "rows"})` : "";
    const side = gap === 0 ? "no gap"
      : `${gap > 0 ? words.over : words.under} by ${(Math.abs(gap) / 10).toFixed(1)} points`;
    return `${rows}: ${words.happened} ${percent(chart.a[k])} of the time `
      + `(band ${percent(chart.l[k])} to ${percent(chart.h[k])}), `
      + `${words.expected} ${percent(chart.p[k])}: ${side}.`;
  };
  for (const [id, chart] of Object.entries(data.charts)) {
    const card = document.getElementById(id);
    const slider = one(".reader", card), said = one(".said", card);
    const svg = one("svg.lines", card), rows = all(".level-row[data-k]", card);
    const show = (k) => {
      slider.value = k;
      const name = document.createElement("bdi");
      name.textContent = chart.t[k];
      said.replaceChildren(name, say(chart, k));
      slider.setAttribute("aria-valuetext", said.textContent);
      rows.forEach((row, j) => row.classList.toggle("at", j === k));
      if (!svg) return;
      svg.classList.add("live");
      const x = `${chart.x[k] / 10}%`;
      const cursor = one(".cursor line", svg);
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      for (const [kind, values] of [["actual", chart.a], ["predicted", chart.p]]) {
        const dot = one(`.cursor .${kind}`, svg);
        dot.setAttribute("cx", x);
        dot.setAttribute("cy", 190 * (1 - values[k] / chart.y));
      }
    };
    slider.hidden = chart.x.length < 2;
    slider.setAttribute("aria-valuetext", said.textContent);
    slider.addEventListener("input", () => show(Number(slider.value)));
    rows.forEach((row, k) => row.addEventListener("pointerenter", () => show(k)));
    svg?.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const at = 1000 * (event.clientX - box.left) / box.width;
      let best = 0;
      chart.x.forEach((x, k) => { if (Math.abs(x - at) < Math.abs(chart.x[best] - at)) best = k; });
      show(best);
    });
  }

  // A link to a folded card opens it; printing opens everything.
  const open = (hash) => {
    const target = hash && document.getElementById(hash.slice(1));
    if (target instanceof HTMLDetailsElement) target.open = true;
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
