//! Writes: what is sent, how a loser and a doubt look, and what is never overwritten.

use whetstone::Changed;
use whetstone::store::Created;

use super::*;

#[test]
fn writing_creates_folders_and_never_overwrites_what_must_be_new() {
    let dir = tempfile::tempdir().unwrap();
    let target = dav(dir.path(), |_| None);
    let store = &target.store;
    let data = || vec![Bytes::from_static(b"one "), Bytes::from_static(b"two")];
    let odd = "_indices/a b+c%20é#?/page.lance";
    assert!(matches!(block_on(store.put_create(odd, data())).unwrap(), Created::Yes(_)));
    assert!(matches!(block_on(store.put_create(odd, data())).unwrap(), Created::Exists));
    assert_eq!(block_on(store.get(odd, Some(7))).unwrap().as_ref(), b"one two");
    assert!(dir.path().join(odd).is_file(), "the name arrived as it is");
    let names: Vec<String> = block_on(store.list("_indices/a b+c%20é#?")).unwrap().into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["page.lance"]);
    block_on(store.put("_transactions/1-x.txn", data())).unwrap();
    block_on(store.put("_transactions/1-x.txn", data())).unwrap();
    block_on(store.delete("_transactions/1-x.txn")).unwrap();
    block_on(store.delete("_transactions/1-x.txn")).unwrap();
    assert!(store.requests().bytes_written > 0);
    for bad in ["../x", "a//b", "a/../b"] {
        assert!(block_on(store.get(bad, None)).is_err(), "{bad}");
    }
}

#[test]
fn a_create_is_sent_once_and_doubt_is_said() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("d")).unwrap();
    for (reply, unclear) in [(500, true), (409, true), (403, false), (507, false)] {
        let target = s3(dir.path(), false, move |seen| (seen.method == "PUT").then_some(Reply::Status(reply, "")));
        let outcome = block_on(target.store.put_create("d/x", vec![Bytes::from_static(b"x")]));
        assert_eq!(methods(&target).len(), 1, "{reply}");
        match outcome {
            Ok(Created::Unclear(_)) => assert!(unclear, "{reply}"),
            Err(error) => {
                assert!(!unclear, "{reply}");
                let code = if reply == 507 { ErrorCode::StoreFull } else { ErrorCode::StoreDenied };
                assert_eq!(error.code(), code);
            }
            other => panic!("{reply}: {other:?}"),
        }
    }
    let target = s3(dir.path(), false, |_| None);
    assert!(matches!(block_on(target.store.put_create("d/x", vec![Bytes::from_static(b"x")])).unwrap(), Created::Yes(_)));
    assert!(matches!(block_on(target.store.put_create("d/x", vec![Bytes::from_static(b"x")])).unwrap(), Created::Exists));
    let seen = target.server.seen.lock().unwrap();
    assert_eq!(seen[0].header("if-none-match"), Some("*"));
}

#[test]
fn a_conflict_on_webdav_may_come_after_the_effect() {
    for (stored, missing_folder) in [(true, false), (false, false), (false, true)] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("d/x");
        if !missing_folder {
            std::fs::create_dir(file.parent().unwrap()).unwrap();
        }
        let mut first = true;
        let target = dav(dir.path(), move |seen| {
            let says = !missing_folder && seen.method == "PUT" && std::mem::replace(&mut first, false);
            if says && stored {
                std::fs::write(&file, b"x").unwrap();
            }
            says.then_some(Reply::Status(409, ""))
        });
        let outcome = block_on(target.store.put_create("d/x", vec![Bytes::from_static(b"x")])).unwrap();
        match outcome {
            Created::Unclear(error) => assert!(stored && error.changed() == Changed::Unknown, "{error:?}"),
            Created::Yes(_) => assert!(!stored, "whose it is can only be read"),
            Created::Exists => panic!("nobody else can have made it"),
        }
        assert_eq!(std::fs::read(dir.path().join("d/x")).unwrap(), b"x");
    }
}
