use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use futures::executor::block_on;
use serde_json::json;

use super::*;
use crate::index::testing::{Random, Rows, build, metadata, parts, store};

fn words(random: &mut Random, rows: usize) -> ArrayRef {
    let text = |random: &mut Random| {
        let count = random.below(40);
        // Squared, so that a few words are everywhere and most are rare.
        (0..count).map(|_| format!("word{}", random.below(30) * random.below(30))).collect::<Vec<_>>().join(" ")
    };
    Arc::new(StringArray::from_iter((0..rows).map(|_| (random.below(10) > 0).then(|| text(random)))))
}

fn params(value: Value) -> Params {
    value.as_object().unwrap().clone()
}

fn made(positions: bool, rows: &[Rows], random: &mut Random) -> BuiltIndex {
    build(&Inverted, "string", FORMAT as i32, &params(json!({"with_position": positions, "stem": false})), rows, random)
}

#[test]
fn what_was_built_is_recognised() {
    let mut random = Random(1);
    let rows = [Rows::dense(0, words(&mut random, 700)), Rows::without(3, &words(&mut random, 500), |o| o % 3 == 0)];
    let built = made(true, &rows, &mut random);
    let names: Vec<&str> = built.files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["metadata.lance", "part_0_tokens.lance", "part_0_invert.lance", "part_0_docs.lance"]);
    let segment = store(&built);
    let recovered = block_on(Inverted.recover_params(&segment)).unwrap();
    assert_eq!((&recovered["with_position"], &recovered["stem"]), (&json!(true), &json!(false)));
    assert_eq!(block_on(Inverted.check_beside(&segment, &recovered)).unwrap(), Some(built.details.value.clone()));
    let other = Inverted.merge_params(recovered.clone(), &params(json!({"stem": true}))).unwrap();
    assert_eq!(block_on(Inverted.check_beside(&segment, &other)).unwrap_err().code(), ErrorCode::DetailsDiffer);
    let own = Inverted.merge_params(recovered, &params(json!({"custom_stop_words": ["word1"]}))).unwrap();
    assert_eq!(block_on(Inverted.check_beside(&segment, &own)).unwrap_err().code(), ErrorCode::DetailsDiffer);

    let stored = block_on(Inverted.stored_rows(&segment)).unwrap();
    assert_eq!(stored.len(), built.stats["documents"].as_u64().unwrap());
    let seen = block_on(Inverted.inspect(&segment)).unwrap();
    assert_eq!((&seen["documents"], &seen["tokens"]), (&built.stats["documents"], &built.stats["tokens"]));
    assert_eq!(seen["top_tokens"][0]["token"], json!("word0"), "products with zero are the most frequent");
    assert_eq!(seen["problems"], json!([]));
    let listed = parts(&Inverted, &segment, 0..10_000);
    let items = listed["items"].as_array().unwrap();
    assert_eq!((&listed["kind"], &listed["count"], &listed["left_out"]), (&json!("tokens"), &seen["tokens"], &json!(0)));
    let top = items.iter().find(|item| item["token"] == "word0").unwrap();
    assert_eq!(top["documents"], seen["top_tokens"][0]["documents"]);
    // Documents and frequencies of a block take at most nine bytes each.
    assert!(items.iter().all(|item| (8..=8 + 9 * 1000).contains(&item["bytes"].as_u64().unwrap())), "{listed}");
    assert_eq!(parts(&Inverted, &segment, 3..5)["items"], json!(items[3..5]));
    assert!(metadata(&segment, "part_0_invert.lance").contains(&("positions_codec".to_owned(), "packed_delta_v1".to_owned())));
}

#[test]
fn a_copy_without_rows_is_what_would_have_been_built() {
    for positions in [false, true] {
        let mut random = Random(7);
        let (kept, gone) = (words(&mut random, 600), words(&mut random, 400));
        let both = made(positions, &[Rows::dense(1, kept.clone()), Rows::dense(2, gone)], &mut random);
        let only = made(positions, &[Rows::dense(1, kept)], &mut random);
        let copy = block_on(Inverted.copy_placed(&store(&both), &DataType::Utf8, &|row| (row >> 32 != 2).then_some(row)))
            .unwrap()
            .unwrap();
        assert_eq!(copy.details, only.details);
        for ((name, copied), (_, built)) in copy.files.iter().zip(&only.files) {
            assert_eq!(copied.to_bytes(), built.to_bytes(), "{name}, positions {positions}");
        }
    }
}

#[test]
fn without_a_document_there_is_no_partition() {
    let empty: ArrayRef = Arc::new(StringArray::from(vec![None, Some(""), Some("the of")]));
    let built = made(false, &[Rows::dense(0, empty)], &mut Random(3));
    assert_eq!((built.files.len(), built.rows), (1, 3));
    let segment = store(&built);
    assert!(block_on(Inverted.stored_rows(&segment)).unwrap().is_empty());
    assert_eq!(block_on(Inverted.inspect(&segment)).unwrap()["average_length"], Value::Null);
    assert!(block_on(Inverted.copy_placed(&segment, &DataType::Utf8, &|_| None)).unwrap().is_some());
}
