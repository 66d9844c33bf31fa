// Times for people: local wall clock to the second, ages and waits in at most two units.

export const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB");

export function moment(seconds) {
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return "at an unknown time";
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const today = new Date();
  return date.toDateString() === today.toDateString() ? clock(seconds) : `${day} ${clock(seconds)}`;
}

/** Of an ISO 8601 time, as the reports say it: `2026-11-28 18:04:20`, UTC; the text itself where it is none. */
export function utc(iso) {
  const milliseconds = Date.parse(iso);
  return Number.isNaN(milliseconds) ? String(iso ?? "") : new Date(milliseconds).toISOString().slice(0, 19).replace("T", " ");
}

export function span(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min${whole < 600 && whole % 60 ? ` ${whole % 60} s` : ""}`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h${whole % 3600 >= 60 ? ` ${Math.floor((whole % 3600) / 60)} min` : ""}`;
  const hours = Math.floor((whole % 86400) / 3600);
  return `${Math.floor(whole / 86400)} d${hours ? ` ${hours} h` : ""}`;
}

export function until(ts, now = Date.now() / 1000) {
  return ts >= now ? `in ${span(ts - now)}` : `${span(now - ts)} ago`;
}

const two = (number) => String(number).padStart(2, "0");

/** Calls `act` every `seconds` while the page is looked at, until `signal` ends it. */
export function every(seconds, act, signal) {
  const timer = setInterval(() => { if (!document.hidden) act(); }, seconds * 1000);
  signal.addEventListener("abort", () => clearInterval(timer));
}

/** `act` once, `milliseconds` after the first call that came; calls in between change nothing. */
export function soon(milliseconds, act, signal) {
  let timer = null;
  signal?.addEventListener("abort", () => clearTimeout(timer));
  return () => {
    if (timer !== null || signal?.aborted) return;
    timer = setTimeout(() => { timer = null; act(); }, milliseconds);
  };
}
