//! Lance's own writers as far as they matter to us: real manifests, data files, deletion vectors and transactions, made by the rules of
//! refresh-and-compaction §1.3, §1.4 and §5.6, and committed as Lance does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use bytes::Bytes;
use prost::Message;
use roaring::RoaringBitmap;
use uuid::Uuid;
use whetstone::file::{FileWriter, WriterField};
use whetstone::format::deletion::decode_deletions;
use whetstone::format::fragment::DeletionKind;
use whetstone::format::index_metadata::{IndexFile, IndexMetadata, encode_index_section};
use whetstone::format::manifest::ManifestFile;
use whetstone::format::proto;
use whetstone::format::transaction::Operation;
use whetstone::format::wire::{put_len_field, put_varint_field};
use whetstone::refresh::build_segment;
use whetstone::refresh::task::{BuildTask, IndexTarget};

use crate::Sim;
use crate::disk::{Client, LANCE, Named, file_path};
use crate::world::World;

/// The indexed column.
pub const COLUMN: &str = "k";
const WEEK: i64 = 7 * 24 * 3_600_000;

/// A version as its writer works on it.
pub struct Draft {
    pub manifest: proto::Manifest,
    pub indices: Vec<IndexMetadata>,
    /// Values of the table afterwards.
    pub values: BTreeSet<i64>,
    /// Number and message of the operation in the transaction.
    pub operation: (u32, Vec<u8>),
}

/// The live version `v` as written.
pub fn read(sim: &Sim, v: u64) -> Option<ManifestFile> {
    sim.disk.get(&file_path(v)).map(|bytes| ManifestFile::parse("sim", &bytes).unwrap())
}

/// The newest version, as Lance's strongly consistent listing has it.
pub fn newest(sim: &Sim) -> (u64, ManifestFile) {
    let version = *sim.disk.versions().last().unwrap();
    (version, read(sim, version).unwrap())
}

impl Draft {
    pub fn on(sim: &Sim, base: &ManifestFile) -> Draft {
        Draft {
            manifest: proto::Manifest::decode(base.manifest.raw.clone()).unwrap(),
            indices: base.indices.clone(),
            values: sim.values_at(base.manifest.version),
            operation: (0, Vec::new()),
        }
    }

    fn high_water(&self) -> u64 {
        self.manifest.max_fragment_id.or_else(|| self.manifest.fragments.last().map(|f| f.id)).map_or(0, |id| id + 1)
    }

    /// The bytes of the manifest after `base`, and the name of its transaction.
    fn encode(&mut self, world: &World, base: u64, uuid: Uuid) -> (Bytes, String, Vec<u8>) {
        let mut transaction = Vec::new();
        put_varint_field(&mut transaction, 1, base);
        put_len_field(&mut transaction, 2, uuid.to_string().as_bytes());
        put_len_field(&mut transaction, self.operation.0, &self.operation.1);
        let name = format!("{base}-{uuid}.txn");
        let mut file = Vec::new();
        let mut section = |bytes: &[u8]| {
            let at = file.len() as u64;
            file.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            file.extend_from_slice(bytes);
            at
        };
        let m = &mut self.manifest;
        m.index_section = (!self.indices.is_empty()).then(|| section(&encode_index_section(&self.indices)));
        m.transaction_section = Some(section(&transaction));
        m.version = base + 1;
        m.timestamp = Some(proto::Timestamp { seconds: world.now() / 1000, nanos: 0 });
        m.transaction_file = name.clone();
        m.writer_version = Some(proto::WriterVersion { library: "lance".into(), version: "14.0.2".into(), ..Default::default() });
        m.fragments.sort_by_key(|f| f.id);
        m.max_fragment_id = m.max_fragment_id.max(m.fragments.last().map(|f| f.id));
        let at = section(&m.encode_to_vec());
        file.extend_from_slice(&at.to_le_bytes());
        file.extend_from_slice(&[0, 0, 2, 0]);
        file.extend_from_slice(b"LANC");
        (file.into(), name, transaction)
    }

