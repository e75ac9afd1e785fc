// The dialog of a new sandbox table: its name, its columns, and how many rows in how many fragments.

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { EngineClient } from "../engine/client.js";
import type { SandboxColumn } from "../engine/documents.js";
import { plural } from "../lib/format.js";
import { Icon } from "../parts/basics.js";
import type { SandboxPlace } from "./calls.js";
import { MOST_ROWS, PRESETS, shapesFor, tableNameFault, TYPES, wholeIn } from "./presets.js";
import type { Making } from "./useMaking.js";

export function NewTable({ client, onMake, onClose }: { client: EngineClient; onMake: (what: Making) => void; onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [place, setPlace] = useState<SandboxPlace | null>(null);
  const [name, setName] = useState("orders");
  const [columns, setColumns] = useState<SandboxColumn[]>(PRESETS[0]?.columns ?? []);
  const [rows, setRows] = useState("10000");
  const [per, setPer] = useState("2500");
  const [seed, setSeed] = useState("1");
  useLayoutEffect(() => { dialog.current?.showModal(); }, []);
  useEffect(() => {
    const abort = new AbortController();
    client.call("sandboxes", null, { signal: abort.signal }).then(setPlace, () => undefined);
    return () => abort.abort();
  }, [client]);

  const count = wholeIn(rows, 0, MOST_ROWS);
  const perFragment = wholeIn(per, 1, MOST_ROWS);
  const seeded = wholeIn(seed, 0, 999_999_999);
  const fault = tableNameFault(name, place?.names ?? []);
  const names = columns.map((column) => column.name.trim());
  const unnamed = names.some((one) => one === "" || one.includes("."));
  const twice = new Set(names).size !== names.length;
  const ready = name !== "" && (fault === null || (place?.names ?? []).includes(name)) && columns.length > 0 && !unnamed && !twice && count !== null && perFragment !== null && seeded !== null;
  const change = (at: number, part: Partial<SandboxColumn>) => setColumns(columns.map((column, i) => (i === at ? { ...column, ...part } : column)));
  const submit = (event: Event) => {
    event.preventDefault();
    if (!ready) return;
    onMake({ name, options: { columns: columns.map((column) => ({ ...column, name: column.name.trim() })), rows: count, rowsPerFragment: perFragment, seed: seeded }, acts: [] });
  };
  return (
    <dialog ref={dialog} class="dialog new-table" aria-labelledby="new-title" onCancel={(event) => { event.preventDefault(); onClose(); }} onClick={(event) => { if (event.target === dialog.current) onClose(); }}>
      <form class="dialog-body" onSubmit={submit}>
        <header class="dialog-head">
          <h2 id="new-title" tabIndex={-1} autofocus>New sandbox table</h2>
          <button type="button" class="icon-button" aria-label="Close" onClick={onClose}><Icon name="close" /></button>
        </header>
        <div class="dialog-main single">
          <div class="field-grid">
            <label class="field"><span>Name</span><input type="text" value={name} spellcheck={false} autocomplete="off" aria-describedby="new-name-hint" onInput={(event) => setName(event.currentTarget.value.trim())} /></label>
            <label class="field"><span>Begin with the columns of</span>
              <select onChange={(event) => { const preset = PRESETS.find((one) => one.name === event.currentTarget.value); if (preset) setColumns(preset.columns); }}>
                {PRESETS.map((one) => <option key={one.name} value={one.name}>{one.name}</option>)}
              </select>
            </label>
            <label class="field"><span>Rows</span><input type="text" inputMode="numeric" value={rows} onInput={(event) => setRows(event.currentTarget.value)} /></label>
            <label class="field"><span>Rows per fragment</span><input type="text" inputMode="numeric" value={per} onInput={(event) => setPer(event.currentTarget.value)} /></label>
            <label class="field"><span>Seed</span><input type="text" inputMode="numeric" value={seed} onInput={(event) => setSeed(event.currentTarget.value)} /></label>
          </div>
          <p class="quiet" id="new-name-hint" role="status">{fault ?? (place === null ? " " : place.kept ? "Kept in this browser’s own storage, until you remove it." : "This browser keeps nothing for this page: the table ends with the tab.")}</p>
          <div class="new-columns-scroll" tabIndex={0} role="region" aria-label="Columns">
            <table class="new-columns">
              <thead><tr><th>Column</th><th>Type</th><th>Values</th><th>Nulls</th><th><span class="sr-only">Remove</span></th></tr></thead>
              <tbody>
                {columns.map((column, i) => (
                  <tr key={i}>
                    <td><input type="text" aria-label={`Name of column ${i + 1}`} value={column.name} spellcheck={false} autocomplete="off" onInput={(event) => change(i, { name: event.currentTarget.value })} /></td>
                    <td><select aria-label={`Type of column ${i + 1}`} value={column.type} onChange={(event) => setColumns(columns.map((one, at) => (at === i ? { name: one.name, type: event.currentTarget.value, shape: shapesFor(event.currentTarget.value)[0]! } : one)))}>{TYPES.map((type) => <option key={type} value={type}>{type}</option>)}</select></td>
                    <td><select aria-label={`Values of column ${i + 1}`} value={column.shape ?? shapesFor(column.type)[0]} onChange={(event) => change(i, { shape: event.currentTarget.value as NonNullable<SandboxColumn["shape"]> })}>{shapesFor(column.type).map((shape) => <option key={shape} value={shape}>{shape}</option>)}</select></td>
                    <td><select aria-label={`Nulls in column ${i + 1}`} value={String(column.nulls ?? 0)} disabled={column.nullable === false} onChange={(event) => change(i, { nulls: Number(event.currentTarget.value) })}>{[0, 0.02, 0.1, 0.5].map((share) => <option key={share} value={String(share)}>{share === 0 ? "none" : `${share * 100} %`}</option>)}</select></td>
                    <td><button type="button" class="icon-button small" aria-label={`Remove column ${column.name}`} disabled={columns.length === 1} onClick={() => setColumns(columns.filter((_, at) => at !== i))}><Icon name="close" /></button></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <div class="button-row"><button type="button" class="button small" disabled={columns.length >= 20} onClick={() => setColumns([...columns, { name: `c${columns.length + 1}`, type: "int64", shape: "random" }])}><Icon name="plus" /> Add a column</button></div>
        </div>
        <footer class="dialog-foot">
          <span class="quiet">{unnamed || twice ? "Every column has a name of its own, without a dot." : count === null || perFragment === null ? `Whole numbers, up to ${MOST_ROWS}.` : ""}</span>
          <button type="button" class="button" onClick={onClose}>Close</button>
          <button type="submit" class="button primary" disabled={!ready}>{count !== null && perFragment !== null ? `Make ${plural(count, "row")} in ${plural(Math.ceil(count / perFragment), "fragment")}` : "Make the table"}</button>
        </footer>
      </form>
    </dialog>
  );
}
