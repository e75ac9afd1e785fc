//! Azure, Google Cloud Storage and signed addresses: what is sent, what a loser sees, where secrets go; which stores may commit.

use whetstone::store::{Commits, Fault, FaultKind, RequestSigner, TokenSource, Unsigned};

use super::*;

/// An Azure container over the fixture server: pages of two names, 409 for a blob that is there.
fn azure_rule(root: PathBuf) -> impl FnMut(&Seen) -> Option<Reply> + Send + 'static {
    move |seen| {
        if seen.query.contains("comp=list") {
            let query: std::collections::HashMap<String, String> =
                seen.query.split('&').filter_map(|pair| pair.split_once('=')).map(|(k, v)| (k.to_owned(), decode(v))).collect();
            let prefix = &query["prefix"];
            let dir = root.join(prefix.strip_prefix("t.lance/").unwrap().trim_end_matches('/'));
            let mut names: Vec<String> = std::fs::read_dir(dir)
                .into_iter()
                .flatten()
                .map(|e| e.unwrap())
                .filter(|e| e.path().is_file())
                .map(|e| e.file_name().into_string().unwrap())
                .collect();
            names.sort();
            names.retain(|name| query.get("marker").is_none_or(|marker| name > marker));
            let more = names.len() > 2;
            names.truncate(2);
            let blobs: String = names
                .iter()
                .map(|name| {
                    let size = std::fs::metadata(root.join(prefix.strip_prefix("t.lance/").unwrap()).join(name)).unwrap().len();
                    format!(
                        "<Blob><Name>{prefix}{name}</Name><Properties><Last-Modified>Mon, 30 Nov 2026 01:28:06 GMT</Last-Modified><Etag>0x8</Etag>\
                         <Content-Length>{size}</Content-Length></Properties></Blob>"
                    )
                })
                .collect();
            let next = if more { format!("<NextMarker>{}</NextMarker>", names[1]) } else { "<NextMarker />".to_owned() };
            let xml = format!(
                "\u{feff}<?xml version=\"1.0\"?><EnumerationResults ContainerName=\"bkt\"><Blobs>{blobs}</Blobs>{next}</EnumerationResults>"
            );
            return Some(Reply::With(200, Vec::new(), xml.into_bytes()));
        }
        let there = || root.join(decode(&seen.path).strip_prefix("/bkt/t.lance/").unwrap_or("none")).exists();
        if seen.method == "PUT" && seen.header("if-none-match") == Some("*") && there() {
            return Some(Reply::Status(409, "<Error><Code>BlobAlreadyExists</Code></Error>"));
        }
        None
    }
}

fn azure(root: &Path) -> Target {
    let descriptor = StoreDescriptor {
        kind: TargetKind::Azure,
        sas: Some("?sv=2024-05-04&sp=racwdl&sig=top%2Fsecret%3D".into()),
        ..StoreDescriptor::of("https://acct.blob.core.windows.net/bkt/t.lance")
    };
    target_with(root, descriptor, true, azure_rule(root.to_owned()))
}

fn one() -> Vec<Bytes> {
    vec![Bytes::from_static(b"one")]
}

#[test]
fn azure_signs_by_query_and_knows_a_loser_by_409() {
    let fixture = Fixture::table("tags_and_versions");
    let target = azure(&fixture.path);
    let table = open(&target).unwrap();
    assert_eq!(serde_json::json!(table.version()), fixture.expected["version"]);
    assert_eq!(methods(&target), ["GET", "GET"], "one small page and one read");
    assert_eq!(block_on(table.versions()).unwrap().len(), fixture.expected["versions"].as_array().unwrap().len());
    assert_eq!(target.store.uri(), "https://acct.blob.core.windows.net/bkt/t.lance");
    {
        let seen = target.server.seen.lock().unwrap();
        assert!(
            seen.iter().all(|s| s.query.ends_with("sv=2024-05-04&sp=racwdl&sig=top%2Fsecret%3D")),
            "the SAS is sent as it was given"
        );
        let names: Vec<&str> = seen[1].headers.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(names, ["accept-encoding"], "a read costs no preflight");
    }
    for record in target.log.lock().unwrap().iter() {
        assert!(!format!("{record:?}").contains("secret"), "{record:?}");
    }

    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("d")).unwrap();
    let target = azure(dir.path());
    assert!(matches!(block_on(target.store.put_create("d/x y", one())).unwrap(), Created::Yes(_)));
    assert!(
        matches!(block_on(target.store.put_create("d/x y", one())).unwrap(), Created::Exists),
        "409 BlobAlreadyExists is certain"
    );
    assert_eq!(target.server.seen.lock().unwrap()[0].header("x-ms-blob-type"), Some("BlockBlob"));
    block_on(target.store.delete("d/x y")).unwrap();
    assert!(block_on(target.store.get("d/x y", None)).is_err());
    assert!(matches!(target.store.commits(), Commits::Atomic(_)));
}