    /// §1.4: of several segments of a name those that cover nothing go, but never the last one.
    fn retain(&mut self) {
        let live: RoaringBitmap = self.manifest.fragments.iter().map(|f| f.id as u32).collect();
        let mut by_name: BTreeMap<String, Vec<(Uuid, bool)>> = BTreeMap::new();
        for e in &self.indices {
            by_name
                .entry(e.name.clone())
                .or_default()
                .push((e.uuid, e.fragment_bitmap.as_ref().is_some_and(|b| b.is_disjoint(&live))));
        }
        let mut gone = BTreeSet::new();
        for segments in by_name.values().filter(|segments| segments.len() > 1) {
            let empty: Vec<Uuid> = segments.iter().filter(|(_, empty)| *empty).map(|(uuid, _)| *uuid).collect();
            let keep = usize::from(empty.len() == segments.len());
            gone.extend(empty.into_iter().skip(keep));
        }
        self.indices.retain(|e| !gone.contains(&e.uuid));
    }
}

/// Commits what `change` makes of the newest version, again and again until it is in. `None` from `change` gives up.
pub async fn commit(sim: &Sim, what: &str, mut change: impl FnMut(u64, &ManifestFile) -> Option<Draft>) -> Option<u64> {
    let uuid = sim.world.uuid();
    for _ in 0..40 {
        let (base, file) = newest(sim);
        let oldest = sim.disk.versions().first().copied();
        let mut draft = change(base, &file)?;
        let (bytes, name, transaction) = draft.encode(&sim.world, base, uuid);
        sim.disk.put(&sim.world, &format!("_transactions/{name}"), transaction.into(), false);
        sim.world.sleep(sim.world.below(120) as i64).await;
        // A cleanup may have taken the files of what is restored: a race of Lance with itself, in which we have no part.
        if what == "restore" && sim.disk.versions().first().copied() != oldest {
            continue;
        }
        if sim.disk.put(&sim.world, &file_path(base + 1), bytes, true) {
            sim.world.note(|| format!("lance {what} {}", base + 1));
            sim.values.borrow_mut().insert(base + 1, draft.values);
            sim.theirs.borrow_mut().push((base + 1, uuid));
            return Some(base + 1);
        }
    }
    None
}

fn write_data(sim: &Sim, values: &[i64]) -> proto::DataFile {
    let mut writer = FileWriter::new(vec![WriterField::new(COLUMN, "int64", true)]);
    let array: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
    writer.write_page(0, &array).unwrap();
    let bytes = writer.finish().unwrap().to_bytes();
    let path = format!("{}.lance", sim.world.uuid());
    let size = bytes.len() as u64;
    sim.disk.put(&sim.world, &format!("data/{path}"), bytes, true);
    sim.contents.borrow_mut().insert(path.clone(), values.to_vec());
    proto::DataFile {
        path,
        fields: vec![0],
        column_indices: vec![0],
        file_major_version: 2,
        file_minor_version: 0,
        file_size_bytes: size,
        base_id: None,
    }
}

pub fn fragment(sim: &Sim, id: u64, values: &[i64]) -> proto::DataFragment {
    let files = vec![write_data(sim, values)];
    proto::DataFragment {
        id,
        files,
        deletion_file: None,
        physical_rows: values.len() as u64,
        row_ids: None,
        overlays: Vec::new(),
    }
}

fn deleted(sim: &Sim, fragment: &proto::DataFragment) -> RoaringBitmap {
    let Some(file) = &fragment.deletion_file else { return RoaringBitmap::new() };
    let path = deletion_path(fragment.id, file);
    decode_deletions(DeletionKind::Bitmap, &path, &sim.disk.get(&path).unwrap()).unwrap()
}

fn deletion_path(fragment: u64, file: &proto::DeletionFile) -> String {
    format!("_deletions/{fragment}-{}-{}.bin", file.read_version, file.id)
}

/// Values of a fragment by physical position, and which are deleted.
fn rows(sim: &Sim, fragment: &proto::DataFragment) -> (Vec<i64>, RoaringBitmap) {
    (sim.contents.borrow()[&fragment.files[0].path].clone(), deleted(sim, fragment))
}

