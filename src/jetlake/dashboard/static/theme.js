// Light or dark before anything is painted: what was chosen here, else what the system says.
"use strict";
(() => {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
