/** Requests to the gateway under the user's token. */

import { withQuery } from "../address.svelte";
import { session } from "./session.svelte";

const PREFIX = "/api/v1";

export type Query = Record<string, string | number | boolean | undefined>;

/** What went wrong with a request, and what would help. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly remedy = "",
    readonly places: string[] = [],
  ) {
    super(message);
  }
}

interface Given {
  query?: Query;
  method?: string;
  body?: unknown;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

/** Return the parsed answer. Throws a Problem. */
export async function ask<T>(path: string, given: Given = {}): Promise<T> {
  return (await respond(path, given)).json() as Promise<T>;
}

/** Return the response, once its status says that it succeeded. Throws a Problem. */
export async function respond(path: string, given: Given = {}): Promise<Response> {
  const { query = {}, method = "GET", body, signal, headers = {} } = given;
  const told: Record<string, string> = body === undefined ? {} : { "Content-Type": "application/json" };
  const token = session.token;
  let response: Response;
  try {
    response = await fetch(withQuery(PREFIX + path, query), {
      method,
      signal,
      cache: "no-store",
      headers: { Authorization: `Bearer ${token}`, ...told, ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, "UNREACHABLE", "the gateway does not answer", "this page asks again by itself; `wms status` tells more");
  }
  if (response.ok) return response;
  const problem = await refused(response);
  // Of several requests that one token is refused for, the first ends the session.
  if (problem.status === 401 && session.token === token) session.signOut(problem.message);
  throw problem;
}

async function refused(response: Response): Promise<Problem> {
  const said = await response.json().catch(() => ({}));
  return new Problem(response.status, said.code ?? "", said.detail ?? response.statusText, said.remedy, said.places);
}
