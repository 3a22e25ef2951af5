"use strict";
(() => {
  const sortBy = (table, column, isAscending) => {
    const body = table.tBodies[0];
    const value = (row) => row.cells[column].dataset.sort;
    const rows = [...body.rows].sort((one, other) => {
      const a = value(one), b = value(other);
      if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
      const order = isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b;
      return isAscending ? order : -order;
    });
    body.append(...rows);
    const head = table.tHead.rows[0].cells;
    for (const other of head) other.removeAttribute("aria-sort");
    head[column].setAttribute("aria-sort", isAscending ? "ascending" : "descending");
  };
  window.doralSortBy = sortBy; // a page that moves sorts its tables again
  document.addEventListener("click", (event) => {
    const button = event.target.closest("table.sortable thead button");
    if (!button) return;
    const head = button.parentElement;
    sortBy(head.closest("table"), head.cellIndex, head.getAttribute("aria-sort") !== "ascending");
  });
})();
