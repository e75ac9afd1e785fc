//! Shared by the integration tests: the Python that has pylance.
#![allow(dead_code)]

use std::path::PathBuf;
use std::process::Command;

/// The cache folder every set-up step uses.
pub fn cache() -> PathBuf {
    let from = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    from("WHETSTONE_CACHE").unwrap_or_else(|| {
        let base = from("XDG_CACHE_HOME").or_else(|| from("HOME").map(|home| home.join(".cache")));
        base.expect("a home directory").join("whetstone")
    })
}

/// Runs a script of `tests/oracle` and fails with its output unless it ends with status 0.
pub fn run_oracle(script: &str, arguments: &[&std::ffi::OsStr]) -> String {
    let python = std::env::var_os("WHETSTONE_PYTHON").map_or_else(|| cache().join("venv/bin/python"), PathBuf::from);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/oracle").join(script);
    let output = Command::new(&python)
        .arg(&path)
        .args(arguments)
        .output()
        .unwrap_or_else(|e| panic!("{} (the Python with pylance; `make test` sets it up): {e}", python.display()));
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script} failed:\n{text}");
    text
}

/// A folder of this machine as a store.
pub fn folder_store(dir: &std::path::Path) -> whetstone::store::Store {
    let local = object_store::local::LocalFileSystem::new_with_prefix(dir).expect("a folder");
    let env = whetstone::env::system();
    whetstone::store::Store::new(
        std::sync::Arc::new(local),
        object_store::path::Path::default(),
        whetstone::store::StoreKind::Host,
        env,
    )
}

/// Every array of a scan, joined.
pub fn collect_scan(
    mut scan: whetstone::file::ColumnScan,
    ty: &arrow::datatypes::DataType,
) -> whetstone::Result<arrow::array::ArrayRef> {
    let mut arrays = Vec::new();
    while let Some(array) = futures::executor::block_on(scan.next())? {
        arrays.push(array);
    }
    if arrays.is_empty() {
        return Ok(arrow::array::new_empty_array(ty));
    }
    let parts: Vec<&dyn arrow::array::Array> = arrays.iter().map(|a| a.as_ref()).collect();
    Ok(arrow::compute::concat(&parts).expect("arrays of one type"))
}
