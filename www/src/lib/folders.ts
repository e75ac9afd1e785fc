// Folders of this machine that a person handed to the page. Their handles are kept in the browser's own database, so that a folder can
// be opened again without looking for it; a handle holds no key, and the browser asks before it lets the page use it another day.

export const FOLDER = "folder:";

/** The address of a kept folder: `folder:3/users.lance`, of which only the number means something. */
export function folderAddress(id: number, name: string): string {
  return `${FOLDER}${id}/${encodeURIComponent(name)}`;
}

export function isFolder(target: string | null): boolean {
  return target?.startsWith(FOLDER) ?? false;
}

function idOf(target: string): number | null {
  const found = /^folder:(\d{1,15})\//.exec(target);
  return found ? Number(found[1]) : null;
}

interface Kept {
  name: string;
  handle: FileSystemDirectoryHandle;
}

type Access = "granted" | "prompt" | "denied";

/** What handles of Chromium can be asked beyond the standard; elsewhere a handle at hand is one that may be used. */
interface Askable {
  queryPermission?(descriptor: { mode: "read" | "readwrite" }): Promise<Access>;
  requestPermission?(descriptor: { mode: "read" | "readwrite" }): Promise<Access>;
}

interface Picker {
  showDirectoryPicker?(options: { id: string; mode: "read" | "readwrite" }): Promise<FileSystemDirectoryHandle>;
}

/** Whether this browser lets a person hand over a folder. */
export function canPick(): boolean {
  return typeof (globalThis as Picker).showDirectoryPicker === "function";
}

/** Lets a person choose a folder; null when they close the picker. */
export async function pickFolder(): Promise<FileSystemDirectoryHandle | null> {
  try {
    return await (globalThis as Picker).showDirectoryPicker?.({ id: "whetstone", mode: "read" }) ?? null;
  } catch (error) {
    if ((error as DOMException).name === "AbortError") return null;
    throw error;
  }
}

/** Subfolders looked through for tables; a folder with more is not one of tables. */
const LOOKED_AT = 500;

/** The folder itself when it is a table, else the tables that lie in it. */
export async function tablesIn(folder: FileSystemDirectoryHandle): Promise<FileSystemDirectoryHandle[]> {
  if (await isTable(folder)) return [folder];
  const found: FileSystemDirectoryHandle[] = [];
  let seen = 0;
  for await (const handle of (folder as unknown as { values(): AsyncIterable<FileSystemHandle> }).values()) {
    if (handle.kind !== "directory") continue;
    seen += 1;
    if (seen > LOOKED_AT) break;
    if (await isTable(handle as FileSystemDirectoryHandle)) found.push(handle as FileSystemDirectoryHandle);
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function isTable(folder: FileSystemDirectoryHandle): Promise<boolean> {
  return folder.getDirectoryHandle("_versions").then(() => true, (error: unknown) => {
    if (["NotFoundError", "TypeMismatchError"].includes((error as DOMException).name)) return false;
    throw error;
  });
}

/** Folders kept; the one that was given first goes first. */
const MOST = 40;

/** Keeps a handle and answers its address; a folder that is kept already has one. */
export async function keepFolder(handle: FileSystemDirectoryHandle): Promise<string> {
  const all = await request<[IDBValidKey, Kept][]>("readonly", (store) => entries(store));
  for (const [id, kept] of all) if (await kept.handle.isSameEntry(handle)) return folderAddress(Number(id), kept.name);
  const id = await request<IDBValidKey>("readwrite", (store) => {
    for (const [old] of all.slice(0, Math.max(0, all.length + 1 - MOST))) store.delete(old);
    return answer(store.add({ name: handle.name, handle } satisfies Kept));
  });
  return folderAddress(Number(id), handle.name);
}

/** The handle behind an address; null when this browser does not keep it (any more). */
export async function folderOf(target: string): Promise<FileSystemDirectoryHandle | null> {
  const id = idOf(target);
  if (id === null) return null;
  return (await request<Kept | undefined>("readonly", (store) => answer(store.get(id))))?.handle ?? null;
}

/** Whether the page may use a folder now. To ask for it takes a click. */
export async function accessTo(handle: FileSystemDirectoryHandle, mode: "read" | "readwrite", ask: boolean): Promise<Access> {
  const askable = handle as Askable;
  const state = await askable.queryPermission?.({ mode }) ?? "granted";
  return state === "granted" || !ask ? state : await askable.requestPermission?.({ mode }) ?? state;
}

const STORE = "folders";

function database(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("whetstone", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE, { autoIncrement: true });
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error ?? new Error("the browser keeps nothing for this page"));
  });
}

async function request<A>(mode: IDBTransactionMode, work: (store: IDBObjectStore) => Promise<A>): Promise<A> {
  const db = await database();
  try {
    return await work(db.transaction(STORE, mode).objectStore(STORE));
  } finally {
    db.close();
  }
}

function answer<A>(asked: IDBRequest<A>): Promise<A> {
  return new Promise((resolve, reject) => {
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error ?? new Error("the browser's database did not answer"));
  });
}

function entries(store: IDBObjectStore): Promise<[IDBValidKey, Kept][]> {
  return new Promise((resolve, reject) => {
    const found: [IDBValidKey, Kept][] = [];
    const walk = store.openCursor();
    walk.onerror = () => reject(walk.error ?? new Error("the browser's database did not answer"));
    walk.onsuccess = () => {
      const at = walk.result;
      if (!at) return resolve(found);
      found.push([at.key, at.value as Kept]);
      at.continue();
    };
  });
}
