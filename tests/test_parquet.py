# SPDX-License-Identifier: Apache-2.0
"""Parquet: what pyarrow wrote we read, what we write pyarrow reads; nothing of it may end the process."""

from __future__ import annotations

import collections
import datetime
import io
import multiprocessing
import pathlib
import random
import subprocess
import sys
import threading
from typing import Any

import headrace as hr
import numpy as np
import pytest
import torch
from headrace import parquet_bridge, photos
from support import Data, digest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = 50
FILE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def write(path: pathlib.Path, columns: Any, **options: Any) -> pathlib.Path:
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    pq.write_table(table, path, **options)
    return path


def some(make: Any, nulls: bool, rows: int = ROWS) -> list[Any]:
    return [None if nulls and i % 5 == 3 else make(i) for i in range(rows)]


def numbered(path: pathlib.Path, rows: int, group: int = 10, first: int = 0, **more: Any) -> pathlib.Path:
    """Each row names itself in both columns."""
    numbers = list(range(first, first + rows))
    data = [f"row {n} ".encode() * (1 + n % 7) for n in numbers]
    return write(path, {"n": pa.array(numbers), "data": pa.array(data), **more}, row_group_size=group)


SCALARS = {
    "bool": (pa.bool_(), lambda i: i % 3 == 0),
    "i8": (pa.int8(), lambda i: i - 100),
    "u8": (pa.uint8(), lambda i: 200 + i),
    "i16": (pa.int16(), lambda i: -i * 600),
    "u16": (pa.uint16(), lambda i: i * 1300),
    "i32": (pa.int32(), lambda i: -(2**31) + i),
    "u32": (pa.uint32(), lambda i: 2**32 - 1 - i),
    "i64": (pa.int64(), lambda i: -(2**63) + i),
    "u64": (pa.uint64(), lambda i: 2**63 - 1 - i),
    "f16": (pa.float16(), lambda i: np.float16(i / 8)),
    "f32": (pa.float32(), lambda i: i / 8),
    "f64": (pa.float64(), lambda i: i / 10),
    "name": (pa.string(), lambda i: f"Zürich {i}" * (i % 3)),
    "long": (pa.large_string(), lambda i: "x" * i),
    "view": (pa.string_view(), lambda i: "v" * i),
    "bin": (pa.binary(), lambda i: bytes([i]) * i),
    "large": (pa.large_binary(), lambda i: bytes([i]) * (i % 4)),
    "viewed": (pa.binary_view(), lambda i: bytes([i]) * (i % 40)),
    "fixed": (pa.binary(5), lambda i: bytes([i]) * 5),
    "word": (pa.dictionary(pa.int8(), pa.string()), lambda i: "abc"[i % 3]),
}


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize(("group", "compression"), [(7, "none"), (50, "zstd"), (1, "snappy"), (13, "gzip")])
def test_scalars_texts_and_bytes_are_what_pyarrow_wrote(
    tmp_path: pathlib.Path, nulls: bool, group: int, compression: str
) -> None:
    table = pa.table({n: pa.array(some(f, nulls), t) for n, (t, f) in SCALARS.items()})
    path = write(tmp_path / "x.parquet", table, row_group_size=group, compression=compression)
    ds = hr.open(path)
    want = [{k: v for k, v in row.items() if v is not None} for row in table.to_pylist()]
    assert [dict(s) for s in ds] == want
    order = random.Random(1).sample(range(ROWS), ROWS)
    assert [dict(ds[i]) for i in order] == [want[i] for i in order]
    assert ds.key(49) == "x/00000049" and ds.format == "parquet"


def test_dates_and_times_are_counts(tmp_path: pathlib.Path) -> None:
    when = datetime.datetime(2001, 2, 3, 4, 5, 6)
    table = pa.table(
        {
            "day": pa.array([when.date()], pa.date32()),
            "at": pa.array([when], pa.timestamp("us")),
            "took": pa.array([datetime.timedelta(seconds=3)], pa.duration("ms")),
        }
    )
    ds = hr.open(write(tmp_path / "x.parquet", table))
    assert dict(ds[0]) == {n: table[n].cast(pa.int64() if n != "day" else pa.int32())[0].as_py() for n in table.column_names}
    with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    for notices in (ds.notices, hr.open(tmp_path / "x.arrow").notices):
        text = "\n".join(notices)
        assert "'day' of type date is read as i32: days since 1970-01-01; numpy.datetime64(value, 'D')" in text
        assert "'at' of type timestamp is read as i64: microseconds since 1970-01-01; numpy.datetime64(value, 'us')" in text
        assert "'took' of type duration is read as i64: milliseconds; numpy.timedelta64(value, 'ms')" in text
    assert np.datetime64(ds[0]["at"], "us") == np.datetime64(when)


