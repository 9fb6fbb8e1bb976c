# SPDX-License-Identifier: Apache-2.0
"""Arrow IPC: what pyarrow and Hugging Face's datasets wrote we read; what we write pyarrow reads."""

from __future__ import annotations

import io
import json
import pathlib
import struct
from typing import Any

import headrace as hr
import numpy as np
import pytest
from headrace import photos
from support import Data, write_tar

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")

ROWS = 30
GOLDEN = pathlib.Path(__file__).parent / "golden/arrow"
FILE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def array(dtype: str) -> Any:
    return lambda value: np.array(value, dtype)


def same(value: Any) -> Any:
    return value


# name: type, the i-th value, what becomes of it
TYPES: dict[str, tuple[Any, Any, Any]] = {
    "bool": (pa.bool_(), lambda i: i % 3 == 0, int),
    "i8": (pa.int8(), lambda i: i - 100, same),
    "u8": (pa.uint8(), lambda i: 200 + i, same),
    "i16": (pa.int16(), lambda i: -i * 600, same),
    "u16": (pa.uint16(), lambda i: i * 1300, same),
    "i32": (pa.int32(), lambda i: -(2**31) + i, same),
    "u32": (pa.uint32(), lambda i: 2**32 - 1 - i, same),
    "i64": (pa.int64(), lambda i: -(2**63) + i, same),
    "u64": (pa.uint64(), lambda i: 2**63 - 1 - i, same),
    "f16": (pa.float16(), lambda i: np.float16(i / 8), float),
    "f32": (pa.float32(), lambda i: i / 8, same),
    "f64": (pa.float64(), lambda i: i / 10, same),
    "binary": (pa.binary(), lambda i: bytes([i]) * (i * 7 % 50), same),
    "large_binary": (pa.large_binary(), lambda i: bytes([i]) * (i * 5 % 50), same),
    "binary_view": (pa.binary_view(), lambda i: bytes([i]) * (i * 3 % 40), same),
    "string": (pa.string(), lambda i: "ü" * (i % 9), same),
    "large_string": (pa.large_string(), lambda i: f"row {i}", same),
    "string_view": (pa.string_view(), lambda i: "€" * (i % 11), same),
    "json": (pa.string(), lambda i: json.dumps({"i": i}), same),
    "fixed": (pa.binary(7), lambda i: bytes([i] * 7), same),
    "vector": (pa.list_(pa.float32(), 4), lambda i: [i, i + 0.5, 0, -i], array("f4")),
    "matrix": (pa.list_(pa.list_(pa.int16(), 3), 2), lambda i: [[i, 2, 3], [4, 5, -i]], array("i2")),
    "list": (pa.list_(pa.int64()), lambda i: list(range(i % 6)), array("i8")),
    "large_list": (pa.large_list(pa.uint8()), lambda i: [i] * (i % 4), array("u1")),
    "points": (pa.list_(pa.list_(pa.float64(), 2)), lambda i: [[i, k] for k in range(1 + i % 3)], array("f8")),
    "texts": (pa.list_(pa.string()), lambda i: [f"{i} {k}" for k in range(1 + i % 3)], same),
    "blobs": (pa.large_list(pa.binary()), lambda i: [bytes([k]) * i for k in range(1 + i % 3)], same),
    "pair": (pa.list_(pa.binary(), 2), lambda i: [b"a" * i, b"b"], same),
    "lists": (pa.list_(pa.list_(pa.int32())), lambda i: [[1] * i, [2]], lambda v: [np.array(x, "i4") for x in v]),
    "category": (pa.dictionary(pa.int8(), pa.string()), lambda i: "abc"[i % 3], same),
    "codes": (pa.dictionary(pa.int32(), pa.int64()), lambda i: 1000 * (i % 4), same),
    "bools": (pa.list_(pa.bool_()), lambda i: [i % 2 == 0, True], lambda v: [int(b) for b in v]),
    "kinds": (pa.list_(pa.dictionary(pa.int16(), pa.string())), lambda i: ["xyz"[i % 3]] * (1 + i % 2), same),
    "date": (pa.date32(), lambda i: i, same),
    "moment": (pa.timestamp("us"), lambda i: i, same),
}  # fmt: skip


