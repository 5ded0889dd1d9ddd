/** The filters of the list of jobs: those of `wms jobs`, as the address has them. */

export const FILTERS = ["jobs", "state", "name", "group", "site", "owner", "submission", "since"] as const;

export type Filters = Partial<Record<(typeof FILTERS)[number], string>>;

/** Return the filters that an address has. */
export function filtersOf(query: URLSearchParams): Filters {
  const found: Filters = {};
  for (const name of FILTERS) if (query.get(name)) found[name] = query.get(name) ?? "";
  return found;
}

/** Return the selection for the gateway. `since` may be a duration before now: `1h`, `30m`, `2d`. */
export function selectionOf(filters: Filters): Record<string, string | boolean> {
  const since = filters.since ? timeOf(filters.since) : undefined;
  return { ...filters, ...(since ? { since } : {}), ...(Object.keys(filters).length ? {} : { everything: true }) };
}

const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 };

function timeOf(since: string): string {
  const found = /^(\d+)([smhdw])$/.exec(since.trim());
  if (!found) return since;
  // To the minute, so that the next page is asked for with the same time.
  const at = Date.now() - 1_000 * Number(found[1]) * (SECONDS[found[2] ?? "s"] ?? 1);
  return new Date(Math.floor(at / 60_000) * 60_000).toISOString();
}
