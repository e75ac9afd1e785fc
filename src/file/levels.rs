//! Layers, repetition and definition levels (file-format §4): what is null, and where lists begin and end.

use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};

use super::encodings::BlockReader;
use super::fault::{Decoded, corrupt, unsupported};
use super::values::{Physical, Values};

/// One layer of a page's structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    /// The leaf or a struct around it; owns so many levels (0 or 1).
    Item(u16),
    /// A list that can be null, can be empty.
    List { null: bool, empty: bool },
}

impl Layer {
    fn levels(self) -> u16 {
        match self {
            Layer::Item(levels) => levels,
            Layer::List { null, empty } => u16::from(null) + u16::from(empty),
        }
    }
}

/// The layers of a page and what follows from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layers {
    /// Leaf first.
    layers: Vec<Layer>,
    /// Definition levels owned in all: 0 = nothing can be null or empty.
    pub(crate) levels: u16,
    /// An entry of a level up to this owns a value slot.
    pub(crate) visible: u16,
    /// List layers; an entry of this repetition level begins a row.
    pub(crate) lists: u16,
}

/// Offsets of one list layer, and which of its lists are null.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListPart {
    /// One more than lists.
    pub(crate) offsets: Vec<usize>,
    /// `None` = none is null.
    pub(crate) nulls: Option<NullBuffer>,
}

impl Layers {
    /// Reads the layer list of a page, leaf first, for a column whose type has `lists` lists around its values.
    pub(crate) fn parse(layers: &[i32], lists: usize) -> Decoded<Layers> {
        if layers.is_empty() || layers.len() > 1000 {
            return corrupt(format!("a page of {} layers", layers.len()));
        }
        let kinds: Decoded<Vec<Layer>> = layers
            .iter()
            .map(|layer| match layer {
                1 => Ok(Layer::Item(0)),
                3 => Ok(Layer::Item(1)),
                2 | 4 | 5 | 6 => Ok(Layer::List { null: matches!(layer, 4 | 6), empty: matches!(layer, 5 | 6) }),
                other => unsupported(format!("layer kind {other}")),
            })
            .collect();
        let layers = kinds?;
        let found = layers.iter().filter(|layer| matches!(layer, Layer::List { .. })).count();
        if found != lists {
            return corrupt(format!("values inside {found} lists in a column whose type has {lists}"));
        }
        let sum = |layers: &mut dyn Iterator<Item = &Layer>| layers.map(|layer| layer.levels()).sum();
        let levels = sum(&mut layers.iter());
        let visible = sum(&mut layers.iter().take_while(|layer| matches!(layer, Layer::Item(_))));
        Ok(Layers { layers, levels, visible, lists: found as u16 })
    }

    /// Validity of the value slots of these entries: valid iff the level is 0. Entries without a slot are left out.
    pub(crate) fn validity(&self, levels: &[u16]) -> Decoded<Option<NullBuffer>> {
        if levels.iter().fold(0, |most, level| most.max(*level)) > self.levels {
            return corrupt(format!("a definition level above {}", self.levels));
        }
        if self.visible < self.levels {
            let slots = levels.iter().filter(|level| **level <= self.visible);
            return Ok(Some(NullBuffer::new(slots.map(|level| *level == 0).collect())));
        }
        let words: Vec<u64> = levels
            .chunks(64)
            .map(|chunk| chunk.iter().rev().fold(0u64, |word, level| word << 1 | u64::from(*level == 0)))
            .collect();
        Ok(Some(NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(words), 0, levels.len()))))
    }

    /// Value slots of these entries.
    pub(crate) fn slots(&self, def: &[u16]) -> usize {
        def.iter().filter(|level| **level <= self.visible).count()
    }

    /// The lists of whole rows, innermost first, from their levels; without definition levels every entry has level 0.
    pub(crate) fn lists(&self, rep: &[u16], def: Option<&[u16]>) -> Decoded<Vec<ListPart>> {
        if def.is_some_and(|def| def.len() != rep.len()) {
            return corrupt(format!("{} repetition levels and another number of definition levels", rep.len()));
        }
        if rep.iter().any(|level| *level > self.lists) {
            return corrupt(format!("a repetition level above {}", self.lists));
        }
        if def.is_some_and(|def| def.iter().any(|level| *level > self.levels)) {
            return corrupt(format!("a definition level above {}", self.levels));
        }
        let mut rep = rep.to_vec();
        let mut def = def.map_or_else(|| vec![0; rep.len()], <[u16]>::to_vec);
        let mut owned = 0u16;
        let mut parts = Vec::with_capacity(usize::from(self.lists));
        for (at, layer) in self.layers.iter().enumerate() {
            let base = owned;
            owned += layer.levels();
            let Layer::List { null, empty } = *layer else { continue };
            let outer = self.layers.iter().skip(at + 1).take_while(|layer| matches!(layer, Layer::Item(_)));
            let levels = ListLevels {
                null: null.then_some(base + 1),
                empty: empty.then_some(base + 1 + u16::from(null)),
                upper: owned,
                top: owned + outer.map(|layer| layer.levels()).sum::<u16>(),
            };
            parts.push(levels.fold(&mut rep, &mut def)?);
        }
        Ok(parts)
    }
}

