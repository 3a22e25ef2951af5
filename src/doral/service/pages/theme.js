"use strict";
// Runs before anything is drawn, so that a chosen theme never flashes in after the other one.
(() => {
  const root = document.documentElement;
  const themes = ["system", "light", "dark"];
  const chosen = () => {
    try {
      return localStorage.getItem("doral-theme") || "system";
    } catch {
      return "system"; // storage may be switched off
    }
  };
  const show = (theme) => {
    if (theme === "system") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", theme);
    root.classList.add("scripted");
    for (const button of document.querySelectorAll("button[data-theme-switch]")) {
      button.textContent = `Theme: ${theme}`;
    }
  };
  show(chosen());
  addEventListener("DOMContentLoaded", () => {
    show(chosen());
    for (const button of document.querySelectorAll("button[data-theme-switch]")) {
      button.hidden = false;
      button.addEventListener("click", () => {
        const next = themes[(themes.indexOf(chosen()) + 1) % themes.length];
        try {
          localStorage.setItem("doral-theme", next);
        } catch {
          // It holds for this page alone.
        }
        show(next);
      });
    }
  });
  addEventListener("storage", (event) => {
    if (event.key === "doral-theme") show(chosen());
  });
})();
