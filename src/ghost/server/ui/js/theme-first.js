// Before the first paint: the theme that was chosen, so that no page flashes white at night. Not a module: those wait.
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("ghost.theme"); } catch { /* storage is switched off: the system's theme */ }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
