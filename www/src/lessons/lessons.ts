// The lessons: what is done, what to watch, and why it is so. A step is done when the table shows it, whoever did it. Pure.

import type { CompactionPlan, SandboxColumn, SandboxOptions, ShowDocument } from "../engine/documents.js";
import type { View } from "../lib/url.js";
import type { Act, ActReport } from "../sandbox/calls.js";

/** What a step is checked against: the latest version of the table, and what the last act answered. */
export interface Facts {
  show: ShowDocument;
  fragments: number;
  deleted: number;
  /** What a compaction of this version would do; null while that is not known yet. */
  compaction: CompactionPlan | null;
  report: ActReport | null;
}

export interface Step {
  /** One action, as it is said to a person. */
  do: string;
  /** What the button says that does it; null when there is nothing to do but look. */
  button: string | null;
  acts: Act[];
  watch: string;
  why: string;
  /** What the layout panel should show for it. */
  view?: View;
  done: (facts: Facts) => boolean;
}

export interface Lesson {
  id: string;
  title: string;
  goal: string;
  table: SandboxOptions;
  /** Done before the first step. */
  setup: Act[];
  steps: Step[];
}

const ID: SandboxColumn = { name: "id", type: "int64", nullable: false };
const COLUMNS: SandboxColumn[] = [
  ID,
  { name: "user_id", type: "int32", shape: "random", min: 0, max: 5000 },
  { name: "city", type: "utf8", shape: "choice", distinct: 12 },
];
const INDEX = "user_idx";
const BTREE: Act = { do: "index", name: INDEX, column: "user_id", method: "BTREE", segments: 1, train: true };
const DEFERRED: Act = { ...BTREE, train: false };
const COMPACT: Act = { do: "compact", defer: false };

function append(rows: number, perFragment: number): Act {
  return { do: "append", rows, perFragment };
}

function refresh(segments: number): Act {
  return { do: "refresh", index: INDEX, segments };
}

function index({ show }: Facts): ShowDocument["indices"][number] | undefined {
  return show.indices.find((one) => one.name === INDEX);
}

function uncovered(facts: Facts): number | null {
  return index(facts)?.unindexed_fragments.length ?? null;
}

function segments(facts: Facts): number[][] {
  return (index(facts)?.segments ?? []).map((segment) => segment.effective_fragment_ids ?? []);
}

/** Whether every segment covers one run of neighbours. */
function contiguous(facts: Facts): boolean {
  return segments(facts).every((ids) => ids.every((id, i) => i === 0 || id === (ids[i - 1] ?? id) + 1));
}

function retired(facts: Facts): number {
  return (index(facts)?.segments ?? []).reduce((sum, segment) => sum + (segment.retired_fragment_ids?.length ?? 0), 0);
}

/** Fragments in each group that a compaction would rewrite; null while that is not known. */
function groups({ compaction }: Facts): number[] | null {
  return compaction?.tasks.map((task) => task.fragments.length) ?? null;
}

function same(found: number[] | null, wanted: number[]): boolean {
  return found !== null && found.join() === wanted.join();
}

