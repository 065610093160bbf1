// Light or dark: as the system says, unless the switch says otherwise.

const KEY = "headrace.theme";
const system = matchMedia("(prefers-color-scheme: dark)");

export function current() {
  return localStorage.getItem(KEY) ?? "system";
}

export function apply() {
  const chosen = current();
  const dark = chosen === "dark" || (chosen === "system" && system.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

export function choose(theme) {
  if (theme === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  apply();
}

system.addEventListener("change", apply);