fn live_values(sim: &Sim, fragment: &proto::DataFragment) -> Vec<i64> {
    let (values, gone) = rows(sim, fragment);
    values.into_iter().enumerate().filter(|(at, _)| !gone.contains(*at as u32)).map(|(_, v)| v).collect()
}

fn fresh(sim: &Sim, count: u64) -> Vec<i64> {
    (0..count).map(|_| sim.next_value()).collect()
}

/// Takes rows with these values out; fragments without rows go. What changed, for the transaction.
fn take_out(sim: &Sim, draft: &mut Draft, base: u64, values: &BTreeSet<i64>) -> Vec<u8> {
    let mut operation = Vec::new();
    let mut stay = Vec::new();
    for mut fragment in std::mem::take(&mut draft.manifest.fragments) {
        let (all, mut gone) = rows(sim, &fragment);
        let before = gone.len();
        gone.extend(all.iter().enumerate().filter(|(_, v)| values.contains(v)).map(|(at, _)| at as u32));
        if gone.len() == all.len() as u64 {
            put_varint_field(&mut operation, 2, fragment.id);
            continue;
        }
        if gone.len() > before {
            let file = proto::DeletionFile {
                file_type: 1,
                read_version: base,
                id: sim.world.random() >> 1,
                num_deleted_rows: gone.len(),
                base_id: None,
            };
            let mut bytes = Vec::new();
            gone.serialize_into(&mut bytes).unwrap();
            sim.disk.put(&sim.world, &deletion_path(fragment.id, &file), bytes.into(), true);
            fragment.deletion_file = Some(file);
            put_len_field(&mut operation, 1, &fragment.encode_to_vec());
        }
        stay.push(fragment);
    }
    draft.manifest.fragments = stay;
    draft.values.retain(|v| !values.contains(v));
    if draft.manifest.fragments.iter().any(|f| f.deletion_file.is_some()) {
        draft.manifest.reader_feature_flags |= 1;
        draft.manifest.writer_feature_flags |= 1;
    }
    operation
}

fn some(sim: &Sim, values: &BTreeSet<i64>) -> BTreeSet<i64> {
    let most = 1 + sim.world.below(4);
    (0..most).filter_map(|_| values.iter().nth(sim.world.below(values.len() as u64) as usize)).copied().collect()
}

/// New rows.
pub async fn append(sim: &Sim) {
    let values = fresh(sim, 2 + sim.world.below(5));
    let file = fragment(sim, 0, &values);
    commit(sim, "append", |_, base| {
        let mut draft = Draft::on(sim, base);
        let id = draft.high_water();
        draft.manifest.fragments.push(proto::DataFragment { id, ..file.clone() });
        draft.values.extend(values.iter().copied());
        let mut operation = Vec::new();
        put_len_field(&mut operation, 1, &file.encode_to_vec());
        draft.operation = (100, operation);
        Some(draft)
    })
    .await;
}

/// Rows deleted.
pub async fn delete(sim: &Sim) {
    commit(sim, "delete", |version, base| {
        let mut draft = Draft::on(sim, base);
        if draft.values.len() < 6 {
            return None;
        }
        let values = some(sim, &draft.values);
        let operation = take_out(sim, &mut draft, version, &values);
        draft.operation = (101, operation);
        draft.retain();
        Some(draft)
    })
    .await;
}

/// Rows updated: they move into a new fragment.
pub async fn update(sim: &Sim) {
    commit(sim, "update", |version, base| {
        let mut draft = Draft::on(sim, base);
        if draft.values.len() < 6 {
            return None;
        }
        let values = some(sim, &draft.values);
        take_out(sim, &mut draft, version, &values);
        let (id, new) = (draft.high_water(), fresh(sim, values.len() as u64));
        draft.manifest.fragments.push(fragment(sim, id, &new));
        draft.values.extend(new);
        draft.operation = (108, Vec::new());
        draft.retain();
        Some(draft)
    })
    .await;
}

