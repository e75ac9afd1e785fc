//! Faults planted in full text: postings, documents and tokens, with and without positions, and in the older posting format.

use std::sync::Arc;

use arrow::array::{AsArray, Float32Array, LargeBinaryArray, StringArray, UInt32Array};
use futures::executor::block_on;
use whetstone::file::WriterField;
use whetstone::maintain::plan_create_index;
use whetstone::refresh::{BuiltSegment, build_segment, commit_segments};

use crate::common::planted::{Parts, edit, first};
use crate::common::shared::{Shared, rewrite};
use crate::{FULL_TEXT, Planted, run};

const POSITIONS: &str = "p_inverted";

pub fn plant(planted: &mut Planted) {
    full_text(planted);
    listed_tokens(planted);
    positions(planted);
    format_1(planted);
}

fn full_text(planted: &mut Planted) {
    let (docs, invert, tokens, metadata) = ("part_0_docs.lance", "part_0_invert.lance", "part_0_tokens.lance", "metadata.lance");
    let mut file = |what: &str, file: &str, code: &str, change: &dyn Fn(&mut Parts)| {
        planted.file(what, FULL_TEXT, file, code, change);
    };
    file("tokens are miscounted", docs, "FILE", &|parts| parts.set_metadata("total_tokens", "181"));
    file("a document is said to be longer", docs, "WRONG_LENGTH", &|parts| parts.u32s("_num_tokens", |lengths| lengths[2] += 1));
    file("a document is said to be empty", docs, "FILE", &|parts| parts.u32s("_num_tokens", |lengths| lengths[0] = 0));
    file("two documents are swapped", docs, "ROW_OTHER_VALUE", &|parts| parts.u64s("_rowid", |rows| rows.swap(0, 20)));
    file("a document is of a row that is not there", docs, "ROW_NOT_THERE", &|parts| {
        parts.u64s("_rowid", |rows| rows[5] = (1 << 32) + 5000)
    });
    file("a document is of a row of the other segment", docs, "ROW_STALE", &|parts| {
        parts.u64s("_rowid", |rows| rows[5] = 2 << 32)
    });
    file("two documents are of one row", docs, "FILE", &|parts| parts.u64s("_rowid", |rows| rows[7] = rows[8]));
    file("the last document is left out", docs, "UNREADABLE", &|parts| parts.take(&(0..parts.rows() - 1).collect::<Vec<_>>()));
    file("a frequency is wrong", invert, "WRONG_FREQUENCY", &|parts| {
        parts.lists("_posting", |lists| *lists[3].last_mut().unwrap().last_mut().unwrap() += 1);
    });
    file("a posting list is cut off", invert, "UNREADABLE", &|parts| {
        parts.lists("_posting", |lists| {
            lists[3].last_mut().unwrap().pop();
        });
    });
    file("two posting lists are swapped", invert, "UNREADABLE", &|parts| {
        parts.lists("_posting", |lists| {
            let longest = (0..lists.len()).max_by_key(|list| lists[*list][0].len()).unwrap();
            let shortest = (0..lists.len()).min_by_key(|list| lists[*list][0].len()).unwrap();
            lists.swap(longest, shortest);
        });
    });
    file("documents of a token are miscounted", invert, "UNREADABLE", &|parts| parts.u32s("_length", |lengths| lengths[1] += 1));
    file("the score of a block is too low", invert, "FILE", &|parts| {
        parts.lists("_posting", |lists| {
            let score = f32::from_le_bytes(lists[4][0][..4].try_into().unwrap());
            lists[4][0][..4].copy_from_slice(&(score * 0.9).to_le_bytes());
        });
    });
    file("the best score is too low", invert, "FILE", &|parts| {
        let at = parts.at("_max_score");
        let scores = parts.columns[at].as_primitive::<arrow::datatypes::Float32Type>();
        parts.columns[at] = Arc::new(scores.values().iter().map(|score| Some(score * 0.9)).collect::<Float32Array>());
    });
    file("impacts are too low", invert, "FILE", &|parts| {
        // One pair of frequency 1 and the longest length there is.
        parts.lists("_impacts", |lists| *lists[4].last_mut().unwrap() = vec![127, 1, 1, 255]);
    });
    file("an entry of impacts is left out", invert, "FILE", &|parts| {
        parts.lists("_impacts", |lists| {
            lists[4].pop();
        });
    });
    file("a token is another", tokens, "ROW_OTHER_VALUE", &|parts| {
        tokens_again(parts, |tokens| tokens[3].0 = format!("{}x", tokens[3].0))
    });
    file("two tokens have each other's list", tokens, "ROW_OTHER_VALUE", &|parts| {
        tokens_again(parts, |tokens| {
            let number = tokens[0].1;
            tokens[0].1 = tokens[1].1;
            tokens[1].1 = number;
        });
    });
    file("the token set is damaged", tokens, "UNREADABLE", &|parts| {
        let at = parts.at("_token_fst_bytes");
        let mut bytes = parts.columns[at].as_binary::<i64>().value(0).to_vec();
        let middle = bytes.len() / 2;
        bytes.swap(middle, middle + 1);
        parts.columns[at] = Arc::new(LargeBinaryArray::from_iter_values([bytes]));
    });
    file("a token is left out", tokens, "FILE", &|parts| {
        tokens_again(parts, |tokens| {
            tokens.pop();
        })
    });
    file("the next token has another number", tokens, "FILE", &|parts| parts.u32s("_token_next_id", |next| next[0] += 1));
    file("a covered fragment is marked as deleted", metadata, "ROW_MISSING", &|parts| {
        // A roaring bitmap with fragment 1 in it.
        let marked = [0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 1, 0];
        parts.blobs("deleted_fragments", |blobs| blobs[0] = marked.to_vec());
    });
    file("the partition is not named", metadata, "ROW_MISSING", &|parts| parts.set_metadata("partitions", "[]"));
    file("a partition that is not there", metadata, "UNREADABLE", &|parts| parts.set_metadata("partitions", "[0,1]"));
    file("other settings than its sibling", metadata, "DETAILS_DIFFER", &|parts| {
        let stop_words = |text: &str| text.replace("\"custom_stop_words\":null", "\"custom_stop_words\":[\"delta\"]");
        let params = parts.metadata.iter().find(|(key, _)| key == "params").map(|(_, text)| stop_words(text)).unwrap();
        parts.set_metadata("params", &params);
    });
}

