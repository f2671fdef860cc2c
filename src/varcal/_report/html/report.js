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

  // Search: rows of the ranking and cards whose name holds the text.
  const search = one("#search");
  if (search) {
    const status = one("#found"), cards = all(".card"), fold = one("#ranking details");
    search.closest(".tools").hidden = false;
    search.addEventListener("input", () => {
      const wanted = search.value.trim().toLowerCase();
      let shown = 0;
      for (const card of cards) {
        const hit = one("h3", card).textContent.toLowerCase().includes(wanted);
        card.hidden = !hit;
        one(`#ranking tr[data-v="${card.dataset.v}"]`).hidden = !hit;
        shown += hit;
      }
      if (wanted && fold) fold.open = true;
      one("#none").hidden = shown > 0;
      status.textContent = `${shown} of ${cards.length} shown`;
    });
  }

  // Read-out: what a chart shows at one point, by pointer, touch or arrow keys.
  const percent = (tenths) => `${(tenths / 10).toFixed(1)}%`;
  const say = (chart, k) => {
    const gap = chart.p[k] - chart.a[k];
    const side = !chart.s[k] ? "not surely off"
      : `${gap > 0 ? chart.over : chart.under} by ${(Math.abs(gap) / 10).toFixed(1)} points`;
    return `: ${chart.says} ${percent(chart.p[k])}, ${chart.happens} ${percent(chart.a[k])} `
      + `(band ${percent(chart.l[k])} to ${percent(chart.h[k])}): ${side}.`;
  };
  for (const [id, chart] of Object.entries(data.charts)) {
    const card = document.getElementById(id);
    const slider = one(".reader", card), said = one(".said", card);
    const svg = one("svg.lines", card), plot = Number(svg.dataset.plot);
    const show = (k) => {
      slider.value = k;
      const name = document.createElement("bdi");
      name.textContent = chart.t[k];
      said.replaceChildren(name, say(chart, k));
      slider.setAttribute("aria-valuetext", said.textContent);
      svg.classList.add("live");
      const x = `${chart.x[k] / 10}%`;
      const cursor = one(".cursor line", svg);
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      for (const [kind, values] of [["actual", chart.a], ["predicted", chart.p]]) {
        const dot = one(`.cursor .${kind}`, svg);
        dot.setAttribute("cx", x);
        const [low, high] = chart.y;
        dot.setAttribute("cy", plot * (1 - (values[k] - low) / (high - low)));
      }
    };
    slider.hidden = chart.x.length < 2;
    slider.setAttribute("aria-valuetext", said.textContent);
    slider.addEventListener("input", () => show(Number(slider.value)));
    svg.addEventListener("pointermove", (event) => {
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
