//! One meaning for the many ways in which servers answer a GET (design §8): pure, used by every HTTP store.

use std::ops::Range;

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};

use super::fault::{Fault, FaultKind};

/// A whole answer to a ranged request is cut down to the range only up to this size in bytes.
pub const SLICE_LIMIT: u64 = 8 * 1024 * 1024;
/// A whole object may not be larger, in bytes.
pub const WHOLE_LIMIT: u64 = 1 << 30;

/// The range of an explicit `bytes=a-b` header, end exclusive.
pub fn asked_range(header: &str) -> Option<Range<u64>> {
    let (first, last) = header.trim().strip_prefix("bytes=")?.split_once('-')?;
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse::<u64>().ok()?);
    (first <= last).then_some(first..last.checked_add(1)?)
}

/// A `Content-Range: bytes a-b/total` header, end exclusive; the total is `None` for `*`.
pub fn content_range(headers: &HeaderMap) -> Option<(Range<u64>, Option<u64>)> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = text.trim().strip_prefix("bytes")?.trim_start().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let total = if total.trim() == "*" { None } else { Some(total.trim().parse().ok()?) };
    (first <= last).then_some((first..last.checked_add(1)?, total))
}

/// How many body bytes are worth reading for an answer with this status; more is a fault.
pub fn body_limit(asked: Option<&Range<u64>>, status: u16, headers: &HeaderMap) -> u64 {
    match asked {
        Some(range) if status == 206 || (status == 200 && content_range(headers).is_some()) => range.end - range.start,
        Some(_) if status == 200 => SLICE_LIMIT,
        // Errors and listings.
        _ if status != 200 && status != 207 => 64 * 1024,
        _ => WHOLE_LIMIT,
    }
}

/// The fault of a body longer than [`body_limit`].
pub fn too_long(method: &str, asked: Option<&Range<u64>>, status: u16) -> Fault {
    match asked {
        Some(_) if status == 200 => {
            Fault::new(FaultKind::Ranges, method, "the whole object was sent, and it is too large to be cut down")
        }
        Some(_) => Fault::new(FaultKind::Ranges, method, "more bytes were sent than asked for"),
        None => Fault::new(FaultKind::TooLarge, method, "the answer is larger than this build reads"),
    }
}

/// Rejects answers by their headers alone, before a body is read.
pub fn check_headers(method: &str, asked: Option<&Range<u64>>, status: u16, headers: &HeaderMap) -> Result<(), Fault> {
    if asked.is_none() && status != 206 {
        return Ok(());
    }
    let encoding = headers.get(CONTENT_ENCODING).and_then(|v| v.to_str().ok()).unwrap_or("identity").trim();
    if status == 206 && !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
        return Err(Fault::new(FaultKind::Encoding, method, format!("Content-Encoding: {encoding}")));
    }
    if asked.is_none() {
        return Err(Fault::new(FaultKind::Ranges, method, "a part was sent though the whole was asked for"));
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
    if status == 206 && kind.trim_start().to_ascii_lowercase().starts_with("multipart/byteranges") {
        return Err(Fault::new(FaultKind::Ranges, method, "one range was asked for, a multipart answer came"));
    }
    Ok(())
}

