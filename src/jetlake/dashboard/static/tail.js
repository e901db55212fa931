// The live tail: rows from a websocket, put into the table as text. Pause closes it; nothing is kept for a paused tail.
"use strict";
(() => {
  const ROWS_MAX = 200;
  const RETRY_MS = 2000;
  const SESSION_ENDED = 4401;
  const SIZE_UNITS = ["B", "KiB", "MiB", "GiB"];
  let socket;
  let isPaused = false;
  let count = 0;
  let skipped = 0;

  const part = (name) => document.querySelector(`[data-tail-${name}]`);
  const shownSize = (size) => {
    let step = 0;
    while (size >= 1024 && step < SIZE_UNITS.length - 1) { size /= 1024; step += 1; }
    return `${step ? size.toFixed(1) : size} ${SIZE_UNITS[step]}`;
  };
  const tell = (text) => { if (part("state").textContent !== text) part("state").textContent = text; };
  const tellCount = () => {
    const passed = skipped ? ` ${skipped.toLocaleString("en")} more came too fast to be shown.` : "";
    tell(isPaused ? `Paused after ${count.toLocaleString("en")} messages.${passed}` : count || skipped ? `${count.toLocaleString("en")} messages.${passed}` : "Waiting for messages…");
  };

  const cell = (kind, label, text, className = "") => {
    const made = document.createElement(kind);
    if (label) made.dataset.label = label;
    made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const row = (message) => {
    const made = document.createElement("tr");
    const head = cell("th", "", undefined, "number");
    head.scope = "row";
    const link = head.appendChild(document.createElement("a"));
    link.href = message.address;
    link.textContent = message.sequence.toLocaleString("en");
    const subject = cell("td", "Subject");
    subject.appendChild(document.createElement("code")).textContent = message.subject;
    const payload = cell("td", "Payload", undefined, "preview");
    payload.appendChild(document.createElement("code")).textContent = message.text;
    made.append(head, cell("td", "Time", message.time.slice(0, 23).replace("T", " "), "time"), subject, payload, cell("td", "Size", shownSize(message.size), "number"));
    return made;
  };

  const show = (frame) => {
    if (frame.problem) { tell(frame.problem); return; }
    count += frame.messages.length;
    skipped += frame.skipped;
    const rows = part("rows");
    for (const message of frame.messages) rows.prepend(row(message));
    while (rows.children.length > ROWS_MAX) rows.lastElementChild.remove();
    tellCount();
  };

  const connect = () => {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const address = document.querySelector("[data-tail]").dataset.tail;
    const mine = new WebSocket(`${scheme}://${location.host}${address}`);
    socket = mine;
    mine.onmessage = (message) => { if (mine === socket) show(JSON.parse(message.data)); };
    mine.onclose = (event) => {
      if (mine !== socket || isPaused) return;
      if (event.code === SESSION_ENDED) { location.reload(); return; }
      tell("The tail was interrupted. It reconnects by itself.");
      setTimeout(() => { if (!isPaused) connect(); }, RETRY_MS);
    };
  };

  const pause = () => {
    isPaused = !isPaused;
    part("pause").textContent = isPaused ? "Continue" : "Pause";
    if (isPaused) { socket.close(); tellCount(); } else { tell("Connecting…"); connect(); }
  };
  const clear = () => { part("rows").replaceChildren(); count = 0; skipped = 0; tellCount(); };

  document.addEventListener("DOMContentLoaded", () => {
    if (!document.querySelector("[data-tail]")) return;
    part("pause").addEventListener("click", pause);
    part("clear").addEventListener("click", clear);
    document.addEventListener("keydown", (event) => {
      const isTyping = event.target.closest("input, textarea, select, [contenteditable]") || document.querySelector("dialog[open]");
      if (event.key === "p" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) pause();
    });
    connect();
  });
})();
