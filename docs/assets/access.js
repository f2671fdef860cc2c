// What the theme leaves to do for readers with a keyboard or a screen reader: landmarks with names
// of their own, tables and wide pictures that can be scrolled, and no empty headers.
(() => {
  const tend = () => {
    document.querySelectorAll("nav.md-code__nav:not([aria-label])").forEach((nav, k) => {
      nav.setAttribute("aria-label", `Copy code block ${nav.closest("pre")?.id || k}`);
    });
    document.querySelectorAll("nav.md-nav:not([data-named])").forEach((nav, k) => {
      nav.dataset.named = "";
      const title = nav.querySelector(":scope > .md-nav__title")?.textContent.trim();
      nav.removeAttribute("aria-labelledby");
      nav.setAttribute("aria-label", `${title || "Pages"}, part ${k + 1}`);
    });
    document.querySelectorAll(".md-typeset table th:empty").forEach((header) => {
      header.replaceWith(document.createElement("td"));
    });
    document.querySelectorAll(".md-typeset table:not([tabindex])").forEach((table) => {
      table.tabIndex = 0;
    });
    document.querySelectorAll(".md-typeset p > img:not(.wide)").forEach((picture) => {
      if (picture.naturalWidth > 2.1 * picture.naturalHeight) {
        picture.classList.add("wide");
        picture.parentElement.tabIndex = 0;
      }
    });
  };
  new MutationObserver(tend).observe(document, { childList: true, subtree: true });
  document.addEventListener("DOMContentLoaded", tend);
  window.addEventListener("load", tend);
})();
