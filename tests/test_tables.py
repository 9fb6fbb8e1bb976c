# SPDX-License-Identifier: Apache-2.0
"""Columns of numbers as dense batches: CSV, TSV, Parquet, Arrow; missing values by a declared rule."""

from __future__ import annotations

import csv
import pickle

import headrace as hr
import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.feather  # noqa: E402
import pyarrow.parquet  # noqa: E402

ROWS = 101
NAMES = ["a", "b", "n", "name"]


def table():
    """a: float with nulls, b: float, n: int with nulls, name: text."""
    rng = np.random.default_rng(1)
    a, b, n = rng.normal(size=ROWS), rng.normal(size=ROWS) * 1e6, rng.integers(-1000, 1000, ROWS)
    return {
        "a": [None if i % 7 == 3 else float(v) for i, v in enumerate(a)],
        "b": b.tolist(),
        "n": [None if i % 10 == 9 else int(v) for i, v in enumerate(n)],
        "name": [f"row, {i}" for i in range(ROWS)],
    }


def write(folder, form):
    data = table()
    path = folder / f"t.{form}"
    if form in ("csv", "tsv"):
        with open(path, "w", newline="") as f:
            writer = csv.writer(f, delimiter="," if form == "csv" else "\t")
            writer.writerow(NAMES)
            writer.writerows(["" if v is None else v for v in row] for row in zip(*data.values()))
        return path
    arrow = pa.table(data)
    if form == "parquet":
        pyarrow.parquet.write_table(arrow, path, row_group_size=30)
    elif form == "feather":
        pyarrow.feather.write_feather(arrow, path, compression="zstd", chunksize=40)
    else:
        with pa.ipc.new_file(path, arrow.schema) as f:
            f.write_table(arrow, 25)
    return path


def numbers(names, dtype="f4"):
    return np.array([[np.nan if v is None else v for v in table()[n]] for n in names]).T.astype(dtype)


FORMS = ["csv", "tsv", "parquet", "arrow", "feather"]


@pytest.fixture(params=FORMS)
def path(request, tmp_path):
    return write(tmp_path, request.param)


def all_of(loader, name="x"):
    return np.concatenate([np.array(b[name]) for b in loader])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_columns_are_one_dense_array(path, dtype):
    fields = {"x": hr.columns(["b", "a", "n"], dtype=dtype, missing="nan"), "name": hr.text("name")}
    want = numbers(["b", "a", "n"], dtype.replace("32", "4").replace("64", "8"))
    ds = hr.open(path, fields)
    assert len(ds) == ROWS
    np.testing.assert_array_equal(ds[10]["x"], want[10])
    assert ds[10]["name"] == "row, 10"
    with hr.Loader(path, 16, fields, shuffle=False, output="numpy") as loader:
        batch = next(iter(loader))
        assert batch["x"].shape == (16, 3) and batch["x"].dtype == want.dtype
        np.testing.assert_array_equal(all_of(loader), want)
    with hr.Loader(path, 10, fields, seed=4, tail="keep", output="numpy") as loader:
        for b in loader:
            np.testing.assert_array_equal(b["x"], want[b.indices])
            assert list(b["name"]) == [f"row, {i}" for i in b.indices]


def test_missing_values_by_rule(path):
    want = numbers(["a", "n"])
    holes = np.isnan(want).any(1)
    assert 0 < holes.sum() < ROWS

    def read(missing, **options):
        with hr.Loader(
            path, 10, {"x": hr.columns(["a", "n"], missing=missing)}, shuffle=False, output="numpy", **options
        ) as loader:
            return all_of(loader)

    np.testing.assert_array_equal(read(-1.5), np.where(np.isnan(want), np.float32(-1.5), want))
    np.testing.assert_array_equal(read("nan"), want)
    np.testing.assert_array_equal(read("drop"), want[~holes])
    assert len(hr.open(path, {"x": hr.columns(["a", "n"], missing="drop")})) == (~holes).sum()
    # A column without holes drops nothing, and "error" finds none.
    assert len(hr.open(path, {"x": hr.columns(["b"], missing="drop")})) == ROWS
    np.testing.assert_array_equal(hr.open(path, {"x": hr.columns(["b", "b"])})[3]["x"], numbers(["b", "b"])[3])
    with pytest.raises(hr.DataError, match=r"column 'a' has no value in sample 3 .*missing=\"drop\""):
        read("error")
    with pytest.raises(hr.DataError, match=r"column 'n' has no value in sample 9"):
        hr.open(path, {"x": hr.columns(["n"])})[9]


