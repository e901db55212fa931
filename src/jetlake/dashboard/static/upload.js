// Uploads: how much of a file is sent, and a way to stop it. htmx sends the form.
"use strict";
(() => {
  const PERCENT = 100;
  const parts = (form) => ({ bar: form.querySelector("progress"), told: form.querySelector("[data-sent]"), stop: form.querySelector("[data-stop]") });

  document.addEventListener("htmx:xhr:loadstart", (event) => {
    const form = event.target.closest?.("form[data-upload]");
    if (!form) return;
    const { bar, stop } = parts(form);
    bar.hidden = false;
    bar.value = 0;
    stop.hidden = false;
  });
  document.addEventListener("htmx:xhr:progress", (event) => {
    const form = event.target.closest?.("form[data-upload]");
    if (!form || !event.detail.lengthComputable) return;
    const { bar, told } = parts(form);
    const sent = event.detail.loaded / event.detail.total;
    bar.value = sent;
    told.textContent = sent < 1 ? `${Math.floor(sent * PERCENT)} % sent` : "Sent. The server stores it…";
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const form = event.target.closest?.("form[data-upload]");
    if (!form) return;
    const { bar, told, stop } = parts(form);
    bar.hidden = true;
    stop.hidden = true;
    told.textContent = event.detail.successful ? "" : "Not stored.";
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-stop]");
    if (button) htmx.trigger(button.closest("form"), "htmx:abort");
  });
})();