export const LESSONS: readonly Lesson[] = [
  {
    id: "five-sets",
    title: "The five sets",
    goal: "Read any index at a glance: what is live, what is covered, what is missing, and what a refresh declares and establishes.",
    table: { columns: COLUMNS, rows: 4000, rowsPerFragment: 1000, seed: 1 },
    setup: [],
    steps: [
      {
        do: "Create an index on user_id.", button: "Create the index", acts: [BTREE],
        watch: "A lane appears in the map, filled from end to end: the four live fragments are all covered.",
        why: "live is the set of fragments in this version. covered is what the segments of the index say they hold, as far as it is live. They are equal now, so nothing is unindexed.",
        done: (facts) => uncovered(facts) === 0,
      },
      {
        do: "Append 2 000 rows.", button: "Append 2 000 rows", acts: [append(2000, 1000)],
        watch: "Two new fragments, hatched in the lane of the index. The index did not change: its file lies there as before.",
        why: "An append writes fragments and touches no index. unindexed = live − covered, here two fragments, and every query scans them.",
        done: (facts) => uncovered(facts) === 2,
      },
      {
        do: "Refresh the index.", button: "Refresh", acts: [refresh(1)],
        watch: "A second segment in another colour, over the two new fragments only. The first one keeps its colour: it was not rewritten.",
        why: "The built segment declares the fragments it was made from. What the commit could use of them, looking at the newest version, is established. Nobody wrote in between, so the two sets are equal.",
        done: (facts) => uncovered(facts) === 0 && segments(facts).length === 2,
      },
      {
        do: "Delete all rows of the first fragment.", button: "Delete id < 1000", acts: [{ do: "delete", rows: { where: "id < 1000" } }],
        watch: "Fragment 0 is gone from the map, and a dashed ghost stands for it: the first segment still names it.",
        why: "live lost a fragment; the stored bitmap of a segment is not touched by that. So covered is always the bitmap AND live, never the bitmap alone.",
        done: (facts) => retired(facts) > 0,
      },
    ],
  },
  {
    id: "contiguous",
    title: "Contiguous against interleaved",
    goal: "See why the same coverage, cut in another way, decides whether small fragments can ever be merged.",
    table: { columns: COLUMNS, rows: 3200, rowsPerFragment: 400, seed: 2 },
    setup: [DEFERRED],
    steps: [
      {
        do: "Index the eight fragments as two builders that take turns: one gets 0, 2, 4, 6, the other 1, 3, 5, 7.", button: "Deal them out in turn", acts: [{ do: "deal", index: INDEX, workers: 2 }],
        watch: "Stripes in the lane, and a cross under every fragment: a compaction would merge none of them.",
        why: "A compaction merges neighbours only if the same segments cover them, since one output fragment cannot be half inside a segment. With stripes no two neighbours agree.",
        done: (facts) => uncovered(facts) === 0 && segments(facts).length > 1 && !contiguous(facts) && same(groups(facts), []),
      },
      {
        do: "Compact all the same.", button: "Compact the stripes", acts: [COMPACT],
        watch: "There was nothing to rewrite: no new version, and eight fragments as before.",
        why: "Every fragment is small, and every one is frozen. Lance’s OPTIMIZE does as little. However often it runs, the fragments stay.",
        done: (facts) => facts.report?.compaction?.transaction === null && facts.fragments === 8,
      },
      {
        do: "Drop the index and create it again in two segments. Whetstone cuts the fragments into runs of neighbours.", button: "Again, in two runs",
        acts: [{ do: "drop", index: INDEX }, { ...BTREE, segments: 2 }],
        watch: "Two blocks of colour, and two brackets in the row of groups: each run can become one fragment.",
        why: "Runs of neighbours have one border for two segments. The work is the same, and so is the speed of a query. Only the layout is better.",
        done: (facts) => uncovered(facts) === 0 && segments(facts).length === 2 && contiguous(facts) && same(groups(facts), [4, 4]),
      },
      {
        do: "Compact again.", button: "Compact the runs", acts: [COMPACT],
        watch: "Eight fragments became two, 8 and 9. Each block of colour is one fragment now, and both are covered.",
        why: "The rows have other addresses, so the files of both segments were written again with those: remapped, not built anew. That is why the borders of segments decide what a compaction may touch.",
        done: (facts) => facts.fragments === 2 && uncovered(facts) === 0 && segments(facts).length === 2,
      },
      {
        do: "Merge the two segments into one.", button: "Merge", acts: [{ do: "merge", index: INDEX }],
        watch: "One colour, and one bracket over both fragments: the next compaction can make one of them.",
        why: "The last border is gone. Merging reads the segments’ files where it can, not the column: it is the cheap way back from a layout that went wrong.",
        done: (facts) => segments(facts).length === 1 && same(groups(facts), [2]),
      },
    ],
  },
  {
    id: "optimize-first",
    title: "Why OPTIMIZE comes before REFRESH",
    goal: "Put the two jobs in the order that leaves one fragment and one segment behind, not many of both.",
    table: { columns: COLUMNS, rows: 2000, rowsPerFragment: 2000, seed: 3 },
    setup: [BTREE],
    steps: [
      {
        do: "Append six small batches.", button: "Append 6 × 50 rows", acts: [append(300, 50)],
        watch: "Six hatched slivers at the end of the lane, under one bracket.",
        why: "None of them is covered by anything, so all of them agree: a compaction may merge them into one.",
        done: (facts) => uncovered(facts) === 6 && same(groups(facts), [6]),
      },
      {
        do: "Compare both orders before anything is done: open “what if”.", button: "Open what if", acts: [], view: "what-if",
        watch: "“compact, then refresh into one segment” against “refresh in contiguous runs, then compact”: the same rows, fewer fragments and fewer segments in the first.",
        why: "What if is the planner alone: it moves the layout on through both orders, and neither reads nor writes a row.",
        done: (facts) => uncovered(facts) === 6,
      },
      {
        do: "Take the right order: compact first.", button: "Compact", acts: [COMPACT], view: "map",
        watch: "One hatched fragment where six were. The large one and its segment are as they were.",
        why: "A compaction of what nobody covers costs no index anything: there is nothing to remap.",
        done: (facts) => facts.fragments === 2 && uncovered(facts) === 1 && segments(facts).length === 1,
      },
      {
        do: "Then refresh.", button: "Refresh", acts: [refresh(1)],
        watch: "A second colour over the new fragment: two fragments, two segments, everything covered.",
        why: "One refresh covers the result in one piece, and its files are final: no compaction has to write them again.",
        done: (facts) => facts.fragments === 2 && uncovered(facts) === 0 && segments(facts).length === 2,
      },
      {
        do: "Six more batches, and now the wrong order: refresh first, in three segments.", button: "Append, then refresh in 3", acts: [append(300, 50), refresh(3)],
        watch: "The bracket over six fragments is in three pieces: the new segments put borders between the batches.",
        why: "Each segment that a refresh adds is a border that no later compaction crosses. What would have been one group of six is three of two.",
        done: (facts) => facts.fragments === 8 && uncovered(facts) === 0 && same(groups(facts), [2, 2, 2]),
      },
      {
        do: "Then compact.", button: "Compact the rest", acts: [COMPACT],
        watch: "Three small fragments instead of one, with a segment each, and a cross under every one of them.",
        why: "The same rows cost more: files of three segments were written a second time, queries open all of them, and the borders stay until the segments are merged.",
        done: (facts) => facts.fragments === 5 && uncovered(facts) === 0 && segments(facts).length === 5 && same(groups(facts), []),
      },
    ],
  },
  {
    id: "deferred",
    title: "A deferred index",
    goal: "Define an index now, and do the work when it suits you, in as many pieces as you like.",
    table: { columns: COLUMNS, rows: 6000, rowsPerFragment: 1000, seed: 4 },
    setup: [],
    steps: [
      {
        do: "Create the index without training it.", button: "Define the index", acts: [DEFERRED],
        watch: "The lane is there, all of it hatched, and the health line says that it covers nothing yet. It took one small file.",
        why: "A deferred index is a definition: name, column, method, and a segment with an empty bitmap. Empty is not unknown. Queries know that nothing is covered and scan everything, so answers are right.",
        done: (facts) => uncovered(facts) === facts.fragments && facts.fragments === 6,
      },
      {
        do: "Append while nothing is indexed.", button: "Append 2 000 rows", acts: [append(2000, 1000)],
        watch: "More hatching; writers did not wait for anybody.",
        why: "Appends never wait for an index. Who defines first can load in peace and index once.",
        done: (facts) => facts.fragments === 8 && uncovered(facts) === 8,
      },
      {
        do: "Refresh in four segments.", button: "Refresh in 4 segments", acts: [refresh(4)],
        watch: "Four blocks of two fragments each. The empty segment is gone: a real one took its place.",
        why: "The runs are cut so that the heaviest is as light as can be. Four workers, on this machine or elsewhere, build one each, and one commit puts all four into the table.",
        done: (facts) => uncovered(facts) === 0 && segments(facts).length === 4,
      },
    ],
  },
  {
    id: "deletions",
    title: "Deletions and retired fragments",
    goal: "Tell rows that are deleted from fragments that are gone, and see what each means to an index.",
    table: { columns: COLUMNS, rows: 4000, rowsPerFragment: 1000, seed: 5 },
    setup: [{ ...BTREE, segments: 2 }],
    steps: [
      {
        do: "Delete every third row of fragment 1.", button: "Delete every third row", acts: [{ do: "delete", rows: { fragments: [1], every: 3 } }],
        watch: "A shaded foot under fragment 1. The index is as complete as before, and no index file changed.",
        why: "A deletion vector lists the rows that are gone. An index may still name them: readers take the vector away from every answer, so nothing has to be rebuilt.",
        done: (facts) => facts.deleted >= 300 && uncovered(facts) === 0,
      },
      {
        do: "Update some rows.", button: "Move 50 rows to another city", acts: [{ do: "update", rows: { where: "id >= 3000 AND id < 3050" }, set: { city: "harbor" } }],
        watch: "A foot under fragment 3, and a new, hatched fragment at the end: the 50 rows live there now.",
        why: "An update deletes rows where they are and writes them anew. To an index that is an append: the new fragment is not covered, whichever column was set.",
        done: (facts) => uncovered(facts) === 1 && facts.deleted >= 350,
      },
      {
        do: "Delete all rows of fragments 2 and 3.", button: "Delete id ≥ 2000", acts: [{ do: "delete", rows: { where: "id >= 2000 AND id < 4000", fragments: [2, 3] } }],
        watch: "Both fragments are gone, and so is the second segment: it covered nothing else.",
        why: "When the last row goes, so does the fragment. Of an index with several segments, those that cover nothing live any more go with it; a lone segment would stay, as the index’s definition.",
        done: (facts) => segments(facts).length === 1 && facts.fragments === 3,
      },
      {
        do: "Refresh.", button: "Refresh", acts: [refresh(1)],
        watch: "The moved rows are covered. The foot under fragment 1 is still there: its deleted rows are in the data file, and in the first segment’s files.",
        why: "A refresh builds what is missing and leaves what is right. Dead rows and dead entries cost space and reading, never an answer.",
        done: (facts) => uncovered(facts) === 0 && facts.fragments === 3,
      },
      {
        do: "Compact.", button: "Compact", acts: [COMPACT],
        watch: "The foot is gone, and fragments 0 and 1 are one. The fragment of the moved rows stays: another segment covers it.",
        why: "A compaction writes only the rows that live, into fragments with new ids. The first segment was remapped to the new addresses; entries of deleted rows have none, so they left its files as well.",
        done: (facts) => facts.deleted === 0 && facts.fragments === 2 && uncovered(facts) === 0,
      },
    ],
  },
  {
    id: "drop-race",
    title: "The drop race",
    goal: "Drop an index while a refresh of it is under way, and see that it stays dropped.",
    table: { columns: COLUMNS, rows: 3000, rowsPerFragment: 1000, seed: 6 },
    setup: [BTREE, append(1000, 1000)],
    steps: [
      {
        do: "Let a builder index what is missing. It uploads its segment, and is slow to commit.", button: "Build, do not commit", acts: [{ do: "hold", index: INDEX }],
        watch: "Nothing changes in the map: the segment’s files are there, but no version of the table names them.",
        why: "Building and committing are two things. Files that no manifest names are nobody’s, however many there are. Only the commit counts.",
        done: (facts) => facts.report?.held !== null && facts.report !== null && uncovered(facts) === 1,
      },
      {
        do: "Meanwhile, somebody drops the index.", button: "Drop the index", acts: [{ do: "drop", index: INDEX }],
        watch: "The lane is gone. The builder knows nothing of it.",
        why: "A drop is one small commit. It does not wait for builders it cannot know of.",
        done: (facts) => index(facts) === undefined,
      },
      {
        do: "Now the builder commits.", button: "Commit the held segment", acts: [{ do: "release" }],
        watch: "INDEX_DROPPED, nothing was changed, and the index stays dropped. Its uploaded files are removed.",
        why: "A commit looks at the version it would replace, not at the one it was planned on. Lance reads the transactions in between instead; where a cleanup has removed them, it brings the dropped index back.",
        done: (facts) => facts.report?.refused?.code === "INDEX_DROPPED" && index(facts) === undefined,
      },
    ],
  },
];

export function lessonOf(id: string | null): Lesson | null {
  return LESSONS.find((lesson) => lesson.id === id) ?? null;
}

/** Everything that is done before a step, from the bare table on: for a link that leads into the middle of a lesson. */
export function actsBefore(lesson: Lesson, step: number): Act[] {
  return [...lesson.setup, ...lesson.steps.slice(0, step).flatMap((one) => one.acts)];
}