/// The column of one fragment rewritten in place.
pub async fn rewrite(sim: &Sim) {
    commit(sim, "rewrite", |_, base| {
        let mut draft = Draft::on(sim, base);
        let at = sim.world.below(draft.manifest.fragments.len() as u64) as usize;
        let fragment = draft.manifest.fragments.get(at)?.clone();
        let new = fresh(sim, fragment.physical_rows);
        let old = live_values(sim, &fragment);
        draft.values.retain(|v| !old.contains(v));
        let gone = deleted(sim, &fragment);
        draft.values.extend(new.iter().enumerate().filter(|(at, _)| !gone.contains(*at as u32)).map(|(_, v)| *v));
        draft.manifest.fragments[at].files = vec![write_data(sim, &new)];
        for entry in &mut draft.indices {
            if let Some(bitmap) = entry.fragment_bitmap.as_mut().filter(|bitmap| bitmap.contains(fragment.id as u32)) {
                bitmap.remove(fragment.id as u32);
                entry.raw = Bytes::new();
            }
        }
        let mut operation = Vec::new();
        put_len_field(&mut operation, 2, &draft.manifest.fragments[at].encode_to_vec());
        put_varint_field(&mut operation, 4, 0);
        put_varint_field(&mut operation, 7, 1);
        draft.operation = (108, operation);
        draft.retain();
        Some(draft)
    })
    .await;
}

/// An eager compaction: planned on one version, committed on another unless somebody touched what it read.
pub async fn compact(sim: &Sim) {
    let (planned, file) = newest(sim);
    let raw = proto::Manifest::decode(file.manifest.raw.clone()).unwrap();
    // Neighbours that the same segments cover.
    let key = |f: &proto::DataFragment| -> Vec<Uuid> {
        file.indices
            .iter()
            .filter(|e| e.fragment_bitmap.as_ref().is_some_and(|b| b.contains(f.id as u32)))
            .map(|e| e.uuid)
            .collect()
    };
    let mut group: Vec<proto::DataFragment> = Vec::new();
    for fragment in &raw.fragments {
        if group.first().is_some_and(|first| key(first) != key(fragment)) {
            if group.len() > 1 {
                break;
            }
            group.clear();
        }
        group.push(fragment.clone());
    }
    if group.len() < 2 {
        return;
    }
    let sources: RoaringBitmap = group.iter().map(|f| f.id as u32).collect();
    let values: Vec<i64> = group.iter().flat_map(|f| live_values(sim, f)).collect();
    let output = fragment(sim, 0, &values);
    sim.world.sleep(sim.world.below(3_000) as i64).await;
    let store = Client::looking(sim).store(0, false);
    commit(sim, "compact", |version, base| {
        // Lance gives up: a source was touched, an index that covers one came, or an older version was restored.
        let same = |f: &proto::DataFragment| group.iter().any(|g| g == f);
        let now = proto::Manifest::decode(base.manifest.raw.clone()).unwrap();
        if now.fragments.iter().filter(|f| same(f)).count() != group.len() {
            return None;
        }
        for v in planned + 1..=version {
            let transaction = read(sim, v).and_then(|file| file.transaction("sim").unwrap())?;
            let covers = |e: &IndexMetadata| e.fragment_bitmap.as_ref().is_none_or(|b| !b.is_disjoint(&sources));
            match transaction.operation {
                // What it restores may have other segments over the sources than those they were grouped by.
                Operation::Restore { .. } => return None,
                Operation::CreateIndex { new, .. } if new.iter().any(covers) => return None,
                _ => {}
            }
        }
        let mut draft = Draft::on(sim, base);
        let id = draft.high_water();
        draft.manifest.fragments.retain(|f| !sources.contains(f.id as u32));
        if !values.is_empty() {
            draft.manifest.fragments.push(proto::DataFragment { id, ..output.clone() });
        }
        let mut operation = Vec::new();
        let mut fragments = Vec::new();
        group.iter().for_each(|f| put_len_field(&mut fragments, 1, &f.encode_to_vec()));
        put_len_field(&mut fragments, 2, &proto::DataFragment { id, ..output.clone() }.encode_to_vec());
        put_len_field(&mut operation, 3, &fragments);
        draft.operation = (104, operation);
        let mut bytes = Draft {
            manifest: draft.manifest.clone(),
            indices: draft.indices.clone(),
            values: BTreeSet::new(),
            operation: draft.operation.clone(),
        };
        let after = ManifestFile::parse("sim", &bytes.encode(&sim.world, version, Uuid::nil()).0).unwrap();
        let live = after.manifest.live();
        for entry in &mut draft.indices {
            let Some(bitmap) = entry.fragment_bitmap.clone().filter(|b| !b.is_disjoint(&sources)) else { continue };
            // Lance does not remap zones: the segment keeps the old ids and covers nothing of the new fragment.
            let Some(target) = sim
                .targets
                .iter()
                .find(|t| Some(&t.type_url) == entry.details.as_ref().map(|d| &d.type_url) && t.method != "ZONEMAP")
            else {
                continue;
            };
            let mut moved = bitmap - &sources;
            moved.insert(id as u32);
            *entry = remapped(sim, &store, &after, entry, target, moved, &live);
        }
        Some(draft)
    })
    .await;
}

