"""Writes a table of one column `v` in one page: make_long_page.py FOLDER int64|utf8 ROWS. Given as one batch, Lance does not split it."""

import sys

import lance
import numpy as np
import pyarrow as pa

folder, kind, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
rng = np.random.default_rng(11)
if kind == "int64":
    values, metadata = pa.array(rng.integers(-(2**62), 2**62, rows)), {}
else:
    length = 60
    letters = pa.py_buffer(rng.integers(97, 123, rows * length, dtype=np.uint8).tobytes())
    offsets = pa.py_buffer((np.arange(rows + 1, dtype=np.int32) * length).tobytes())
    values, metadata = pa.Array.from_buffers(pa.string(), rows, [None, offsets, letters]), {"lance-encoding:compression": "none"}
schema = pa.schema([pa.field("v", values.type, metadata=metadata or None)])
batch = pa.record_batch([values], schema=schema)
reader = pa.RecordBatchReader.from_batches(schema, [batch])
lance.write_dataset(reader, folder, data_storage_version="2.2", max_rows_per_file=rows, max_rows_per_group=rows, max_page_bytes=2**31)
