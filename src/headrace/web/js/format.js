// Values as people read them: units, thousands separators, relative and absolute times. Pure.

const NUMBER = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const UNITS = ["B", "KB", "MB", "GB", "TB", "PB"];
const MIN_WATERMARK = -(2 ** 63);
const MAX_WATERMARK = 2 ** 63 - 1;

// A value that is not known, or not yet.
export const NONE = "–";

export function count(value) {
  if (value === null || value === undefined || Number.isNaN(Number(value))) return NONE;
  return NUMBER.format(Number(value));
}

// At most three digits before the unit: 1.24 M, 83.1 k, 950.
export function short(value) {
  if (value === null || value === undefined || Number.isNaN(Number(value))) return NONE;
  const number = Number(value);
  const size = Math.abs(number);
  for (const [limit, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (size >= limit) return `${digits(number / (unit === "k" ? 1e3 : limit))} ${unit}`;
  }
  return size >= 100 || Number.isInteger(number) ? NUMBER.format(number) : digits(number);
}

function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

export function rate(value, unit = "/s") {
  return value === null || value === undefined ? NONE : `${short(value)}${unit}`;
}

export function bytes(value) {
  if (value === null || value === undefined || value < 0 || Number.isNaN(Number(value))) return NONE;
  let size = Number(value);
  let unit = 0;
  while (size >= 1024 && unit < UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? NUMBER.format(size) : digits(size)} ${UNITS[unit]}`;
}

export function percent(share) {
  if (share === null || share === undefined || Number.isNaN(Number(share))) return NONE;
  const value = Number(share) * 100;
  return `${value > 0 && value < 1 ? "<1" : Math.round(value)} %`;
}

export function duration(ms) {
  if (ms === null || ms === undefined || ms < 0 || Number.isNaN(Number(ms))) return NONE;
  if (ms < 10) return `${Number(ms).toFixed(ms === 0 || Number.isInteger(ms) ? 0 : 1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const whole = Math.floor(seconds);
  const [d, hours, m] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
  if (d) return `${d} d ${hours} h`;
  return hours ? `${hours} h ${m} min` : `${m} min ${whole % 60} s`;
}

export function ago(ms, now = Date.now()) {
  if (!(ms > 0)) return NONE;
  const passed = now - ms;
  if (Math.abs(passed) < 2000) return "now";
  return passed > 0 ? `${duration(passed)} ago` : `in ${duration(-passed)}`;
}

export function time(ms) {
  if (!(ms > 0)) return NONE;
  const date = new Date(ms);
  const two = (value) => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function clock(ms) {
  return ms > 0 ? time(ms).slice(11) : NONE;
}

export function watermark(value) {
  if (value === null || value === undefined || value === "null") return NONE;
  const number = Number(value);
  if (number <= MIN_WATERMARK) return "none yet";
  if (number >= MAX_WATERMARK) return "end of time";
  // Event time in a program need not be a date at all.
  return number > 1e11 && number < 1e14 ? time(number) : count(number);
}

// A long name, cut; what is cut off can be seen as a title.
export function clip(text, most) {
  const value = String(text ?? "");
  if (value.length <= most) return value;
  return `${[...value.slice(0, most)].slice(0, -1).join("")}…`;
}

// The operators of a vertex, from the plan's description: "Source: a<br/>+- Map<br/>", with entities.
export function chainOf(description) {
  return String(description ?? "")
    .split("<br/>")
    .filter((line) => line !== "")
    .map((line) => line.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&"))
    .map((line) => {
      const lead = /^((?:[: ] {2})*(?:[:+]- )?)/.exec(line)[1];
      return { depth: lead.length / 3, name: line.slice(lead.length) };
    });
}
