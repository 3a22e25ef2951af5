"use strict";
// Comfort for forms that work without it: rows are added and removed without asking the service.
(() => {
  const renumber = (table) => {
    const kind = table.dataset.rows;
    table.querySelectorAll("tbody tr").forEach((row, place) => {
      for (const field of row.querySelectorAll("input")) {
        const [, name] = field.id.split("-");
        field.id = `${kind}-${name}-${place}`;
        field.setAttribute("aria-label", field.getAttribute("aria-label").replace(/ \d+:/, ` ${place + 1}:`));
      }
      const remove = row.querySelector("td.remove button");
      if (remove) remove.setAttribute("aria-label", `Remove ${table.dataset.word} ${place + 1}`);
    });
  };
  const withRemove = (table, row) => {
    const cell = document.createElement("td");
    cell.className = "remove";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "\u00d7";
    button.addEventListener("click", () => {
      const rows = table.querySelectorAll("tbody tr");
      const next = row.nextElementSibling || row.previousElementSibling;
      if (rows.length > 1) row.remove();
      else for (const field of row.querySelectorAll("input")) field.value = "";
      renumber(table);
      (next || row).querySelector("input").focus();
    });
    cell.append(button);
    row.append(cell);
  };
  const added = (table) => {
    const last = table.querySelector("tbody tr:last-child");
    const row = last.cloneNode(true);
    for (const one of row.querySelectorAll(".mistake, td.remove")) one.remove();
    for (const field of row.querySelectorAll("input")) {
      field.value = "";
      for (const name of ["value", "placeholder", "aria-invalid", "aria-describedby", "autofocus"]) field.removeAttribute(name);
    }
    withRemove(table, row);
    last.after(row);
    renumber(table);
    return row;
  };
  for (const table of document.querySelectorAll("table[data-rows]")) {
    const head = document.createElement("th");
    head.scope = "col";
    head.className = "remove";
    head.innerHTML = '<span class="unseen">Remove</span>';
    table.querySelector("thead tr").append(head);
    for (const row of table.querySelectorAll("tbody tr")) withRemove(table, row);
    renumber(table);
    const more = table.nextElementSibling.querySelector("button");
    more.type = "button";
    more.textContent = `Add ${table.dataset.word === "option" ? "an option" : "a group"}`;
    more.addEventListener("click", () => added(table).querySelector("input").focus());
    // Enter goes on to the next row, and does not send the form half filled in.
    table.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.target.tagName !== "INPUT") return;
      event.preventDefault();
      const fields = [...table.querySelectorAll("tbody input")];
      const next = fields[fields.indexOf(event.target) + 1];
      (next || added(table).querySelector("input")).focus();
    });
  }
  // A press that is repeated while the answer is on its way is the same request; it need not be sent.
  for (const form of document.querySelectorAll("form")) {
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) event.preventDefault();
      form.dataset.sent = "yes";
      setTimeout(() => delete form.dataset.sent, 5000); // it may have been stopped on its way
    });
  }
  // What was done just now is said once: loading the page again need not say it again.
  if (new URLSearchParams(location.search).has("did")) history.replaceState(null, "", location.pathname + location.hash);
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });
})();
