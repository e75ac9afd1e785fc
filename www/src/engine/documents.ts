// The documents the page reads are the package's own. The page draws them; it decides nothing that is not in them.

export type {
  ChangeReport, NewValues, RowChoice, RowsDone, SandboxColumn, SandboxOptions,
  Advice, AuditFinding, AuditReport, BuildPlan, BuildTask, Changed, CommittingEvent, CompactionPlan, CompactionReport, CoverageColumn, DropIndexPlan, FieldInfo, ForecastOptions, FragmentColumns,
  HistoryDocument, IndexInfo, LayoutColumns, LayoutForecast, Pair, Plan, Probe, ProgressEvent, RefreshPlan, RefreshReport, RequestEvent, SegmentContents, SegmentFate, SegmentInfo, SegmentParts,
  ShowDocument, SqlResult, TransactionInfo, VersionInfo,
  ErrorCode, ErrorDocument,
} from "whetstone";
