// The documents about what is inside segments: their parts, what a condition looks at, and what an audit found.
import type { WhetstoneError } from "./errors.js";
import type { Count } from "./types.js";

/** Why something inside a segment cannot be read. */
export type ReadError = ReturnType<WhetstoneError["toJSON"]>;

/** What is inside one segment. */
export interface SegmentContents {
  uuid: string;
  /** As the index method tells it: `method`, `rows`, `problems` and what the method has of its own; or `error`, a {@link ReadError}, when it cannot be read. */
  contents: Record<string, unknown>;
  /** Its first parts; `null` when `contents` is an error, and an error of their own where only they cannot be read. */
  parts: SegmentParts | { error: ReadError } | null;
}

/**
 * A stretch of the parts a segment has, in the order of its files. A list ends early after 4 MiB, so that the next stretch begins at
 * `offset + items.length`.
 */
export type SegmentParts = { /** Parts of the segment. */ count: Count; /** Number of the first one listed. */ offset: Count; /** Parts not listed, before and after. */ left_out: Count }
  & ({ kind: "pages"; items: PagePart[] } | { kind: "zones"; items: (ZonePart | FilterPart)[] } | { kind: "keys"; items: KeyPart[] } | { kind: "tokens"; items: TokenPart[] });

/** A page of a BTREE segment. */
export interface PagePart {
  page: Count;
  /** `null` in the older layout of several parts, where nothing says. */
  rows: Count | null;
  /** As the lookup file bounds it: `min` is `null` where the page begins with nulls, `max` where it has nothing else. */
  min: unknown;
  max: unknown;
  nulls: Count;
}

interface PlacedPart {
  fragment: Count;
  /** Physical offset of the first row in the fragment, and rows from there to the last, deleted ones included. */
  start: Count;
  length: Count;
}

/** A zone of a ZONEMAP segment; `min` and `max` are `null` where it has only nulls. */
export interface ZonePart extends PlacedPart {
  min: unknown;
  max: unknown;
  nulls: Count;
  nans: Count;
}

/** A zone of a BLOOMFILTER segment. */
export interface FilterPart extends PlacedPart {
  /** `null` in files that do not store the null rows. */
  nulls: Count | null;
  filter_bytes: Count;
  /** Share of the filter's bits that are set, and the chance that a value which is not there looks as if it were. */
  fill: number | null;
  false_positive_estimate: number;
}

/** A value, label or trigram of a BITMAP, LABEL_LIST or NGRAM segment; `null` is the key of nulls. */
export interface KeyPart {
  key: unknown;
  rows: Count;
  /** Bytes of its bitmap. */
  bytes: Count;
}

/** A token of an INVERTED segment. */
export interface TokenPart {
  partition: Count;
  token: string | null;
  documents: Count;
  /** Bytes of its postings without positions. */
  bytes: Count | null;
}

/** What the segments of an index say of a condition. */
export interface Probe {
  index: string;
  method: string;
  version: number;
  op: string;
  value: string | null;
  /** Whether the rows named are the answer in covered fragments; else they and the zones have to be looked at. */
  exact: boolean;
  segments: {
    uuid: string;
    fragments: number[];
    /** Pages that are read; `null` for methods without pages. */
    pages: number[] | null;
    /** Zones kept in covered fragments; `null` where single rows are named, and for methods without zones. */
    zones: { fragment: number; start: number; length: number }[] | null;
    /** Rows named in covered fragments; `null` when none are named. */
    rows: Count | null;
  }[];
  /** Segments that queries leave out under a tagged reuse history, and why. */
  omitted: { uuid: string; state: string; why: string }[];
  /** Covered live fragments that can match. */
  fragments: number[];
  /** Covered live fragments that cannot. */
  pruned: number[];
  /** Live fragments no segment covers: they have to be read whole. */
  unindexed: number[];
  /** Rows named in covered fragments, deleted ones among them; `null` when none are named. */
  rows: Count | null;
  /** The first thousand of them, in decimal. */
  first_rows: string[];
  row_domain: string;
}

/** One disagreement between an index and its column. */
export interface AuditFinding {
  /** E.g. `ROW_MISSING`, `ROW_STALE`, `ZONE_TOO_TIGHT`, `FILE_SIZE`, `OVERLAP`. */
  code: string;
  /** `null` for what concerns several segments. */
  segment: string | null;
  fragment: number | null;
  /** Row address or stable row id, whichever the segment stores, in decimal. */
  row: string | null;
  text: string;
}

/** What {@link Table.audit} found. */
export interface AuditReport {
  index: string;
  method: string;
  version: number;
  /** Whether every covered fragment was looked at. */
  exact: boolean;
  /** The fragments whose rows were looked at. */
  fragments: number[];
  covered_fragments: Count;
  rows: Count;
  segments: number;
  /** Of a sample that found nothing: with 95 % confidence fewer than this share of the covered fragments has faults. */
  error_bound: number | null;
  /** The first ten of each kind and segment. */
  findings: AuditFinding[];
  /** How many of each kind there are. */
  counts: Record<string, Count>;
  /** What was not looked at, and what is odd and harmless. */
  notes: string[];
}
