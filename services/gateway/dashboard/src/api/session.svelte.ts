/** The session: a token, which this tab keeps until it is closed, and which the address hands over once. */

const KEY = "wms.token";

class Session {
  token = $state(sessionStorage.getItem(KEY) ?? "");
  /** Why the session ended, for the next sign-in. */
  notice = $state("");

  /** Use this token. */
  signIn(token: string): void {
    sessionStorage.setItem(KEY, token);
    this.token = token;
    this.notice = "";
  }

  /** Forget the token. */
  signOut(notice = ""): void {
    sessionStorage.removeItem(KEY);
    this.token = "";
    this.notice = notice;
  }
}

export const session = new Session();

/** Take the token out of the address's fragment, which is sent to no server, and remove it there before anything else is done. */
export function takeToken(): void {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  session.signIn(token);
}
