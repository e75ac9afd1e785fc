//! All fragments as typed arrays: very many of them cross without an object each.

use std::collections::BTreeMap;

use js_sys::{Array, Float64Array, Int32Array, Object, Reflect, Uint32Array};
use roaring::RoaringBitmap;
use wasm_bindgen::JsValue;

use crate::error::{Error, Result};
use crate::format::fragment::Fragment;
use crate::format::index_metadata::IndexMetadata;
use crate::table::Table;

/// Not recorded is NaN: zero would be a claim.
fn number(value: Option<u64>) -> f64 {
    value.map_or(f64::NAN, |v| v as f64)
}

fn deleted(fragment: &Fragment) -> Option<u64> {
    fragment.deletion_file.as_ref().map_or(Some(0), |file| file.num_deleted_rows)
}

fn bytes(fragment: &Fragment) -> Option<u64> {
    fragment.files.iter().try_fold(0u64, |sum, file| sum.checked_add(file.size?))
}

pub(super) fn set(object: &Object, name: &str, value: &JsValue) -> Result<()> {
    Reflect::set(object, &JsValue::from_str(name), value).map_err(|_| Error::internal("an object took no property"))?;
    Ok(())
}

/// The document `FragmentColumns`.
pub(super) async fn fragment_columns(table: &Table) -> Result<JsValue> {
    let fragments = &table.manifest().manifest.fragments;
    let ids: Vec<u32> = fragments.iter().map(|f| f.id).collect();
    let floats = |of: fn(&Fragment) -> Option<u64>| -> JsValue {
        Float64Array::from(fragments.iter().map(|f| number(of(f))).collect::<Vec<f64>>().as_slice()).into()
    };
    let files: Vec<u32> = fragments.iter().map(|f| u32::try_from(f.files.len()).unwrap_or(u32::MAX)).collect();
    let columns = Object::new();
    set(&columns, "ids", &Uint32Array::from(ids.as_slice()).into())?;
    set(&columns, "physical_rows", &floats(|f| f.physical_rows))?;
    set(&columns, "deleted_rows", &floats(deleted))?;
    set(&columns, "bytes", &floats(bytes))?;
    set(&columns, "files", &Uint32Array::from(files.as_slice()).into())?;
    let coverage = Array::new();
    let mut names: BTreeMap<&str, Vec<&IndexMetadata>> = BTreeMap::new();
    for entry in table.indices().await?.iter().filter(|entry| !entry.is_system()) {
        names.entry(&entry.name).or_default().push(entry);
    }
    let live: RoaringBitmap = ids.iter().collect();
    for (name, entries) in names {
        coverage.push(&coverage_column(name, &entries, &live, &ids)?);
    }
    set(&columns, "coverage", &coverage)?;
    Ok(columns.into())
}

fn coverage_column(name: &str, entries: &[&IndexMetadata], live: &RoaringBitmap, ids: &[u32]) -> Result<JsValue> {
    let mut segment = vec![-1i32; ids.len()];
    for (position, entry) in entries.iter().enumerate() {
        let Some(bitmap) = &entry.fragment_bitmap else { continue };
        let position = i32::try_from(position).unwrap_or(i32::MAX);
        for id in bitmap & live {
            let at = ids.binary_search(&id).ok();
            if let Some(place) = at.and_then(|at| segment.get_mut(at)).filter(|place| **place == -1) {
                *place = position;
            }
        }
    }
    let uuids: Array = entries.iter().map(|entry| JsValue::from_str(&entry.uuid.to_string())).collect();
    let column = Object::new();
    set(&column, "index", &JsValue::from_str(name))?;
    set(&column, "uuids", &uuids)?;
    set(&column, "segment", &Int32Array::from(segment.as_slice()).into())?;
    Ok(column.into())
}
