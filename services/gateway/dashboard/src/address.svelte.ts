/** The page's address: which page is shown, and with which filters, so that a link shows the same again. */

class Address {
  path = $state(location.pathname);
  query = $state.raw(new URLSearchParams(location.search));

  /** Go to an address of this page. With `replace` the one before is not kept in the browser's history. */
  go(href: string, replace = false): void {
    history[replace ? "replaceState" : "pushState"](null, "", href);
    this.read();
    if (!replace) scrollTo(0, 0);
  }

  /** Put filters into the address; empty ones are left out. */
  filter(values: Record<string, string>): void {
    this.go(withQuery(this.path, values), true);
  }

  /** Read what the browser's address says. */
  read(): void {
    this.path = location.pathname;
    this.query = new URLSearchParams(location.search);
  }
}

export const address = new Address();

addEventListener("popstate", () => address.read());

document.addEventListener("click", (click) => {
  const link = click.target instanceof Element ? click.target.closest("a") : null;
  if (!link || link.origin !== location.origin || link.target || link.hasAttribute("download")) return;
  if (click.defaultPrevented || click.button !== 0 || click.metaKey || click.ctrlKey || click.shiftKey || click.altKey) return;
  if (link.getAttribute("href")?.startsWith("#")) return;
  click.preventDefault();
  address.go(link.pathname + link.search);
});

/** Return an address with these values as its query; empty ones are left out. */
export function withQuery(path: string, values: Record<string, string | number | boolean | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== "" && value !== undefined && value !== false) query.set(name, String(value));
  }
  return query.size ? `${path}?${query}` : path;
}
