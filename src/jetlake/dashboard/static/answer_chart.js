// Draws the chart of an answer (data-answer-chart), and has Ctrl+Enter run a query. Values reach the page as text only.
"use strict";
(() => {
  const HEIGHT = 220;
  const DAY_S = 86400;
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let plot;

  const axes = (chart) => {
    const style = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const named = { ...style, space: 60, values: (_, marks) => marks.map((mark) => (chart.labels[mark] ?? "").slice(0, 14)), incrs: [1, 2, 5, 10, 20] };
    const isOneDay = chart.x[chart.x.length - 1] - chart.x[0] < DAY_S;
    const timed = { ...style, space: 80, size: 26, values: isOneDay ? "{HH}:{mm}:{ss}" : "{YYYY}-{MM}-{DD}" };
    return [chart.labels.length ? named : chart.is_time ? timed : { ...style, space: 70 }, { ...style, size: 70, space: 32 }];
  };

  const draw = () => {
    const element = document.querySelector("[data-answer-chart]");
    if (plot) { plot.destroy(); plot = undefined; }
    if (!element) return;
    const chart = JSON.parse(element.dataset.answerChart);
    const isBars = chart.labels.length > 0;
    const line = (each, number) => ({
      label: each.name, stroke: color(`--line-${number + 1}`), width: 2, spanGaps: true,
      fill: number ? undefined : color("--line-1-fill"),
      paths: isBars ? uPlot.paths.bars({ size: [0.6, 60] }) : undefined,
      points: { show: !isBars && chart.x.length < 60, size: 5 },
    });
    plot = new uPlot({
      width: element.clientWidth, height: HEIGHT, legend: { show: false }, cursor: { y: false, points: { size: 6 } },
      scales: {
        x: { time: chart.is_time, range: isBars ? () => [-0.6, chart.x.length - 0.4] : undefined },
        y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.1 : 1] },
      },
      axes: axes(chart), series: [{}, ...chart.lines.map(line)],
    }, [chart.x, ...chart.lines.map((each) => each.values)], element);
  };

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    const form = event.target.closest("[data-query]");
    if (form) { event.preventDefault(); form.requestSubmit(); }
  });
  document.addEventListener("DOMContentLoaded", draw);
  document.addEventListener("htmx:afterSettle", draw);
  document.addEventListener("theme", draw);
  window.addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
