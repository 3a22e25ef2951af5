"use strict";
(() => {
  document.documentElement.classList.add("scripted");
  const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`).value;
  const show = () => {
    const metric = chosen("metric");
    const view = chosen("view");
    for (const one of document.querySelectorAll(".variant")) {
      one.hidden = one.dataset.metric !== metric || one.dataset.view !== view;
    }
    for (const row of document.querySelectorAll("tr[data-metric]")) row.hidden = row.dataset.metric !== metric;
    for (const input of document.querySelectorAll('input[name="policy"]')) {
      for (const part of ["line", "band"]) {
        for (const drawn of document.querySelectorAll(`[id$="-${part}-${input.value}"]`)) {
          drawn.style.display = input.checked ? "" : "none";
        }
      }
    }
  };
  for (const input of document.querySelectorAll(".controls input")) input.addEventListener("change", show);
  show();
})();