# Type, values, and what each becomes: a type and a shape.
LISTS = {
    "ids": (pa.list_(pa.int32()), lambda i: list(range(i % 6)), "<i4", (-1,)),
    "large": (pa.large_list(pa.uint16()), lambda i: [i] * (i % 3), "<u2", (-1,)),
    "flags": (pa.list_(pa.bool_()), lambda i: [k % 2 == 0 for k in range(i % 5)], "u1", (-1,)),
    "box": (pa.list_(pa.float32(), 4), lambda i: [i, i + 0.5, 2, 3], "<f4", (4,)),
    "points": (pa.list_(pa.list_(pa.float64(), 2)), lambda i: [[i, k] for k in range(i % 4)], "<f8", (-1, 2)),
    "grid": (pa.list_(pa.list_(pa.int8(), 3), 2), lambda i: [[i, 1, 2], [3, 4, 5]], "i1", (2, 3)),
}


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("group", [7, 50])
def test_lists_of_numbers_are_arrays(tmp_path: pathlib.Path, nulls: bool, group: int) -> None:
    table = pa.table({n: pa.array(some(f, nulls), t) for n, (t, f, _, _) in LISTS.items()})
    path = write(tmp_path / "x.parquet", table, row_group_size=group)
    assert hr.open(path).schema == [(name, "array") for name in LISTS]
    for name, (_, _, dtype, shape) in LISTS.items():
        ds = hr.open(path, {name: hr.array(name)})
        for i, row in enumerate(table[name].to_pylist()):
            if row is None:
                with pytest.raises(hr.DataError, match=f"no field '{name}'"):
                    ds[i]
            else:
                want = np.array(row, dtype).reshape(shape)
                assert ds[i][name].dtype == want.dtype and np.array_equal(ds[i][name], want)


