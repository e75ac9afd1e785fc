// What an open table is made of: its number in the engine, where it lies, and which version it is at.
import type { Engine } from "./engine.js";
import { invalid } from "./errors.js";
import type { StoreInfo } from "./objects.js";
import type { Glue } from "./platform.js";
import { ensureCommits } from "./race.js";
import type { Store } from "./stores.js";
import type { Changed, FieldInfo, RequestEvent } from "./types.js";

interface TableInfo {
  uri: string;
  version: number;
  branch: string | null;
  rows: number | null;
  schema: FieldInfo[];
}

// The engine keeps tables by number. One that was never closed is closed when its handle is collected, if its engine still lives. Not when
// the `Table` is: a job that runs needs the handle only, and the caller may have let go of the table.
const forgotten = new FinalizationRegistry<{ engine: Engine; id: number }>(({ engine, id }) => closeIn(engine, id));

/** @internal An open table, as jobs that run on it need it. */
export class Handle {
  readonly engine: Engine;
  readonly id: number;
  readonly store: Store;
  readonly onRequest: ((event: RequestEvent) => void) | undefined;
  #info: TableInfo;
  #closed = false;

  constructor(engine: Engine, id: number, store: Store, onRequest: ((event: RequestEvent) => void) | undefined) {
    this.engine = engine;
    this.id = id;
    this.store = store;
    this.onRequest = onRequest;
    this.#info = this.#read();
    forgotten.register(this, { engine, id }, this);
  }

  /** The version it is at, as last read. */
  get info(): TableInfo { return this.#info; }

  /** Reads {@link info} again, after the engine has moved the table to another version. */
  moved(): void {
    this.#info = this.#read();
  }

  #read(): TableInfo {
    return this.engine.sync((glue) => glue.tableInfo(this.id)) as TableInfo;
  }

  mustBeOpen(): void {
    if (this.#closed) throw invalid("the table is closed");
  }

  /** Lets the engine forget the table. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    closeIn(this.engine, this.id);
    forgotten.unregister(this);
  }

  /** Asks the engine something about this table. */
  async call<T>(start: (glue: Glue, id: number) => number, signal?: AbortSignal, changed?: Changed): Promise<T> {
    this.mustBeOpen();
    return this.engine.call<T>((glue) => start(glue, this.id), signal, changed);
  }

  /** Refuses a store that commits cannot be left to, before any work is done for one. */
  ensureCommits(signal: AbortSignal | undefined): Promise<void> {
    const info = this.engine.sync((glue) => glue.tableStoreInfo(this.id)) as StoreInfo;
    return ensureCommits(this.store, info, (wrong) => this.engine.sync((glue) => glue.tableStoreFound(this.id, wrong ?? undefined)), signal);
  }
}

/** Closes the table of this number, unless its engine is gone with all its tables. */
function closeIn(engine: Engine, id: number): void {
  if (engine.crash === null) engine.sync((glue) => glue.closeTable(id));
}