/// What a successful answer to a ranged GET means: the part of the body to keep, with the status and `Content-Range` that
/// say so. `body` is its length in bytes.
pub fn normalise_range(
    method: &str,
    asked: &Range<u64>,
    status: u16,
    headers: &mut HeaderMap,
    body: u64,
) -> Result<Range<u64>, Fault> {
    check_headers(method, Some(asked), status, headers)?;
    let ranges = |what: String| Fault::new(FaultKind::Ranges, method, what);
    let stated = content_range(headers);
    let (keep, part, total) = match (status, stated) {
        (206 | 200, Some((part, total))) if status == 206 || part.end - part.start == body => {
            let clipped = part.end < asked.end && total.is_some_and(|total| total == part.end);
            if part.start != asked.start || (part.end != asked.end && !clipped) {
                return Err(ranges(format!("bytes {}-{} were sent for {}-{}", part.start, part.end, asked.start, asked.end)));
            }
            if part.end - part.start != body {
                return Err(ranges(format!("{body} bytes were sent as bytes {}-{}", part.start, part.end)));
            }
            (0..body, part, total)
        }
        // The header is hidden by cross-origin rules: the length has to agree, or the object ended early.
        (206, None) if body == 0 => return Err(ranges("an empty part was sent".to_owned())),
        (206, None) if body <= asked.end - asked.start => {
            let end = asked.start.saturating_add(body);
            (0..body, asked.start..end, (end < asked.end).then_some(end))
        }
        (206, None) => return Err(ranges(format!("{body} bytes were sent for {}", asked.end - asked.start))),
        // The whole object; a gzip on the way was undone by the runtime.
        (200, _) => {
            if body > SLICE_LIMIT {
                return Err(too_long(method, Some(asked), status));
            }
            if asked.start >= body {
                // Either the object ends before the range, or a slice came whose header is hidden: not to be told apart.
                return Err(ranges(format!(
                    "{body} bytes came without saying which, {}-{} were asked for",
                    asked.start, asked.end
                )));
            }
            if asked.start > 0 && body == asked.end - asked.start {
                return Err(ranges("a part came as if it were the whole; let the server expose Content-Range".to_owned()));
            }
            let end = asked.end.min(body);
            (asked.start..end, asked.start..end, Some(body))
        }
        (status, _) => return Err(Fault::new(FaultKind::Status(status), method, "")),
    };
    let text = format!("bytes {}-{}/{}", part.start, part.end.saturating_sub(1), total.unwrap_or(part.end));
    if let Ok(value) = HeaderValue::from_str(&text) {
        headers.insert(CONTENT_RANGE, value);
    }
    headers.insert(CONTENT_LENGTH, HeaderValue::from(keep.end - keep.start));
    headers.remove(CONTENT_ENCODING);
    Ok(keep)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter().map(|(k, v)| (http::HeaderName::from_static(k), HeaderValue::from_static(v))).collect()
    }

    fn run(
        asked: Range<u64>,
        status: u16,
        list: &[(&'static str, &'static str)],
        body: u64,
    ) -> Result<(Range<u64>, String), FaultKind> {
        let mut h = headers(list);
        let keep = normalise_range("GET", &asked, status, &mut h, body).map_err(|f| f.kind)?;
        Ok((keep, h.get(CONTENT_RANGE).unwrap().to_str().unwrap().to_owned()))
    }

    #[test]
    fn the_usual_answer() {
        let got = run(10..20, 206, &[("content-range", "bytes 10-19/4800")], 10).unwrap();
        assert_eq!(got, (0..10, "bytes 10-19/4800".to_owned()));
        let got = run(10..20, 206, &[("content-range", "bytes 10-19/*")], 10).unwrap();
        assert_eq!(got, (0..10, "bytes 10-19/20".to_owned()));
    }

    #[test]
    fn a_hidden_content_range_is_added_when_the_length_agrees() {
        assert_eq!(run(10..20, 206, &[], 10).unwrap(), (0..10, "bytes 10-19/20".to_owned()));
        // Shorter: the object may end there; the reader sees fewer bytes than it asked for.
        assert_eq!(run(10..20, 206, &[], 4).unwrap(), (0..4, "bytes 10-13/14".to_owned()));
        assert_eq!(run(10..20, 206, &[], 11).unwrap_err(), FaultKind::Ranges);
        assert_eq!(run(10..20, 206, &[], 0).unwrap_err(), FaultKind::Ranges);
    }

    #[test]
    fn status_200_with_a_content_range_is_a_part() {
        let got = run(10..20, 200, &[("content-range", "bytes 10-19/4800")], 10).unwrap();
        assert_eq!(got, (0..10, "bytes 10-19/4800".to_owned()));
    }

    #[test]
    fn the_whole_object_is_cut_when_small() {
        assert_eq!(run(10..20, 200, &[], 100).unwrap(), (10..20, "bytes 10-19/100".to_owned()));
        assert_eq!(run(10..20, 200, &[], 15).unwrap(), (10..15, "bytes 10-14/15".to_owned()));
        assert_eq!(run(10..20, 200, &[], SLICE_LIMIT + 1).unwrap_err(), FaultKind::Ranges);
        assert_eq!(run(10..20, 200, &[], 5).unwrap_err(), FaultKind::Ranges);
        // Could be the hidden slice itself: never guessed.
        assert_eq!(run(10..20, 200, &[], 10).unwrap_err(), FaultKind::Ranges);
        // Gzip on a whole answer was undone on the way.
        assert_eq!(run(0..10, 200, &[("content-encoding", "gzip")], 100).unwrap(), (0..10, "bytes 0-9/100".to_owned()));
    }

    #[test]
    fn encoded_parts_and_wrong_parts_are_refused_by_name() {
        let gzip = [("content-encoding", "gzip"), ("content-range", "bytes 0-9/51")];
        assert_eq!(run(0..10, 206, &gzip, 10).unwrap_err(), FaultKind::Encoding);
        assert_eq!(run(0..10, 206, &[("content-range", "bytes 5-14/51")], 10).unwrap_err(), FaultKind::Ranges);
        assert_eq!(run(0..10, 206, &[("content-range", "bytes 0-4/51")], 5).unwrap_err(), FaultKind::Ranges);
        assert_eq!(run(0..10, 206, &[("content-range", "bytes 0-9/51")], 9).unwrap_err(), FaultKind::Ranges);
        let multi = [("content-type", "multipart/byteranges; boundary=x")];
        assert_eq!(run(0..10, 206, &multi, 10).unwrap_err(), FaultKind::Ranges);
        assert_eq!(run(0..10, 204, &[], 0).unwrap_err(), FaultKind::Status(204));
    }

    #[test]
    fn a_part_clipped_at_the_end_stays_short() {
        let got = run(10..20, 206, &[("content-range", "bytes 10-14/15")], 5).unwrap();
        assert_eq!(got, (0..5, "bytes 10-14/15".to_owned()));
    }

    #[test]
    fn ranges_parse_strictly() {
        assert_eq!(asked_range("bytes=0-0"), Some(0..1));
        assert_eq!(asked_range("bytes=5-4"), None);
        assert_eq!(asked_range("bytes=-5"), None);
        assert_eq!(asked_range("bytes=5-"), None);
        assert_eq!(asked_range("bytes=0-18446744073709551615"), None);
    }
}
