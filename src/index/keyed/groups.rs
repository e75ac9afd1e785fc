//! Collecting the rows of every key: all keys at once, or those of a window of the key order in each of several passes.

use std::cmp::Ordering;

use arrow::datatypes::DataType;

use crate::error::Result;
use crate::index::distinct::Distinct;
use crate::index::keyed::KeyWriter;
use crate::index::order::Comparison;
use crate::index::postings::{Layout, Postings};

/// List of the null key; the key of number n has the list after.
const NULLS: u32 = 0;

/// Keys in plain bytes, numbered as they come, and the rows of each.
pub struct Groups {
    data_type: DataType,
    compare: Comparison,
    keys: Distinct,
    postings: Postings,
    /// Keys below it are written already.
    floor: Option<Vec<u8>>,
    /// Keys from it on are left to a later pass.
    ceiling: Option<Vec<u8>>,
    /// Nulls written in the first pass, once it is over.
    nulls: Option<u64>,
    /// Rows of all keys, counted in the first pass.
    seen: u64,
}

impl Groups {
    /// No keys yet, of that type and order.
    pub fn new(data_type: &DataType, compare: Comparison) -> Groups {
        Groups {
            data_type: data_type.clone(),
            compare,
            keys: Distinct::new(data_type),
            postings: Postings::default(),
            floor: None,
            ceiling: None,
            nulls: None,
            seen: 0,
        }
    }

    /// Whether this is the first pass over the column.
    pub fn first_pass(&self) -> bool {
        self.nulls.is_none()
    }

    /// Adds a row to a key, `None` being the null key; one outside the window is passed over.
    ///
    /// # Errors
    /// `MEMORY_LIMIT` when there are more keys or rows than numbers.
    #[inline]
    pub fn push(&mut self, key: Option<&[u8]>, id: u64) -> Result<()> {
        let list = match key {
            None if self.first_pass() => NULLS,
            None => return Ok(()),
            Some(key) => {
                self.seen += u64::from(self.first_pass());
                if self.outside(key) {
                    return Ok(());
                }
                self.keys.number(key)?.saturating_add(1)
            }
        };
        self.postings.push(list, id)
    }

    #[inline]
    fn outside(&self, key: &[u8]) -> bool {
        let below = |bound: &Option<Vec<u8>>| bound.as_ref().is_some_and(|bound| (self.compare)(key, bound) == Ordering::Less);
        (self.ceiling.is_some() && !below(&self.ceiling)) || below(&self.floor)
    }

    /// Bytes held, and what writing takes beside them.
    pub fn memory_bytes(&self) -> u64 {
        // In the file a key takes its bytes and two positions; the order of the keys and the offsets of a page beside them.
        self.keys.memory_bytes() + self.keys.bytes() + 32 * self.keys.len() as u64 + self.postings.memory_bytes()
    }

    /// About what the file will take: two bytes a row at most, and what a key takes, as often as in what is held.
    pub fn file_bytes(&self) -> u64 {
        let key = 50 + self.keys.bytes() / (self.keys.len() as u64).max(1);
        let keys = self.keys.len() as u64 * self.seen.div_ceil(self.postings.ids().max(1));
        2 * self.seen + key * keys
    }

    /// Lets go of the upper half of the keys and of all that come later; `false` when there is only one.
    ///
    /// # Errors
    /// `INTERNAL` only.
    pub fn narrow(&mut self) -> Result<bool> {
        let count = |number: u32| self.postings.count(number.saturating_add(1));
        let half = (self.postings.ids() - self.postings.count(NULLS)) / 2;
        let mut keys = std::mem::replace(&mut self.keys, Distinct::new(&self.data_type));
        let order = keys.order(self.compare);
        let mut rows = 0;
        // At least one key stays, and one goes.
        let fits = order.iter().take_while(|number| {
            rows += count(**number);
            rows <= half
        });
        let kept = fits.count().max(1);
        let Some(ceiling) = order.get(kept) else { return Ok(false) };
        self.ceiling = Some(keys.get(*ceiling).to_vec());
        let mut moves = vec![(NULLS, NULLS)];
        for number in order.iter().take(kept) {
            moves.push((number.saturating_add(1), self.keys.number(keys.get(*number))?.saturating_add(1)));
        }
        drop((keys, order));
        self.postings.keep(moves.into_iter())?;
        Ok(true)
    }

    /// Writes what is held, in order.
    ///
    /// # Errors
    /// Those of [`KeyWriter::push`].
    pub fn write(&mut self, writer: &mut KeyWriter, layout: Layout) -> Result<()> {
        if self.first_pass() {
            let nulls = self.postings.count(NULLS);
            self.nulls = Some(nulls);
            if nulls > 0 {
                writer.push(None, &mut |out| self.postings.encode(NULLS, layout, out))?;
            }
        }
        for number in self.keys.order(self.compare) {
            let list = number.saturating_add(1);
            writer.push(Some(self.keys.get(number)), &mut |out| self.postings.encode(list, layout, out))?;
        }
        self.keys = Distinct::new(&self.data_type);
        self.postings = Postings::default();
        Ok(())
    }

    /// Ends a pass: when keys were left out, those held are written and the column has to come again.
    ///
    /// # Errors
    /// Those of [`Groups::write`].
    pub fn again(&mut self, writer: &mut KeyWriter, layout: Layout) -> Result<bool> {
        if self.ceiling.is_none() {
            return Ok(false);
        }
        self.write(writer, layout)?;
        self.floor = self.ceiling.take();
        Ok(true)
    }

    /// Rows of the null key; known when they are written.
    pub fn nulls(&self) -> u64 {
        self.nulls.unwrap_or(0)
    }
}