/// The segment after its fragments moved. The rows it may hold beside those it covers are not carried along here.
fn remapped(
    sim: &Sim,
    store: &whetstone::store::Store,
    after: &ManifestFile,
    entry: &IndexMetadata,
    target: &IndexTarget,
    bitmap: RoaringBitmap,
    live: &RoaringBitmap,
) -> IndexMetadata {
    let fragments: Vec<u32> = (&bitmap & live).iter().collect();
    let task = BuildTask {
        format: 1,
        kind: "build".into(),
        table: String::new(),
        branch: None,
        v_plan: after.manifest.version,
        task: 0,
        index: IndexTarget { name: entry.name.clone(), ..target.clone() },
        fragments,
        rows: 1,
        copy_of: None,
        merge_of: None,
        max_bytes: None,
    };
    let built = futures::executor::block_on(build_segment(store, Arc::new(after.clone()), &task, &mut |_| {})).unwrap();
    sim.world.note(|| format!("lance remaps {} to {}", entry.uuid, built.uuid));
    IndexMetadata {
        uuid: built.uuid,
        fragment_bitmap: Some(bitmap),
        files: built.files.iter().map(|f| IndexFile { path: f.path.clone(), size_bytes: f.size }).collect(),
        raw: Bytes::new(),
        ..entry.clone()
    }
}

/// An older version again. Fragment ids are never given out twice.
pub async fn restore(sim: &Sim) {
    restore_to(sim, None).await;
}

/// A column rewritten, then something else done and taken back: what was planned in between may be older in one fragment and
/// newer in another than the table is.
pub async fn there_and_back(sim: &Sim) {
    rewrite(sim).await;
    let version = newest(sim).0;
    sim.world.sleep(sim.world.below(1_000) as i64).await;
    if sim.world.chance(500) {
        delete(sim).await;
    } else {
        rewrite(sim).await;
    }
    sim.world.sleep(sim.world.below(6_000) as i64).await;
    restore_to(sim, Some(version)).await;
}

async fn restore_to(sim: &Sim, wanted: Option<u64>) {
    commit(sim, "restore", |version, base| {
        // A stray, created late below the newest version, is none of the history, and its files may be gone: nobody restores it.
        let strays: Vec<u64> = sim.disk.written().iter().filter(|w| !w.newest).map(|w| w.version).collect();
        let versions: Vec<u64> = sim.disk.versions().into_iter().filter(|v| !strays.contains(v)).collect();
        let old = match wanted {
            Some(wanted) => *versions.iter().find(|v| **v == wanted)?,
            None => *versions.get(sim.world.below(versions.len().max(1) as u64) as usize)?,
        };
        if old == version {
            return None;
        }
        let mut draft = Draft::on(sim, &read(sim, old)?);
        draft.manifest.max_fragment_id = base.manifest.max_fragment_id.map(u64::from).max(draft.manifest.max_fragment_id);
        let mut operation = Vec::new();
        put_varint_field(&mut operation, 1, old);
        draft.operation = (106, operation);
        Some(draft)
    })
    .await;
}