/// The token set as a list of tokens, which is the other form it may have, in the wrong order.
fn listed_tokens(planted: &mut Planted) {
    planted.expect("tokens are not in order", FULL_TEXT, "FILE", |shared| {
        edit(shared, FULL_TEXT, "part_0_tokens.lance", |parts| {
            let at = parts.at("_token_fst_bytes");
            let set = fst::Map::new(parts.columns[at].as_binary::<i64>().value(0).to_vec()).unwrap();
            let tokens = set.stream().into_str_vec().unwrap();
            let (texts, numbers): (Vec<String>, Vec<u32>) =
                tokens.into_iter().rev().map(|(text, number)| (text, number as u32)).unzip();
            parts.fields = vec![WriterField::new("_token", "string", false), WriterField::new("_token_id", "uint32", false)];
            parts.columns = vec![Arc::new(StringArray::from(texts)), Arc::new(UInt32Array::from(numbers))];
        });
        edit(shared, FULL_TEXT, "metadata.lance", |parts| parts.set_metadata("token_set_format", "arrow"))
    });
}

/// Writes the token set again.
fn tokens_again(parts: &mut Parts, change: impl FnOnce(&mut Vec<(String, u64)>)) {
    let at = parts.at("_token_fst_bytes");
    let set = fst::Map::new(parts.columns[at].as_binary::<i64>().value(0).to_vec()).unwrap();
    let mut tokens = set.stream().into_str_vec().unwrap();
    change(&mut tokens);
    tokens.sort_unstable();
    let set = fst::Map::from_iter(tokens).unwrap().into_fst().into_inner();
    parts.columns[at] = Arc::new(LargeBinaryArray::from_iter_values([set]));
}

/// Faults of an index with positions.
fn positions(planted: &mut Planted) {
    let mut file = |what: &str, code: &str, change: &dyn Fn(&mut Parts)| {
        planted.expect(what, POSITIONS, code, |shared| {
            with_positions(shared);
            edit(shared, POSITIONS, "part_0_invert.lance", change)
        });
    };
    file("a position is wrong", "WRONG_POSITION", &|parts| {
        parts.large_blobs("_compressed_position", |streams| *streams[4].last_mut().unwrap() += 1);
    });
    file("positions are cut off", "UNREADABLE", &|parts| {
        parts.large_blobs("_compressed_position", |streams| {
            streams[4].pop();
        });
    });
    file("positions of a block begin elsewhere", "FILE", &|parts| {
        let at = parts.at("_position_block_offset");
        let lists = parts.columns[at].as_list::<i32>().clone();
        let starts = lists.values().as_primitive::<arrow::datatypes::UInt32Type>();
        let later: UInt32Array = starts.values().iter().map(|start| Some(start + 1)).collect();
        let (field, offsets, _, nulls) = lists.into_parts();
        parts.columns[at] = Arc::new(arrow::array::ListArray::new(field, offsets, Arc::new(later), nulls));
    });
}

/// Makes an index with positions.
fn with_positions(shared: &Shared) {
    let table = shared.open(2);
    let options = r#"{"segments": 2, "params": {"with_position": true}}"#;
    let plan = block_on(plan_create_index(&table, POSITIONS, "t", "INVERTED", serde_json::from_str(options).unwrap())).unwrap();
    let one = |task| block_on(build_segment(table.store(), table.manifest().clone(), task, &mut |_| {})).unwrap();
    let built: Vec<BuiltSegment> = plan.tasks.iter().map(one).collect();
    let (_, table) = block_on(commit_segments(&table, &plan, &built)).unwrap();
    assert!(run(&table, POSITIONS).unwrap().findings.is_empty());
}

