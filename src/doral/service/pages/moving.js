"use strict";
// Brings one tree to what another one is: what is the same stays the same node, so that focus, selection, scrolling,
// open details and the order of tables stay as they are. What has changed flashes.
(() => {
  const isSame = (one, other) => one.nodeType === other.nodeType && one.nodeName === other.nodeName && one.id === other.id;
  const flash = (node) => {
    const place = node.parentElement && node.parentElement.closest("td, dd, .mark, .meters span, .lead-line");
    if (!place) return;
    place.classList.remove("changed");
    void place.offsetWidth; // so that it flashes anew
    place.classList.add("changed");
  };
  const bring = (one, other) => {
    if (one.nodeType === Node.TEXT_NODE) {
      if (one.data !== other.data) {
        one.data = other.data;
        flash(one);
      }
      return;
    }
    if (one.nodeType !== Node.ELEMENT_NODE || one.isEqualNode(other)) return;
    for (const { name } of [...one.attributes]) {
      if (!other.hasAttribute(name) && !(name === "open" && one.nodeName === "DETAILS")) one.removeAttribute(name);
    }
    for (const { name, value } of other.attributes) {
      if (name === "class" && one.classList.contains("changed")) one.classList.remove("changed");
      if (one.getAttribute(name) !== value) one.setAttribute(name, value);
    }
    if (one.nodeName === "TBODY" && other.querySelector(":scope > [data-key]")) bringRows(one, other);
    else bringChildren(one, other);
  };
  const bringChildren = (one, other) => {
    const old = [...one.childNodes], wanted = [...other.childNodes]; // nodes that are put in leave the other tree
    wanted.forEach((next, place) => {
      const before = old[place];
      if (before === undefined) one.append(next);
      else if (isSame(before, next)) bring(before, next);
      else before.replaceWith(next);
    });
    for (const left of old.slice(wanted.length)) left.remove();
  };
  // Rows that say what they are about stay the same rows, wherever they move to.
  const bringRows = (body, other) => {
    const known = new Map([...body.rows].map((row) => [row.dataset.key, row]));
    const next = [...other.rows].map((row) => {
      const old = known.get(row.dataset.key);
      if (!old) {
        row.classList.add("fresh");
        return row;
      }
      old.classList.remove("fresh");
      bring(old, row);
      known.delete(row.dataset.key);
      return old;
    });
    for (const left of known.values()) left.remove();
    next.forEach((row, place) => {
      if (body.rows[place] !== row) body.insertBefore(row, body.rows[place] || null);
    });
  };
  const keepOrder = (before, after) => {
    for (const head of before.querySelectorAll("th[aria-sort]")) {
      const table = after.querySelector(`#${CSS.escape(head.closest("table").id)}`);
      if (table && table.tHead.rows[0].cells.length > head.cellIndex) {
        window.doralSortBy(table, head.cellIndex, head.getAttribute("aria-sort") === "ascending");
      }
    }
  };
  const parsed = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    const made = document.createElement("div");
    made.append(template.content);
    return made;
  };
  const bringInside = (place, html) => {
    const made = parsed(html);
    keepOrder(place, made);
    bringChildren(place, made);
  };
  window.doralMoving = { bring, bringInside, parsed };
})();
