//! Tables over HTTP: WebDAV, plain files and S3, against a scripted server that can misbehave in every way we know of.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "http_stores/cloud.rs"]
mod cloud;
mod common;
#[path = "http_stores/writes.rs"]
mod writes;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use common::Fixture;
use futures::executor::block_on;
use http::{Method, Response};
use http_body_util::BodyExt;
use object_store::client::{HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService};
use whetstone::env::TestEnv;
use whetstone::store::{Created, RequestRecord, Store, StoreDescriptor, Surroundings, TargetKind, open_target};
use whetstone::table::{At, Table};
use whetstone::{Error, ErrorCode};

/// What the server saw.
#[derive(Clone, Debug)]
struct Seen {
    method: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
}

impl Seen {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    fn range(&self) -> Option<(usize, usize)> {
        let (a, b) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some((a.parse().unwrap(), b.parse::<usize>().unwrap() + 1))
    }
}

/// How a request is answered instead of by the book.
enum Reply {
    Status(u16, &'static str),
    With(u16, Vec<(&'static str, String)>, Vec<u8>),
    Refused,
    Broken,
    Hang,
}

type Rule = Box<dyn FnMut(&Seen) -> Option<Reply> + Send>;

struct Server {
    /// Served below this path of the URL.
    prefix: &'static str,
    root: PathBuf,
    seen: Mutex<Vec<Seen>>,
    rule: Mutex<Rule>,
    s3: bool,
}

#[derive(Clone)]
struct Transport(Arc<Server>);

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Transport")
    }
}

fn answer(status: u16, headers: Vec<(&'static str, String)>, body: Vec<u8>) -> Result<HttpResponse, HttpError> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    Ok(response.body(HttpResponseBody::from(body)).unwrap())
}

/// Undoes percent-encoding, for the server's side.
fn decode(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            out.push(u8::from_str_radix(&path[at + 1..at + 3], 16).unwrap());
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).unwrap()
}

impl Server {
    fn file(&self, path: &str) -> PathBuf {
        self.root.join(decode(path).strip_prefix(self.prefix).unwrap_or("/nowhere").trim_matches('/'))
    }

    fn names(&self, dir: &Path) -> Vec<(String, u64, bool)> {
        let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
        let mut names: Vec<_> = entries
            .map(|e| e.unwrap())
            .map(|e| (e.file_name().into_string().unwrap(), e.metadata().unwrap().len(), e.path().is_dir()))
            .collect();
        names.sort();
        names.reverse();
        names
    }

    fn propfind(&self, seen: &Seen) -> Result<HttpResponse, HttpError> {
        assert_eq!(seen.header("depth"), Some("1"), "never deeper than a folder");
        let dir = self.file(&seen.path);
        if !dir.is_dir() {
            return answer(404, Vec::new(), Vec::new());
        }
        let base = seen.path.trim_end_matches('/');
        let time = "<D:getlastmodified>Mon, 30 Nov 2026 01:28:06 GMT</D:getlastmodified>";
        let ok = "<D:status>HTTP/1.1 200 OK</D:status>";
        let mut xml = format!(
            "<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\"><D:response><D:href>{base}/</D:href><D:propstat><D:prop>{time}\
             <D:resourcetype><D:collection/></D:resourcetype></D:prop>{ok}</D:propstat></D:response>"
        );
        for (name, size, is_dir) in self.names(&dir) {
            let kind = if is_dir { "<D:collection/>" } else { "" };
            let name: String = name
                .bytes()
                .map(|b| {
                    if b.is_ascii_alphanumeric() || b"-_.".contains(&b) { char::from(b).to_string() } else { format!("%{b:02X}") }
                })
                .collect();
            xml += &format!(
                "<D:response><D:href>{base}/{name}</D:href><D:propstat><D:prop>{time}<D:getcontentlength>{size}</D:getcontentlength>\
                 <D:getetag>\"x\"</D:getetag><D:resourcetype>{kind}</D:resourcetype></D:prop>{ok}</D:propstat></D:response>"
            );
        }
        xml += "</D:multistatus>";
        answer(207, vec![("content-type", "application/xml".into())], xml.into_bytes())
    }

