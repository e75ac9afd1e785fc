//! The fixture tables: real Lance tables with the right answers beside them, unpacked once into a cache.
#![allow(dead_code)] // every test binary uses its own part
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

pub mod planted;
pub mod shared;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

/// The folder that holds `fixtures/` and `cases/`; a missing or broken archive fails the test.
pub fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(unpack)
}

fn unpack() -> PathBuf {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/lance-fixtures.tar.xz");
    let bytes = std::fs::read(&archive).unwrap_or_else(|e| panic!("the fixtures archive {} is missing: {e}", archive.display()));
    let home = || PathBuf::from(std::env::var_os("HOME").expect("HOME, XDG_CACHE_HOME or WHETSTONE_CACHE must be set"));
    let cache = std::env::var_os("WHETSTONE_CACHE").map(PathBuf::from).unwrap_or_else(|| {
        std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).unwrap_or_else(|| home().join(".cache")).join("whetstone")
    });
    // Named after the archive's content, so that a new archive is never mistaken for the old one.
    let target = cache.join("fixtures").join(format!("{:016x}", fnv(&bytes)));
    if !target.is_dir() {
        let staging = cache.join("fixtures").join(format!("unpacking-{}", std::process::id()));
        std::fs::create_dir_all(&staging).expect("the cache folder can be made");
        let done = Command::new("tar").arg("xJf").arg(&archive).arg("-C").arg(&staging).status().expect("tar runs");
        assert!(done.success(), "tar could not unpack {}", archive.display());
        // Another test process may have been faster; either copy is complete.
        if std::fs::rename(&staging, &target).is_err() {
            let _ = std::fs::remove_dir_all(&staging);
        }
    }
    assert!(target.join("fixtures/README.md").is_file(), "{} holds no fixtures", target.display());
    target
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A fixture table with what Lance says about it.
pub struct Fixture {
    /// Name without `.lance`.
    pub name: String,
    /// The table's folder. Never written to: a test works on a [`Fixture::copy`].
    pub path: PathBuf,
    /// The expected answers.
    pub expected: Value,
    /// Whether it is one of the tables with a tagged reuse history, whose JSON has another shape.
    pub tagged: bool,
}

impl Fixture {
    /// The plain fixture of that name.
    pub fn table(name: &str) -> Fixture {
        Fixture::load(name, "tables", "expected")
    }

    /// The tagged fixture of that name.
    pub fn tagged(name: &str) -> Fixture {
        Fixture::load(name, "tagged", "tagged")
    }

    fn load(name: &str, tables: &str, answers: &str) -> Fixture {
        let base = root().join("fixtures");
        let path = base.join(tables).join(format!("{name}.lance"));
        assert!(path.is_dir(), "there is no fixture table {}", path.display());
        let expected = read_json(&base.join(answers).join(format!("{name}.json")));
        Fixture { name: name.to_owned(), path, expected, tagged: tables == "tagged" }
    }

    /// Bytes of a file of the table.
    pub fn read(&self, relative: &str) -> Vec<u8> {
        let path = self.path.join(relative);
        std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// A writable copy of the table at `to`.
    pub fn copy(&self, to: &Path) {
        copy_folder(&self.path, to);
    }
}

/// Every plain fixture table.
pub fn tables() -> Vec<Fixture> {
    names("tables").iter().map(|name| Fixture::table(name)).collect()
}

/// Every tagged fixture table that has answers; the source of the shallow clone has none of its own.
pub fn tagged() -> Vec<Fixture> {
    let answered = |name: &&String| root().join("fixtures/tagged").join(format!("{name}.json")).is_file();
    names("tagged").iter().filter(answered).map(|name| Fixture::tagged(name)).collect()
}

fn names(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root().join("fixtures").join(folder)).expect("the fixtures are there");
    let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter_map(|n| n.strip_suffix(".lance").map(str::to_owned)).collect();
    names.sort();
    assert!(names.len() > 20, "only {} fixtures in {folder}", names.len());
    names
}

/// A JSON file of the fixtures or cases.
pub fn read_json(path: &Path) -> Value {
    let text = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Every file below a folder whose name ends so, sorted.
pub fn files_below(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// A small seeded generator for mutations: the same numbers on every machine.
pub struct Rng(u64);

impl Rng {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}
