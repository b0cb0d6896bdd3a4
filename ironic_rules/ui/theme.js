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
  keep(KEPT, chosen === THEMES[0] ? null : chosen);
  return chosen;
}

/** Return what this browser keeps under a name; null is nothing. */
export function kept(name) {
  try {
    return localStorage.getItem(name) ?? null;
  } catch {
    return null;
  }
}

/** Let this browser keep a text; null: let it forget. What it does not keep is so as long as this page is open. */
export function keep(name, text) {
  try {
    if (text === null) localStorage.removeItem(name);
    else localStorage.setItem(name, text);
  } catch {
    // The browser keeps nothing.
  }
}

apply(kept(KEPT));
