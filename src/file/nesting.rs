//! List types: which lists are around a column's values, and arrays of lists from their parts.

use arrow::array::{Array, ArrayData, ArrayRef, make_array};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::DataType;

use super::fault::{Decoded, Fault, corrupt};
use super::levels::ListPart;

/// The list types around the values, outermost first, and the type of the values.
pub(crate) fn split(ty: &DataType) -> (Vec<DataType>, DataType) {
    let mut lists = Vec::new();
    let mut at = ty;
    while let DataType::List(item) | DataType::LargeList(item) = at {
        lists.push(at.clone());
        at = item.data_type();
    }
    (lists, at.clone())
}

/// Puts the values into their lists; `parts` are innermost first, `lists` outermost first.
pub(crate) fn wrap(values: ArrayRef, lists: &[DataType], parts: Vec<ListPart>) -> Decoded<ArrayRef> {
    if lists.len() != parts.len() {
        return corrupt(format!("{} lists in a column whose type has {}", parts.len(), lists.len()));
    }
    let mut array = values;
    for (ty, part) in lists.iter().rev().zip(parts) {
        array = list(ty, part.offsets, part.nulls, &array)?;
    }
    Ok(array)
}

/// One array of lists; the offsets begin at 0 and end at the number of items.
pub(crate) fn list(ty: &DataType, offsets: Vec<usize>, nulls: Option<NullBuffer>, items: &ArrayRef) -> Decoded<ArrayRef> {
    if offsets.first() != Some(&0) || offsets.last() != Some(&items.len()) {
        return corrupt(format!("lists that end at item {:?} of {}", offsets.last(), items.len()));
    }
    let rows = offsets.len() - 1;
    let offsets = match ty {
        DataType::LargeList(_) => Buffer::from_vec(offsets.iter().map(|o| *o as i64).collect()),
        _ => {
            let offsets: Result<Vec<i32>, _> = offsets.iter().map(|o| i32::try_from(*o)).collect();
            Buffer::from_vec(offsets.map_err(|_| Fault::TooLarge("more than 2^31 list items in one slice".to_owned()))?)
        }
    };
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
    match ArrayData::builder(ty.clone()).len(rows).add_buffer(offsets).nulls(nulls).add_child_data(items.to_data()).build() {
        Ok(data) => Ok(make_array(data)),
        Err(error) => corrupt(format!("lists that are no {ty}: {error}")),
    }
}
