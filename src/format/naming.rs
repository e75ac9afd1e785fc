//! Names of manifest files (table-format §2.1).

/// The naming scheme of a manifest file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Naming {
    /// `{version}.manifest` (old tables).
    V1,
    /// `{u64::MAX - version}`, zero padded to 20 digits: ascending name order is newest first.
    V2,
    /// `d{version}.manifest`: a version with bit 63 set that belongs to no history.
    Detached,
}

const ENDING: &str = ".manifest";
const V2_LENGTH: usize = 29;
const DETACHED_BIT: u64 = 1 << 63;

/// Scheme and version of a file name in `_versions/`; `None` for everything that is no manifest (staging leftovers, the hint).
pub fn parse_name(name: &str) -> Option<(Naming, u64)> {
    let stem = name.strip_suffix(ENDING)?;
    let (naming, digits) = match stem.strip_prefix('d') {
        Some(rest) => (Naming::Detached, rest),
        None if name.len() == V2_LENGTH => (Naming::V2, stem),
        None => (Naming::V1, stem),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    let version = match naming {
        Naming::V2 => u64::MAX - number,
        Naming::V1 => number,
        Naming::Detached => Some(number).filter(|n| n & DETACHED_BIT != 0)?,
    };
    // A name that a version would not be given back is no manifest of it: reading it by version could never find it.
    (file_name(naming, version) == name).then_some((naming, version))
}

/// The file name of a version in `_versions/`.
pub fn file_name(naming: Naming, version: u64) -> String {
    match naming {
        Naming::V1 => format!("{version}{ENDING}"),
        Naming::V2 => format!("{:020}{ENDING}", u64::MAX - version),
        Naming::Detached => format!("d{version}{ENDING}"),
    }
}

/// Whether a version number is one of a detached manifest (bit 63).
pub fn is_detached(version: u64) -> bool {
    version & DETACHED_BIT != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_each_scheme() {
        assert_eq!(file_name(Naming::V2, 1), "18446744073709551614.manifest");
        assert_eq!(parse_name("18446744073709551614.manifest"), Some((Naming::V2, 1)));
        assert_eq!(parse_name("00000000000000000000.manifest"), Some((Naming::V2, u64::MAX)));
        assert_eq!(parse_name("7.manifest"), Some((Naming::V1, 7)));
        assert_eq!(file_name(Naming::V1, 7), "7.manifest");
        let detached = (1 << 63) | 12345;
        assert_eq!(parse_name(&file_name(Naming::Detached, detached)), Some((Naming::Detached, detached)));
        assert!(is_detached(detached) && !is_detached(7));
    }

    #[test]
    fn what_is_no_manifest() {
        for name in [
            "latest_version_hint.json",
            "7.manifest-0c606674-fdce-4c00-a3c4-270b1e19f84e",
            ".tmp7.manifest",
            ".manifest",
            "+7.manifest",
            "07.manifest",
            "d7.manifest",
            "dx.manifest",
            "99999999999999999999.manifest",
            "-1.manifest",
            "",
        ] {
            assert_eq!(parse_name(name), None, "{name}");
        }
    }
}
