//! Tables of a flatbuffer, as far as the Arrow messages of a deletion vector need them. Every position is checked when it is
//! followed; a verifier for all of Arrow's messages is many times this code.

/// A table: fields by number, each of them possibly absent.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Table<'a> {
    /// The table a buffer begins with.
    pub(super) fn root(bytes: &'a [u8]) -> Option<Table<'a>> {
        Some(Table { bytes, at: usize::try_from(u32::from_le_bytes(*bytes.first_chunk()?)).ok()? })
            .filter(|table| table.vtable().is_some())
    }

    fn chunk<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.bytes.get(at..)?.first_chunk().copied()
    }

    fn vtable(&self) -> Option<usize> {
        let back = i64::from(i32::from_le_bytes(self.chunk(self.at)?));
        usize::try_from(i64::try_from(self.at).ok()?.checked_sub(back)?).ok()
    }

    /// Where field `number` is stored.
    fn field(&self, number: usize) -> Option<usize> {
        let vtable = self.vtable()?;
        let slot = 4 + 2 * number;
        let size = usize::from(u16::from_le_bytes(self.chunk(vtable)?));
        if slot + 2 > size {
            return None;
        }
        match usize::from(u16::from_le_bytes(self.chunk(vtable.checked_add(slot)?)?)) {
            0 => None,
            offset => self.at.checked_add(offset),
        }
    }

    /// A byte, 0 when absent.
    pub(super) fn byte(&self, number: usize) -> u8 {
        self.field(number).and_then(|at| self.bytes.get(at)).copied().unwrap_or(0)
    }

    /// A 32-bit number, 0 when absent.
    pub(super) fn i32(&self, number: usize) -> i32 {
        self.field(number).and_then(|at| self.chunk(at)).map_or(0, i32::from_le_bytes)
    }

    /// A 64-bit number, 0 when absent.
    pub(super) fn i64(&self, number: usize) -> i64 {
        self.field(number).and_then(|at| self.chunk(at)).map_or(0, i64::from_le_bytes)
    }

    fn followed(&self, at: usize) -> Option<usize> {
        at.checked_add(usize::try_from(u32::from_le_bytes(self.chunk(at)?)).ok()?)
    }

    /// A table it refers to.
    pub(super) fn table(&self, number: usize) -> Option<Table<'a>> {
        let at = self.followed(self.field(number)?)?;
        Some(Table { bytes: self.bytes, at }).filter(|table| table.vtable().is_some())
    }

    /// The elements of a vector, `size` bytes each; none when it is absent or does not lie inside the buffer.
    pub(super) fn vector(&self, number: usize, size: usize) -> impl ExactSizeIterator<Item = &'a [u8]> {
        let elements = || {
            let at = self.followed(self.field(number)?)?;
            let count = usize::try_from(u32::from_le_bytes(self.chunk(at)?)).ok()?;
            let start = at.checked_add(4)?;
            self.bytes.get(start..start.checked_add(count.checked_mul(size)?)?)
        };
        elements().unwrap_or_default().chunks_exact(size)
    }

    /// The tables of a vector of tables.
    pub(super) fn tables(&self, number: usize) -> Vec<Table<'a>> {
        let Some(start) = self.field(number).and_then(|at| self.followed(at)) else { return Vec::new() };
        let count = self.vector(number, 4).len();
        (0..count)
            .filter_map(|index| Some(Table { bytes: self.bytes, at: self.followed(start.checked_add(4 + 4 * index)?)? }))
            .collect()
    }
}

/// The 64-bit number at byte `at` of a struct.
pub(super) fn i64_of(element: &[u8], at: usize) -> i64 {
    element.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| i64::from_le_bytes(*bytes))
}