#[test]
fn gcs_creates_at_generation_zero() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("d")).unwrap();
    let root = dir.path().to_owned();
    let descriptor =
        StoreDescriptor { kind: TargetKind::Gcs, token: Some("topsecret".into()), ..StoreDescriptor::of("gs://bkt/t.lance") };
    let target = target_with(dir.path(), descriptor, true, move |seen| {
        let there = root.join(decode(&seen.path).strip_prefix("/bkt/t.lance/").unwrap_or("none")).exists();
        (seen.method == "PUT" && seen.header("x-goog-if-generation-match") == Some("0") && there)
            .then_some(Reply::Status(412, ""))
    });
    assert!(matches!(block_on(target.store.put_create("d/x", one())).unwrap(), Created::Yes(_)));
    assert!(matches!(block_on(target.store.put_create("d/x", one())).unwrap(), Created::Exists));
    block_on(target.store.put("d/x", one())).unwrap();
    assert_eq!(block_on(target.store.get_range("d/x", 1..3)).unwrap().as_ref(), b"ne");
    assert_eq!(block_on(target.store.list("d")).unwrap().len(), 1);
    let seen = target.server.seen.lock().unwrap();
    assert!(seen.iter().all(|s| s.header("authorization") == Some("Bearer topsecret") && !s.query.contains("secret")));
    assert!(seen.iter().all(|s| s.header("if-none-match").is_none()), "GCS takes no If-None-Match on a PUT");
    assert_eq!(seen.iter().filter(|s| s.header("x-goog-if-generation-match").is_some()).count(), 2);
    assert_eq!(target.store.uri(), "https://storage.googleapis.com/bkt/t.lance");
}

struct Signs {
    asked: Mutex<Vec<Unsigned>>,
    lists: bool,
}

#[async_trait]
impl RequestSigner for Signs {
    async fn sign(&self, request: Unsigned) -> Result<Option<String>, Fault> {
        self.asked.lock().unwrap().push(request.clone());
        if request.key.is_empty() && !self.lists {
            return Ok(None);
        }
        let query: Vec<String> = request.query.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let key = request.key.replace(' ', "%20");
        Ok(Some(format!("https://cdn.example/bkt/{key}?{}&Signature=topsecret", query.join("&"))))
    }
}

#[test]
fn a_signer_is_asked_for_every_object_and_may_refuse_listings() {
    for lists in [true, false] {
        let signer = Arc::new(Signs { asked: Mutex::default(), lists });
        let mut surroundings = Surroundings::new(Arc::new(TestEnv::new(1_800_000_000_000, 5)));
        surroundings.signer = Some(signer.clone());
        let descriptor = StoreDescriptor { kind: TargetKind::S3, ..StoreDescriptor::of("s3://bkt/t.lance") };
        let dir = tempfile::tempdir().unwrap();
        let fixture = fixture();
        fixture.copy(dir.path());
        let version = fixture.expected["version"].as_u64().unwrap();
        std::fs::write(dir.path().join("_versions/latest_version_hint.json"), format!("{{\"version\":{version}}}")).unwrap();
        let target = target_in(dir.path(), descriptor, true, surroundings, |_| None);
        assert_eq!(open(&target).unwrap().version(), version, "by the listing, else by the hint");
        assert!(matches!(block_on(target.store.put_create("_transactions/a b", one())).unwrap(), Created::Yes(_)));
        let asked = signer.asked.lock().unwrap();
        let put = asked.last().unwrap();
        assert_eq!((put.method, put.bucket.as_str(), put.key.as_str()), ("PUT", "bkt", "t.lance/_transactions/a b"));
        assert!(put.headers.contains(&("if-none-match".to_owned(), "*".to_owned())), "the condition may be signed");
        let seen = target.server.seen.lock().unwrap();
        assert!(seen.iter().all(|s| s.query.contains("Signature") && s.header("authorization").is_none()));
        for record in target.log.lock().unwrap().iter() {
            assert!(!format!("{record:?}").contains("topsecret"));
        }
    }
}

