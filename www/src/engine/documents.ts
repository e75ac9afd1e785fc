// The documents the page reads are the package's own. The page draws them; it decides nothing that is not in them.

export type {
  Advice, BuildTask, Changed, CommittingEvent, CoverageColumn, FragmentColumns, IndexInfo, ProgressEvent, RefreshPlan, RefreshReport, RequestEvent,
  SegmentFate, SegmentInfo, ShowDocument, TransactionInfo, VersionInfo,
  ErrorCode, ErrorDocument,
} from "whetstone";
