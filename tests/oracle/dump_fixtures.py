"""Writes the columns of scalars, lists and vectors of every fixture table, as pylance reads them, for the Rust test `column_fixtures`.

    dump_fixtures.py OUT_DIR

Prints the folder of the tables (the unpacked archive of `tests/data`). Per table `NAME.lance` one `NAME.arrow` (Arrow
IPC): a column per scalar field, named by its path, the field's id in its metadata; `_rowaddr`; on tables with stable row
ids `_rowid`. Fields that the engine does not read (lists of structs, blobs) are named in `NAME.skipped`.
"""

import pathlib
import sys

import lance
import pyarrow as pa

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import fixture_tables  # noqa: E402


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`" if "." in name or "`" in name else name


def scalar(kind: pa.DataType) -> bool:
    tests = [pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string, pa.types.is_large_string]
    tests += [pa.types.is_binary, pa.types.is_large_binary, pa.types.is_date, pa.types.is_timestamp, pa.types.is_time]
    tests += [pa.types.is_duration, pa.types.is_fixed_size_binary, pa.types.is_decimal]
    return any(test(kind) for test in tests)


def readable(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return readable(kind.value_type)
    if pa.types.is_fixed_size_list(kind):
        return pa.types.is_primitive(kind.value_type) or pa.types.is_fixed_size_list(kind.value_type)
    return scalar(kind.value_type if pa.types.is_dictionary(kind) else kind)


def stored(values: pa.Array) -> pa.Array:
    """As it lies in the file: extension types as their storage, dictionaries as their values."""
    values = values.storage if isinstance(values, pa.ExtensionArray) else values
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def leaves(field, kind: pa.DataType, path: list):
    """(path, field id, type, read?) of every leaf below a Lance field."""
    path = path + [field.name()]
    children = field.children()
    if pa.types.is_struct(kind) and children:
        for child, arrow in zip(children, kind):
            yield from leaves(child, arrow.type, path)
        return
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    blob = "lance-encoding:blob" in (field.metadata or {}) if hasattr(field, "metadata") else False
    yield path, field.id(), kind, isinstance(kind, pa.DataType) and readable(kind) and not blob


def dump(path: pathlib.Path, out: pathlib.Path) -> None:
    dataset = lance.dataset(str(path))
    wanted, skipped = {}, []
    for field, arrow in zip(dataset.lance_schema.fields(), dataset.schema):
        for parts, number, kind, read in leaves(field, arrow.type, []):
            name = ".".join(quoted(part) for part in parts)
            if read:
                wanted[name] = (parts, number)
            else:
                skipped.append(f"{name}\t{number}\t{kind}")
    tops = sorted({parts[0] for parts, _ in wanted.values()})
    scanner = dataset.scanner(columns=tops, with_row_address=True, with_row_id=dataset.has_stable_row_ids, scan_in_order=True)
    table = scanner.to_table().combine_chunks()
    columns, fields = [], []
    for name, (parts, number) in wanted.items():
        column = table.column(parts[0]).combine_chunks() if len(table) else None
        if column is None:
            continue
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
        for part in parts[1:]:
            column = column.flatten()[column.type.get_field_index(part)]
        column = stored(column)
        columns.append(column)
        fields.append(pa.field(name, column.type, metadata={"id": str(number)}))
    for hidden in ["_rowaddr", "_rowid"]:
        if hidden in table.column_names and len(table):
            columns.append(pa.concat_arrays(table.column(hidden).chunks))
            fields.append(pa.field(hidden, pa.uint64()))
    result = pa.table(columns, schema=pa.schema(fields))
    with pa.ipc.new_file(out / f"{path.stem}.arrow", result.schema) as writer:
        writer.write_table(result)
    (out / f"{path.stem}.skipped").write_text("".join(f"{line}\n" for line in skipped))


def main() -> None:
    root, out = fixture_tables.unpack() / "tables", pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(root.glob("*.lance")):
        dump(path, out)
    print(root)


if __name__ == "__main__":
    main()
