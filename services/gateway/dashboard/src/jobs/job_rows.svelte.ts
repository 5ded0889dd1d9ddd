/** The rows of a list of jobs: fetched page by page as they are looked at, and kept fresh by events. */

import type { JobLine, JobPage } from "../api/answers";
import type { Move } from "../api/events.svelte";
import { ask, Problem } from "../api/request";

const PAGE = 500;

export class JobRows {
  rows = $state.raw<JobLine[]>([]);
  problem = $state.raw<Problem>();
  /** Whether there are no further rows. */
  whole = $state(false);
  /** Whether the first page has come. */
  ready = $state(false);
  #selection: Record<string, string | boolean>;
  #loading: AbortController | undefined;
  #after: number | undefined;

  constructor(selection: Record<string, string | boolean>) {
    this.#selection = selection;
  }

  /** Fetch the next page, unless one is under way or all are here. */
  async more(): Promise<void> {
    if (this.#loading || this.whole) return;
    const mine = (this.#loading = new AbortController());
    const wanted = this.rows.length + PAGE;
    try {
      // A page may be short though others follow: then the search goes on.
      while (!this.whole && this.rows.length < wanted) {
        const page = await this.#page(this.#after, mine.signal);
        this.rows = [...this.rows, ...page.jobs];
        this.#after = page.after ?? undefined;
        this.whole = page.after === null;
        this.problem = undefined;
        this.ready ||= this.whole || page.jobs.length > 0;
      }
    } catch (error) {
      if (!mine.signal.aborted) this.problem = error instanceof Problem ? error : new Problem(0, "FAULT", String(error));
    }
    if (this.#loading === mine) this.#loading = undefined;
  }

  /** Fetch the newest rows again, and put them before or in place of those that are here. */
  async refresh(): Promise<void> {
    const mine = new AbortController();
    try {
      const page = await this.#page(undefined, mine.signal);
      const last = page.after ?? 0;
      this.rows = [...page.jobs, ...this.rows.filter((row) => row.job_id < last)];
      this.problem = undefined;
      this.ready = true;
      if (this.#after === undefined) {
        this.#after = page.after ?? undefined;
        this.whole = page.after === null;
      }
    } catch (error) {
      this.problem = error instanceof Problem ? error : new Problem(0, "FAULT", String(error));
    }
  }

  /** Show the moves in the rows that are here. Returns whether a job moved that is not among them. */
  move(moves: readonly Move[]): boolean {
    const latest = new Map<number, Move>();
    let strange = false;
    const newest = this.rows[0]?.job_id ?? 0;
    for (const move of moves) {
      strange ||= move.first + move.count - 1 > newest;
      const most = Math.min(move.count, PAGE);
      for (let n = 0; n < most; n++) latest.set(move.first + n, move);
    }
    if (!latest.size) return strange;
    this.rows = this.rows.map((row) => {
      const move = latest.get(row.job_id);
      return move ? { ...row, state: move.state, reason: move.reason, site: move.site ?? row.site, changed_at: move.at } : row;
    });
    return strange;
  }

  /** Fetch no more. */
  stop(): void {
    this.#loading?.abort();
  }

  #page(after: number | undefined, signal: AbortSignal): Promise<JobPage> {
    return ask<JobPage>("/jobs", { signal, query: { ...this.#selection, newest: true, limit: PAGE, after } });
  }
}
