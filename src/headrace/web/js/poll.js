// Asks again and again, one question at a time: every `interval` ms while the page is seen, seldom while it is hidden,
// and ever more seldom while the server does not answer.

import { ApiError } from "./api.js";
import { nextDelay } from "./poll_delay.js";

export class Poller {
  // `question(signal)` answers a promise; `onAnswer(answer)` and `onError(error)` are told.
  constructor(question, { interval, onAnswer, onError }) {
    this.question = question;
    this.interval = interval;
    this.onAnswer = onAnswer;
    this.onError = onError;
    this.failures = 0;
    this.stopped = false;
    this.wake = () => {
      if (!document.hidden) this.now();
    };
    document.addEventListener("visibilitychange", this.wake);
    this.now();
  }

  // Ask at once; a question that is under way is given up.
  now() {
    clearTimeout(this.timer);
    this.abort?.abort();
    return this.#ask();
  }

  async #ask() {
    if (this.stopped) return;
    const abort = new AbortController();
    this.abort = abort;
    try {
      const answer = await this.question(abort.signal);
      if (abort.signal.aborted || this.stopped) return;
      this.failures = 0;
      this.onAnswer(answer);
    } catch (error) {
      if (abort.signal.aborted || this.stopped) return;
      this.failures += 1;
      this.onError(error);
      if (!(error instanceof ApiError)) console.error(error);
    }
    if (this.stopped || abort !== this.abort) return;
    this.timer = setTimeout(() => this.#ask(), nextDelay(this.interval, { hidden: document.hidden, failures: this.failures }));
  }

  stop() {
    this.stopped = true;
    clearTimeout(this.timer);
    this.abort?.abort();
    document.removeEventListener("visibilitychange", this.wake);
  }
}
