//! The layout of a table: fragments in id order, and what every segment covers.

use roaring::RoaringBitmap;
use uuid::Uuid;

use super::kinds::Kind;

/// A fragment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Id; ascending in a layout.
    pub id: u32,
    /// Rows including deleted ones.
    pub physical_rows: u64,
    /// Deleted rows.
    pub deleted_rows: u64,
    /// Bytes of its data files; `None` = not recorded.
    pub bytes: Option<u64>,
    /// A data file is kept only for hidden row lineage beside columns that are gone.
    pub lineage_only: bool,
}

impl Piece {
    /// Rows that are not deleted.
    pub fn live_rows(&self) -> u64 {
        self.physical_rows.saturating_sub(self.deleted_rows)
    }
}

/// What one segment covers, a version-0 reuse history applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Cover {
    /// Position of its index in [`Layout::indexes`].
    pub index: usize,
    /// The segment; `None` for one that does not exist yet.
    pub uuid: Option<Uuid>,
    /// How its type lives through a compaction.
    pub kind: Kind,
    /// Ids it covers; ones that are gone may be among them. Of a segment that records none, what Lance takes it to cover.
    pub bitmap: RoaringBitmap,
    /// Whether the segment records what it covers.
    pub known: bool,
    /// Ids it covers only because a recorded deferred compaction handed coverage on: its files still name older fragments.
    pub carried: RoaringBitmap,
}

/// A logical index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Name.
    pub name: String,
    /// Type by its name in options, e.g. `BTREE`; `None` = one that nobody knows.
    pub method: Option<&'static str>,
}

/// Fragments and coverage at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// Fragments, ascending by id.
    pub pieces: Vec<Piece>,
    /// Segments of all user indexes, in manifest order.
    pub covers: Vec<Cover>,
    /// The indexes.
    pub indexes: Vec<Index>,
    /// Stable row ids are on.
    pub stable_row_ids: bool,
    /// Highest id ever given to a fragment, those that are gone included.
    pub max_fragment_id: Option<u32>,
}

impl Layout {
    /// The fragment at a position.
    pub fn piece(&self, at: usize) -> Option<&Piece> {
        self.pieces.get(at)
    }

    /// Position of a fragment.
    pub fn position(&self, id: u32) -> Option<usize> {
        self.pieces.binary_search_by_key(&id, |piece| piece.id).ok()
    }

    /// Ids of all fragments.
    pub fn live(&self) -> RoaringBitmap {
        let mut live = RoaringBitmap::new();
        let mut pieces = self.pieces.iter().map(|piece| piece.id).peekable();
        while let Some(first) = pieces.next() {
            let mut last = first;
            while let Some(next) = pieces.next_if(|next| last.checked_add(1) == Some(*next)) {
                last = next;
            }
            live.insert_range(first..=last);
        }
        live
    }

    /// The id the next fragment gets; `None` when ids are used up.
    pub fn next_id(&self) -> Option<u32> {
        let last = self.pieces.last().map(|piece| piece.id).max(self.max_fragment_id);
        last.map_or(Some(0), |last| last.checked_add(1))
    }

    /// Name of the index of a segment.
    pub fn index_of(&self, cover: &Cover) -> &str {
        self.indexes.get(cover.index).map_or("", |index| index.name.as_str())
    }
}
