"use strict";
// Keeps the list of campaigns up to date: rows that changed are fetched every few seconds and put in place.
(() => {
  const list = document.getElementById("list");
  const status = document.getElementById("status");
  const filter = document.getElementById("filter");
  if (!list || !status) return;
  const POLL_MS = 3000;
  const part = list.dataset.part;  // what was asked for, where there are too many to have them all here
  const more = part === undefined ? "" : `&q=${encodeURIComponent(part)}`;
  let version = list.dataset.version;
  let timer = 0, isFetching = false, isOver = false;

  const say = (state, words) => {
    if (status.dataset.state === state) return;
    status.dataset.state = state;
    status.textContent = words;
  };
  const sift = () => {
    if (!filter) return;
    const asked = filter.value.trim().toLowerCase();
    let seen = 0;
    for (const row of list.querySelectorAll("tbody tr")) {
      row.hidden = !row.dataset.key.toLowerCase().includes(asked);
      seen += !row.hidden;
    }
    const none = document.getElementById("none-found");
    if (none) none.hidden = seen > 0 || !asked;
  };
  const put = (rows) => {
    const known = new Map([...list.querySelectorAll("tbody tr")].map((row) => [row.dataset.key, row]));
    for (const [name, html] of Object.entries(rows)) {
      const old = known.get(name);
      const made = window.doralMoving.parsed(`<table><tbody>${html}</tbody></table>`).querySelector("tr");
      if (!old || !made) continue;
      made.hidden = old.hidden;
      window.doralMoving.bring(old, made);
    }
  };
  const fetchNow = async () => {
    clearTimeout(timer);
    if (isFetching || isOver || document.hidden) return;
    isFetching = true;
    let next = POLL_MS;
    try {
      const answer = await fetch(`/overview?since=${encodeURIComponent(version)}${more}`, {
        headers: { Accept: "application/json" }, redirect: "manual", cache: "no-store",
      });
      if (answer.status === 401 || answer.type === "opaqueredirect") {
        isOver = true;
        say("signed-out", "Signed out: load the page again to sign in.");
      } else if (!answer.ok) {
        say("failed", "The store cannot be read now.");
      } else {
        const found = await answer.json();
        if (found.table !== null) window.doralMoving.bringInside(list, found.table);
        else put(found.rows);
        version = found.version;
        if (found.is_reading) next = 500;
        sift();
        say("live", "Live");
      }
    } catch {
      say("reconnecting", "Reconnecting");
    }
    isFetching = false;
    if (!isOver) timer = setTimeout(fetchNow, next);
  };
  if (filter) {
    filter.addEventListener("input", sift);
    if (part === undefined) filter.form.addEventListener("submit", (event) => event.preventDefault());
  }
  document.addEventListener("visibilitychange", fetchNow);
  sift();
  fetchNow();
})();
