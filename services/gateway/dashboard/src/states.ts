/** The states of jobs, in the order in which pictures show them. */

export const STATES = [
  "Done", "Completed", "Completing", "Running", "Stalled", "Matched", "Staging", "Waiting", "Checking", "Scouting",
  "Received", "Submitting", "Rescheduled", "Held", "Failed", "Killed", "Deleted",
] as const;

const ENDED = new Set(["Done", "Failed", "Killed", "Deleted"]);
const KINDS: Record<string, string> = {
  Done: "good", Completed: "good", Completing: "busy", Running: "busy", Matched: "busy", Stalled: "warn", Held: "held",
  Failed: "bad", Killed: "gone", Deleted: "gone",
};

/** Return whether nothing runs or waits for jobs in this state any more. */
export function isEnded(state: string): boolean {
  return ENDED.has(state);
}

/** Return the kind of a state, by which it is coloured. */
export function kindOf(state: string): string {
  return KINDS[state] ?? "wait";
}

/** Return the orders that may change a job in this state. */
export function ordersFor(state: string): string[] {
  if (state === "Failed") return ["reschedule", "remove"];
  if (isEnded(state)) return ["remove"];
  if (state === "Held") return ["release", "kill", "remove"];
  if (kindOf(state) === "busy" || state === "Stalled") return ["stop_and_hold", "reschedule", "kill"];
  return ["hold", "kill", "remove"];
}

/** Return the counts in the order of STATES, without zeroes. */
export function inOrder(counts: Record<string, number>): [string, number][] {
  return STATES.map((state): [string, number] => [state, counts[state] ?? 0]).filter(([, jobs]) => jobs > 0);
}

/** Return the sum of the counts whose state meets the test. */
export function sum(counts: Record<string, number>, test: (state: string) => boolean = () => true): number {
  return Object.entries(counts).reduce((total, [state, jobs]) => (test(state) ? total + jobs : total), 0);
}
