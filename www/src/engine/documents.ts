// The documents the page reads are the package's own. The page draws them; it decides nothing that is not in them.

export type {
  Advice, BuildTask, Changed, CoverageColumn, FragmentColumns, IndexInfo, ProgressEvent, RefreshPlan, RefreshReport, RequestCounts, RequestEvent,
  SegmentFate, SegmentInfo, ShowDocument, VersionInfo,
  ErrorCode, ErrorDocument,
} from "whetstone";

/** A list or its length: documents give one or the other. */
export function size(value: unknown): number | null {
  if (Array.isArray(value)) return value.length;
  return typeof value === "number" ? value : null;
}