def test_rows_that_are_dropped_are_not_counted_in_any_batch(path):
    holes = np.isnan(numbers(["a"])).any(1)
    fields = {"x": hr.columns(["a"], missing="drop"), "b": hr.scalar("b")}
    with hr.Loader(path, 10, fields, seed=2, output="numpy") as loader:
        assert len(loader) == (~holes).sum() // 10
        first = [np.array(b["b"]) for b in loader.epoch(0)]
        it = loader.epoch(1)
        next(it)
        state = loader.state_dict()
        rest = [np.array(b["x"]) for b in it]
    assert len(np.unique(np.concatenate(first))) == 10 * len(first)
    with hr.Loader(path, 10, fields, seed=2, output="numpy") as loader:
        loader.load_state_dict(state)
        for got, want in zip(loader.epoch(1), rest, strict=True):
            np.testing.assert_array_equal(got["x"], want)


def test_integers_are_held_exactly_or_refused(path):
    whole = [n if n is not None else -5 for n in table()["n"]]
    ds = hr.open(path, {"x": hr.columns(["n", "n"], dtype="i16", missing=-5)})
    got = np.stack([s["x"] for s in ds])
    assert got.dtype == np.int16
    np.testing.assert_array_equal(got, np.array([whole, whole]).T)
    with pytest.raises(hr.DataError, match=r"column 'b' holds .* in sample 0 .*, which is no i32"):
        hr.open(path, {"x": hr.columns(["b"], dtype="i32")})[0]
    with pytest.raises(hr.DataError, match=r"column 'n' holds -?[0-9]+ in sample [0-9]+ .*, which is no u8"):
        list(hr.open(path, {"x": hr.columns(["n"], dtype="u8", missing=0)}))


def test_steps_and_views_follow(path):
    want = numbers(["a", "b"])
    fields = {"x": hr.columns(["a", "b"], missing=0.0).normalize([1, 2], [3, 4])}
    scaled = ((np.nan_to_num(want) - np.array([1, 2], "f4")) / np.array([3, 4], "f4")).astype("f4")
    ds = hr.open(path, fields)
    np.testing.assert_allclose(ds[11]["x"], scaled[11], rtol=1e-6)
    view = pickle.loads(pickle.dumps(ds[5:50:3]))
    np.testing.assert_allclose(view[2]["x"], scaled[11], rtol=1e-6)
    half = hr.columns(["a", "b"], missing=0.0).normalize([1, 2], [3, 4]).cast("f16")
    with hr.Loader(hr.open(path)[10:20], 10, {"x": half}, shuffle=False, output="numpy") as loader:
        np.testing.assert_array_equal(all_of(loader), scaled[10:20].astype("f2"))
    with hr.Loader(hr.open(path).where("b > 0"), 5, {"x": hr.columns(["b"])}, shuffle=False, output="numpy") as loader:
        np.testing.assert_array_equal(all_of(loader), want[want[:, 1] > 0][:, 1:])
    names = {"x": hr.columns(["b"]).map(lambda v: v * 2)}
    np.testing.assert_array_equal(hr.open(path, names)[4]["x"], want[4, 1:] * 2)


