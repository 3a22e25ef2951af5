"use strict";
(() => {
  document.documentElement.classList.add("scripted");
  const data = JSON.parse(document.getElementById("data").textContent);
  const dashes = ["solid", "dash", "dashdot", "dot"];
  const metricWords = {};
  for (const input of document.querySelectorAll('input[name="metric"]')) {
    metricWords[input.value] = input.parentElement.textContent.trim();
  }
  const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`).value;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const faint = (hex) => `${hex}29`;
  const isNarrow = () => window.matchMedia("(max-width: 40rem)").matches;

  // A mean line and its band.
  const band = (line, x, values, position, markers) => {
    const own = colour(`--colour-${(position % 4) + 1}`);
    const edge = { x, type: "scatter", mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false, legendgroup: line.name };
    const bounds = values.low.map((low, i) => (low === null ? "" : ` [${format(low)}, ${format(values.high[i])}]`));
    return [
      { ...edge, y: values.high },
      { ...edge, y: values.low, fill: "tonexty", fillcolor: faint(own) },
      {
        x, y: values.mean, customdata: bounds, name: line.name, type: "scatter", legendgroup: line.name,
        mode: markers ? "lines+markers" : "lines",
        line: { color: own, width: 2, dash: dashes[position % 4] }, marker: { size: 6 },
        hovertemplate: markers ? "%{y:.1f}%{customdata}" : "%{y:,.0f}%{customdata}",
      },
    ];
  };
  const format = (value) => (Math.abs(value) < 1000
    ? value.toFixed(1)
    : Math.round(value).toLocaleString("en")).replace("-", "\u2212");

  const layout = (xTitle, yTitle, extra) => {
    const ink = colour("--ink");
    const axis = { gridcolor: colour("--line"), linecolor: colour("--line"), zerolinecolor: colour("--soft"), automargin: true };
    return {
      font: { color: ink, family: getComputedStyle(document.body).fontFamily, size: 12 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      // Titles stand above, in the page: a legend of several lines pushes the plot down, and nothing else.
      margin: { l: 10, r: 12, t: 10, b: 10 },
      hovermode: "x unified",
      dragmode: isNarrow() ? false : "zoom",  // a finger on a phone scrolls
      hoverlabel: { bgcolor: colour("--panel"), bordercolor: colour("--line"), font: { color: ink } },
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", itemclick: false, itemdoubleclick: false },
      xaxis: { ...axis, title: { text: xTitle } },
      yaxis: { ...axis, title: { text: yTitle } },
      uirevision: "kept",
      ...extra,
    };
  };
  // No bar of buttons that only a mouse finds: the pictures lie next to the page, and a double click shows all again.
  const config = { responsive: true, displayModeBar: false };
  const isShown = (line) => document.querySelector(`input[name="policy"][value="${line.name}"]`)?.checked ?? true;

  const drawFigure = (name, figure) => {
    const metric = chosen("metric");
    const view = chosen("view");
    const traces = figure.lines.flatMap((line, position) => (isShown(line) ? band(line, figure.rounds, line.metrics[metric][view], position, false) : []));
    const shapes = figure.race_end === null ? [] : [{
      type: "line", x0: figure.race_end, x1: figure.race_end, y0: 0, y1: 1, yref: "paper",
      line: { color: colour("--soft"), width: 1, dash: "dot" },
    }];
    const annotations = figure.race_end === null ? [] : [{
      x: figure.race_end, y: 1, yref: "paper", xanchor: "left", yanchor: "top", showarrow: false,
      text: " stage 1 ends", font: { size: 11, color: colour("--soft") },
    }];
    const yTitle = view === "reward" ? "cumulative reward" : "less DORAL’s reward";
    const made = layout("round", yTitle, { shapes, annotations });
    made.xaxis.range = [0, figure.rounds[figure.rounds.length - 1]];
    if (view === "reward") made.yaxis.rangemode = "tozero";
    made.uirevision = view;
    Plotly.react(name, traces, made, config);
  };
  const drawSweep = (name, sweep) => {
    const traces = sweep.lines.flatMap((line, position) => (isShown(line) ? band(line, line.x, line, position, true) : []));
    const made = layout(sweep.x_title, "% of the oracle", {});
    made.xaxis.tickvals = sweep.lines[0].x;
    Plotly.react(name, traces, made, config);
  };
  const drawAll = () => {
    for (const [name, figure] of Object.entries(data.figures)) drawFigure(name, figure);
    for (const group of [data.horizon, data.accept]) {
      for (const [name, sweep] of Object.entries(group || {})) drawSweep(name, sweep);
    }
  };
  const showMetric = () => {
    for (const row of document.querySelectorAll("tr[data-metric]")) row.hidden = row.dataset.metric !== chosen("metric");
  };

  for (const input of document.querySelectorAll(".controls input")) {
    input.addEventListener("change", () => { drawAll(); showMetric(); });
  }
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);

  drawAll();
  showMetric();
})();
