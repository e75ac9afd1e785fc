// What the page keeps in the browser between visits. It is a comfort: a full or forbidden storage stops nothing.

/** Where things are kept; `null` where the browser keeps nothing for pages. */
export function keeping(): Storage | null {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}

export function trying(work: (storage: Storage) => void): void {
  const storage = keeping();
  try {
    if (storage) work(storage);
  } catch {
    // Then nothing is kept.
  }
}