    fn s3_list(&self, seen: &Seen) -> Result<HttpResponse, HttpError> {
        let query: std::collections::HashMap<String, String> =
            seen.query.split('&').filter_map(|pair| pair.split_once('=')).map(|(k, v)| (k.to_owned(), decode(v))).collect();
        let prefix = &query["prefix"];
        let max: usize = query.get("max-keys").map_or(1000, |m| m.parse().unwrap());
        let after = query.get("continuation-token").cloned().unwrap_or_default();
        let mut names = self.names(&self.root.join(prefix.strip_prefix("t.lance/").unwrap().trim_end_matches('/')));
        names.reverse();
        names.retain(|(n, _, is_dir)| !is_dir && *n > after);
        let truncated = names.len() > max;
        names.truncate(max);
        let mut xml = format!(
            "<ListBucketResult><Name>bkt</Name><Prefix>{prefix}</Prefix><KeyCount>{}</KeyCount><IsTruncated>{truncated}</IsTruncated>",
            names.len()
        );
        for (name, size, _) in &names {
            xml += &format!(
                "<Contents><Key>{prefix}{name}</Key><LastModified>2026-11-30T01:28:06.000Z</LastModified><ETag>\"x\"</ETag><Size>{size}</Size></Contents>"
            );
        }
        if truncated {
            xml += &format!("<NextContinuationToken>{}</NextContinuationToken>", names.last().unwrap().0);
        }
        xml += "</ListBucketResult>";
        answer(200, vec![("content-type", "application/xml".into())], xml.into_bytes())
    }

    fn serve(&self, seen: &Seen, body: Bytes) -> Result<HttpResponse, HttpError> {
        let path = self.file(&seen.path);
        match seen.method.as_str() {
            "PROPFIND" if self.s3 => answer(405, Vec::new(), Vec::new()),
            "PROPFIND" => self.propfind(seen),
            "GET" if seen.query.contains("list-type=2") && self.s3 => self.s3_list(seen),
            "GET" => {
                let Ok(bytes) = std::fs::read(&path) else { return answer(404, Vec::new(), b"<Code>NoSuchKey</Code>".to_vec()) };
                let etag = ("etag", "\"x\"".to_owned());
                let modified = ("last-modified", "Mon, 30 Nov 2026 01:28:06 GMT".to_owned());
                let Some((start, end)) = seen.range() else {
                    return answer(200, vec![etag, modified, ("content-length", bytes.len().to_string())], bytes);
                };
                if start >= bytes.len() {
                    return answer(416, Vec::new(), Vec::new());
                }
                let end = end.min(bytes.len());
                let range = ("content-range", format!("bytes {start}-{}/{}", end - 1, bytes.len()));
                answer(
                    206,
                    vec![etag, modified, range, ("content-length", (end - start).to_string())],
                    bytes[start..end].to_vec(),
                )
            }
            "PUT" => {
                if seen.header("if-none-match") == Some("*") && path.exists() {
                    return answer(412, Vec::new(), Vec::new());
                }
                if !path.parent().unwrap().is_dir() {
                    return answer(409, Vec::new(), Vec::new());
                }
                std::fs::write(&path, &body).unwrap();
                answer(201, vec![("etag", "\"x\"".into())], Vec::new())
            }
            "MKCOL" => match std::fs::create_dir(&path) {
                Ok(()) => answer(201, Vec::new(), Vec::new()),
                Err(_) if path.is_dir() => answer(405, Vec::new(), Vec::new()),
                Err(_) => answer(409, Vec::new(), Vec::new()),
            },
            "DELETE" => answer(if std::fs::remove_file(&path).is_ok() { 204 } else { 404 }, Vec::new(), Vec::new()),
            other => panic!("{other} is never sent"),
        }
    }
}

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        assert_ne!(parts.method, Method::HEAD, "HEAD is never needed");
        let headers = parts.headers.iter().map(|(n, v)| (n.to_string(), v.to_str().unwrap().to_owned())).collect();
        let (path, query) = (parts.uri.path().to_owned(), parts.uri.query().unwrap_or_default().to_owned());
        let seen = Seen { method: parts.method.to_string(), path, query, headers };
        if let Some(range) = seen.header("range") {
            assert!(!range.starts_with("bytes=-"), "suffix ranges are never sent");
        }
        let body = body.collect().await?.to_bytes();
        self.0.seen.lock().unwrap().push(seen.clone());
        let reply = (self.0.rule.lock().unwrap())(&seen);
        let error = |kind| Err(HttpError::new(kind, std::io::Error::other("https://user:secret@host/?X-Amz-Signature=secret")));
        match reply {
            None => self.0.serve(&seen, body),
            Some(Reply::Status(status, body)) => answer(status, Vec::new(), body.as_bytes().to_vec()),
            Some(Reply::With(status, headers, body)) => answer(status, headers, body),
            Some(Reply::Refused) => error(HttpErrorKind::Connect),
            Some(Reply::Broken) => error(HttpErrorKind::Interrupted),
            Some(Reply::Hang) => std::future::pending().await,
        }
    }
}