def test_several_files_and_blends(tmp_path):
    for part in range(3):
        rows = [(part * 10 + i, (part * 10 + i) / 2) for i in range(10)]
        (tmp_path / f"p-{part}.csv").write_text("n,half\n" + "".join(f"{a},{b}\n" for a, b in rows))
    fields = {"x": hr.columns(["half", "n"])}
    want = np.stack([np.arange(30) / 2, np.arange(30)], 1).astype("f4")
    np.testing.assert_array_equal(np.stack([s["x"] for s in hr.open(str(tmp_path / "p-*.csv"), fields)]), want)
    parts = {"a": (str(tmp_path / "p-0.csv"), 0.5), "b": (hr.open(tmp_path / "p-2.csv"), 0.5)}
    with hr.Loader(hr.blend(parts), 4, fields, output="numpy") as loader:
        for row in next(iter(loader))["x"]:
            assert row[1] == 2 * row[0] and (row[1] < 10 or row[1] >= 20)


def test_a_csv_without_files_is_a_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('x,y,kind\n 1 ,2.5,"a, b"\n,3e2,c\n-4,nan,\n')
    ds = hr.open(path)
    assert ds.schema == [("x", "int"), ("y", "float"), ("kind", "text")]
    assert ds[0] == {"x": 1, "y": 2.5, "kind": "a, b"} and ds[1] == {"y": 300.0, "kind": "c"}
    assert ds.key(2) == "t/00000002"
    np.testing.assert_array_equal(hr.open(path, {"v": hr.columns(["x", "y"], missing="drop")})[1]["v"], [-4, np.nan])
    # A first column of names is a table too; one of files is a list of files, as ever.
    path.write_text("species,width\nsetosa,1\n")
    assert hr.open(path)[0] == {"species": "setosa", "width": 1}
    (tmp_path / "pic.txt").write_text("here")
    path.write_text("what,cls\npic.txt,1\n")
    assert hr.open(path)[0] == {"txt": "here", "cls": 1}
    path.write_text("cls,path\n7,pic.txt\n")
    assert hr.open(path)[0] == {"txt": "here", "cls": 7}
    path.write_text("x,empty\n1,\n2,\n")
    np.testing.assert_array_equal(hr.open(path, {"v": hr.columns(["x", "empty"], missing=9)})[1]["v"], [2, 9])


def test_bad_tables_are_said(tmp_path):
    path = tmp_path / "t.csv"
    for text, words in [
        ("a,b\n1\n", "line 2: 1 cells, the header has 2"),
        ("a,a\n1,2\n", "two columns are named 'a'"),
        ('a,b\n1,2\n"x,3\n', "quote that is never closed"),
    ]:
        path.write_text(text)
        with pytest.raises(hr.DataError, match=words):
            hr.open(path)


def test_what_does_not_fit_is_said(path, tmp_path):
    for columns, words in [
        (["a", "name"], "field 'x': column 'name' holds text; columns of numbers are wanted"),
        (["a", "none"], "field 'x': there is no column 'none'; columns of numbers are 'a', 'b', 'n'"),
    ]:
        with pytest.raises(hr.UsageError, match=words):
            hr.open(path, {"x": hr.columns(columns)})
    with pytest.raises(hr.UsageError, match=r"missing=0.5 is no number of type i32"):
        hr.open(path, {"x": hr.columns(["a"], dtype="i32", missing=0.5)})
    with pytest.raises(hr.UsageError, match=r"there is no type|dtype"):
        hr.open(path, {"x": hr.columns(["a"], dtype="float")})
    with pytest.raises(hr.UsageError, match=r"\.cast\(\"f16\"\) follows"):
        hr.open(path, {"x": hr.columns(["a"], dtype="f16")})
    for bad in ({"names": "a"}, {"names": []}, {"names": ["a"], "missing": "zero"}, {"names": ["a"], "missing": True},
                {"names": ["a"], "missing": "nan", "dtype": "i32"}, {"names": ["a"], "dtype": 4}):  # fmt: skip
        with pytest.raises(hr.UsageError):
            hr.columns(**bad)
    np.save(tmp_path / "a.npy", np.zeros((3, 2)))
    with pytest.raises(hr.UsageError, match=r"column 'data' holds f64\[3, 2\]; columns of numbers along 'axis0' are wanted"):
        hr.open(tmp_path / "a.npy", {"x": hr.columns(["data"])})
    path = tmp_path / "holes.csv"
    path.write_text("a,b\n1,\n,2\n")
    with pytest.raises(hr.UsageError, match="leaves no row"):
        hr.open(path, {"x": hr.columns(["a", "b"], missing="drop")})