/// The definition levels that concern one list layer.
struct ListLevels {
    null: Option<u16>,
    empty: Option<u16>,
    /// Levels above belong to what is around the list.
    upper: u16,
    /// Levels above mean that an outer list is null or empty.
    top: u16,
}

impl ListLevels {
    /// Offsets of this layer; `rep` and `def` become those of the layer around it.
    fn fold(&self, rep: &mut Vec<u16>, def: &mut Vec<u16>) -> Decoded<ListPart> {
        let mut offsets = Vec::new();
        let mut valid = Vec::new();
        let mut at = 0usize;
        let mut kept = 0usize;
        for index in 0..rep.len() {
            let (Some(&r), Some(&d)) = (rep.get(index), def.get(index)) else { break };
            if r == 0 {
                if offsets.is_empty() || d > self.upper || Some(d) == self.null || Some(d) == self.empty {
                    return corrupt("levels that put an item outside of any list");
                }
                at += 1;
                continue;
            }
            if let (Some(rep), Some(def)) = (rep.get_mut(kept), def.get_mut(kept)) {
                (*rep, *def) = (r - 1, d);
                kept += 1;
            }
            if d > self.top {
                continue;
            }
            offsets.push(at);
            let null = Some(d) == self.null || d > self.upper;
            valid.push(!null);
            if !null && Some(d) != self.empty {
                at += 1;
            }
        }
        offsets.push(at);
        rep.truncate(kept);
        def.truncate(kept);
        let nulls = Some(NullBuffer::from(valid)).filter(|nulls| nulls.null_count() > 0);
        Ok(ListPart { offsets, nulls })
    }
}

/// Appends `n` levels decoded from a block.
pub(crate) fn read_levels(reader: &dyn BlockReader, block: &[u8], n: usize, out: &mut Vec<u16>) -> Decoded<()> {
    let mut values = Values::new(&Physical::Fixed(2), n)?;
    reader.read(block, n, &mut values)?;
    raw_levels(values.fixed(2)?.as_slice(), n, out)
}

/// Appends `n` levels stored as plain u16.
pub(crate) fn raw_levels(bytes: &[u8], n: usize, out: &mut Vec<u16>) -> Decoded<()> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if pairs.len() != n || !rest.is_empty() {
        return corrupt(format!("{} bytes of levels for {n} entries", bytes.len()));
    }
    out.extend(pairs.iter().map(|pair| u16::from_le_bytes(*pair)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nulls(part: &ListPart) -> Vec<usize> {
        part.nulls.as_ref().map_or(Vec::new(), |nulls| (0..nulls.len()).filter(|row| nulls.is_null(*row)).collect())
    }

    /// `[1,null], null, [], [7]` of file-format §4.1.
    #[test]
    fn one_list() {
        let layers = Layers::parse(&[3, 6], 1).unwrap();
        assert_eq!((layers.levels, layers.visible, layers.lists), (3, 1, 1));
        let (rep, def) = ([1, 0, 1, 1, 1], [0, 1, 2, 3, 0]);
        let parts = layers.lists(&rep, Some(&def)).unwrap();
        assert_eq!(parts[0].offsets, [0, 2, 2, 2, 3]);
        assert_eq!(nulls(&parts[0]), [1]);
        let leaf = layers.validity(&def).unwrap().unwrap();
        assert_eq!(leaf.iter().collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(layers.slots(&def), 3);
    }

    /// `[[1],[2,null]], null, [], [[],null], null struct` of list? of list? in a nullable struct.
    #[test]
    fn lists_of_lists_in_a_struct() {
        let layers = Layers::parse(&[3, 6, 6, 3], 2).unwrap();
        // 1 null item, 2 null inner, 3 empty inner, 4 null outer, 5 empty outer, 6 null struct
        let rep = [2, 1, 0, 2, 2, 2, 1, 2];
        let def = [0, 0, 1, 4, 5, 3, 2, 6];
        let parts = layers.lists(&rep, Some(&def)).unwrap();
        assert_eq!(parts[0].offsets, [0, 1, 3, 3, 3]);
        assert_eq!(nulls(&parts[0]), [3]);
        assert_eq!(parts[1].offsets, [0, 2, 2, 2, 4, 4]);
        assert_eq!(nulls(&parts[1]), [1, 4]);
        assert_eq!(layers.slots(&def), 3);
    }

    #[test]
    fn levels_that_lie() {
        let layers = Layers::parse(&[3, 6], 1).unwrap();
        assert!(layers.lists(&[0, 1], None).is_err());
        assert!(layers.lists(&[2], None).is_err());
        assert!(layers.lists(&[1], Some(&[4])).is_err());
        assert!(layers.lists(&[1, 0], Some(&[0, 2])).is_err());
        assert!(layers.lists(&[1], Some(&[])).is_err());
        assert!(Layers::parse(&[3, 6], 0).is_err());
        assert!(Layers::parse(&[3], 1).is_err());
        assert!(Layers::parse(&[], 0).is_err());
        assert!(Layers::parse(&[9], 0).is_err());
    }
}
