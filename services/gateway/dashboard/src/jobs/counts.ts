/** Numbers of jobs by state. Very many jobs are counted with several requests. */

import type { JobCounts } from "../api/answers";
import { ask } from "../api/request";

type Selection = Record<string, string | boolean>;

/** Return the numbers of the selected jobs by state. Throws a Problem. */
export async function countJobs(selection: Selection, signal?: AbortSignal): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  let below: number | undefined;
  do {
    const piece = await ask<JobCounts>("/jobs/counts", { signal, query: { ...selection, in_pieces: true, below } });
    for (const [state, jobs] of Object.entries(piece.counts)) found[state] = (found[state] ?? 0) + jobs;
    below = piece.counted_from ?? undefined;
  } while (below !== undefined);
  return found;
}
