/** The theme: that of the system, unless the user has chosen one. */

export type Theme = "system" | "light" | "dark";

const KEY = "wms.theme";
const ORDER: Theme[] = ["system", "light", "dark"];

class ThemeChoice {
  chosen = $state<Theme>((localStorage.getItem(KEY) as Theme | null) ?? "system");

  /** Choose the next theme. */
  next(): void {
    this.chosen = ORDER[(ORDER.indexOf(this.chosen) + 1) % ORDER.length] ?? "system";
    localStorage.setItem(KEY, this.chosen);
    applyTheme();
  }
}

export const theme = new ThemeChoice();

/** Show the chosen theme. */
export function applyTheme(): void {
  document.documentElement.dataset.theme = theme.chosen;
}
