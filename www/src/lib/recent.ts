// Tables opened before in this browser: addresses without secrets, newest first, and nothing else of them.

import { withoutSecrets } from "./url.js";

const KEY = "whetstone.recent";
const MOST = 8;

/** The part of `localStorage` that is used. */
export type Remembering = Pick<Storage, "getItem" | "setItem">;

export function recentTables(storage: Remembering): string[] {
  try {
    const list: unknown = JSON.parse(storage.getItem(KEY) ?? "[]");
    return Array.isArray(list) ? list.filter((one): one is string => typeof one === "string" && one !== "").slice(0, MOST) : [];
  } catch {
    return [];
  }
}

export function remember(storage: Remembering, target: string): void {
  const address = withoutSecrets(target);
  storage.setItem(KEY, JSON.stringify([address, ...recentTables(storage).filter((one) => one !== address)].slice(0, MOST)));
}
