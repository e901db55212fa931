// One websocket per page: says which keys the page shows, and puts what comes into it. Always as text, never as HTML.
"use strict";
(() => {
  const SESSION_ENDED = 4401;
  const RETRY_MS = 2000;
  const samples = new Map();
  let socket;
  let asked = "";

  const wanted = () => {
    const keys = new Set();
    document.querySelectorAll("[data-live]").forEach((element) => keys.add(element.dataset.live));
    document.querySelectorAll("[data-spark]").forEach((element) => keys.add(element.dataset.spark));
    document.querySelectorAll("[data-chart]").forEach((element) => element.dataset.chart.split(" ").forEach((key) => keys.add(key)));
    return [...keys].sort();
  };

  const ask = () => {
    const keys = wanted();
    if (!keys.length) return;
    if (!socket) { connect(); return; }
    const text = JSON.stringify({ keys });
    if (socket.readyState === WebSocket.OPEN && text !== asked) { asked = text; socket.send(text); }
    Charts.draw(samples);
  };

  const tell = (problem) => {
    const notice = document.getElementById("live-problem");
    if (notice) { notice.hidden = !problem; notice.textContent = problem; }
    document.querySelectorAll("[data-connection]").forEach((element) => element.classList.toggle("lost", Boolean(problem)));
  };

  const show = (frame) => {
    if (frame.history) {
      for (const [key, past] of Object.entries(frame.history)) samples.set(key, past);
    } else {
      for (const [key, [value]] of Object.entries(frame.values)) {
        const known = samples.get(key) || [];
        if (value !== null && (!known.length || known[known.length - 1][0] < frame.time)) known.push([frame.time, value]);
        while (known.length && known[0][0] < frame.time - Charts.WINDOW_S) known.shift();
        samples.set(key, known);
      }
      document.querySelectorAll("[data-live]").forEach((element) => {
        const found = frame.values[element.dataset.live];
        if (found && found[0] !== null) element.textContent = found[1];
      });
      document.querySelectorAll("[data-alarm]").forEach((element) => {
        const known = samples.get(element.dataset.alarm) || [];
        element.classList.toggle("raised", known.length > 1 && known[known.length - 1][1] > known[0][1]);
      });
      tell(frame.problem);
    }
    Charts.draw(samples);
  };

  const connect = () => {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    socket = new WebSocket(`${scheme}://${location.host}/live`);
    socket.onopen = () => { asked = ""; ask(); };
    socket.onmessage = (message) => show(JSON.parse(message.data));
    socket.onclose = (event) => {
      if (event.code === SESSION_ENDED) { location.reload(); return; }
      tell("The dashboard does not answer. This page reconnects by itself.");
      setTimeout(connect, RETRY_MS);
    };
  };

  document.addEventListener("DOMContentLoaded", ask);
  document.addEventListener("htmx:afterSettle", ask);
  document.addEventListener("theme", () => Charts.draw(samples));
  window.addEventListener("resize", () => Charts.draw(samples));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => Charts.draw(samples));
})();