struct Turns(Mutex<u32>);

#[async_trait]
impl TokenSource for Turns {
    async fn token(&self) -> Result<String, Fault> {
        let mut turns = self.0.lock().unwrap();
        *turns += 1;
        if *turns > 2 {
            return Err(Fault::new(FaultKind::Status(401), "credentials()", "the user went away"));
        }
        Ok(format!("token{turns}"))
    }
}

#[test]
fn tokens_are_asked_for_anew_and_their_failure_is_said() {
    let mut surroundings = Surroundings::new(Arc::new(TestEnv::new(1_800_000_000_000, 5)));
    surroundings.tokens = Some(Arc::new(Turns(Mutex::new(0))));
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x"), b"x").unwrap();
    let descriptor = StoreDescriptor { kind: TargetKind::Gcs, ..StoreDescriptor::of("gs://bkt/t.lance") };
    let target = target_in(dir.path(), descriptor, true, surroundings, |_| None);
    for _ in 0..2 {
        block_on(target.store.get("x", None)).unwrap();
    }
    let error = block_on(target.store.get("x", None)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreDenied, "{error}");
    let seen = target.server.seen.lock().unwrap();
    let sent: Vec<_> = seen.iter().map(|s| s.header("authorization").unwrap()).collect();
    assert_eq!(sent, ["Bearer token1", "Bearer token2"]);
}

#[test]
fn refusals_name_their_remedy() {
    let cases = [
        (400, "ExpiredToken", "expired"),
        (403, "RequestTimeTooSkewed", "clock"),
        (403, "InvalidAccessKeyId", "credentials are not those"),
        (400, "AuthorizationHeaderMalformed", "another region"),
        (403, "AuthenticationFailed", "shared access signature"),
        (403, "QuotaExceeded", "raise the quota"),
        (403, "AccessDenied", "may read but not write"),
    ];
    for (status, word, remedy) in cases {
        let dir = tempfile::tempdir().unwrap();
        let body: &'static str =
            Box::leak(format!("<Error><Code>{word}</Code><Message>secret</Message></Error>").into_boxed_str());
        let target = s3(dir.path(), false, move |_| Some(Reply::Status(status, body)));
        let error = block_on(target.store.put_create("x", one())).unwrap_err();
        let code = if word == "QuotaExceeded" { ErrorCode::StoreFull } else { ErrorCode::StoreDenied };
        assert_eq!(error.code(), code, "{word}: {error}");
        assert!(
            error.message().contains(remedy) && error.message().contains(word) && !error.message().contains("secret"),
            "{error}"
        );
        assert_eq!(methods(&target).len(), 1, "a refusal is not asked for twice");
    }
    // A bucket that is gone is no empty listing and no missing object.
    let target = s3(&fixture().path, false, |_| Some(Reply::Status(404, "<Error><Code>NoSuchBucket</Code></Error>")));
    let error = open(&target).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TableNotFound);
    assert!(error.message().contains("bucket"), "{error}");
}

#[test]
fn only_known_stores_may_commit() {
    let dir = tempfile::tempdir().unwrap();
    let target = dav(dir.path(), |_| None);
    assert_eq!(target.store.commits(), Commits::Unproven);
    let error = target.store.may_commit().unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreUnsafe, "{error}");
    // What one handle learns, all know: also those of folders of it.
    let child = target.store.child("tree/b").unwrap();
    target.store.found(Commits::Atomic("raced".to_owned()));
    child.may_commit().unwrap();
    target.store.found(Commits::Refused("overwrites".to_owned()));
    assert!(child.may_commit().unwrap_err().message().contains("overwrites"));
    // A server that says of itself that it is atomic is believed, until something else was seen.
    let says = dav(dir.path(), |_| Some(Reply::With(404, vec![("whetstone-create-if-absent", "atomic".into())], Vec::new())));
    assert!(block_on(says.store.get("x", None)).is_err());
    says.store.may_commit().unwrap();
    // The caller may take the risk.
    let descriptor =
        StoreDescriptor { kind: TargetKind::Webdav, unsafe_commits: true, ..StoreDescriptor::of("http://127.0.0.1/t.lance") };
    target_with(dir.path(), descriptor, false, |_| None).store.may_commit().unwrap();
}
