"use strict";
// Times are written in UTC; here they are shown in the zone of the viewer, which is named. UTC stays in the title.
(() => {
  const form = (precision) => new Intl.DateTimeFormat(undefined, {
    ...(precision === "brief" ? {} : { year: "numeric" }), month: "short", day: "numeric", hour: "2-digit", minute: "2-digit",
    ...(precision === "seconds" ? { second: "2-digit" } : {}), hourCycle: "h23", timeZoneName: "short",
  });
  const forms = { minutes: form("minutes"), seconds: form("seconds"), brief: form("brief") };
  const localise = (place) => {
    for (const time of place.querySelectorAll("time[data-local]")) {
      const words = forms[time.dataset.local].format(new Date(time.dateTime));
      if (time.textContent !== words) time.textContent = words;
    }
  };
  window.doralLocalTimes = localise;
  localise(document);
})();