def table(nulls: bool, rows: int = ROWS) -> Any:
    columns = {}
    for name, (kind, make, _) in TYPES.items():
        columns[name] = pa.array([None if nulls and i % 4 == 1 else make(i) for i in range(rows)], kind)
    return pa.table(columns)


def write(path: pathlib.Path, what: Any, stream: bool = False, rows: int | None = None, **options: Any) -> pathlib.Path:
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(str(path), what.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(what, max_chunksize=rows)
    return path


def equal(a: Any, b: Any) -> bool:
    if isinstance(b, list) and any(isinstance(v, np.ndarray) for v in b):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b))
    if isinstance(b, np.ndarray):
        return (
            a.dtype == b.dtype and a.size == b.size and a.shape[: b.ndim] == (b.shape if b.size else a.shape) and (a == b).all()
        )
    return bool(a == b)


@pytest.mark.parametrize("rows", [1, 7, None])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("nulls", [False, True])
def test_every_type_is_what_pyarrow_wrote(
    tmp_path: pathlib.Path, nulls: bool, compression: str | None, stream: bool, rows: int | None
) -> None:
    path = write(tmp_path / "x.arrow", table(nulls), stream, rows, compression=compression)
    ds = hr.open(path)
    assert len(ds) == ROWS and ds.key(3) == "x/00000003"
    for i in range(ROWS):
        sample = ds[i]
        for name, (_, make, convert) in TYPES.items():
            if nulls and i % 4 == 1:
                assert not sample.get(name), name
            else:
                assert equal(sample[name], convert(make(i))), (name, i, sample[name])


def test_types_and_shapes_are_those_of_the_columns(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path / "x.arrow", table(False))
    fields = {n: hr.array(n) for n in ("vector", "matrix")}
    with hr.Loader(path, 5, fields, shuffle=True, output="numpy") as loader:
        for batch in loader.epoch(0):
            assert batch["vector"].shape == (5, 4) and batch["vector"].dtype == np.float32
            assert batch["matrix"].shape == (5, 2, 3) and batch["matrix"].dtype == np.int16
            for i, m in zip(batch.indices, batch["matrix"]):
                assert m.tolist() == [[i, 2, 3], [4, 5, -i]]


def test_a_tensor_has_the_shape_of_its_extension(tmp_path: pathlib.Path) -> None:
    values = np.arange(24, dtype="f4").reshape(4, 2, 3)
    what = pa.table({"t": pa.FixedShapeTensorArray.from_numpy_ndarray(values)})
    for compression in (None, "zstd"):
        ds = hr.open(write(tmp_path / f"{compression}.arrow", what, compression=compression))
        np.testing.assert_array_equal(np.stack([s["t"] for s in ds]), values)


def test_dictionaries_grow_and_are_replaced_in_a_stream(tmp_path: pathlib.Path) -> None:
    parts = [["a", "b"], ["b", "a", "c"], ["x"], ["y", "x", None]]
    words = [["a", "b"], ["a", "b", "c"], ["x"], ["x", "y"]]
    for deltas in (False, True):
        path = tmp_path / f"{deltas}.arrow"
        schema = pa.schema([("c", pa.dictionary(pa.int32(), pa.string()))])
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)
        with pa.ipc.new_stream(str(path), schema, options=options) as writer:
            for values, known in zip(parts, words):
                numbers = pa.array([None if v is None else known.index(v) for v in values], pa.int32())
                writer.write_batch(pa.record_batch([pa.DictionaryArray.from_arrays(numbers, pa.array(known))], schema=schema))
        assert [s.get("c") for s in hr.open(path)] == [v for p in parts for v in p]


