//! The one error type: a code, a sentence, and what had changed when it happened.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Shorthand used throughout the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// Every error code of the public interface.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[$doc])* $variant,)* }

        impl ErrorCode {
            /// The code as it appears in JSON, in JavaScript and on the command line.
            pub fn as_str(self) -> &'static str {
                match self { $(ErrorCode::$variant => $text,)* }
            }

            /// The inverse of [`ErrorCode::as_str`]; `None` for a text that is no code.
            pub fn parse(text: &str) -> Option<ErrorCode> {
                match text { $($text => Some(ErrorCode::$variant),)* _ => None }
            }
        }
    };
}

codes! {
    /// There is no Lance table at the target.
    TableNotFound = "TABLE_NOT_FOUND",
    /// The table exists, the version, tag or branch asked for does not.
    VersionNotFound = "VERSION_NOT_FOUND",
    /// No index of that name.
    IndexNotFound = "INDEX_NOT_FOUND",
    /// The name matches several indexes when case is ignored.
    IndexAmbiguous = "INDEX_AMBIGUOUS",
    /// An index of that name exists already.
    IndexExists = "INDEX_EXISTS",
    /// The index was dropped between plan and commit.
    IndexDropped = "INDEX_DROPPED",
    /// The index is no longer the one that was planned on.
    IndexChanged = "INDEX_CHANGED",
    /// No column of that path.
    ColumnNotFound = "COLUMN_NOT_FOUND",
    /// A feature flag or table feature this build does not understand.
    UnsupportedFeature = "UNSUPPORTED_FEATURE",
    /// A page encoding this build cannot decode.
    UnsupportedEncoding = "UNSUPPORTED_ENCODING",
    /// An index method this build does not maintain.
    UnsupportedMethod = "UNSUPPORTED_METHOD",
    /// A column type the method or reader does not take.
    UnsupportedType = "UNSUPPORTED_TYPE",
    /// Bytes that contradict themselves or the format.
    CorruptFile = "CORRUPT_FILE",
    /// Index details differ from those of the segments that stay.
    DetailsDiffer = "DETAILS_DIFFER",
    /// Every fragment that was built is gone or was rewritten.
    NothingLeft = "NOTHING_LEFT",
    /// A segment would lose fragments that nothing else covers.
    PartialReplacement = "PARTIAL_REPLACEMENT",
    /// A segment without recorded coverage can only be replaced as a whole.
    BitmapUnknown = "BITMAP_UNKNOWN",
    /// The index changed its type, which only a full replacement may do.
    TypeChanged = "TYPE_CHANGED",
    /// Two segments claim the same fragment.
    Overlap = "OVERLAP",
    /// A segment uuid is already used in the table.
    UuidInUse = "UUID_IN_USE",
    /// The plan no longer fits the table.
    StalePlan = "STALE_PLAN",
    /// A fragment reuse history that this build must not interpret.
    HistoryUnsupported = "HISTORY_UNSUPPORTED",
    /// The store does not answer.
    StoreUnreachable = "STORE_UNREACHABLE",
    /// The store answers 401 or 403.
    StoreDenied = "STORE_DENIED",
    /// A browser's cross-origin rules hide the answer.
    StoreCors = "STORE_CORS",
    /// The store does not serve byte ranges.
    StoreRanges = "STORE_RANGES",
    /// The store changes the bytes of a range (content encoding).
    StoreEncoding = "STORE_ENCODING",
    /// The store cannot create an object only if it is absent.
    StoreUnsafe = "STORE_UNSAFE",
    /// The store is out of space or quota.
    StoreFull = "STORE_FULL",
    /// Other writers kept winning until the attempts were used up.
    CommitConflict = "COMMIT_CONFLICT",
    /// It could not be found out whether the commit landed.
    CommitUnknown = "COMMIT_UNKNOWN",
    /// The work needs more memory than it was allowed.
    MemoryLimit = "MEMORY_LIMIT",
    /// A number past 2^53 that JSON numbers would round.
    NumberTooLarge = "NUMBER_TOO_LARGE",
    /// An argument that means nothing.
    InvalidArgument = "INVALID_ARGUMENT",
    /// A statement that does not parse.
    SqlSyntax = "SQL_SYNTAX",
    /// The caller's signal fired.
    Aborted = "ABORTED",
    /// A request or job took longer than allowed.
    Timeout = "TIMEOUT",
    /// The WebAssembly instance trapped.
    EngineCrashed = "ENGINE_CRASHED",
    /// A bug of ours.
    Internal = "INTERNAL",
}

/// What had been changed on the store when the error happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Changed {
    /// Nothing was written.
    #[default]
    Nothing,
    /// Files were written that no manifest names.
    Staged,
    /// A version was committed.
    Committed,
    /// It is not known.
    Unknown,
}

#[derive(Clone, Debug)]
struct Inner {
    code: ErrorCode,
    message: String,
    detail: Map<String, Value>,
    changed: Changed,
}

/// An error with a code, one sentence for a person, structured detail, and what had changed.
///
/// Boxed inside so that `Result<T>` stays one word wide on hot paths.
#[derive(Clone)]
pub struct Error(Box<Inner>);

impl Error {
    /// A new error; nothing changed, no detail.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Error {
        Error(Box::new(Inner { code, message: message.into(), detail: Map::new(), changed: Changed::Nothing }))
    }

    /// `CORRUPT_FILE` for `object` (a path), saying what disagrees.
    pub fn corrupt(object: &str, what: impl fmt::Display) -> Error {
        Error::new(ErrorCode::CorruptFile, format!("{object}: {what}")).with("object", object)
    }

    /// `INVALID_ARGUMENT`.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(ErrorCode::InvalidArgument, message)
    }

    /// `INTERNAL`: an invariant of our own did not hold.
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(ErrorCode::Internal, message)
    }

    /// Adds a key to the structured detail.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Error {
        self.0.detail.insert(key.to_owned(), value.into());
        self
    }

    /// States what had changed when the error happened.
    #[must_use]
    pub fn with_changed(mut self, changed: Changed) -> Error {
        self.0.changed = changed;
        self
    }

    /// Lists the objects on the store that no manifest names, in place of what the detail `staged` listed. With none of them
    /// nothing had changed.
    #[must_use]
    pub fn with_staged(mut self, paths: Vec<String>) -> Error {
        if paths.is_empty() {
            self.0.detail.remove("staged");
            return self.with_changed(Changed::Nothing);
        }
        self.with("staged", paths).with_changed(Changed::Staged)
    }

    /// The error of writing `path`, which no manifest names: it may be there, unless the store refused it for certain.
    #[must_use]
    pub fn of_writing(self, path: &str) -> Error {
        if self.changed() == Changed::Nothing { self } else { self.with_staged(vec![path.to_owned()]) }
    }

    /// The objects that the detail `staged` lists.
    pub fn staged(&self) -> impl Iterator<Item = &str> {
        self.0.detail.get("staged").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    /// The code.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The sentence.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The structured detail.
    pub fn detail(&self) -> &Map<String, Value> {
        &self.0.detail
    }

    /// What had changed.
    pub fn changed(&self) -> Changed {
        self.0.changed
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.as_str(), self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} (changed: {:?}, detail: {:?})", self.0.changed, self.0.detail)
    }
}

impl std::error::Error for Error {}
