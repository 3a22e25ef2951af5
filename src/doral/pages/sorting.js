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
  };
  for (const button of document.querySelectorAll("table.sortable thead button")) {
    button.addEventListener("click", () => {
      const head = button.parentElement;
      const isAscending = head.getAttribute("aria-sort") !== "ascending";
      for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
      sortBy(head.closest("table"), head.cellIndex, isAscending);
    });
  }
})();
