// What is wider than the page can be scrolled with the keyboard, too.
const reachable = () => {
  for (const wide of document.querySelectorAll(".md-typeset__scrollwrap, .formula, .md-typeset p:has(> img), .md-typeset pre > code")) {
    if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;
    else wide.removeAttribute("tabindex");
  }
};
addEventListener("load", () => {
  reachable();
  new ResizeObserver(reachable).observe(document.body);
});