def test_structs_are_fields_of_their_own_and_their_nulls_hide_them(tmp_path: pathlib.Path) -> None:
    rows = [{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": {"c": "y"}}, {"a": 4, "b": None}]
    kind = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])
    ds = hr.open(write(tmp_path / "x.arrow", pa.table({"s": pa.array(rows, kind)})))
    assert [dict(s) for s in ds] == [{"s.a": 1, "s.b.c": "x"}, {}, {"s.b.c": "y"}, {"s.a": 4}]


def test_pictures_of_hugging_face_are_decoded(tmp_path: pathlib.Path) -> None:
    files = [photos.make_photo(i, (20 + i, 30)) for i in range(6)]
    rows = [{"bytes": f, "path": f"{i}.jpg"} for i, f in enumerate(files)]
    what = pa.table({"image": pa.array(rows, FILE), "label": pa.array(range(6)), "all": pa.array([rows[:2]] * 6, pa.list_(FILE))})
    what = what.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": {"image": {"_type": "Image"}}}})})
    path = write(tmp_path / "x.arrow", what, stream=True, rows=4)
    ds = hr.open(path, {"image": hr.image("image"), "label": hr.scalar("label"), "path": hr.text("image.path")})
    assert [s["image"].shape for s in ds] == [(3, 30, 20 + i) for i in range(6)]
    assert [s["path"] for s in ds] == [f"{i}.jpg" for i in range(6)]
    assert [s["all"] for s in hr.open(path)] == [files[:2]] * 6


def from_json(value: Any) -> Any:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) and "hex" in value else value


def test_a_file_of_the_datasets_library_is_read(tmp_path: pathlib.Path) -> None:
    expected = json.loads((GOLDEN / "expected.json").read_text())
    for source in GOLDEN.glob("*.arrow"):
        path = tmp_path / source.name
        path.write_bytes(source.read_bytes())
        ds = hr.open(path)
        assert len(ds) == len(expected)
        for sample, want in zip(ds, expected):
            for name, value in want.items():
                assert equal(sample[name].tolist() if isinstance(sample[name], np.ndarray) else sample[name], from_json(value)), (
                    name
                )
        images = hr.open(path, {"image": hr.image("image")})
        assert [s["image"].shape for s in images] == [(3, 8 + i, 12) for i in range(len(expected))]


def test_columns_that_cannot_be_read_are_left_out_and_said(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    what = pa.table(
        {
            "x": pa.array([1, 2]),
            "d": pa.array([1, 2], pa.decimal128(5)),
            "m": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int32())),
            "n": pa.nulls(2),
            "deep": pa.array([[[b"a"]], []], pa.list_(pa.list_(pa.binary()))),
            "u": pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])]),
            "r": pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["v"])),
            "v": pa.array([[1], [2]], pa.list_view(pa.int32())),
            "y": pa.array(["a", "b"]),
        }
    )
    assert [dict(s) for s in hr.open(write(tmp_path / "x.arrow", what))] == [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}]
    assert "column 'd' of type decimal is not supported" in caplog.text
    with pytest.raises(hr.Unsupported, match=r"no column of it can be read.*type null"):
        hr.open(write(tmp_path / "n.arrow", pa.table({"n": pa.nulls(2)})))


