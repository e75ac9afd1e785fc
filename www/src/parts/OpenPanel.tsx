// Opening a table: an address, a folder of this machine, or a sample.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { StoreKeys } from "../engine/protocol.js";
import { canPick, isFolder, keepFolder, pickFolder } from "../lib/folders.js";
import { count, name, tableName } from "../lib/format.js";
import { keeping } from "../lib/keeping.js";
import { recentTables } from "../lib/recent.js";
import { Bone, Icon } from "./basics.js";

export interface Sample {
  name: string;
  title: string;
  description: string;
}

export function sampleUrl(name: string): string {
  return new URL(`tables/samples/${encodeURIComponent(name.replace(/\.lance$/, ""))}.lance/`, document.baseURI.replace(/[?#].*$/, "")).toString();
}

/** The samples that `whetstone serve` offers beside the page; none where the page lies on a plain host. Asked for once, when `wanted`. */
export function useSamples(wanted: boolean): Sample[] | null {
  const [samples, setSamples] = useState<Sample[] | null>(null);
  useEffect(() => {
    if (!wanted || samples !== null) return;
    let here = true;
    const isSample = (s: unknown): s is Sample => typeof s === "object" && s !== null && typeof (s as Sample).name === "string";
    fetch("tables/samples/index.json", { headers: { Accept: "application/json" } })
      .then((answer) => (answer.ok ? answer.json() : []))
      .then((list: unknown) => {
        if (here) setSamples(Array.isArray(list) ? list.filter(isSample) : []);
      })
      .catch(() => {
        if (here) setSamples([]);
      });
    return () => {
      here = false;
    };
  }, [wanted]);
  return samples;
}

const NO_KEYS: StoreKeys = { kind: "", endpoint: "", region: "", accessKeyId: "", secretAccessKey: "", sessionToken: "" };

/** A folder that holds no table, or several. */
export interface PickedFolder {
  name: string;
  tables: FileSystemDirectoryHandle[];
  trouble: string | null;
}

/** Tables of a folder listed at once. */
const LISTED = 40;

export function OpenPanel({ samples, current, picked, onOpen, onFolder, children }: {
  samples: Sample[] | null; current: string | null; picked: PickedFolder | null; onOpen: (target: string, keys: StoreKeys | null) => void; onFolder: (folder: FileSystemDirectoryHandle) => void;
  children?: ComponentChildren;
}): JSX.Element {
  const [address, setAddress] = useState("");
  const [keys, setKeys] = useState<StoreKeys>(NO_KEYS);
  const [recent] = useState(() => {
    const storage = keeping();
    return storage ? recentTables(storage).filter((one) => one !== current) : [];
  });
  const open = (event: Event) => {
    event.preventDefault();
    const text = address.trim();
    if (!text) return;
    const target = text.startsWith("/") ? new URL(text, window.location.href).toString() : text;
    const given = Object.values(keys).some((value) => value !== "");
    onOpen(target, given ? keys : null);
  };
  const pick = async () => {
    const folder = await pickFolder().catch(() => null);
    if (folder) onFolder(folder);
  };
  const field = (name: keyof StoreKeys, label: string, type = "text") => (
    <label class="field">
      <span>{label}</span>
      <input type={type} value={keys[name]} autocomplete="off" spellcheck={false} onInput={(event) => setKeys({ ...keys, [name]: event.currentTarget.value })} />
    </label>
  );
  return (
    <div class="open-panel">
      <form onSubmit={open}>
        <h2 id="open-title">Open a Lance table</h2>
        <div class="open-row">
          <input type="text" inputMode="url" value={address} placeholder="https://host/path/table.lance or s3://bucket/table.lance" aria-label="Address of the table" autocomplete="off" spellcheck={false} onInput={(event) => setAddress(event.currentTarget.value)} />
          <button type="submit" class="button primary" disabled={address.trim() === ""}>Open</button>
        </div>
        <details class="keys">
          <summary>Store and keys</summary>
          <p class="quiet">Kept in the memory of this tab only: never in the address, never stored.</p>
          <div class="field-grid">
            <label class="field">
              <span>Kind of store</span>
              <select value={keys.kind} onChange={(event) => setKeys({ ...keys, kind: event.currentTarget.value as StoreKeys["kind"] })}>
                <option value="">find out</option>
                <option value="s3">S3 compatible</option>
                <option value="webdav">WebDAV</option>
                <option value="static">plain HTTP files</option>
              </select>
            </label>
            {field("endpoint", "Endpoint")}
            {field("region", "Region")}
            {field("accessKeyId", "Access key id")}
            {field("secretAccessKey", "Secret access key", "password")}
            {field("sessionToken", "Session token", "password")}
          </div>
        </details>
      </form>
      <div class="open-folder">
        {canPick()
          ? <><button type="button" class="button" onClick={() => void pick()}>Open a folder of this machine…</button> <span class="quiet">or drop it here; nothing is uploaded</span></>
          : <p class="quiet">This browser does not hand folders of this machine to pages; Chrome and Edge do.</p>}
      </div>
      {picked && (
        <div class="open-picked" role="status">
          <h3>{name(picked.name)}</h3>
          {picked.trouble !== null && <p class="note"><Icon name="warn" /> {name(picked.trouble)}</p>}
          {picked.trouble === null && picked.tables.length === 0 && <p class="note"><Icon name="info" /> No Lance table lies in this folder. A table is a folder that holds _versions and data.</p>}
          <ul class="recent">
            {picked.tables.slice(0, LISTED).map((table) => <li key={table.name}><button type="button" class="link" onClick={() => void keepFolder(table).then((address) => onOpen(address, null))}><b>{name(table.name)}</b></button></li>)}
          </ul>
          {picked.tables.length > LISTED && <p class="quiet">and {count(picked.tables.length - LISTED)} more: choose the table’s own folder.</p>}
        </div>
      )}
      {recent.length > 0 && (
        <>
          <h3>Opened before</h3>
          <ul class="recent">
            {recent.map((one) => <li key={one}><button type="button" class="link" title={one} onClick={() => onOpen(one, null)}><b>{tableName(one)}</b> <span class="quiet">{isFolder(one) ? "a folder of this machine" : one}</span></button></li>)}
          </ul>
        </>
      )}
      <h3>Samples</h3>
      {samples === null && <ul class="samples">{[0, 1, 2].map((i) => <li key={i}><span class="sample"><Bone width="14ch" /><Bone width="100%" /></span></li>)}</ul>}
      {samples !== null && samples.length === 0 && <p class="quiet">This host offers no samples. “make start” serves some.</p>}
      {samples !== null && samples.length > 0 && (
        <ul class="samples">
          {samples.map((sample) => {
            const url = sampleUrl(sample.name);
            return (
              <li key={sample.name}>
                <button type="button" class="sample" aria-current={current === url} onClick={() => onOpen(url, null)}>
                  <b>{sample.title || sample.name} {current === url && <Icon name="check" />}</b>
                  <span>{sample.description}</span>
                </button>
              </li>
            );
          })}
        </ul>
      )}
      {children}
    </div>
  );
}
