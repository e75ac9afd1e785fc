// The left side of a dialog: what a person can choose for a job, and a sentence on what each choice does.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { FieldInfo, JobPlan } from "../engine/documents.js";
import { name } from "../lib/format.js";
import { columnsOf, LEAST_DAYS, METHODS, methodsFor, parseParams } from "./choice.js";
import type { Choice } from "./choice.js";
import { CompactChoices } from "./CompactChoices.js";
import { Stepper } from "./fields.js";

const MOST_SEGMENTS = 64;

interface ChoicesProps {
  choice: Choice;
  /** The plan for these choices, where there is one: it knows what the table is configured with. */
  plan: JobPlan | null;
  schema: readonly FieldInfo[];
  /** Names that indexes have. */
  taken: readonly string[];
  workers: number;
  onChoice: (choice: Choice) => void;
  onWorkers: (workers: number) => void;
}

export function Choices({ choice, plan, schema, taken, workers, onChoice, onWorkers }: ChoicesProps): JSX.Element {
  if (choice.kind === "drop") return <p class="quiet">Only the definition goes: the files of its segments stay, and with them the older versions, until old versions are cleaned up.</p>;
  if (choice.kind === "trim") return <p class="quiet">Takes out segments that newer ones of their index made needless, then the records that no segment needs any more. Queries answer as before.</p>;
  if (choice.kind === "prune") return <p class="quiet">Takes out segments that newer ones of their index made needless, and no records. A trim does both.</p>;
  if (choice.kind === "gc") {
    return (
      <>
        <Stepper label="Days" hint="Age of the youngest file of a row map that may go. A commit may be on its way that names a younger one, so it is never less than seven days." value={choice.days} least={LEAST_DAYS} most={3650} onValue={(days) => onChoice({ ...choice, days })} />
        <p class="quiet">Nothing is deleted before you tick it. What any version of any branch still names stays, tagged versions included.</p>
      </>
    );
  }
  if (choice.kind === "orphans") {
    return (
      <>
        <Stepper label="Days" hint="Age of the youngest file of what may go. A build that is running may own younger ones, so it is never less than a day." value={choice.days} least={1} most={3650} onValue={(days) => onChoice({ ...choice, days })} />
        <p class="quiet">Nothing is removed before you tick it. Commits that lost, builds that were given up and versions that were cleaned up leave such files.</p>
      </>
    );
  }
  if (choice.kind === "discard") return <p class="quiet">What the job uploaded and did not commit. Nothing is removed while its commit could still arrive, and nothing that a version names.</p>;
  if (choice.kind === "compact") {
    return (
      <>
        <CompactChoices choice={choice} resolved={plan?.kind === "compaction" ? plan.options : null} onChoice={onChoice} />
        <Stepper label="Workers" hint="Groups of fragments written at the same time, in this browser." value={workers} least={1} most={16} onValue={onWorkers} />
      </>
    );
  }
  const building = (
    <>
      <Stepper label="Segments" hint={choice.kind === "merge" ? "What there will be instead: neighbouring fragments in the same segment, evenly heavy." : "Neighbouring fragments go into the same segment; the heaviest segment is as light as can be."}
        value={choice.segments} least={1} most={MOST_SEGMENTS} onValue={(segments) => onChoice({ ...choice, segments })} />
      <Stepper label="Workers" hint="Segments built at the same time, in this browser." value={workers} least={1} most={16} onValue={onWorkers} />
    </>
  );
  if (choice.kind === "create") return <CreateChoices choice={choice} schema={schema} taken={taken} onChoice={onChoice}>{choice.train ? building : null}</CreateChoices>;
  return (
    <>
      {building}
      {choice.kind === "refresh" && (
        <label class="check">
          <input type="checkbox" checked={choice.absorb} onChange={(event) => onChoice({ ...choice, absorb: event.currentTarget.checked })} />
          <span>Absorb existing segments<small>Builds their fragments again too, so that segments stay few.</small></span>
        </label>
      )}
    </>
  );
}

type Creating = Extract<Choice, { kind: "create" }>;

function CreateChoices({ choice, schema, taken, onChoice, children }: {
  choice: Creating; schema: readonly FieldInfo[]; taken: readonly string[]; onChoice: (choice: Choice) => void; children: JSX.Element | null;
}): JSX.Element {
  const columns = columnsOf(schema);
  const type = columns.find((column) => column.path === choice.column)?.type ?? "";
  const methods = methodsFor(type);
  const [text, setText] = useState("");
  // A name nobody typed follows the column; one that was typed stays.
  const [named, setNamed] = useState(false);
  const propose = (column: string) => {
    const plain = `${column.replaceAll(/[`.]+/g, "_").replace(/^_|_$/g, "")}_idx`;
    let free = plain;
    for (let i = 2; taken.includes(free); i += 1) free = `${plain}_${i}`;
    return free;
  };
  const pick = (column: string) => {
    const offered = methodsFor(columns.find((one) => one.path === column)?.type ?? "");
    onChoice({ ...choice, column, method: offered.includes(choice.method) ? choice.method : offered[0] ?? "BTREE", ...(named ? {} : { index: propose(column) }) });
  };
  const params = parseParams(text);
  return (
    <>
      <label class="field">
        <span>Column</span>
        <select value={choice.column} onChange={(event) => pick(event.currentTarget.value)}>
          <option value="" disabled>choose a column</option>
          {columns.map((column) => <option key={column.path} value={column.path}>{name(column.path)} · {column.type}</option>)}
        </select>
      </label>
      <label class="field">
        <span>Method</span>
        <select value={choice.method} aria-describedby="method-hint" onChange={(event) => onChoice({ ...choice, method: event.currentTarget.value })}>
          {METHODS.filter(({ method }) => choice.column === "" || methods.includes(method)).map(({ method }) => <option key={method} value={method}>{method}</option>)}
        </select>
        <small id="method-hint">For {METHODS.find(({ method }) => method === choice.method)?.meant ?? "this column"}.</small>
      </label>
      <label class="field">
        <span>Name</span>
        <input type="text" value={choice.index} autocomplete="off" spellcheck={false}
          onInput={(event) => {
            setNamed(event.currentTarget.value !== "");
            onChoice({ ...choice, index: event.currentTarget.value });
          }} />
      </label>
      <label class="field">
        <span>Parameters</span>
        <input type="text" value={text} placeholder="key=value, key=value" autocomplete="off" spellcheck={false} aria-invalid={params === null} aria-describedby="params-hint"
          onInput={(event) => {
            setText(event.currentTarget.value);
            const given = parseParams(event.currentTarget.value);
            if (given) onChoice({ ...choice, params: given });
          }} />
        <small id="params-hint">{params === null ? "Each parameter is written key=value." : "What is not given is Lance's default."}</small>
      </label>
      <label class="check">
        <input type="checkbox" checked={!choice.train} onChange={(event) => onChoice({ ...choice, train: !event.currentTarget.checked })} />
        <span>Define now, index later<small>Commits the definition only; a refresh indexes the rows.</small></span>
      </label>
      {children}
    </>
  );
}