def test_a_list_with_a_null_in_it_is_missing(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    what = pa.table(
        {
            "a": pa.array([[1, None], [2]], pa.list_(pa.int32())),
            "b": pa.array([["x"], [None]], pa.list_(pa.string())),
            "c": pa.array([[[1.0, 2.0]], [[None, 1.0]]], pa.list_(pa.list_(pa.float32(), 2))),
        }
    )
    first, second = hr.open(write(tmp_path / "x.arrow", what))
    assert "a" not in first and first["b"] == ["x"] and first["c"].tolist() == [[1.0, 2.0]]
    assert second["a"].tolist() == [2] and "c" not in second and not second.get("b")
    assert "3 lists with nulls in them" in caplog.text


def test_feather_and_slices_and_empty_batches(tmp_path: pathlib.Path) -> None:
    whole = table(False)
    for compression in ("uncompressed", "lz4", "zstd"):
        feather.write_feather(whole.slice(11, 9), tmp_path / "x.feather", compression=compression)
        assert [s["large_string"] for s in hr.open(tmp_path / "x.feather")] == [f"row {i}" for i in range(11, 20)]
        (tmp_path / "x.feather.hridx").unlink()
    (batch,) = whole.combine_chunks().to_batches()
    with pa.ipc.new_file(str(tmp_path / "e.arrow"), whole.schema) as writer:
        for part in (batch.slice(0, 0), batch.slice(3, 2), batch.slice(0, 0)):
            writer.write_batch(part)
    assert [s["large_string"] for s in hr.open(tmp_path / "e.arrow")] == ["row 3", "row 4"]


def test_numbers_beyond_64_bits_with_a_sign_are_refused(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path / "x.arrow", pa.table({"u": pa.array([2**63], pa.uint64())}))
    with pytest.raises(hr.Unsupported, match="'u' holds 9223372036854775808"):
        hr.open(path)


def test_the_key_column_is_the_key(tmp_path: pathlib.Path) -> None:
    for compression in (None, "lz4"):
        what = pa.table({"__key__": ["a/b", None, "ü"], "x": [1, 2, 3]})
        ds = hr.open(write(tmp_path / f"{compression}.arrow", what, compression=compression))
        assert [ds.key(i) for i in range(3)] == ["a/b", f"{compression}/00000001", "ü"]
        assert [dict(s) for s in ds] == [{"x": 1}, {"x": 2}, {"x": 3}]


def test_what_it_is_is_told_by_its_bytes(tmp_path: pathlib.Path) -> None:
    for stream in (False, True):
        assert len(hr.open(write(tmp_path / f"data{stream}", table(False), stream))) == ROWS


def packed(source: Any, folder: pathlib.Path, **options: Any) -> pathlib.Path:
    hr.pack(source, folder, to="arrow", shards=1, keep_order=True, **options)
    (path,) = folder.glob("*.arrow")
    return path


def test_what_is_packed_pyarrow_reads_mapped_too(data: Data, tmp_path: pathlib.Path) -> None:
    path = packed(data.tar, tmp_path / "out")
    for source in (pa.memory_map(str(path)), pa.OSFile(str(path))):
        got = pa.ipc.open_file(source).read_all()
        got.validate(full=True)
        assert got["__key__"].to_pylist() == [s.key for s in data.samples]
        assert got["jpg"].to_pylist() == [s.jpeg for s in data.samples]
        assert got["cls"].to_pylist() == [s.label for s in data.samples]
    assert got.schema.field("jpg").metadata[b"headrace.kind"] == b"jpeg"
    with pa.ipc.open_stream(io.BytesIO(path.read_bytes()[8:])) as stream:
        assert stream.read_all().equals(got)


@pytest.mark.parametrize("nulls", [False, True])
def test_every_type_packed_pyarrow_reads_with_equal_values(tmp_path: pathlib.Path, nulls: bool) -> None:
    what = table(nulls)
    path = packed(write(tmp_path / "x.arrow", what, rows=7, compression="zstd"), tmp_path / "out")
    got = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    got.validate(full=True)
    for name, (kind, make, _) in TYPES.items():
        values = [None if nulls and i % 4 == 1 else make(i) for i in range(ROWS)]
        read = got[name].combine_chunks()
        if name == "bools":
            values = [None if v is None else [int(b) for b in v] for v in values]
        elif name in ("date", "moment", "bool"):
            read = pa.array(read.to_pylist(), pa.int64())
        want = pa.array(values, kind).to_pylist() if name not in ("date", "moment", "bool", "bools") else values
        assert read.to_pylist() == want, name
    again = packed(path, tmp_path / "again")
    assert again.read_bytes() == path.read_bytes()


def test_a_tensor_is_packed_as_lists_in_lists_which_every_reader_knows(tmp_path: pathlib.Path) -> None:
    values = np.arange(24, dtype="i4").reshape(4, 2, 3)
    path = write(tmp_path / "x.arrow", pa.table({"t": pa.FixedShapeTensorArray.from_numpy_ndarray(values)}))
    out = packed(path, tmp_path / "out")
    got = pa.ipc.open_file(str(out)).read_all()["t"].combine_chunks()
    got.validate(full=True)
    assert got.type == pa.list_(pa.list_(pa.int32(), 3), 2)
    np.testing.assert_array_equal(np.array(got.to_pylist()), values)
    again = hr.open(out)
    np.testing.assert_array_equal(again[3]["t"], values[3])


def test_arrays_that_grow_in_one_axis_are_lists_of_lists(tmp_path: pathlib.Path) -> None:
    rows = [np.arange(n * 6, dtype="f4").reshape(n, 2, 3) for n in (2, 0, 1, 3)]
    kind = pa.list_(pa.list_(pa.list_(pa.float32(), 3), 2))
    path = write(tmp_path / "x.arrow", pa.table({"t": pa.array([r.tolist() for r in rows], kind)}))
    out = packed(path, tmp_path / "out")
    got = pa.ipc.open_file(str(out)).read_all()["t"].combine_chunks()
    got.validate(full=True)
    assert got.type == kind
    again = hr.open(out)
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(again[i]["t"], row)


def test_a_text_that_is_no_utf8_is_refused_by_name(tmp_path: pathlib.Path) -> None:
    source = write_tar(tmp_path / "x.tar", [("a.txt", b"fine"), ("b.txt", b"ab\xff")])
    with pytest.raises(hr.Unsupported, match="b: field 'txt' is no UTF-8 from byte 2"):
        packed(source, tmp_path / "out")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_a_cut_anywhere_is_an_error_or_said(
    tmp_path: pathlib.Path, stream: bool, compression: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    what = pa.table({"x": pa.array(range(40)), "b": pa.array([bytes([i]) * i for i in range(40)])})
    whole = write(tmp_path / "x.arrow", what, stream, 10, compression=compression).read_bytes()
    for n in [*range(0, len(whole) - 1, 7), len(whole) - 1]:
        cut = tmp_path / f"cut{n}.arrow"  # a notice of the same file would be said once
        cut.write_bytes(whole[:n])
        caplog.clear()
        said = ""
        try:
            hr.open(cut)
        except hr.DataError as error:
            said = str(error)
        if said:
            assert cut.name in said, n
        else:
            assert stream, n
            assert "without its end mark" in caplog.text, n


def test_a_bomb_is_refused(tmp_path: pathlib.Path) -> None:
    what = pa.table({"b": pa.array(np.zeros(40_000_000, "i8"))})
    path = write(tmp_path / "x.arrow", what, compression="zstd")
    assert path.stat().st_size < 100_000
    with pytest.raises(hr.Unsupported, match="256 MiB and 1024 times"):
        hr.open(path)


def test_a_length_that_cannot_be_is_an_error(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path / "x.arrow", pa.table({"x": pa.array(range(10))}), stream=True)
    data = bytearray(path.read_bytes())
    struct.pack_into("<i", data, 4, 2**31 - 1)
    path.write_bytes(data)
    with pytest.raises(hr.DataError, match=r"x.arrow, offset 0: no Arrow file and no Arrow stream, or one cut short"):
        hr.open(path)
    path.write_bytes(b"FEA1" + bytes(100))
    with pytest.raises(hr.Unsupported, match="version 1"):
        hr.open(path)
