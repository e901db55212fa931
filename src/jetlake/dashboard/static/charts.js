// Draws charts (uPlot) and the lines in tables from the samples that live.js keeps.
"use strict";
const Charts = (() => {
  const WINDOW_S = 1800;
  const HEIGHT = 170;
  const BINARY_STEPS = [...Array(50).keys()].map((power) => 2 ** power);
  const charts = new Map();

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const scaled = (value, base, units) => {
    let step = 0;
    while (Math.abs(value) >= base && step < units.length - 1) { value /= base; step += 1; }
    return `${Number(value.toPrecision(3))}${units[step]}`;
  };
  const FORMATS = {
    count: (value) => scaled(value, 1000, ["", " k", " M", " G"]),
    rate: (value) => scaled(value, 1000, ["", " k", " M", " G"]),
    bytes: (value) => scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]),
    "byte-rate": (value) => scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]),
    seconds: (value) => (value === 0 ? "0" : value < 1 ? `${Number((value * 1000).toPrecision(3))} ms` : `${value} s`),
  };

  // All lines of a chart over one axis of time; a line without a sample at a time has a gap there.
  const aligned = (keys, samples) => {
    const times = [...new Set(keys.flatMap((key) => (samples.get(key) || []).map(([time]) => time)))].sort((a, b) => a - b);
    const lines = keys.map((key) => {
      const known = new Map(samples.get(key) || []);
      return times.map((time) => known.get(time) ?? null);
    });
    return [times, ...lines];
  };

  const make = (element, keys, data) => {
    const format = FORMATS[element.dataset.unit] || FORMATS.count;
    const axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    return new uPlot({
      width: element.clientWidth, height: HEIGHT, legend: { show: false }, cursor: { y: false, points: { size: 6 } },
      scales: { x: { range: (_, low, high) => [Math.min(low ?? high, high - 60), high] }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.15 : 1] } },
      axes: [
        { ...axis, space: 70, size: 26, values: "{HH}:{mm}:{ss}" },
        { ...axis, size: 62, space: 32, incrs: element.dataset.unit.startsWith("byte") ? BINARY_STEPS : undefined, values: (_, marks) => marks.map(format) },
      ],
      series: [{}, ...keys.map((_, number) => ({ stroke: color(`--line-${number + 1}`), width: 2, fill: number ? undefined : color("--line-1-fill"), points: { show: false }, spanGaps: true }))],
    }, data, element);
  };

  const drawChart = (element, samples) => {
    const keys = element.dataset.chart.split(" ");
    const data = aligned(keys, samples);
    const theme = color("--ground");
    let known = charts.get(element);
    if (known && (known.theme !== theme || known.width !== element.clientWidth)) { known.plot.destroy(); known = undefined; }
    if (known) known.plot.setData(data);
    else charts.set(element, { plot: make(element, keys, data), theme, width: element.clientWidth });
  };

  const drawSpark = (element, samples) => {
    const points = (samples.get(element.dataset.spark) || []).slice(-60);
    if (points.length < 2) return;
    const highest = Math.max(...points.map(([, value]) => value), 1e-9);
    const lowest = Math.min(...points.map(([, value]) => value), 0);
    const at = ([, value], number) =>
      `${((number / (points.length - 1)) * 100).toFixed(1)},${(22 - ((value - lowest) / (highest - lowest)) * 20).toFixed(1)}`;
    let line = element.querySelector("polyline");
    if (!line) line = element.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "polyline"));
    line.setAttribute("points", points.map(at).join(" "));
  };

  const draw = (samples) => {
    for (const element of charts.keys()) if (!element.isConnected) { charts.get(element).plot.destroy(); charts.delete(element); }
    document.querySelectorAll("[data-chart]").forEach((element) => drawChart(element, samples));
    document.querySelectorAll("[data-spark]").forEach((element) => drawSpark(element, samples));
  };
  return { draw, WINDOW_S };
})();