/// Faults of postings as Lance wrote them before: lists end in documents and frequencies of four bytes each.
fn format_1(planted: &mut Planted) {
    let (docs, invert, tokens) = ("part_0_docs.lance", "part_0_invert.lance", "part_0_tokens.lance");
    let mut file = |what: &str, file: &str, code: &str, change: &dyn Fn(&mut Parts)| {
        planted.expect(&format!("format 1: {what}"), FULL_TEXT, code, |shared| {
            as_format_1(shared);
            edit(shared, FULL_TEXT, file, change)
        });
    };
    /// The documents and frequencies of a list of one block.
    fn postings(parts: &mut Parts, list: usize, change: impl FnOnce(&mut Vec<(u32, u32)>)) {
        parts.lists("_posting", |lists| {
            let block = &mut lists[list][0];
            let numbers: Vec<u32> = block[4..].chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect();
            let (documents, frequencies) = numbers.split_at(numbers.len() / 2);
            let mut pairs = documents.iter().copied().zip(frequencies.iter().copied()).collect();
            change(&mut pairs);
            block.truncate(4);
            pairs.iter().for_each(|pair| block.extend(pair.0.to_le_bytes()));
            pairs.iter().for_each(|pair| block.extend(pair.1.to_le_bytes()));
        });
    }
    file("a posting is dropped", invert, "ROW_OTHER_VALUE", &|parts| {
        postings(parts, 3, |pairs| {
            pairs.pop();
        });
        parts.u32s("_length", |lengths| lengths[3] -= 1);
    });
    file("a posting is dropped and still counted", invert, "UNREADABLE", &|parts| {
        postings(parts, 3, |pairs| {
            pairs.pop();
        });
    });
    file("a posting is of a document that is not there", invert, "UNREADABLE", &|parts| {
        postings(parts, 3, |pairs| pairs.last_mut().unwrap().0 = 10_000);
    });
    file("two postings are in the wrong order", invert, "UNREADABLE", &|parts| postings(parts, 3, |pairs| pairs.swap(0, 1)));
    file("a frequency is wrong", invert, "WRONG_FREQUENCY", &|parts| postings(parts, 3, |pairs| pairs[0].1 += 1));
    file("a frequency is nought", invert, "UNREADABLE", &|parts| postings(parts, 3, |pairs| pairs[0].1 = 0));
    file("a document is said to be longer", docs, "WRONG_LENGTH", &|parts| parts.u32s("_num_tokens", |lengths| lengths[2] += 1));
    file("a document is of another row", docs, "ROW_OTHER_VALUE", &|parts| parts.u64s("_rowid", |rows| rows.swap(0, 20)));
    file("a token is left out", tokens, "FILE", &|parts| {
        tokens_again(parts, |tokens| {
            tokens.pop();
        })
    });
    file("a token is another", tokens, "ROW_OTHER_VALUE", &|parts| {
        tokens_again(parts, |tokens| tokens[3].0 = format!("{}x", tokens[3].0))
    });
    file("the format is said to be 2", "metadata.lance", "UNREADABLE", &|parts| {
        parts.set_metadata("format_version", "2");
        parts.set_metadata("posting_tail_codec", "varint_delta_v1");
    });
}

/// Writes the first segment of the full text index again as one of format 1.
fn as_format_1(shared: &Shared) {
    edit(shared, FULL_TEXT, "part_0_invert.lance", |parts| {
        let at = parts.at("_length");
        let lengths = parts.columns[at].as_primitive::<arrow::datatypes::UInt32Type>().values().to_vec();
        parts.lists("_posting", |lists| {
            for (blocks, length) in lists.iter_mut().zip(lengths) {
                assert!(blocks.len() == 1 && length < 128, "a list with a full block");
                let mut rest = blocks[0].split_off(4).into_iter();
                let numbers: Vec<u32> = (0..2 * length).map(|_| varint(&mut rest)).collect();
                let (deltas, frequencies) = numbers.split_at(length as usize);
                let documents = deltas.iter().scan(0, |at, delta| {
                    *at += delta;
                    Some(*at)
                });
                blocks[0].extend(documents.chain(frequencies.iter().copied()).flat_map(u32::to_le_bytes));
            }
        });
        parts.set_metadata("format_version", "1");
        parts.metadata.retain(|(key, _)| key != "posting_tail_codec");
    });
    edit(shared, FULL_TEXT, "metadata.lance", |parts| {
        parts.set_metadata("format_version", "1");
        parts.set_metadata("posting_tail_codec", "fixed32_v1");
    });
    let table = rewrite(&shared.open(1), |entries| first(entries, FULL_TEXT).index_version = Some(1));
    assert!(run(&table, FULL_TEXT).unwrap().findings.is_empty(), "format 1 is read as it is");
}

fn varint(bytes: &mut impl Iterator<Item = u8>) -> u32 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes.next().unwrap();
        value |= u32::from(byte & 127) << shift;
        if byte < 128 {
            break;
        }
    }
    value
}
