// The documents the page reads are the package's own. The page draws them; it decides nothing that is not in them.

import type { CompactionPlan, CompactionReport, DiscardPlan, GcPlan, GcReport, OrphanList, Plan, PrunePlan, PruneReport, RefreshReport, RemovalReport, TrimPlan, TrimReport } from "whetstone";

export type {
  ChangeReport, NewValues, RowChoice, RowsDone, SandboxColumn, SandboxOptions,
  Advice, AuditFinding, AuditReport, BuildPlan, BuildTask, Changed, CommittingEvent, CompactionFate, CompactionOptions, CompactionPlan, CompactionReport, CoverageColumn, DiscardPlan, DropIndexPlan,
  FieldInfo, ForecastOptions, FragmentColumns, GcPlan, GcReport, HistoryDocument, IndexInfo, LayoutColumns, LayoutForecast, Orphan, OrphanList, Pair, Plan, Probe, ProgressEvent, PrunedSegment, PrunePlan,
  PruneReport, RefreshPlan, RefreshReport, RemovalPlan, RemovalReport, RequestEvent, ResolvedCompaction, SegmentContents, SegmentFate, SegmentInfo, SegmentParts, SkipRule,
  ShowDocument, SqlResult, TransactionInfo, TrimPlan, TrimReport, UpkeepPlan, VersionInfo,
  ErrorCode, ErrorDocument,
} from "whetstone";

/** A plan of any job that the page has a dialog for. */
export type JobPlan = Plan | CompactionPlan | TrimPlan | PrunePlan | GcPlan | OrphanList | DiscardPlan;

interface Reports {
  compaction: CompactionReport;
  trim: TrimReport;
  prune: PruneReport;
  gc: GcReport;
  orphans: RemovalReport;
  discard: RemovalReport;
}

/** What running a plan of this kind answers. */
export type ReportOf<K extends JobPlan["kind"]> = K extends keyof Reports ? Reports[K] : RefreshReport;

/** A plan that was run, and what it did. */
export type Ran = { [K in JobPlan["kind"]]: { kind: K; plan: Extract<JobPlan, { kind: K }>; report: ReportOf<K> } }[JobPlan["kind"]];
