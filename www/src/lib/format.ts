// Numbers, sizes and names as the page writes them. Unknown is said, never shown as zero.

/** Narrow no-break space: groups digits without letting a number break over two lines. */
const THIN = "\u202f";

/** 10000 -> "10 000" with thin spaces; null -> "unknown". */
export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return "unknown";
  const digits = Math.trunc(Math.abs(value)).toString();
  const grouped = digits.replace(/\B(?=(\d{3})+$)/g, THIN);
  return value < 0 ? `−${grouped}` : grouped;
}

/** Large counts for the meters: 12 400 000 -> "12.4 M". Truncated, so that it never overstates. */
export function compactCount(value: number | null | undefined): string {
  if (value === null || value === undefined) return "unknown";
  for (const [unit, size] of [["G", 1e9], ["M", 1e6]] as const) {
    if (value >= size) return `${(Math.trunc((value / size) * 10) / 10).toFixed(1)}${THIN}${unit}`;
  }
  return count(value);
}

/** Bytes in steps of 1000, three significant digits at most. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "unknown";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let size = value;
  let unit = 0;
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  const text = unit === 0 || size >= 99.95 ? Math.round(size).toString() : size >= 9.995 ? size.toFixed(1) : size.toFixed(2);
  return `${text}${THIN}${units[unit]}`;
}

/** Percent truncated to two places: 99.999 is 99.99, and only everything is 100. */
export function percent(value: number | null | undefined): string {
  if (value === null || value === undefined) return "unknown";
  if (value >= 100) return `100${THIN}%`;
  return `${(Math.floor(value * 100 + 1e-7) / 100).toFixed(2)}${THIN}%`;
}

/** Share of a whole as a percent, truncated; null when there is no whole. */
export function sharePercent(part: number, whole: number): number | null {
  if (whole <= 0) return null;
  return Math.floor((part / whole) * 10000) / 100;
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function shortUuid(uuid: string): string {
  return uuid.slice(0, 8);
}

/** Sorted ids as ranges: [0,1,2,7] -> "0–2, 7". Longer lists end with how many ranges were left off. */
export function ranges(ids: readonly number[], limit = 6): string {
  if (ids.length === 0) return "none";
  const parts: string[] = [];
  let runs = 0;
  let start = ids[0]!;
  let end = start;
  const close = () => {
    runs += 1;
    if (runs <= limit) parts.push(start === end ? `${start}` : `${start}–${end}`);
  };
  for (let i = 1; i < ids.length; i += 1) {
    const id = ids[i]!;
    if (id === end + 1) end = id;
    else {
      close();
      start = id;
      end = id;
    }
  }
  close();
  return runs > limit ? `${parts.join(", ")} and ${count(runs - limit)} more ranges` : parts.join(", ");
}

/** Seconds as people say them: "0.4 s", "12 s", "3 min 20 s". */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "unknown";
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}${THIN}ms`;
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1)}${THIN}s`;
  if (s < 90) return `${Math.round(s)}${THIN}s`;
  return `${Math.floor(s / 60)}${THIN}min ${Math.round(s % 60)}${THIN}s`;
}

/** A moment in the reader's own time zone, to the minute; the exact value is kept by the caller as a title. */
export function moment(iso: string | null | undefined): string {
  if (!iso) return "unknown";
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return "unknown";
  const two = (n: number) => n.toString().padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** The last meaningful part of a table's address. */
export function tableName(uri: string): string {
  const clean = uri.replace(/[?#].*$/, "").replace(/\/+$/, "");
  const last = clean.slice(clean.lastIndexOf("/") + 1) || clean;
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

/** Characters that show nothing, or that turn the text around them. */
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A name from a table, with invisible characters spelled out: it cannot pretend to be another, nor turn the page's own words. */
export function name(text: string): string {
  return text.replace(INVISIBLE, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** How a command line names a table: a folder of this machine by its name, since a page is never told where it lies. */
export function commandTarget(target: string): string {
  return shellWord(target.startsWith("folder:") ? `./${tableName(target)}` : target);
}

/** One argument of a POSIX shell command line. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_./:@%+=-]+$/.test(text) && text !== "" ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
