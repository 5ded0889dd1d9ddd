/** An answer that is kept fresh while it is looked at: asked for again after a while, and soon after something happened. */

import { events } from "./events.svelte";
import { Problem } from "./request";

/** The least milliseconds between two requests that events cause. */
const PACE_MS = 400;
/** How many times as long as an answer takes nothing is asked, so that slow answers are not asked for all the time. */
const REST = 5;
/** The milliseconds after which it is looked whether the page is shown again. */
const HIDDEN_MS = 1_000;

export class Watched<T> {
  value = $state.raw<T>();
  problem = $state.raw<Problem>();
  #load: (signal: AbortSignal) => Promise<T>;
  #every: () => number;
  #timer = 0;
  #dueAt = Infinity;
  #under: AbortController | undefined;
  #mayAt = 0;
  #again = false;

  /** `load` fetches the value; `every` returns the milliseconds after which it is fetched again: Infinity for never. */
  constructor(load: (signal: AbortSignal) => Promise<T>, every: () => number) {
    this.#load = load;
    this.#every = every;
  }

  /** Fetch the value anew as soon as its pace allows. */
  nudge(): void {
    if (this.#under) this.#again = true;
    else this.#schedule(Math.max(0, this.#mayAt - performance.now()));
  }

  /** Fetch the value at once, whatever is under way, and keep it fresh. */
  restart(): void {
    this.stop();
    void this.#fetch();
  }

  /** Fetch no more. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#dueAt = Infinity;
    this.#under?.abort();
    this.#under = undefined;
  }

  #schedule(wait: number): void {
    const at = performance.now() + wait;
    // A timer cannot wait for ever.
    if (at >= this.#dueAt || wait === Infinity) return;
    clearTimeout(this.#timer);
    this.#dueAt = at;
    this.#timer = setTimeout(() => void this.#fetch(), wait);
  }

  async #fetch(): Promise<void> {
    this.#dueAt = Infinity;
    if (document.hidden) {
      this.#schedule(HIDDEN_MS);
      return;
    }
    const mine = (this.#under = new AbortController());
    const began = performance.now();
    this.#again = false;
    try {
      const value = await this.#load(mine.signal);
      if (mine.signal.aborted) return;
      this.value = value;
      this.problem = undefined;
    } catch (error) {
      if (mine.signal.aborted) return;
      this.problem = error instanceof Problem ? error : new Problem(0, "FAULT", String(error));
    }
    this.#under = undefined;
    const took = performance.now() - began;
    this.#mayAt = performance.now() + Math.max(PACE_MS, REST * took);
    this.#schedule(this.#again ? this.#mayAt - performance.now() : this.#every());
  }
}

/**
 * Return a value that is fetched while the component is shown, and at once when what `load` depends on changes.
 * With `live` it is fetched anew after events of the user's jobs.
 */
export function watch<T>(load: (signal: AbortSignal) => Promise<T>, every: number | (() => number) = 5_000, live = false): Watched<T> {
  const watched = new Watched(load, typeof every === "number" ? () => every : every);
  $effect(() => {
    watched.restart();
    return () => watched.stop();
  });
  $effect(() => (live ? events.listen(() => watched.nudge()) : undefined));
  return watched;
}
