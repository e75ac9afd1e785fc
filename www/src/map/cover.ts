/** Nothing covers the fragment: every query scans it. */
export const UNCOVERED = -1;
/** Nobody is known to cover the fragment, but a segment of the index does not say what it covers. */
export const UNKNOWN = -2;
