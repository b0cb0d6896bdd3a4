// Light or dark: as the computer has it, or as chosen here, which this browser keeps. Loaded before the page is painted.

const KEPT = "theme";
const THEMES = ["auto", "light", "dark"];

/** Return the theme that is chosen; "auto" is that of the computer. */
export function theme() {
  return document.documentElement.dataset.theme ?? THEMES[0];
}

function apply(chosen) {
  if (chosen === THEMES[0] || !THEMES.includes(chosen)) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

/** Choose the next theme, and return it. */
export function nextTheme() {
  const chosen = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length];
  apply(chosen);
  try {
    if (chosen === THEMES[0]) localStorage.removeItem(KEPT);
    else localStorage.setItem(KEPT, chosen);
  } catch {
    // The browser keeps nothing: it is so as long as this page is open.
  }
  return chosen;
}

try {
  apply(localStorage.getItem(KEPT));
} catch {
  // The browser keeps nothing.
}
