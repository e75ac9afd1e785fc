// Colours of segments. A segment keeps its colour from version to version: it comes from the uuid, and older segments choose first.

/** Eight hues told apart with the common colour-vision deficiencies, each dark and light; patterns stand in for them in print. */
export const HUES = 8;
export const SLOTS = HUES * 2;

export const SEGMENT_COLOURS: readonly string[] = [
  "#2f6fc4", "#d17a17", "#1f8f80", "#bd4a76", "#7d8420", "#7656c2", "#2b93b8", "#94593a",
  "#8fb5ea", "#f0b675", "#83cbbf", "#e29abb", "#c2c77a", "#b9a5ea", "#93cfe4", "#cfa68c",
];

/** Edge drawn around light slots, so that they stand against a white ground as well. */
export const SEGMENT_EDGES: readonly string[] = [
  "#245798", "#a35d0d", "#166e62", "#96375b", "#5f6516", "#5b409b", "#1f708d", "#71432a",
  "#4f80bf", "#c47f2c", "#3f9a8b", "#b8628a", "#8b9136", "#8468c6", "#4a9bb8", "#a1714f",
];

/** FNV-1a over the text: any stable spread will do. */
export function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193) >>> 0;
  // FNV's low bits follow the last characters closely; the slot is taken from a mixed value.
  h ^= h >>> 15;
  h = Math.imul(h, 0x2c1b3c6d) >>> 0;
  return (h ^ (h >>> 12)) >>> 0;
}

export interface Coloured {
  uuid: string;
  colour: number;
  info: { created_at?: string | null; dataset_version: number };
}

/**
 * Gives every segment a slot: its uuid's own if no neighbour on the axis has that hue, else the next free one. Segments choose in
 * order of age, so that a new segment never changes the colour of an old one unless both are new to the page.
 */
export function assignColours(segments: Coloured[], cover: Int32Array): void {
  const neighbours: Set<number>[] = segments.map(() => new Set<number>());
  for (let i = 1; i < cover.length; i += 1) {
    const a = cover[i - 1]!;
    const b = cover[i]!;
    if (a < 0 || b < 0 || a === b) continue;
    neighbours[a]?.add(b);
    neighbours[b]?.add(a);
  }
  const order = segments.map((_, i) => i).sort((a, b) => {
    const x = segments[a]!;
    const y = segments[b]!;
    return x.info.dataset_version - y.info.dataset_version || (x.info.created_at ?? "").localeCompare(y.info.created_at ?? "") || (x.uuid < y.uuid ? -1 : 1);
  });
  const done = new Set<number>();
  for (const i of order) {
    const segment = segments[i]!;
    const taken = new Set<number>();
    const takenHues = new Set<number>();
    for (const j of neighbours[i]!) {
      if (!done.has(j)) continue;
      taken.add(segments[j]!.colour);
      takenHues.add(segments[j]!.colour % HUES);
    }
    const wanted = hash(segment.uuid.toLowerCase()) % SLOTS;
    segment.colour = firstFree(wanted, (slot) => !takenHues.has(slot % HUES)) ?? firstFree(wanted, (slot) => !taken.has(slot)) ?? wanted;
    done.add(i);
  }
}

/** The slot that is wanted, or the next one that is free. */
export function firstFree(wanted: number, free: (slot: number) => boolean): number | null {
  // Steps of 5 visit all 16 slots and land on a distant hue first.
  for (let step = 0; step < SLOTS; step += 1) {
    const slot = (wanted + step * 5) % SLOTS;
    if (free(slot)) return slot;
  }
  return null;
}
