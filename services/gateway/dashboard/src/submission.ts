/** What is typed into the form of submissions, and the description of jobs that it makes. */

export type Entries = Record<
  | "executable" | "arguments" | "name" | "job_group" | "array" | "cpu_time" | "wall_time" | "memory_mb" | "processors" | "sites" | "tags"
  | "output_sandbox" | "environment",
  string | number | null
>;

export interface Description {
  executable: string;
  array?: number;
  [field: string]: unknown;
}

const NUMBERS: Record<string, [number, number]> = {
  array: [1, 1_000_000], cpu_time: [1, 31_536_000], wall_time: [1, 31_536_000], memory_mb: [1, 100_000_000], processors: [1, 1_000],
};
const LISTS = ["sites", "tags", "output_sandbox"] as const;
const NAME_LENGTH = 200;

function text(value: string | number | null): string {
  return String(value ?? "").trim();
}

/** Return words that blanks part; quotes hold blanks together. */
export function words(typed: string | number | null): string[] {
  return [...text(typed).matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((found) => found[1] ?? found[2] ?? found[3] ?? "");
}

/** Return what is wrong with the entries, by field. */
export function problemsOf(entries: Entries): Partial<Record<keyof Entries, string>> {
  const found: Partial<Record<keyof Entries, string>> = {};
  if (!text(entries.executable)) found.executable = "name the program to run";
  for (const [name, [least, most]] of Object.entries(NUMBERS) as [keyof Entries, [number, number]][]) {
    const value = text(entries[name]);
    if (value && !(Number.isInteger(Number(value)) && Number(value) >= least && Number(value) <= most)) {
      found[name] = `a whole number from ${least} to ${most.toLocaleString("en-GB")}`;
    }
  }
  for (const name of ["name", "job_group"] as const) {
    if (text(entries[name]).length > NAME_LENGTH) found[name] = `at most ${NAME_LENGTH} characters`;
  }
  const odd = words(entries.environment).find((word) => !/^[^=]+=/.test(word));
  if (odd) found.environment = `${odd} is no NAME=value`;
  return found;
}

/** Return the description; what is left empty is left out, so that the defaults hold. */
export function description(entries: Entries): Description {
  const made: Description = { executable: text(entries.executable) };
  if (text(entries.arguments)) made.arguments = words(entries.arguments);
  for (const name of ["name", "job_group"] as const) if (text(entries[name])) made[name] = text(entries[name]);
  for (const name of Object.keys(NUMBERS) as (keyof Entries)[]) if (text(entries[name])) made[name as string] = Number(text(entries[name]));
  for (const name of LISTS) if (text(entries[name])) made[name] = words(entries[name]);
  const variables = words(entries.environment).map((word): [string, string] => {
    const at = word.indexOf("=");
    return [word.slice(0, at), word.slice(at + 1)];
  });
  if (variables.length) made.environment = Object.fromEntries(variables);
  return made;
}
