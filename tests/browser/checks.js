// What a person would see of a page, measured. Every function returns a list of complaints.
({
  // The boxes of visible words, as far as nothing clips them.
  boxes() {
    const clipped = (rect, element) => {
      let { left, top, right, bottom } = rect;
      for (let one = element; one && one !== document.body; one = one.parentElement) {
        const style = getComputedStyle(one);
        if (style.position === "fixed") break;
        if (one instanceof SVGElement && !(one instanceof SVGSVGElement)) continue;
        if (style.overflowX === "visible" && style.overflowY === "visible") continue;
        const frame = one.getBoundingClientRect();
        left = Math.max(left, frame.left); right = Math.min(right, frame.right);
        top = Math.max(top, frame.top); bottom = Math.min(bottom, frame.bottom);
      }
      return { left, top, right, bottom };
    };
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const words = node.data.trim();
      const parent = node.parentElement;
      if (!words || ["SCRIPT", "STYLE", "NOSCRIPT"].includes(parent.tagName)) continue;
      if (!parent.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const rect of range.getClientRects()) {
        const box = clipped(rect, parent);
        // The box of a font is higher than its letters.
        const spare = (box.bottom - box.top) * 0.12;
        box.top += spare; box.bottom -= spare;
        if (box.right - box.left > 1 && box.bottom - box.top > 1) found.push({ ...box, words, node });
      }
    }
    return found;
  },
  overlaps() {
    const touch = 1.5;
    const boxes = this.boxes().sort((one, other) => one.top - other.top);
    const complaints = new Set();
    boxes.forEach((one, place) => {
      for (let next = place + 1; next < boxes.length && boxes[next].top < one.bottom - touch; next += 1) {
        const other = boxes[next];
        if (other.node === one.node) continue;
        if (Math.min(one.right, other.right) - Math.max(one.left, other.left) > touch) {
          complaints.add(`"${one.words.slice(0, 50)}" and "${other.words.slice(0, 50)}" at ${Math.round(one.left)}, ${Math.round(one.top + scrollY)}`);
        }
      }
    });
    return [...complaints];
  },
  // Short words that a narrow place tears apart in the middle; what is long and has no spaces may be.
  broken() {
    const complaints = new Set();
    for (const { node } of this.boxes()) {
      const range = document.createRange();
      for (const found of node.data.matchAll(/(?<![^\s(])[A-Za-z]{2,12}(?![^\s),.;:])/g)) {
        range.setStart(node, found.index);
        range.setEnd(node, found.index + found[0].length);
        const tops = new Set([...range.getClientRects()].map((rect) => Math.round(rect.top)));
        if (tops.size > 1) complaints.add(found[0]);
      }
    }
    return [...complaints];
  },
  // Words that nothing clips and that still lie beyond the edge of the screen, or a page that scrolls sideways.
  tooWide() {
    const wide = document.documentElement.scrollWidth;
    if (wide <= innerWidth + 1) return [];
    const beyond = [...document.body.querySelectorAll("*")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1);
    const names = beyond.slice(-3).map((one) => `${one.tagName.toLowerCase()}${one.id ? `#${one.id}` : ""}.${one.getAttribute("class") || ""}`);
    return [`the page is ${wide} wide on a screen of ${innerWidth}: ${names.join(", ")}`];
  },
  // What Tab has to reach, marked by number; of radio buttons with one name, the chosen one.
  expectFocus() {
    const shown = (one) => one.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    const wanted = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')].filter((one) =>
      shown(one) && !one.disabled && one.type !== "hidden" && !(one.type === "radio" && !one.checked));
    for (const one of document.body.querySelectorAll("*")) {
      const style = getComputedStyle(one);
      const scrolls = (way, size, room) => ["auto", "scroll"].includes(style[way]) && one[size] > one[room] + 1;
      if (!(one instanceof HTMLElement) || !shown(one)) continue;
      if ((scrolls("overflowX", "scrollWidth", "clientWidth") || scrolls("overflowY", "scrollHeight", "clientHeight")) && !wanted.includes(one)) wanted.push(one);
    }
    const said = (one) => `${one.tagName.toLowerCase()}${one.id ? `#${one.id}` : ""} "${(one.getAttribute("aria-label") || one.textContent || "").trim().slice(0, 40)}"`;
    window.__wanted = new Map(wanted.map((one) => [one, said(one)]));
    window.__reached = new Set();
    window.__unseen = new Set();
    document.addEventListener("focusin", (event) => {
      const one = event.target;
      window.__reached.add(one);
      const style = getComputedStyle(one);
      const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
      if (!outlined && style.boxShadow === "none") window.__unseen.add(said(one));
    });
    return wanted.length;
  },
  missedFocus() {
    const missed = [...window.__wanted].filter(([one]) => !window.__reached.has(one)).map(([, words]) => `Tab does not reach ${words}`);
    return [...missed, ...[...window.__unseen].map((words) => `nothing shows that ${words} has the focus`)];
  },
})