def test_wide_tables(tmp_path):
    """As MNIST comes in CSV: a label and 784 pixels."""
    rng = np.random.default_rng(3)
    pixels, labels = rng.integers(0, 256, (50, 784)), rng.integers(0, 10, 50)
    names = ["label", *(f"p{i}" for i in range(784))]
    np.savetxt(tmp_path / "m.csv", np.column_stack([labels, pixels]), "%d", ",", header=",".join(names), comments="")
    fields = {"image": hr.columns(names[1:], dtype="u8"), "label": hr.scalar("label")}
    with hr.Loader(tmp_path / "m.csv", 25, fields, shuffle=False, output="numpy") as loader:
        for n, b in enumerate(loader):
            np.testing.assert_array_equal(b["image"], pixels[25 * n : 25 * n + 25])
            np.testing.assert_array_equal(b["label"], labels[25 * n : 25 * n + 25])


RECORD = np.dtype([("time", "<i8"), ("energy", ">f4"), ("hits", "u1"), ("place", "<f8", (3,)), ("tag", "S4")])


@pytest.fixture
def records(tmp_path):
    """A table as physics keeps it: records of an HDF5 compound type, and columns beside it."""
    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(2)
    rows = np.zeros(37, RECORD)
    rows["time"], rows["energy"], rows["hits"] = rng.integers(0, 1 << 40, 37), rng.normal(size=37), rng.integers(0, 256, 37)
    with h5py.File(tmp_path / "events.h5", "w") as f:
        f.create_dataset("events", data=rows, chunks=(10,), compression="gzip", shuffle=True)
        f["weight"] = np.arange(37, dtype="f2")
        f["charge"] = np.arange(37, dtype="i2") - 5
        f.create_dataset("late", (37,), "i4", chunks=(4,), fillvalue=7)[:6] = 1
    return tmp_path / "events.h5", rows


def test_members_of_hdf5_records_are_columns(records):
    path, rows = records
    fields = {"x": hr.columns(["events.energy", "events.hits", "charge", "late"]), "t": hr.columns(["events.time"], dtype="i64")}
    late = np.where(np.arange(37) < 6, 1, 7)  # beyond the written chunks: the fill value
    late[6:8] = 7
    want = np.stack([rows["energy"], rows["hits"], np.arange(37) - 5, late], 1).astype("f4")
    with hr.Loader(path, 8, fields, seed=5, tail="keep", output="numpy") as loader:
        seen = []
        for b in loader:
            assert b["x"].dtype == np.float32
            np.testing.assert_array_equal(b["x"], want[b.indices])
            np.testing.assert_array_equal(b["t"][:, 0], rows["time"][b.indices])
            seen += list(b.indices)
    assert sorted(seen) == list(range(37))
    ds = hr.open(path, fields)[30:2:-3]
    np.testing.assert_array_equal(ds[1]["x"], want[27])
    # An output may have the name of a column.
    same = hr.open(path, {"charge": hr.columns(["charge", "late"], missing="drop"), "late": hr.array("charge", window=2)})
    np.testing.assert_array_equal(same[3]["charge"], want[3, 2:])
    np.testing.assert_array_equal(same[3]["late"], [-2, -1])


def test_what_is_no_column_of_records_is_said(records):
    path, _ = records
    for column, words in [
        ("events.place", r"column 'events.place' holds f64\[37, 3\]; columns of numbers along 'axis0' are wanted"),
        ("events.tag", "column 'events.tag' holds text"),
        ("weight", "column 'weight' holds array f16"),
        ("events.none", "no variable 'events.none'"),
    ]:
        with pytest.raises(hr.UsageError, match=words):
            hr.open(path, {"x": hr.columns([column])})
    with pytest.raises(hr.DataError, match=r"column 'charge' holds -5 in sample 0 .*, which is no u8"):
        hr.open(path, {"x": hr.columns(["charge"], dtype="u8")})[0]
