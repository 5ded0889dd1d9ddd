/** The present time, which ages on the page are told by. */

class Clock {
  /** Milliseconds since 1970, renewed each second while the page is shown. */
  now = $state(Date.now());
}

export const clock = new Clock();

setInterval(() => {
  if (!document.hidden) clock.now = Date.now();
}, 1_000);
