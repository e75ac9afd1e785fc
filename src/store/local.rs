//! [`LocalIo`]: the host callbacks on std's file system, for native use (tests, benches).

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use async_trait::async_trait;
use bytes::Bytes;

use super::fault::{Fault, FaultKind};
use super::host::{HostEntry, HostIo, HostRead};

/// Makes the names of temporary files of this process differ.
static SEQUENCE: AtomicU64 = AtomicU64::new(0);

/// Files below a folder.
pub struct LocalIo {
    root: PathBuf,
}

impl LocalIo {
    /// Files below `root`.
    pub fn new(root: impl Into<PathBuf>) -> LocalIo {
        LocalIo { root: root.into() }
    }

    fn at(&self, path: &str) -> PathBuf {
        path.split('/').filter(|part| !part.is_empty()).fold(self.root.clone(), |at, part| at.join(part))
    }
}

fn fault(method: &str, error: &io::Error) -> Fault {
    let status = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => 404,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => 403,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => 507,
        _ => return Fault::new(FaultKind::Interrupted, method, error.kind().to_string()),
    };
    Fault::new(FaultKind::Status(status), method, "")
}

fn modified_ms(meta: &fs::Metadata) -> i64 {
    let since = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    since.and_then(|d| i64::try_from(d.as_millis()).ok()).unwrap_or(0)
}

fn read(path: &Path, range: Option<Range<u64>>) -> io::Result<HostRead> {
    let mut file = fs::File::open(path)?;
    let meta = file.metadata()?;
    if meta.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let range = range.unwrap_or(0..meta.len());
    let start = range.start.min(meta.len());
    let len = range.end.min(meta.len()).saturating_sub(start);
    let capacity = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    let mut data = Vec::with_capacity(capacity);
    file.seek(SeekFrom::Start(start))?;
    file.take(len).read_to_end(&mut data)?;
    Ok(HostRead { data: data.into(), size: meta.len(), modified_ms: modified_ms(&meta) })
}

fn write(path: &Path, data: &[Bytes], create: bool) -> io::Result<bool> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let number = SEQUENCE.fetch_add(1, Ordering::Relaxed);
    let staged = folder.join(format!(".tmp-{}-{number}-{name}", std::process::id()));
    let result = (|| {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&staged)?;
        for chunk in data {
            file.write_all(chunk)?;
        }
        drop(file);
        if !create {
            fs::rename(&staged, path)?;
            return Ok(true);
        }
        // A hard link appears at once, with every byte, and never over an existing name.
        match fs::hard_link(&staged, path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    })();
    let _ = fs::remove_file(&staged);
    result
}

fn list(dir: &Path) -> io::Result<Vec<HostEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        // A name that vanishes between the two calls is as if it had never been listed.
        let Ok(meta) = entry.metadata() else { continue };
        let Ok(name) = entry.file_name().into_string() else { continue };
        entries.push(HostEntry { name, is_dir: meta.is_dir(), size: meta.len(), modified_ms: modified_ms(&meta) });
    }
    Ok(entries)
}

#[async_trait]
impl HostIo for LocalIo {
    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<HostRead, Fault> {
        read(&self.at(path), range).map_err(|error| fault("GET", &error))
    }

    async fn write(&self, path: &str, data: Vec<Bytes>, create: bool) -> Result<bool, Fault> {
        write(&self.at(path), &data, create).map_err(|error| fault("PUT", &error))
    }

    async fn list(&self, dir: &str) -> Result<Vec<HostEntry>, Fault> {
        match list(&self.at(dir)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            found => found.map_err(|error| fault("LIST", &error)),
        }
    }

    async fn delete(&self, path: &str) -> Result<(), Fault> {
        match fs::remove_file(self.at(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done.map_err(|error| fault("DELETE", &error)),
        }
    }
}
