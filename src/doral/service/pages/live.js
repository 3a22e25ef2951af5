"use strict";
// Keeps a page up to date. What changed is fetched and morphed into place by idiomorph, so that focus, selection,
// scrolling, open folds and the order of tables stay as they are. A campaign's page hears of news by a stream; the list
// of campaigns asks every few seconds.
(() => {
  const live = document.querySelector("[data-live]");
  const status = document.getElementById("status");
  if (!live || !status) return;
  const path = live.dataset.live;
  const isList = path === "/";
  const asOf = document.getElementById("as-of");
  const POLL_MS = isList ? 3000 : 5000, STALE_MS = 30000, RETRY_MS = 3000;
  let version = live.dataset.version;
  let madeAt = Number(live.dataset.madeAt || Date.now() / 1000);
  let heardAt = Date.now(); // when the service was last heard of
  let wanted = 0; // the last event that the stream told of
  let source = null, timer = 0, isFetching = false, isOver = false;

  // --- what the status says -----------------------------------------------------------------------------------------
  const clock = (ms) => new Date(ms).toLocaleTimeString(undefined, { hourCycle: "h23", timeZoneName: "short" });
  const say = (state, words, link) => {
    if (status.dataset.state !== state) {
      status.dataset.state = state;
      status.textContent = words;
      if (link) {
        const a = document.createElement("a");
        a.href = link.href;
        a.textContent = link.words;
        status.append(" ", a);
      }
    }
    if (asOf) asOf.textContent = `as of ${clock(madeAt * 1000)}`;
  };
  const end = (state, words, link) => {
    isOver = true;
    disconnect();
    say(state, words, link);
  };

  // --- morphing -----------------------------------------------------------------------------------------------------
  const isTouched = (place) => [...place.querySelectorAll("input:not([type=hidden]), textarea")]
    .some((field) => field === document.activeElement || field.value !== field.defaultValue);
  const flash = (node) => {
    const place = node.parentElement && node.parentElement.closest("td, dd, .mark, .lead-line");
    if (place) place.classList.add("changed");
  };
  const callbacks = {
    beforeAttributeUpdated: (name, node) => !(node.nodeName === "DETAILS" && name === "open")
      && !(name === "hidden" && node.nodeName === "TR") && !(node.nodeName === "TH" && name === "aria-sort"),
    // A time that is shown in the zone of the viewer differs from what was sent, and is the same.
    beforeNodeMorphed: (old, made) => !(old.nodeName === "TIME" && made.nodeName === "TIME" && old.dateTime === made.dateTime),
    afterNodeMorphed: (old) => { if (old.nodeType === Node.TEXT_NODE) flash(old); },
    beforeNodeAdded: (node) => {
      if (node.nodeName === "TR" && node.dataset.key && !isList) node.classList.add("fresh");
      return true;
    },
  };
  const sortAgain = (place) => {
    for (const head of place.querySelectorAll("th[aria-sort]")) {
      window.doralSortBy(head.closest("table"), head.cellIndex, head.getAttribute("aria-sort") === "ascending");
    }
  };
  const put = (name, html) => {
    const place = document.querySelector(`[data-fragment="${CSS.escape(name)}"]`);
    if (!place || isTouched(place)) return;
    for (const one of place.querySelectorAll(".changed, .fresh")) one.classList.remove("changed", "fresh");
    window.Idiomorph.morph(place, html, { morphStyle: "innerHTML", ignoreActiveValue: true, callbacks });
    sortAgain(place);
    window.doralLocalTimes(place);
  };

  // --- fetching -----------------------------------------------------------------------------------------------------
  const later = (ms) => {
    clearTimeout(timer);
    if (!isOver && !document.hidden) timer = setTimeout(fetchNow, ms);
  };
  const isStreaming = () => source !== null && source.readyState === EventSource.OPEN;
  const address = () => isList
    ? `/overview?since=${encodeURIComponent(version)}&${new URLSearchParams(location.search)}`
    : `${path}/fragments?since=${encodeURIComponent(version)}`;
  const fetchNow = async () => {
    if (isFetching || isOver) return;
    isFetching = true;
    let next = isStreaming() ? STALE_MS / 2 : POLL_MS;
    try {
      const answer = await fetch(address(), {
        headers: { Accept: "application/json" }, redirect: "manual", cache: "no-store",
      });
      if (answer.status === 401 || answer.type === "opaqueredirect") {
        end("signed-out", "Signed out.", { href: `/sign-in?next=${encodeURIComponent(path)}`, words: "Sign in again" });
      } else if (answer.status === 403) {
        end("refused", "This key may not see this campaign any more.");
      } else if (answer.status === 404 || answer.status === 410) {
        end("gone", "This campaign was deleted.", { href: "/", words: "All campaigns" });
      } else if (!answer.ok) {
        const told = await answer.json().catch(() => ({}));
        say("failed", `Cannot be read since ${clock(Date.now())}: ${told.title || `the service answered ${answer.status}`}.`);
        next = RETRY_MS;
      } else {
        const found = await answer.json();
        const parts = isList ? Object.entries(found.rows).map(([name, html]) => [`row:${name}`, html]) : Object.entries(found.fragments);
        if (found.table) parts.unshift(["list", found.table]);
        for (const [name, html] of parts) put(name, html);
        version = found.version;
        madeAt = found.made_at;
        heardAt = Date.now();
        const isClosed = found.state === "closed";
        say(isClosed ? "closed" : "live", isClosed ? "Closed" : "Live");
        if (found.sequence < wanted || found.is_reading) next = 1000 * (found.wait_s || 0.5) + 50;
        document.dispatchEvent(new Event("doral:news"));
      }
    } catch {
      say("reconnecting", `Reconnecting: nothing was heard since ${clock(heardAt)}.`);
      next = RETRY_MS;
    }
    isFetching = false;
    later(next);
  };

  // --- the stream ---------------------------------------------------------------------------------------------------
  const connect = () => {
    disconnect();
    if (isOver || document.hidden) return;
    fetchNow();
    if (isList) return;
    source = new EventSource(`${path}/changes`);
    source.addEventListener("message", (event) => {
      heardAt = Date.now();
      wanted = JSON.parse(event.data).sequence;
      fetchNow();
    });
    // The browser connects again by itself, unless it was told not to come; polling goes on meanwhile.
    source.addEventListener("error", () => later(500));
  };
  const disconnect = () => {
    clearTimeout(timer);
    if (source) source.close();
    source = null;
  };
  setInterval(() => {
    if (isOver || document.hidden) return;
    if (source && source.readyState === EventSource.CLOSED && Date.now() - heardAt < STALE_MS) connect();
    if (Date.now() - heardAt > STALE_MS && status.dataset.state === "live") say("stale", `Stale since ${clock(heardAt)}.`);
  }, 5000);
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => {
    if (event.persisted) connect();
  });
  connect();
})();
// Sheets of controls: one is open at a time, Escape closes it. The list: "/" goes to the filter, arrows to its lines.
(() => {
  const sheets = "details.control";
  document.addEventListener("toggle", (event) => {
    if (!event.target.matches(sheets) || !event.target.open) return;
    for (const other of document.querySelectorAll(`${sheets}[open]`)) if (other !== event.target) other.open = false;
  }, true);
  document.addEventListener("keydown", (event) => {
    const open = event.key === "Escape" && document.querySelector(`${sheets}[open]`);
    if (open) {
      open.open = false;
      open.querySelector("summary").focus();
    }
  });
  const filter = document.getElementById("filter");
  const list = document.getElementById("list");
  if (!filter || !list) return;
  const isPart = list.dataset.part !== undefined; // there are too many to have them all here
  const sift = () => {
    const asked = filter.value.trim().toLowerCase();
    let seen = 0;
    for (const row of list.querySelectorAll("tbody tr")) {
      row.hidden = !row.dataset.key.toLowerCase().includes(asked);
      seen += !row.hidden;
    }
    document.getElementById("none-found").hidden = seen > 0 || !asked;
  };
  const move = (step) => {
    const links = [...list.querySelectorAll("tbody tr:not([hidden]) th a")];
    const place = links.indexOf(document.activeElement) + step;
    (place < 0 ? filter : links[Math.min(place, links.length - 1)])?.focus();
  };
  document.addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.key === "/" && !isTyping) {
      event.preventDefault();
      filter.focus();
      filter.select();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && (event.target === filter || list.contains(event.target))) {
      event.preventDefault();
      move(event.target === filter && event.key === "ArrowDown" ? 1 : event.key === "ArrowDown" ? 1 : -1);
    }
  });
  filter.addEventListener("input", sift);
  document.addEventListener("doral:news", sift);
  if (!isPart) filter.form.addEventListener("submit", (event) => {
    event.preventDefault();
    move(1);
  });
  sift();
})();
