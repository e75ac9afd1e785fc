//! Page layouts: the 2.0 grammar, mini-block, full-zip and constant pages of 2.1 and 2.2, and what 2.3 makes of them.

pub(super) mod array20;
mod constant;
mod fullzip;
mod miniblock;
mod planar;
mod sparse;

use std::ops::Range;
use std::rc::Rc;

use arrow::array::ArrayRef;
use async_trait::async_trait;
use prost::Message;

use super::fault::Fault;
use super::messages::Page;
use super::messages::encoding20::ArrayEncoding;
use super::messages::encoding21::{LayoutKind, PageLayout};
use super::messages::encoding23::PlanarLayout;
use super::page::PageSource;
use crate::error::Result;

/// Decodes rows of one page.
#[async_trait(?Send)]
pub(crate) trait PageDecoder {
    /// The page.
    fn source(&self) -> &PageSource;
    /// Where a slice that begins at row `start` best ends; may lie past the rows wanted.
    fn slice_end(&self, start: u64) -> u64;
    /// Rows `rows` of the page, all inside it.
    async fn decode(&self, rows: Range<u64>) -> Result<ArrayRef>;
}

/// Chooses the decoder of a page and reads what it needs before the first of the rows wanted.
pub(crate) async fn open(mut source: PageSource, page: &Page, wanted: &Range<u64>) -> Result<Rc<dyn PageDecoder>> {
    let (kind, message) = source.encoding(page)?;
    source.hold_if_small(wanted).await?;
    match kind.as_str() {
        "lance.encodings.ArrayEncoding" => {
            let message =
                ArrayEncoding::decode(message).map_err(|e| source.corrupt(format!("its encoding does not decode: {e}")))?;
            array20::open(source, &message).await
        }
        "lance.encodings21.PageLayout" => {
            let message = PageLayout::decode(message).map_err(|e| source.corrupt(format!("its layout does not decode: {e}")))?;
            match message.layout {
                Some(LayoutKind::MiniBlock(layout)) => Ok(Rc::new(miniblock::MiniBlockPage::open(source, &layout).await?)),
                Some(LayoutKind::FullZip(layout)) => Ok(Rc::new(fullzip::FullZipPage::open(source, &layout)?)),
                Some(LayoutKind::Constant(layout)) => Ok(Rc::new(constant::ConstantPage::open(source, layout).await?)),
                Some(LayoutKind::Blob(_)) => Err(source.raise(Fault::Unsupported("a blob page".to_owned()))),
                None => Err(source.raise(Fault::Unsupported("a page layout that this build does not know".to_owned()))),
            }
        }
        "lance.encodings23.PlanarLayout" => {
            let message =
                PlanarLayout::decode(message).map_err(|e| source.corrupt(format!("its layout does not decode: {e}")))?;
            planar::open(source, message).await
        }
        other => Err(source.raise(Fault::Unsupported(format!("page encoding {other:?}")))),
    }
}