struct Target {
    server: Arc<Server>,
    store: Store,
    log: Arc<Mutex<Vec<RequestRecord>>>,
}

fn target_with(
    root: &Path,
    descriptor: StoreDescriptor,
    s3: bool,
    rule: impl FnMut(&Seen) -> Option<Reply> + Send + 'static,
) -> Target {
    target_in(root, descriptor, s3, Surroundings::new(Arc::new(TestEnv::new(1_800_000_000_000, 5))), rule)
}

fn target_in(
    root: &Path,
    descriptor: StoreDescriptor,
    s3: bool,
    mut surroundings: Surroundings,
    rule: impl FnMut(&Seen) -> Option<Reply> + Send + 'static,
) -> Target {
    let prefix = if s3 { "/bkt/t.lance" } else { "/some dir/t.lance" };
    let server = Arc::new(Server { prefix, root: root.to_owned(), seen: Mutex::default(), rule: Mutex::new(Box::new(rule)), s3 });
    let log = Arc::new(Mutex::new(Vec::new()));
    surroundings.transport = Some(HttpClient::new(Transport(server.clone())));
    let kept = log.clone();
    surroundings.on_request = Some(Arc::new(move |record| kept.lock().unwrap().push(record.clone())));
    let store = open_target(&descriptor, &surroundings).unwrap();
    Target { server, store, log }
}

fn dav(root: &Path, rule: impl FnMut(&Seen) -> Option<Reply> + Send + 'static) -> Target {
    let descriptor =
        StoreDescriptor { kind: TargetKind::Webdav, ..StoreDescriptor::of("http://127.0.0.1:8080/some%20dir/t.lance/") };
    target_with(root, descriptor, false, rule)
}

fn s3(root: &Path, sign_queries: bool, rule: impl FnMut(&Seen) -> Option<Reply> + Send + 'static) -> Target {
    let descriptor = StoreDescriptor {
        kind: TargetKind::S3,
        access_key_id: Some("AKIDEXAMPLE".into()),
        secret_access_key: Some("topsecret".into()),
        session_token: Some("sessiontoken".into()),
        sign_queries: Some(sign_queries),
        ..StoreDescriptor::of("http://127.0.0.1:9000/bkt/t.lance")
    };
    target_with(root, descriptor, true, rule)
}

fn open(target: &Target) -> Result<Table, Error> {
    block_on(Table::open(target.store.clone(), At::Latest, None))
}

fn methods(target: &Target) -> Vec<String> {
    target.server.seen.lock().unwrap().iter().map(|s| s.method.clone()).collect()
}

fn fixture() -> Fixture {
    Fixture::table("fragments_200")
}

#[test]
fn webdav_opens_in_one_listing_and_one_read() {
    let target = dav(&fixture().path, |_| None);
    let table = open(&target).unwrap();
    assert_eq!(serde_json::json!(table.version()), fixture().expected["version"]);
    assert_eq!(methods(&target), ["PROPFIND", "GET"]);
    assert_eq!(target.store.uri(), "http://127.0.0.1:8080/some dir/t.lance");
    let log = target.log.lock().unwrap();
    assert_eq!((log[0].method.as_str(), log[0].status), ("PROPFIND", 207));
    assert_eq!((log[1].method.as_str(), log[1].status), ("GET", 200));
    let counts = target.store.requests();
    assert_eq!((counts.count, counts.bytes), (2, log[0].bytes + log[1].bytes));
    // A GET that costs no preflight: nothing but what browsers set themselves.
    let seen = target.server.seen.lock().unwrap();
    let names: Vec<&str> = seen[1].headers.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(names, ["accept-encoding"]);
}

