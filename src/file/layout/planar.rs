//! Pages of 2.3 files (file-format §5.6): the pages of 2.2 in another message, or a sparse structure. The format is unstable.

use std::rc::Rc;

use super::PageDecoder;
use super::constant::ConstantPage;
use super::fullzip::FullZipPage;
use super::miniblock::MiniBlockPage;
use super::sparse::{SparsePage, SparseValues};
use crate::error::Result;
use crate::file::fault::Fault;
use crate::file::messages::encoding21::{ConstantLayout, FullZipLayout, MiniBlockLayout};
use crate::file::messages::encoding23::{Chunked, PlanarLayout, StructureKind, ValuesKind, Zipped};
use crate::file::page::PageSource;

/// Chooses the decoder of a 2.3 page.
pub(super) async fn open(source: PageSource, message: PlanarLayout) -> Result<Rc<dyn PageDecoder>> {
    let unsupported = |source: &PageSource, what: &str| Err(source.raise(Fault::Unsupported(what.to_owned())));
    let (Some(structure), Some(values)) = (message.structure, message.values) else {
        return Err(source.corrupt("a 2.3 page without structure or values"));
    };
    let Some(values) = values.kind else { return unsupported(&source, "2.3 values that this build does not know") };
    match structure.kind {
        Some(StructureKind::Dense(dense)) => self::dense(source, dense.layers, values).await,
        Some(StructureKind::Sparse(sparse)) => {
            // Structure comes apart: to the values it is as if there were no nulls and no lists.
            let values = match values {
                ValuesKind::None(_) => SparseValues::None,
                ValuesKind::Constant(constant) => SparseValues::Constant(constant.scalar.unwrap_or_default()),
                ValuesKind::Chunked(chunked) => SparseValues::Chunked(chunks(chunked, vec![1])),
                ValuesKind::Zipped(zipped) => SparseValues::Zipped(zips(zipped, vec![1])),
                ValuesKind::Indexed(_) => return unsupported(&source, "2.3 indexed values"),
            };
            Ok(Rc::new(SparsePage::open(source, &sparse, values).await?))
        }
        None => unsupported(&source, "a 2.3 structure that this build does not know"),
    }
}

fn chunks(chunked: Chunked, layers: Vec<i32>) -> MiniBlockLayout {
    let levels = chunked.levels.unwrap_or_default();
    MiniBlockLayout {
        rep_compression: levels.rep,
        def_compression: levels.def,
        value_compression: chunked.compression,
        dictionary: chunked.dictionary,
        num_dictionary_items: chunked.num_dictionary_items,
        layers,
        num_buffers: chunked.num_buffers,
        repetition_index_depth: levels.depth,
        num_items: chunked.num_items,
        has_large_chunk: true,
    }
}

fn zips(zipped: Zipped, layers: Vec<i32>) -> FullZipLayout {
    let levels = zipped.levels.unwrap_or_default();
    FullZipLayout {
        bits_rep: levels.bits_rep,
        bits_def: levels.bits_def,
        width: zipped.width,
        num_items: zipped.num_items,
        num_visible_items: zipped.num_visible,
        value_compression: zipped.compression,
        layers,
    }
}

async fn dense(source: PageSource, layers: Vec<i32>, values: ValuesKind) -> Result<Rc<dyn PageDecoder>> {
    match values {
        ValuesKind::Chunked(chunked) => Ok(Rc::new(MiniBlockPage::open(source, &chunks(chunked, layers)).await?)),
        ValuesKind::Zipped(zipped) => Ok(Rc::new(FullZipPage::open(source, &zips(zipped, layers))?)),
        ValuesKind::Constant(constant) => {
            let layout = ConstantLayout { layers, inline_value: constant.scalar, ..ConstantLayout::default() };
            Ok(Rc::new(ConstantPage::open(source, layout).await?))
        }
        ValuesKind::None(_) => {
            let layout = ConstantLayout { layers, ..ConstantLayout::default() };
            Ok(Rc::new(ConstantPage::open(source, layout).await?))
        }
        ValuesKind::Indexed(_) => Err(source.raise(Fault::Unsupported("2.3 indexed values".to_owned()))),
    }
}
