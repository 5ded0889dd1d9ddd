/** Numbers, times and durations as text. */

const NUMBER = new Intl.NumberFormat("en-GB");
const DATE = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const UNITS: [string, number][] = [["d", 86_400], ["h", 3_600], ["min", 60]];
const SIZES = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Return a count with its thousands apart. */
export function count(value: number): string {
  return NUMBER.format(value);
}

/** Return a count with its noun: `1 job`, `2 jobs`. */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** Return a duration in seconds, with its two largest units. */
export function span(seconds: number): string {
  let left = Math.max(0, Math.round(seconds));
  for (const [n, [unit, size]] of UNITS.entries()) {
    if (left < size) continue;
    const rest = Math.floor((left % size) / (UNITS[n + 1]?.[1] ?? 1));
    left = Math.floor(left / size);
    return rest ? `${left} ${unit} ${rest} ${UNITS[n + 1]?.[0] ?? "s"}` : `${left} ${unit}`;
  }
  return seconds > 0 && seconds < 1 ? "< 1 s" : `${left} s`;
}

/** Return a time of the API in words of this reader's place; a dash for none. */
export function moment(at: string | null | undefined): string {
  return at ? DATE.format(new Date(at)) : "–";
}

/** Return the seconds from one time to another. */
export function between(from: string, to: string | number): number {
  return (new Date(to).getTime() - new Date(from).getTime()) / 1000;
}

/** Return a size in bytes. */
export function size(bytes: number): string {
  let value = bytes;
  let n = 0;
  for (; value >= 1024 && n < SIZES.length - 1; n++) value /= 1024;
  return `${value < 10 && n > 0 ? value.toFixed(1) : Math.round(value)} ${SIZES[n] ?? ""}`;
}

/** Return a part of 1 in per cent; never 100 % nor 0 % unless it is. */
export function percent(part: number): string {
  if (part > 0 && part < 0.01) return "<\u00a01\u00a0%";
  if (part < 1 && part > 0.99) return ">\u00a099\u00a0%";
  return `${Math.round(part * 100)}\u00a0%`;
}

/** Return how a pilot isolates payloads as a phrase; a word that is unknown here as it is. */
export function isolation(word: string): string {
  const known: Record<string, string> = {
    account: "in namespaces, under an account of its own: each payload sees its own files and processes alone",
    namespaces: "in namespaces: each payload sees its own files and processes alone",
    none: "none: payloads run as plain processes of the pilot's account",
    direct: "none: the job was sent directly, and ran as the account of its batch job",
  };
  return known[word] ?? word;
}

/** Return ranges of ids as text: `1-9, 12`. */
export function ranges(ids: readonly (readonly number[])[]): string {
  return ids.map(([low, high]) => (low === high ? `${low}` : `${low}-${high}`)).join(",");
}