#[test]
fn s3_opens_in_one_small_page_and_one_read() {
    for sign_queries in [false, true] {
        let target = s3(&fixture().path, sign_queries, |_| None);
        let table = open(&target).unwrap();
        assert_eq!(serde_json::json!(table.version()), fixture().expected["version"]);
        assert_eq!(methods(&target), ["GET", "GET"]);
        let seen = target.server.seen.lock().unwrap().clone();
        assert!(seen[0].query.contains("max-keys=10"), "{}", seen[0].query);
        assert!(seen[0].header("authorization").unwrap().starts_with("AWS4-HMAC-SHA256"));
        assert_eq!(seen[1].header("authorization").is_some(), !sign_queries);
        assert_eq!(seen[1].query.contains("X-Amz-Signature="), sign_queries);
        for record in target.log.lock().unwrap().iter() {
            assert!(!format!("{record:?}").contains("ignature"), "the log holds no signature");
        }
        assert_eq!(block_on(table.versions()).unwrap().len(), fixture().expected["versions"].as_array().unwrap().len());
    }
}

#[test]
fn anonymous_s3_sends_no_signature() {
    let descriptor = StoreDescriptor { kind: TargetKind::S3, ..StoreDescriptor::of("http://127.0.0.1:9000/bkt/t.lance") };
    let target = target_with(&fixture().path, descriptor, true, |_| None);
    open(&target).unwrap();
    assert!(target.server.seen.lock().unwrap().iter().all(|s| s.header("authorization").is_none() && !s.query.contains("X-Amz")));
}

#[test]
fn an_address_alone_finds_its_kind() {
    // S3 by another name: PROPFIND is refused, the bucket lists.
    let target = target_with(&fixture().path, StoreDescriptor::of("http://127.0.0.1:9000/bkt/t.lance"), true, |_| None);
    let table = open(&target).unwrap();
    assert_eq!(methods(&target), ["PROPFIND", "GET", "GET"]);
    assert!(table.store().lists_in_order());
    // Neither lists: the hint file, then upwards.
    let hinted = Fixture::table("tags_and_versions");
    let rule = |seen: &Seen| (seen.method == "PROPFIND" || seen.query.contains("list-type")).then_some(Reply::Status(405, ""));
    let target = target_with(&hinted.path, StoreDescriptor::of("http://127.0.0.1/some%20dir/t.lance"), false, rule);
    assert_eq!(serde_json::json!(open(&target).unwrap().version()), hinted.expected["version"]);
    // A stale hint is only where the climb begins.
    let dir = tempfile::tempdir().unwrap();
    hinted.copy(dir.path());
    std::fs::write(dir.path().join("_versions/latest_version_hint.json"), "{\"version\":3}").unwrap();
    let plain = StoreDescriptor { kind: TargetKind::Static, ..StoreDescriptor::of("http://127.0.0.1/some%20dir/t.lance") };
    let target = target_with(dir.path(), plain.clone(), false, |_| None);
    assert_eq!(serde_json::json!(open(&target).unwrap().version()), hinted.expected["version"]);
    assert!(methods(&target).iter().all(|m| m == "GET"));
    // Nothing to go by: said so, and a version still opens.
    std::fs::remove_file(dir.path().join("_versions/latest_version_hint.json")).unwrap();
    let target = target_with(dir.path(), plain, false, |_| None);
    let error = open(&target).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TableNotFound);
    assert!(error.message().contains("give a version"), "{error}");
    assert_eq!(block_on(Table::open(target.store.clone(), At::Version(2), None)).unwrap().version(), 2);
}

