/** @internal An address that was not understood, as errors may show it: no user, no password, no query (which may be signed). */
export function shownAddress(text: string): string {
  // Up to the last @, whatever is before it: where the parts begin and end is just what was not understood.
  return text.replace(/^([a-z][a-z0-9+.-]*:\/*)?.*@/is, "$1…@").replace(/[?#].*$/s, "?…");
}
