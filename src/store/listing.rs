//! The XML pages in which S3-like services and Azure list a bucket: pure, strict about names, tolerant of everything else.

use chrono::{DateTime, Utc};
use object_store::path::Path;
use object_store::{ListResult, ObjectMeta};

use super::fault::{Fault, FaultKind};
use super::s3::percent_decode;

/// One page: what it names, and where the next one begins.
pub struct Page {
    /// Objects of the page.
    pub result: ListResult,
    /// Token of the next page; `None` = this was the last.
    pub next: Option<String>,
}

#[derive(Default)]
struct Object {
    key: Option<String>,
    size: Option<u64>,
    modified: Option<DateTime<Utc>>,
    etag: Option<String>,
}

/// Reads one page of `ListBucketResult` (S3, GCS) or `EnumerationResults` (Azure).
pub fn parse(body: &[u8]) -> Result<Page, Fault> {
    let wrong = |what: &str| Fault::new(FaultKind::Listing, "LIST", what);
    let text = std::str::from_utf8(body).map_err(|_| wrong("the listing is no UTF-8"))?;
    let mut objects = Vec::new();
    let mut next = None;
    let mut at: Option<Object> = None;
    let mut known = false;
    let mut rest = text;
    while let Some((_, tail)) = rest.split_once('<') {
        let Some((tag, after)) = tail.split_once('>') else { return Err(wrong("the listing breaks off")) };
        let value = after.split_once('<').map_or(after, |(value, _)| value);
        rest = after;
        match (tag.split_ascii_whitespace().next().unwrap_or_default(), &mut at) {
            ("ListBucketResult" | "EnumerationResults", _) => known = true,
            ("Contents" | "Blob", _) => at = Some(Object::default()),
            ("/Contents" | "/Blob", _) => {
                let object = at.take().unwrap_or_default();
                let (Some(key), Some(size)) = (object.key, object.size) else {
                    return Err(wrong("an entry of the listing has no name or no size"));
                };
                // A name that no object of a table can have is none of ours: keys that end in a slash stand for folders.
                let Ok(location) = Path::parse(&key) else { continue };
                let last_modified = object.modified.unwrap_or_default();
                objects.push(ObjectMeta { location, last_modified, size, e_tag: object.etag, version: None });
            }
            ("Key" | "Name", Some(object)) => {
                let name = unescape(value).ok_or_else(|| wrong("a name in the listing is not well formed"))?;
                let encoded = tag.contains("Encoded=\"true\"");
                object.key = Some(if encoded {
                    percent_decode(&name).map_err(|_| wrong("a name in the listing is not well formed"))?
                } else {
                    name
                });
            }
            ("Size" | "Content-Length", Some(object)) => object.size = value.trim().parse().ok(),
            ("LastModified" | "Last-Modified", Some(object)) => object.modified = time(value.trim()),
            ("ETag" | "Etag", Some(object)) => object.etag = unescape(value),
            ("NextContinuationToken" | "NextMarker", None) => next = unescape(value).filter(|token| !token.is_empty()),
            _ => {}
        }
    }
    if !known {
        return Err(wrong("the answer is no listing"));
    }
    Ok(Page { result: ListResult { common_prefixes: Vec::new(), objects, extensions: Default::default() }, next })
}

fn time(text: &str) -> Option<DateTime<Utc>> {
    let parsed = DateTime::parse_from_rfc3339(text).or_else(|_| DateTime::parse_from_rfc2822(text));
    parsed.ok().map(|time| time.with_timezone(&Utc))
}

/// Text of an element; `None` = it holds an entity that XML does not have.
fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let (entity, tail) = after.split_once(';')?;
        out.push(match entity {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => {
                let number = entity.strip_prefix('#')?;
                let code = match number.strip_prefix(['x', 'X']) {
                    Some(hex) => u32::from_str_radix(hex, 16),
                    None => number.parse(),
                };
                char::from_u32(code.ok()?)?
            }
        });
        rest = tail;
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(page: &Page) -> Vec<(&str, u64)> {
        page.result.objects.iter().map(|o| (o.location.as_ref(), o.size)).collect()
    }

    #[test]
    fn both_shapes() {
        let s3 = parse(
            "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>bkt</Name><Prefix>t/</Prefix>\
             <Contents><Key>t/a &amp; b&#x41;</Key><LastModified>2026-11-30T01:02:03.000Z</LastModified><ETag>&quot;x&quot;</ETag><Size>7</Size>\
             </Contents><Contents><Key>t/folder//</Key><Size>0</Size></Contents><CommonPrefixes><Prefix>t/x/</Prefix></CommonPrefixes>\
             <NextContinuationToken>tok&lt;</NextContinuationToken></ListBucketResult>"
                .as_bytes(),
        )
        .unwrap();
        assert_eq!(names(&s3), [("t/a & bA", 7)]);
        assert_eq!(s3.next.as_deref(), Some("tok<"));
        assert_eq!(s3.result.objects[0].last_modified.timestamp(), 1_796_000_523);
        let azure = parse(
            "\u{feff}<?xml version=\"1.0\"?><EnumerationResults ContainerName=\"c\"><Blobs><Blob><Name Encoded=\"true\">t%2Fé</Name><Properties>\
             <Last-Modified>Mon, 30 Nov 2026 01:02:03 GMT</Last-Modified><Etag>0x8</Etag><Content-Length>9</Content-Length></Properties></Blob>\
             </Blobs><NextMarker/></EnumerationResults>"
                .as_bytes(),
        )
        .unwrap();
        assert_eq!(names(&azure), [("t/é", 9)]);
        assert!(azure.next.is_none());
    }

    #[test]
    fn what_is_no_listing_is_refused() {
        for text in
            ["", "<html></html>", "<ListBucketResult><Contents><Key>a</Key></Contents>", "<ListBucketResult", "{}", "\u{0}"]
        {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse(b"<ListBucketResult>\xff").is_err());
        assert!(parse(b"<ListBucketResult><Contents><Key>&nbsp;</Key>").is_err());
        // Names that lead out of the table are none of its objects.
        let page =
            parse(b"<ListBucketResult><Contents><Key>t/../../x</Key><Size>1</Size></Contents></ListBucketResult>").unwrap();
        assert!(names(&page).is_empty());
    }
}