#[test]
fn a_failure_that_passes_is_retried_and_one_that_stays_is_named() {
    for first in [500, 503, 429] {
        let mut failed = false;
        let target = dav(&fixture().path, move |_| {
            (!std::mem::replace(&mut failed, true)).then_some(Reply::Status(first, "<Code>SlowDown</Code>"))
        });
        open(&target).unwrap();
        assert_eq!(methods(&target).len(), 3, "{first}");
    }
    let cases = [
        (Reply::Status(403, "<Code>AccessDenied</Code>"), ErrorCode::StoreDenied, 1),
        (Reply::Status(401, ""), ErrorCode::StoreDenied, 1),
        (Reply::Status(500, ""), ErrorCode::StoreUnreachable, 4),
        (Reply::Refused, ErrorCode::StoreUnreachable, 4),
        (Reply::Broken, ErrorCode::StoreUnreachable, 4),
        (Reply::Hang, ErrorCode::Timeout, 2),
    ];
    for (reply, code, requests) in cases {
        let reply = Mutex::new(Some(reply));
        let target = dav(&fixture().path, move |seen| {
            if seen.method != "GET" {
                return None;
            }
            let mut kept = reply.lock().unwrap();
            Some(match kept.as_ref().unwrap() {
                Reply::Status(status, body) => Reply::Status(*status, body),
                Reply::Refused => Reply::Refused,
                Reply::Broken => Reply::Broken,
                _ => kept.replace(Reply::Hang).unwrap(),
            })
        });
        let error = open(&target).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert_eq!(methods(&target).iter().filter(|m| *m == "GET").count(), requests, "{error}");
        let all = format!("{error:?}");
        assert!(!all.contains("secret") && !all.contains("ignature"), "{all}");
    }
}

#[test]
fn secrets_never_reach_errors_or_descriptors_in_debug() {
    let target = s3(&fixture().path, true, |seen| seen.query.contains("Signature").then_some(Reply::Refused));
    let all = format!("{:?} {:?}", open(&target).unwrap_err(), target.store);
    for secret in ["topsecret", "sessiontoken", "Signature", "AKID"] {
        assert!(!all.contains(secret), "{all}");
    }
    let descriptor = StoreDescriptor { password: Some("topsecret".into()), ..StoreDescriptor::of("https://u:topsecret@h/t") };
    assert!(!format!("{descriptor:?}").contains("topsecret"));
    let text = serde_json::to_string(&descriptor).unwrap();
    assert_eq!(serde_json::from_str::<StoreDescriptor>(&text).unwrap(), descriptor);
}

#[test]
fn ranges_from_servers_of_every_kind() {
    let data: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
    let whole = data.clone();
    let slice = move |seen: &Seen| seen.range().map(|(a, b)| (a, b, whole[a..b].to_vec()));
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.bin"), &data).unwrap();
    let read = |target: &Target| block_on(target.store.get_range("x.bin", 1000..2000));
    // By the book.
    assert_eq!(read(&dav(dir.path(), |_| None)).unwrap(), data[1000..2000]);
    // Content-Range hidden by cross-origin rules.
    let hidden = slice.clone();
    let target = dav(dir.path(), move |seen| hidden(seen).map(|(_, _, part)| Reply::With(206, Vec::new(), part)));
    assert_eq!(read(&target).unwrap(), data[1000..2000]);
    // Status 200 with the part and a Content-Range.
    let odd = slice.clone();
    let target = dav(dir.path(), move |seen| {
        odd(seen).map(|(a, b, part)| Reply::With(200, vec![("content-range", format!("bytes {a}-{}/400000", b - 1))], part))
    });
    assert_eq!(read(&target).unwrap(), data[1000..2000]);
    // The whole object, small.
    let all = data.clone();
    let target = dav(dir.path(), move |_| Some(Reply::With(200, Vec::new(), all.clone())));
    assert_eq!(read(&target).unwrap(), data[1000..2000]);
    // The whole object, too large.
    let target = dav(dir.path(), |_| Some(Reply::With(200, Vec::new(), vec![0; 9 << 20])));
    assert_eq!(read(&target).unwrap_err().code(), ErrorCode::StoreRanges);
    // A gzip stream cut into ranges.
    let gzip = slice.clone();
    let target = dav(dir.path(), move |seen| {
        gzip(seen).map(|(a, b, part)| {
            Reply::With(
                206,
                vec![("content-encoding", "gzip".into()), ("content-range", format!("bytes {a}-{}/51", b - 1))],
                part,
            )
        })
    });
    assert_eq!(read(&target).unwrap_err().code(), ErrorCode::StoreEncoding);
    // Shorter than recorded: clipped, beyond the end, or one byte lost.
    let target = dav(dir.path(), |_| None);
    let short = block_on(target.store.get_range("x.bin", 399_990..400_010)).unwrap_err();
    assert_eq!(short.code(), ErrorCode::CorruptFile, "{short}");
    let beyond = block_on(target.store.get_range("x.bin", 500_000..500_010)).unwrap_err();
    assert_eq!(beyond.code(), ErrorCode::CorruptFile, "{beyond}");
    let size = block_on(target.store.get("x.bin", Some(399_999))).unwrap_err();
    assert_eq!(size.code(), ErrorCode::CorruptFile, "{size}");
    let lost = slice.clone();
    let target = dav(dir.path(), move |seen| {
        lost(seen).map(|(a, b, part)| {
            Reply::With(206, vec![("content-range", format!("bytes {a}-{}/400000", b - 1))], part[1..].to_vec())
        })
    });
    assert_eq!(read(&target).unwrap_err().code(), ErrorCode::StoreRanges);
    // More than asked for is not read to the end.
    let target = dav(dir.path(), |_| Some(Reply::With(206, Vec::new(), vec![0; 5000])));
    assert_eq!(read(&target).unwrap_err().code(), ErrorCode::StoreRanges);
}