/// An index dropped by Lance.
pub async fn drop_index(sim: &Sim) {
    commit(sim, "drop", |_, base| {
        let name = base.indices.first()?.name.clone();
        let mut draft = Draft::on(sim, base);
        let removed: Vec<IndexMetadata> = draft.indices.iter().filter(|e| e.name == name).cloned().collect();
        draft.indices.retain(|e| e.name != name);
        let mut operation = Vec::new();
        removed.iter().for_each(|e| put_len_field(&mut operation, 2, &e.encode()));
        draft.operation = (103, operation);
        Some(draft)
    })
    .await;
}

/// Something that changes no row: the configuration.
pub async fn configure(sim: &Sim) {
    commit(sim, "configure", |_, base| {
        let mut draft = Draft::on(sim, base);
        draft.manifest.config.insert("a".into(), sim.world.below(100).to_string());
        draft.operation = (110, Vec::new());
        Some(draft)
    })
    .await;
}

/// Old versions go, with the files only they name; what nothing names goes after a week.
pub fn clean_up(sim: &Sim, keep: usize) {
    let versions = sim.disk.versions();
    let (old, kept) = versions.split_at(versions.len().saturating_sub(keep.max(1)));
    let files = |versions: &[u64]| -> BTreeSet<String> { versions.iter().flat_map(|v| named(&read(sim, *v).unwrap())).collect() };
    let (gone, stay) = (files(old), files(kept));
    sim.world.note(|| format!("lance cleans up to {}", kept[0]));
    for version in old {
        sim.disk.delete(&sim.world, &file_path(*version), LANCE);
    }
    for Named { path, created, .. } in sim.disk.list("", i64::MAX) {
        if path.starts_with("_versions/") {
            continue;
        }
        let name = match path.strip_prefix("_indices/") {
            Some(rest) => format!("_indices/{}", rest.split('/').next().unwrap()),
            None => path.clone(),
        };
        if !stay.contains(&name) && (gone.contains(&name) || created + WEEK < sim.world.now()) {
            sim.disk.delete(&sim.world, &path, LANCE);
        }
    }
}

/// Objects and index folders that a version names.
fn named(file: &ManifestFile) -> Vec<String> {
    let raw = proto::Manifest::decode(file.manifest.raw.clone()).unwrap();
    let mut names = vec![format!("_transactions/{}", raw.transaction_file)];
    for fragment in &raw.fragments {
        names.extend(fragment.files.iter().map(|f| format!("data/{}", f.path)));
        names.extend(fragment.deletion_file.iter().map(|f| deletion_path(fragment.id, f)));
    }
    names.extend(file.indices.iter().map(|e| format!("_indices/{}", e.uuid)));
    names
}

/// The first version: a few fragments and no index.
pub fn create(sim: &Sim) {
    let mut values = BTreeSet::new();
    let fragments = (0..3)
        .map(|id| {
            let new = fresh(sim, 2 + sim.world.below(4));
            values.extend(new.iter().copied());
            fragment(sim, id, &new)
        })
        .collect();
    let field = proto::Field {
        name: COLUMN.into(),
        id: 0,
        parent_id: -1,
        logical_type: "int64".into(),
        nullable: true,
        ..Default::default()
    };
    let manifest = proto::Manifest {
        fields: vec![field],
        fragments,
        data_format: Some(proto::DataFormat { file_format: "lance".into(), version: "2.0".into() }),
        ..Default::default()
    };
    let mut draft = Draft { manifest, indices: Vec::new(), values, operation: (102, Vec::new()) };
    let uuid = sim.world.uuid();
    let (bytes, name, transaction) = draft.encode(&sim.world, 0, uuid);
    sim.disk.put(&sim.world, &format!("_transactions/{name}"), transaction.into(), true);
    sim.disk.put(&sim.world, &file_path(1), bytes, true);
    sim.values.borrow_mut().insert(1, draft.values);
    sim.theirs.borrow_mut().push((1, uuid));
}
