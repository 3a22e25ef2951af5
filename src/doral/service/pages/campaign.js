"use strict";
// Keeps the page of a campaign up to date. A stream tells that there is more; what changed is fetched and put in place,
// so that focus, selection, scrolling, open details and the order of tables stay as they are.
(() => {
  const live = document.getElementById("live");
  const status = document.getElementById("status");
  const asOf = document.getElementById("as-of");
  if (!live || !status) return;
  const path = live.dataset.path;
  const POLL_MS = 5000, STALE_MS = 30000, RETRY_MS = 3000;
  let version = live.dataset.version;
  let madeAt = Number(live.dataset.madeAt);
  let heardAt = Date.now(); // when the service was last heard of
  let wanted = 0; // the last event that the stream told of
  let source = null, timer = 0, isFetching = false, isOver = false;

  // --- what the status bar says -------------------------------------------------------------------------------------
  const clock = (ms) => `${new Date(ms).toISOString().slice(11, 19)} UTC`; // as all times of the page
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
    asOf.textContent = `as of ${clock(madeAt * 1000)}`;
  };
  const end = (state, words, link) => {
    isOver = true;
    disconnect();
    say(state, words, link);
  };

  const put = (name, html) => {
    const place = document.querySelector(`[data-fragment="${name}"]`);
    if (place) window.doralMoving.bringInside(place, html);
  };

  // --- fetching -------------------------------------------------------------------------------------------------------
  const later = (ms) => {
    clearTimeout(timer);
    if (!isOver && !document.hidden) timer = setTimeout(fetchNow, ms);
  };
  const isStreaming = () => source !== null && source.readyState === EventSource.OPEN;
  const fetchNow = async () => {
    if (isFetching || isOver) return;
    isFetching = true;
    let next = isStreaming() ? STALE_MS / 2 : POLL_MS;
    try {
      const answer = await fetch(`${path}/fragments?since=${encodeURIComponent(version)}`, {
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
        for (const [name, html] of Object.entries(found.fragments)) put(name, html);
        version = found.version;
        madeAt = found.made_at;
        heardAt = Date.now();
        say(found.state === "closed" ? "closed" : "live", found.state === "closed" ? "Closed" : "Live");
        if (found.sequence < wanted) next = 1000 * found.wait_s + 50;
      }
    } catch {
      say("reconnecting", `Reconnecting: nothing was heard since ${clock(heardAt)}.`);
      next = RETRY_MS;
    }
    isFetching = false;
    later(next);
  };

  // --- the stream -----------------------------------------------------------------------------------------------------
  const connect = () => {
    disconnect();
    if (isOver || document.hidden) return;
    fetchNow();
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
    if (Date.now() - heardAt > STALE_MS && status.dataset.state === "live") {
      say("stale", `Stale since ${clock(heardAt)}.`);
    }
  }, 5000);
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => {
    if (event.persisted) connect();
  });
  connect();
})();