#[test]
fn near_ranges_are_read_together_in_the_order_asked_for() {
    let data: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.bin"), &data).unwrap();
    let target = dav(dir.path(), |_| None);
    let ranges = [500_000..500_010, 0..10, 5..20, 60_000..60_001, 300_000..300_000, 700_000..700_100, 0..4];
    let parts = block_on(target.store.get_ranges("x.bin", &ranges)).unwrap();
    for (range, part) in ranges.iter().zip(&parts) {
        assert_eq!(part.as_ref(), &data[range.start as usize..range.end as usize], "{range:?}");
    }
    assert_eq!(methods(&target).len(), 3);
}

#[test]
fn credentials_stay_at_their_origin_and_other_origins_need_leave() {
    let descriptor = StoreDescriptor {
        kind: TargetKind::Webdav,
        username: Some("u".into()),
        password: Some("p".into()),
        bases: [("/made/here".to_owned(), "http://other.example/some%20dir/t.lance".to_owned())].into(),
        ..StoreDescriptor::of("http://127.0.0.1/some%20dir/t.lance")
    };
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x"), b"x").unwrap();
    let target = target_with(dir.path(), descriptor, false, |_| None);
    block_on(target.store.get("x", None)).unwrap();
    block_on(target.store.base("/made/here").unwrap().get("x", None)).unwrap();
    block_on(target.store.base("http://127.0.0.1/some%20dir/t.lance").unwrap().get("x", None)).unwrap();
    let sent: Vec<bool> = target.server.seen.lock().unwrap().iter().map(|s| s.header("authorization").is_some()).collect();
    assert_eq!(sent, [true, false, true]);
    for foreign in ["http://third.example/t", "s3://bucket/t", "/elsewhere/t.lance"] {
        assert_eq!(target.store.base(foreign).unwrap_err().code(), ErrorCode::StoreDenied, "{foreign}");
    }
}

#[test]
fn a_table_that_changes_while_it_is_read() {
    // Listed, then gone; listed again, gone again.
    let target = dav(&fixture().path, |seen| (seen.method == "GET").then_some(Reply::Status(404, "")));
    assert_eq!(open(&target).unwrap_err().code(), ErrorCode::TableNotFound);
    // Cleaned up between the two requests, newer version there.
    let mut first = true;
    let target = dav(&fixture().path, move |seen| {
        (seen.method == "GET" && std::mem::replace(&mut first, false)).then_some(Reply::Status(404, ""))
    });
    open(&target).unwrap();
    // Replaced by an object of another length.
    let target = dav(&fixture().path, |seen| (seen.method == "GET").then_some(Reply::Status(200, "other bytes")));
    assert_eq!(open(&target).unwrap_err().code(), ErrorCode::CorruptFile);
    // Deleted and made anew: the newest version is older than the one we hold.
    let dir = tempfile::tempdir().unwrap();
    let several = Fixture::table("tags_and_versions");
    several.copy(dir.path());
    let target = dav(dir.path(), |_| None);
    let table = open(&target).unwrap();
    std::fs::remove_file(dir.path().join(several.expected["manifest"]["file"].as_str().unwrap())).unwrap();
    assert_eq!(block_on(table.latest()).unwrap_err().code(), ErrorCode::StalePlan);
    // Not a table.
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(open(&dav(empty.path(), |_| None)).unwrap_err().code(), ErrorCode::TableNotFound);
}
