//! One member of packed struct rows with members of any length (file-format §6.3, 2.2 on): fixed bytes, or a length and so
//! many bytes, member after member.

use super::{ItemReader, item_reader};
use crate::file::fault::{Decoded, corrupt, le, part, unsupported};
use crate::file::messages::encoding21::{self as message, PackedWidth};
use crate::file::values::{Physical, Values};

#[derive(Clone, Copy)]
enum Width {
    Bytes(usize),
    Length(usize),
}

/// The widths of the members, and the reader of the one wanted.
pub(crate) struct VariablePackedStruct {
    widths: Vec<Width>,
    index: usize,
    reader: Box<dyn ItemReader>,
}

impl VariablePackedStruct {
    pub(crate) fn new(message: &message::VariablePackedStruct, physical: &Physical) -> Decoded<VariablePackedStruct> {
        let Physical::Member(index, value) = physical else {
            return corrupt("VariablePackedStruct in a column that is no struct");
        };
        let widths: Decoded<Vec<Width>> = message
            .fields
            .iter()
            .map(|field| match field.width {
                Some(PackedWidth::BitsPerValue(bits)) if bits.is_multiple_of(8) => {
                    Ok(Width::Bytes(usize::try_from(bits / 8).unwrap_or(usize::MAX)))
                }
                Some(PackedWidth::BitsPerLength(bits @ (8 | 16 | 32 | 64))) => Ok(Width::Length(bits as usize / 8)),
                ref other => unsupported(format!("VariablePackedStruct with a member of width {other:?}")),
            })
            .collect();
        let Some(field) = message.fields.get(*index) else {
            return corrupt(format!("member {index} of a packed struct of {}", message.fields.len()));
        };
        Ok(VariablePackedStruct { widths: widths?, index: *index, reader: item_reader(field.value.as_ref(), value)? })
    }
}

impl ItemReader for VariablePackedStruct {
    fn read(&self, value: &[u8], out: &mut Values) -> Decoded<()> {
        let mut at = 0usize;
        let mut found = None;
        for (index, width) in self.widths.iter().enumerate() {
            let size = match *width {
                Width::Bytes(bytes) => bytes,
                Width::Length(bytes) => {
                    let length = le(part(value, at, bytes, "the length of a packed member")?);
                    at += bytes;
                    usize::try_from(length).unwrap_or(usize::MAX)
                }
            };
            let member = part(value, at, size, "a packed member")?;
            at += size;
            if index == self.index {
                found = Some(member);
            }
        }
        match found {
            Some(member) if at == value.len() => self.reader.read(member, out),
            _ => corrupt(format!("a packed row of {} bytes whose members take {at}", value.len())),
        }
    }
}
