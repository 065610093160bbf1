// How long to wait until the next question. Pure.

const HIDDEN_FACTOR = 10;
const MOST_MS = 30_000;

// The time until the next question; pure.
export function nextDelay(interval, { hidden, failures }) {
  const backedOff = interval * 2 ** Math.min(failures, 6);
  return Math.min(hidden ? Math.max(backedOff, interval * HIDDEN_FACTOR) : backedOff, Math.max(MOST_MS, interval));
}