def test_a_null_in_a_list_makes_the_sample_lack_the_field_as_in_arrow(tmp_path: pathlib.Path) -> None:
    pairs = pa.array([[[1.0, 2.0], None], [[3.0, 4.0]]], pa.list_(pa.list_(pa.float64(), 2)))
    table = pa.table({"f": [[1.0, None], [2.0]], "i": [[1, None], [2]], "t": [["a", None], ["b"]], "p": pairs})
    paths = [write(tmp_path / "x.parquet", table), tmp_path / "x.arrow"]
    with pa.OSFile(str(paths[1]), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    for path in paths:
        for name, field in {"f": hr.array("f"), "i": hr.array("i"), "t": hr.text("t", many=True), "p": hr.array("p")}.items():
            ds = hr.open(path, {name: field})
            assert np.asarray(ds[1][name]).tolist() == table[name][1].as_py(), (path, name)
            if name == "t":  # no value is what a sample without any has
                assert ds[0][name] == []
                continue
            with pytest.raises(hr.DataError, match=f"no field '{name}'"):
                ds[0]


def test_structs_become_fields_with_dots_and_what_no_field_holds_is_said(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = pa.table(
        {
            "meta": pa.array([{"n": 1, "who": {"name": "a"}}, None, {"n": None, "who": None}, {"n": 4, "who": {"name": None}}]),
            "deep": pa.array([[[[1]], [[2, 3], []]]] * 4),
            "map": pa.array([[("k", 1)]] * 4, pa.map_(pa.string(), pa.int32())),
            "money": pa.array([1, 2, 3, 4], pa.decimal128(10, 2)),
            "nothing": pa.nulls(4),
            "huge": pa.array([1, 2, 2**63, 4], pa.uint64()),
            "last": pa.array([1, 2, 3, 4]),
        }
    )
    ds = hr.open(write(tmp_path / "x.parquet", table))
    assert ds.schema == [("meta.n", "int"), ("meta.who.name", "text"), ("last", "int")]
    want = [{"meta.n": 1, "meta.who.name": "a", "last": 1}, {"last": 2}, {"last": 3}, {"meta.n": 4, "last": 4}]
    assert [dict(s) for s in ds] == want
    said = caplog.text
    assert "column 'deep' is lists within lists within lists" in said and "column 'map' is a map" in said
    assert "and 2 more like these" in said


def pictures(count: int = 12) -> list[dict[str, Any]]:
    return [{"bytes": photos.make_photo(i, (40 + i, 30)), "path": f"cat{i}.jpg"} for i in range(count)]


def test_images_as_hugging_face_keeps_them_are_decoded(tmp_path: pathlib.Path) -> None:
    rows: list[Any] = pictures()
    rows[5] = None
    path = write(
        tmp_path / "train-00000-of-00001.parquet",
        {"image": pa.array(rows, FILE), "label": pa.array(range(12))},
        row_group_size=5,
    )
    raw = hr.open(path)
    assert raw.schema == [("image", "jpeg"), ("image.path", "text"), ("label", "int")]
    assert dict(raw[3]) == {"image": rows[3]["bytes"], "image.path": "cat3.jpg", "label": 3}
    assert dict(raw[5]) == {"label": 5}
    ds = hr.open(path, {"x": hr.image("image"), "y": hr.scalar("label")})
    assert [ds[i]["x"].shape for i in range(12) if i != 5] == [(3, 30, 40 + i) for i in range(12) if i != 5]
    there = [i for i in range(12) if i != 5]
    fields = {"x": hr.image("image").random_resized_crop(16), "y": hr.scalar("label")}
    with hr.Loader(raw[there], 3, fields, seed=1, tail="keep", output="numpy") as loader:
        batches = list(loader.epoch(0))
    assert sorted(int(y) for b in batches for y in b["y"]) == there and batches[0]["x"].shape == (3, 3, 16, 16)


def test_the_file_names_tell_the_kind_where_bytes_do_not(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path / "x.parquet", {"pic": pa.array([{"bytes": b"?", "path": "a.png"}], FILE)})
    assert hr.open(path).schema == [("pic", "png"), ("pic.path", "text")]


def test_files_with_pictures_of_two_kinds_are_one_data_set(tmp_path: pathlib.Path) -> None:
    from PIL import Image

    png = io.BytesIO()
    Image.new("RGB", (9, 8)).save(png, "PNG")
    write(tmp_path / "a.parquet", {"image": pa.array(pictures(3), FILE)})
    write(tmp_path / "b.parquet", {"image": pa.array([{"bytes": png.getvalue(), "path": None}], FILE)})
    write(tmp_path / "c.parquet", {"image": pa.array([None], FILE)})
    ds = hr.open(tmp_path / "*.parquet", {"x": hr.image("image")})
    assert len(ds) == 5 and ds[0]["x"].shape == (3, 30, 40) and ds[3]["x"].shape == (3, 8, 9)


def test_several_files_are_one_data_set_and_types_must_agree(tmp_path: pathlib.Path) -> None:
    for f in range(3):
        numbered(tmp_path / f"{f}.parquet", 20 + f, first=100 * f)
    ds = hr.open(tmp_path / "{0..2}.parquet")
    assert [s["n"] for s in ds] == [100 * f + i for f in range(3) for i in range(20 + f)]
    write(tmp_path / "3.parquet", {"n": pa.array([1], pa.int32()), "data": [b""]})
    with pytest.raises(hr.UsageError, match=r"3.parquet.*field 'n' is int i32 here and int i64 in the shards before"):
        hr.open(tmp_path / "{0..3}.parquet")


def test_the_column_of_keys_names_the_samples(tmp_path: pathlib.Path) -> None:
    ds = hr.open(write(tmp_path / "x.parquet", {"__key__": ["one", None, "zwei ü"], "n": [1, 2, 3]}, row_group_size=2))
    assert [ds.key(i) for i in range(3)] == ["one", "x/00000001", "zwei ü"] and dict(ds[0]) == {"n": 1}


# -- the loader ---------------------------------------------------------------------------------------


class Counter(collections.Counter[tuple[str, int, int]]):
    """Counts which columns of which row groups are opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        read, lock = parquet_bridge.read, threading.Lock()

        def counted(file: Any, path: str, offset: int, leaf: int, rows: int, stream: int) -> None:
            with lock:
                self[pathlib.Path(path).name, leaf, offset] += 1
            read(file, path, offset, leaf, rows, stream)

        monkeypatch.setattr(parquet_bridge, "read", counted)


@pytest.mark.parametrize("shuffle", [True, False, "pool", "global"])
def test_a_loader_gives_each_row_once_and_opens_each_column_once(
    tmp_path: pathlib.Path, shuffle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for f in range(3):
        numbered(tmp_path / f"{f}.parquet", 211, group=25, first=1000 * f, other=pa.array(["x"] * 211))
    ds = hr.open(tmp_path / "*.parquet")
    opened = Counter(monkeypatch)
    fields = {"n": hr.scalar("n"), "data": hr.bytes("data")}
    with hr.Loader(ds, 8, fields, shuffle=shuffle, seed=3, tail="keep", output="numpy") as loader:
        got = [(int(n), d) for b in loader.epoch(0) for n, d in zip(b["n"], b["data"])]
    assert sorted(n for n, _ in got) == [1000 * f + i for f in range(3) for i in range(211)]
    assert all(d == f"row {n} ".encode() * (1 + n % 7) for n, d in got)
    assert ([n for n, _ in got] == sorted(n for n, _ in got)) == (shuffle is False)
    assert len(opened) == 3 * 9 and set(opened.values()) == {1} and {leaf for _, leaf, _ in opened} == {1}


def test_pools_of_row_groups_open_each_once_with_little_memory(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are row groups: however a pool is mixed, it needs two of them at a time."""
    rng = np.random.default_rng(1)
    table = pa.table({"n": range(640), "data": [rng.bytes(1 << 16) for _ in range(640)]})
    path = write(tmp_path / "x.parquet", table, row_group_size=80, compression="none", use_dictionary=False)
    ds = hr.open(path)
    opened = Counter(monkeypatch)
    with hr.Loader(
        ds, 16, {"n": hr.scalar("n"), "data": hr.bytes("data")}, shuffle="pool", window="10MiB", memory_budget="48MiB", seed=1
    ) as loader:
        order = [int(n) for b in loader.epoch(0) for n in b["n"]]
    assert sorted(order) == list(range(640)) and order != sorted(order)
    assert len(opened) == 8 and sum(opened.values()) <= 8 + 2, opened


def test_a_resumed_loader_gives_exactly_the_rest(tmp_path: pathlib.Path) -> None:
    path = numbered(tmp_path / "x.parquet", 300, group=40)
    fields = {"n": hr.scalar("n"), "data": hr.bytes("data")}

    def make() -> hr.Loader:
        return hr.Loader(path, 8, fields, shuffle="pool", window="8KiB", seed=5, tail="keep", output="numpy")

    with make() as loader:
        whole = digest(loader.epoch(0))
        head = []
        for batch in loader.epoch(0):
            head.append(batch)
            if len(head) == 10:
                break
        state = loader.state_dict()
    with make() as loader:
        loader.load_state_dict(state)
        assert digest([*head, *loader]) == whole


def test_two_loaders_and_a_data_set_at_once(tmp_path: pathlib.Path) -> None:
    path = numbered(tmp_path / "x.parquet", 500, group=20)
    fields = {"n": hr.scalar("n"), "data": hr.bytes("data")}
    want = {n: f"row {n} ".encode() * (1 + n % 7) for n in range(500)}
    ds = hr.open(path)
    with (
        hr.Loader(path, 10, fields, shuffle="pool", seed=1, output="numpy") as a,
        hr.Loader(path, 10, fields, shuffle="global", seed=2, output="numpy") as b,
    ):
        for x, y, i in zip(a.epoch(0), b.epoch(0), range(50)):
            for batch in (x, y):
                assert [want[int(n)] for n in batch["n"]] == list(batch["data"])
            assert ds[7 * i]["data"] == want[7 * i]


def test_many_threads_may_read_one_data_set(tmp_path: pathlib.Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    ds = hr.open(numbered(tmp_path / "x.parquet", 200, group=9))
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda i: ds[i % 200]["n"], range(2000)))
    assert got == [i % 200 for i in range(2000)]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning", "ignore:os.fork:RuntimeWarning")
def test_a_data_set_works_under_torchs_dataloader(tmp_path: pathlib.Path, start: str) -> None:
    ds = hr.open(numbered(tmp_path / "x.parquet", 100, group=9), {"n": hr.scalar("n"), "data": hr.bytes("data")})
    assert ds[0]["n"] == 0  # the parent has used pyarrow
    context = multiprocessing.get_context(start)
    loader = torch.utils.data.DataLoader(ds, batch_size=8, num_workers=2, collate_fn=list, multiprocessing_context=context)
    assert [s["n"] for batch in loader for s in batch] == list(range(100))


def in_a_new_python(code: str, *arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys\n" + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_pyarrow_is_imported_for_parquet_alone(tmp_path: pathlib.Path) -> None:
    code = "import headrace as hr; print('pyarrow' in sys.modules); hr.open(sys.argv[1]); print('pyarrow' in sys.modules)"
    ended = in_a_new_python(code, numbered(tmp_path / "x.parquet", 10))
    assert ended.stdout.split() == ["False", "True"], ended.stderr


def test_without_pyarrow_the_remedy_is_named(data: Data, tmp_path: pathlib.Path) -> None:
    path = numbered(tmp_path / "x.parquet", 10)
    without = "sys.modules['pyarrow'] = None\nimport headrace as hr\n"
    for use in ("hr.open(sys.argv[1])", "hr.pack(sys.argv[2], sys.argv[3], to='parquet')"):
        code = f"{without}try:\n    {use}\nexcept hr.Unsupported as e:\n    print(e)"
        ended = in_a_new_python(code, path, data.folder, tmp_path / "out")
        assert "pip install pyarrow" in ended.stdout, ended.stderr


def test_a_process_may_end_while_row_groups_are_read(tmp_path: pathlib.Path) -> None:
    path = numbered(tmp_path / "x.parquet", 2000, group=20)
    code = """
import headrace as hr
loader = hr.Loader(sys.argv[1], 4, {"data": hr.bytes("data")}, shuffle="pool", seed=1)
it = loader.epochs(100); next(it)
kept = hr.open(sys.argv[1]); kept[5]
"""
    for _ in range(3):
        ended = in_a_new_python(code, path)
        assert ended.returncode == 0 and ended.stderr == "", ended.stderr


# -- damage -------------------------------------------------------------------------------------------


def chunk_of(path: pathlib.Path, group: int, column: int) -> tuple[int, int]:
    chunk = pq.ParquetFile(path).metadata.row_group(group).column(column)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    return start, start + chunk.total_compressed_size


def test_a_damaged_column_matters_only_to_who_wants_it(tmp_path: pathlib.Path) -> None:
    path = write(
        tmp_path / "x.parquet",
        {"n": range(100), "good": [f"{i}" for i in range(100)], "bad": [f"{i}" * 50 for i in range(100)]},
        row_group_size=50,
        compression="zstd",
        write_page_checksum=True,
    )
    begin, end = chunk_of(path, 1, 2)
    data = bytearray(path.read_bytes())
    data[end - 10] ^= 0x55
    path.write_bytes(data)
    ds = hr.open(path, {"n": hr.scalar("n"), "good": hr.text("good")})
    assert [s["good"] for s in ds] == [str(i) for i in range(100)]
    bad = hr.open(path, {"bad": hr.text("bad")})
    assert bad[49]["bad"] == "49" * 50
    with pytest.raises(hr.DataError, match=rf"x.parquet, offset {begin}.*pyarrow: ") as caught:
        bad[50]
    assert caught.value.offset == begin and caught.value.sample == 50 and caught.value.file == str(path)
    with hr.Loader(bad, 10, {"bad": hr.text("bad")}, shuffle=False) as loader, pytest.raises(hr.DataError, match=r"x\.parquet"):
        list(loader.epoch(0))


def test_a_cut_file_is_an_error(tmp_path: pathlib.Path) -> None:
    path = numbered(tmp_path / "x.parquet", 20)
    whole = path.read_bytes()
    cut = tmp_path / "cut.parquet"
    for n in [0, 3, 4, 11, 12, 40, len(whole) // 2, *range(len(whole) - 12, len(whole))]:
        cut.write_bytes(whole[:n])
        with pytest.raises(hr.DataError, match=r"cut\.parquet"):
            hr.open(cut)


@pytest.mark.timeout(300)
def test_flipped_bits_are_errors_or_values_but_never_the_end(tmp_path: pathlib.Path) -> None:
    path = numbered(tmp_path / "x.parquet", 30, name=pa.array(["n"] * 30))
    whole = path.read_bytes()
    bad = tmp_path / "bad.parquet"
    rng = random.Random(3)
    for at in rng.sample(range(4, len(whole)), 300):
        data = bytearray(whole)
        data[at] ^= 1 << rng.randrange(8)
        bad.write_bytes(data)
        try:
            ds = hr.open(bad)
            for i in range(min(len(ds), 40)):
                ds[i]
        except (hr.Error, IndexError):
            pass


def test_what_is_no_parquet_and_what_is_encrypted_is_said(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"hello, this is no such file at all")
    with pytest.raises(hr.DataError, match=r"x.parquet.*does not begin with PAR1"):
        hr.open(path)
    path.write_bytes(b"PARE" + bytes(100) + b"PARE")
    with pytest.raises(hr.Unsupported, match="encrypted"):
        hr.open(path)
    write(tmp_path / "empty.parquet", {"n": pa.array([], pa.int32())})
    with pytest.raises(hr.DataError, match="no sample"):
        hr.open(tmp_path / "empty.parquet")


def test_a_file_that_changed_under_its_index_is_an_error(tmp_path: pathlib.Path) -> None:
    path = numbered(tmp_path / "x.parquet", 100, group=10)
    ds = hr.open(path)
    assert ds[0]["n"] == 0
    numbered(path, 100, group=100)
    with pytest.raises(hr.DataError, match="changed since it was indexed"):
        ds[99]


# -- writing ------------------------------------------------------------------------------------------


def test_what_is_packed_pyarrow_reads_and_it_comes_back(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(data.tar, tmp_path / "tar", shards=1, keep_order=True)
    hr.pack(data.tar, tmp_path / "out", to="parquet", shards=1, keep_order=True)
    (path,) = (tmp_path / "out").glob("*.parquet")
    table = pq.read_table(path)
    assert table["__key__"].to_pylist() == [s.key for s in data.samples]
    assert table["jpg"].to_pylist() == [s.jpeg for s in data.samples]
    assert table["cls"].to_pylist() == [s.label for s in data.samples] and table["cls"].type == pa.int64()
    assert table["txt"].to_pylist() == [s.text for s in data.samples] and table["txt"].type == pa.string()
    assert table.field("json").metadata == {b"headrace.kind": b"json"}
    codecs = {c.path_in_schema: c.compression for c in map(pq.ParquetFile(path).metadata.row_group(0).column, range(5))}
    assert codecs == {"__key__": "ZSTD", "jpg": "UNCOMPRESSED", "cls": "ZSTD", "json": "ZSTD", "txt": "ZSTD"}
    hr.pack(tmp_path / "out", tmp_path / "back", shards=1, keep_order=True)
    a, b = hr.open(tmp_path / "tar"), hr.open(tmp_path / "back")
    assert [(a.key(i), a[i]) for i in range(len(a))] == [(b.key(i), b[i]) for i in range(len(b))]


def test_types_nulls_and_several_values_survive(tmp_path: pathlib.Path) -> None:
    columns = {n: pa.array(some(f, True), t) for n, (t, f) in SCALARS.items()}
    columns |= {n: pa.array(some(f, n not in ("box", "grid")), t) for n, (t, f, _, _) in LISTS.items()}
    columns["docs"] = pa.array(some(lambda i: [bytes([k]) for k in range(i % 4)], False), pa.list_(pa.binary()))
    columns["lines"] = pa.array(some(lambda i: [f"{k}" for k in range(1 + i % 3)], True), pa.list_(pa.string()))
    source = write(tmp_path / "x.parquet", pa.table(columns), row_group_size=7)
    hr.pack(source, tmp_path / "out", to="parquet", keep_order=True)
    (path,) = (tmp_path / "out").glob("*.parquet")
    got, want = pq.read_table(path), pa.table(columns)
    for name in want.column_names:
        values = want[name].to_pylist()
        if name == "docs":  # a list without values is the same as none
            values = [v or None for v in values]
        assert got[name].to_pylist() == values, name
    kept = {n for n in want.column_names if got[n].type == want[n].type}
    assert set(want.column_names) - kept == {"bool", "long", "view", "large", "viewed", "fixed", "word", "flags"}
    again = tmp_path / "again"
    hr.pack(source, again, to="parquet", keep_order=True)
    assert (again / path.name).read_bytes() == path.read_bytes()


def test_lists_of_files_are_several_pictures(tmp_path: pathlib.Path) -> None:
    one, two = pictures(2)
    rows = [[one, two], [], None, [one], [None, {"bytes": b"x", "path": None}]]
    source = write(tmp_path / "x.parquet", {"shots": pa.array(rows, pa.list_(FILE))})
    assert hr.open(source).schema == [("shots", "jpeg"), ("shots.path", "text")]
    assert dict(hr.open(source)[0]) == {"shots": [one["bytes"], two["bytes"]], "shots.path": ["cat0.jpg", "cat1.jpg"]}
    with hr.Loader(source, 2, {"x": hr.image("shots", many=True)}, shuffle=False, output="numpy") as loader:
        first, second = next(loader.epoch(0))["x"]
    assert [x.shape for x in first] == [(3, 30, 40), (3, 30, 41)] and len(second) == 0
    hr.pack(source, tmp_path / "out", to="parquet", keep_order=True)
    (path,) = (tmp_path / "out").glob("*.parquet")
    table = pq.read_table(path)
    assert table["shots"].to_pylist() == [[one["bytes"], two["bytes"]], None, None, [one["bytes"]], None]
    assert table["shots.path"].to_pylist() == [["cat0.jpg", "cat1.jpg"], None, None, ["cat0.jpg"], None]


def test_row_groups_are_cut_by_bytes_and_pages_have_checksums(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(1)
    source = write(tmp_path / "x.parquet", {"x": pa.array([rng.bytes(1 << 20) for _ in range(40)])})
    hr.pack(source, tmp_path / "out", to="parquet", shards=1, keep_order=True)
    (path,) = (tmp_path / "out").glob("*.parquet")
    metadata = pq.ParquetFile(path).metadata
    assert [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)] == [16, 16, 8]
    begin, end = chunk_of(path, 1, 1)
    data = bytearray(path.read_bytes())
    data[(begin + end) // 2] ^= 1
    path.write_bytes(data)
    ds = hr.open(path)
    assert len(ds[0]["x"]) == 1 << 20
    with pytest.raises(hr.DataError, match=r"(?i)crc|checksum"):
        ds[20]


def test_text_that_is_no_utf8_cannot_be_packed_and_leaves_nothing(tmp_path: pathlib.Path) -> None:
    from support import write_tar

    source = write_tar(tmp_path / "x.tar", [("a.txt", b"\xff\xfe")])
    with pytest.raises(hr.DataError, match=r"(?i)utf-?8"):
        hr.pack(source, tmp_path / "out", to="parquet")
    assert not list((tmp_path / "out").glob("*.parquet"))


def test_hugging_face_reads_what_is_packed(tmp_path: pathlib.Path, data: Data) -> None:
    datasets = pytest.importorskip("datasets")
    hr.pack(data.tar, tmp_path / "out", to="parquet", shards=2, keep_order=True)
    files = sorted(map(str, (tmp_path / "out").glob("*.parquet")))
    loaded = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded["jpg"][:] == [s.jpeg for s in data.samples] and loaded["cls"][:] == [s.label for s in data.samples]


def test_what_hugging_face_wrote_is_read(tmp_path: pathlib.Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})
    made = datasets.Dataset.from_dict({"image": pictures(), "label": [i % 2 for i in range(12)]}, features=features)
    made.to_parquet(str(tmp_path / "hf.parquet"))
    ds = hr.open(tmp_path / "hf.parquet", {"x": hr.image("image"), "y": hr.scalar("label")})
    for i, row in enumerate(made):
        assert np.array_equal(ds[i]["x"].transpose(1, 2, 0), np.asarray(row["image"])) and ds[i]["y"] == row["label"]


def test_row_groups_that_do_not_fit_are_said(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "x.parquet", {"x": [random.Random(i).randbytes(1 << 16) for i in range(64)]}, compression="none")
    for shuffle, remedy in (("global", 'shuffle="pool"'), ("pool", "a smaller window")):
        hr.Loader(path, 8, {"x": hr.bytes("x")}, shuffle=shuffle, memory_budget="1MiB").close()
        assert remedy in caplog.text
