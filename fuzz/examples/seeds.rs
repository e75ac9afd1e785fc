//! Writes the first inputs of every fuzz target: `seeds OUT FOLDER…` makes a folder below OUT for each target, from the files of
//! tables below the folders, and for `page` one more for every row of the coverage table, named `page.ROW`.

#[path = "../../tests/support/parsers.rs"]
mod parsers;
#[path = "../../tests/support/seeds.rs"]
mod seeds;
#[path = "../../tests/support/touched.rs"]
mod touched;

use std::io::Result;
use std::path::{Path, PathBuf};

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let Some(out) = arguments.next() else { return Err(std::io::Error::other("seeds OUT FOLDER…")) };
    let folders: Vec<PathBuf> = arguments.collect();
    for (at, (target, bytes)) in seeds::seeds(&folders).iter().enumerate() {
        write(&out.join(target), at, bytes)?;
    }
    for (row, inputs) in seeds::pages_by_row(&folders) {
        let folder = out.join(format!("page.{}", row.replace(' ', "-")));
        for (at, bytes) in inputs.iter().enumerate() {
            write(&folder, at, bytes)?;
        }
    }
    Ok(())
}

fn write(folder: &Path, at: usize, bytes: &[u8]) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join(format!("seed-{at:05}")), bytes)
}
