/** The live events of the user's own jobs, over one stream that goes on where it broke. */

import { Problem, respond } from "./request";

/** One move of consecutive jobs. */
export interface Move {
  first: number;
  count: number;
  state: string;
  reason: string;
  site: string | null;
  at: string;
}

type Listener = (moves: Move[]) => void;

/** Moves are told together that came within so many milliseconds. */
const TOGETHER_MS = 80;
const AGAIN_MS = [500, 1_000, 2_000, 5_000];

class EventStream {
  /** Whether the stream is open. */
  live = $state(false);
  #listeners = new Set<Listener>();
  #lastId = "";
  #waiting: Move[] = [];
  #timer = 0;

  /** Call `listener` with each batch of moves. Returns what ends that. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Follow the events until the signal says to end. */
  async follow(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        if (await this.#read(signal)) failures = -1;
      } catch (error) {
        if (error instanceof Problem && (error.status === 401 || error.status === 403)) return;
        if (error instanceof Problem && error.code === "BAD_EVENT_ID") this.#lastId = "";
      }
      this.live = false;
      await new Promise((wake) => setTimeout(wake, AGAIN_MS[Math.min(Math.max(failures, 0), AGAIN_MS.length - 1)]));
    }
  }

  async #read(signal: AbortSignal): Promise<boolean> {
    const headers: Record<string, string> = this.#lastId ? { "Last-Event-ID": this.#lastId } : {};
    const response = await respond("/events", { signal, headers });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    if (!reader) return false;
    this.live = true;
    // What happened while there was no stream is told by no event if there was no place to go on from.
    this.#tell([]);
    for (let text = ""; ; ) {
      const { done, value } = await reader.read();
      if (done) return true;
      const blocks = (text + value).split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) this.#take(block);
    }
  }

  #take(block: string): void {
    const fields: Record<string, string> = {};
    for (const line of block.split("\n")) {
      const [name = "", ...rest] = line.split(": ");
      fields[name] = rest.join(": ");
    }
    if (fields.id) this.#lastId = fields.id;
    if (fields.data) this.#tell(movesOf(fields.event ?? "", JSON.parse(fields.data)));
  }

  #tell(moves: Move[]): void {
    this.#waiting.push(...moves);
    this.#timer ||= setTimeout(() => {
      const batch = this.#waiting;
      this.#waiting = [];
      this.#timer = 0;
      for (const listener of this.#listeners) listener(batch);
    }, TOGETHER_MS);
  }
}

export const events = new EventStream();

interface JobEvent { job_id: number; state: string; reason?: string; site?: string | null; at: string }

function movesOf(kind: string, fact: any): Move[] {
  switch (kind) {
    case "job-event":
      return [moveOf(fact)];
    case "jobs-moved":
      return fact.events.map(moveOf);
    case "jobs-queued":
      return [{ first: fact.first, count: fact.count, state: "Waiting", reason: "QUEUED", site: null, at: fact.at }];
    case "sweep-moved":
      return [{ first: fact.first, count: fact.count, state: fact.state, reason: fact.reason ?? "", site: null, at: fact.at }];
    default:
      return [];
  }
}

function moveOf(event: JobEvent): Move {
  return { first: event.job_id, count: 1, state: event.state, reason: event.reason ?? "", site: event.site ?? null, at: event.at };
}
