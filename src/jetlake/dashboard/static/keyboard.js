// Keys, the menu, the colours, dialogs and buttons that copy.
"use strict";
(() => {
  const SEQUENCE_MS = 1200;
  const COPIED_MS = 1500;
  const THEMES = ["system", "light", "dark"];
  let awaiting = 0;

  const isTyping = (element) => element.closest("input, textarea, select, [contenteditable]");
  const help = () => document.getElementById("help").showModal();

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const search = document.getElementById("search");
    if (event.key === "Escape" && event.target === search) { search.value = ""; search.blur(); clearSearch(); return; }
    if (event.target === search || event.target.closest(".search-results")) { moveInSearch(event, search); return; }
    if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
    if (Date.now() - awaiting < SEQUENCE_MS) {
      awaiting = 0;
      const link = [...document.querySelectorAll("[data-shortcut]")].find((each) => each.dataset.shortcut === event.key);
      if (link) { event.preventDefault(); link.click(); return; }
    }
    if (event.key === "g") awaiting = Date.now();
    else if (event.key === "/" && search) { event.preventDefault(); search.focus(); }
    else if (event.key === "?") { event.preventDefault(); help(); }
  });

  const clearSearch = () => document.getElementById("search-results").replaceChildren();
  const moveInSearch = (event, search) => {
    const links = [...document.querySelectorAll(".search-results a")];
    const at = links.indexOf(document.activeElement);
    if (event.key === "Enter" && at < 0) { event.preventDefault(); links[0]?.click(); }
    if (event.key === "ArrowDown") { event.preventDefault(); links[Math.min(at + 1, links.length - 1)]?.focus(); }
    if (event.key === "ArrowUp") { event.preventDefault(); (at > 0 ? links[at - 1] : search).focus(); }
  };

  const themeNow = () => localStorage.getItem("theme") || "system";
  const nameTheme = () => document.querySelectorAll("[data-theme-switch]").forEach((button) => {
    button.setAttribute("aria-label", themeNow() === "system" ? "Colours: follow the system" : `Colours: ${themeNow()}`);
  });
  const nextTheme = () => {
    const theme = THEMES[(THEMES.indexOf(themeNow()) + 1) % THEMES.length];
    localStorage.setItem("theme", theme);
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    nameTheme();
    document.dispatchEvent(new Event("theme"));
  };

  const copied = (button) => {
    const label = button.querySelector("span");
    const before = label.textContent;
    label.textContent = "Copied";
    setTimeout(() => { label.textContent = before; }, COPIED_MS);
  };
  const copy = async (button) => {
    try { await navigator.clipboard.writeText(button.dataset.copy); copied(button); return; } catch { /* Without TLS browsers refuse. */ }
    const field = document.body.appendChild(document.createElement("textarea"));
    field.value = button.dataset.copy;
    field.select();
    if (document.execCommand("copy")) copied(button);
    field.remove();
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    const who = document.querySelector("details.who[open]");
    if (who && !who.contains(event.target)) who.open = false;
    if (!event.target.closest("[data-search]") && document.getElementById("search-results")) clearSearch();
    if (!button) return;
    if (button.matches("[data-theme-switch]")) nextTheme();
    else if (button.matches("[data-help]")) help();
    else if (button.matches("[data-copy]")) copy(button);
    else if (button.matches("[data-close]")) button.closest("dialog").close();
    else if (button.matches(".menu-button")) {
      const isOpen = document.body.classList.toggle("menu-open");
      button.setAttribute("aria-expanded", String(isOpen));
    }
  });
  document.addEventListener("submit", (event) => { if (event.target.matches("[data-search]")) event.preventDefault(); });

  // The server checks the word as well; this only says early that it is not the right one.
  document.addEventListener("input", (event) => {
    const form = event.target.closest("[data-confirmation]");
    if (form) form.querySelector("[type=submit]").disabled = event.target.value !== form.dataset.confirmation;
  });
  document.addEventListener("htmx:afterSettle", () => {
    document.querySelectorAll("dialog[data-open]:not([open])").forEach((dialog) => {
      dialog.addEventListener("close", () => dialog.remove());
      dialog.showModal();
    });
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.xhr.getResponseHeader("HX-Retarget") === "#notices") {
      document.querySelectorAll("dialog[data-open]").forEach((dialog) => dialog.close());
      window.scrollTo(0, 0);
    }
  });
  document.addEventListener("DOMContentLoaded", nameTheme);
})();
