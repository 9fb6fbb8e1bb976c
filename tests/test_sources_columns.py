# SPDX-License-Identifier: Apache-2.0
"""Arrays, dicts of columns and frames as data sets: memory that the engine reads as it lies."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
import pytest
import torch
from PIL import Image


def all_of(ds: Any, name: str, **options: Any) -> np.ndarray[Any, Any]:
    batches = list(hr.Loader(ds, 7, tail="keep", shuffle=False, output="numpy", **options))
    return np.concatenate([b[name] for b in batches])


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", ">i4", ">f8"])
@pytest.mark.parametrize("shape", [(), (3,), (40, 5)])
def test_arrays_of_every_type_and_row(dtype: str, shape: tuple[int, ...]) -> None:
    values = (np.arange(20 * int(np.prod(shape))) % 120).reshape(20, *shape).astype(dtype)
    got = all_of(hr.from_python(values), "0")
    assert np.array_equal(got, values)
    if shape:
        assert got.dtype == np.dtype(dtype).newbyteorder("=")


def test_large_rows_are_lent_and_not_copied() -> None:
    values = np.arange(50 * 4096, dtype=np.float32).reshape(50, 4096)
    ds = hr.from_python({"x": values})
    values[7] = -1  # seen: it is the same memory
    assert (ds[7]["x"] == -1).all()
    batch = next(iter(hr.Loader(ds, 50, shuffle=False, output="numpy")))
    assert (batch["x"][7] == -1).all() and np.array_equal(batch["x"][8], values[8])
    batch["x"][:] = 0
    assert values[9, 9] != 0  # a batch is its own


@pytest.mark.parametrize("view", [np.s_[::-1], np.s_[:, ::2], np.s_[:, ::-1], np.s_[5:, 3:]])
def test_views_of_arrays(view: Any) -> None:
    for width in (6, 600):
        values = np.arange(20 * width, dtype=np.int32).reshape(20, width)[view]
        assert np.array_equal(all_of(hr.from_python(values), "0"), values)
    assert np.array_equal(all_of(hr.from_python(np.arange(20)[::-3]), "0"), np.arange(20)[::-3])


def test_tensors_and_their_types() -> None:
    x, y = torch.arange(60.0).reshape(20, 3).to(torch.bfloat16), torch.arange(20)
    batch = next(iter(hr.Loader(hr.from_python((x, y)), 20, shuffle=False)))
    assert batch["0"].dtype == torch.bfloat16 and torch.equal(batch["0"], x) and torch.equal(batch["1"], y)
    batch = next(iter(hr.Loader(hr.from_python({"b": torch.ones(20, dtype=torch.bfloat16)}), 20)))
    assert batch["b"].dtype == torch.bfloat16
    batch = next(iter(hr.Loader(hr.from_python({"t": torch.arange(6.0).reshape(2, 3).T}), 3, shuffle=False)))
    assert torch.equal(batch["t"], torch.arange(6.0).reshape(2, 3).T)
    big = np.array([1, 2**63 + 5], np.uint64)
    assert hr.from_python({"x": big})[1]["x"] == 2**63 + 5


def test_dicts_of_lists_texts_and_objects() -> None:
    ds = hr.from_python(
        {"s": ["a", None, "ccc", ""], "b": [b"1", b"", b"333", b"4"], "o": [{1}, {2}, {3}, None], "n": [1, None, 3, 4]}
    )
    assert ds[0] == {"s": "a", "b": b"1", "o": {1}, "n": 1} and ds[1] == {"b": b"", "o": {2}} and ds[3]["s"] == ""
    fields = {"s": hr.text("s", optional=True), "o": hr.bytes("o", optional=True), "n": hr.scalar("n", default=-1)}
    batch = next(iter(hr.Loader(ds, 4, fields, shuffle=False)))
    assert (
        batch["n"].tolist() == [1, -1, 3, 4]
        and batch["s_valid"].tolist() == [True, False, True, True]
        and batch["o"] == [{1}, {2}, {3}, None]
    )
    arrays = hr.from_python({"a": [np.zeros(2), np.zeros(2)], "v": [np.zeros(1), np.zeros(5)]})
    assert arrays[1]["a"].shape == (2,) and arrays[1]["v"].shape == (5,)
    texts = hr.from_python({"u": np.array(["x", "yy"]), "o": np.array(["p", None], object)})
    assert texts[1] == {"u": "yy"} and texts[0] == {"u": "x", "o": "p"}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "empty"),
        ({"a": np.arange(3), "b": np.arange(4)}, "'a' 3, 'b' 4"),
        ({"a": 5}, "int"),
        ({"a": np.float64(5)}, "float64"),
        ({"a": "text"}, "str"),
        ({1: [1]}, "name of a column"),
        ({"a": np.zeros(3, complex), "b": np.zeros((3, 2), complex)}, "complex128"),
        ({"a": []}, "no sample"),
    ],
)
def test_what_is_no_table(table: Any, words: str) -> None:
    with pytest.raises(hr.UsageError, match=words):
        hr.from_python(table)


def test_order_resume_where_and_fingerprint() -> None:
    def make(**said: Any) -> Any:
        return hr.from_python({"x": np.arange(100), "y": np.arange(100) % 5}, **said)

    ds = make()
    loader = hr.Loader(ds, 10, seed=3)
    whole = [b["x"].tolist() for b in loader]
    batches = iter(hr.Loader(ds, 10, seed=3))
    state = [next(batches).state for _ in range(5)][-1]
    again = hr.Loader(make(), 10)
    again.load_state_dict(state)
    assert [b["x"].tolist() for b in again] == whole[5:]
    assert make().fingerprint == ds.fingerprint != make(fingerprint="2").fingerprint
    assert ds.where("y == 2")["x"].tolist() == list(range(2, 100, 5))
    assert len(ds.split(a=0.5, b=0.5, stratify="y")["a"]) == 50
    weighted = hr.weighted(ds, np.arange(100) % 2)
    assert all(v % 2 for b in hr.Loader(weighted, 10) for v in b["x"].tolist())


def test_pandas() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "i": np.arange(4, dtype=np.int16),
            "f": [0.5, float("nan"), 2.0, 3.0],
            "s": ["x", None, "zz", ""],
            "c": pd.Categorical(["u", "v", None, "u"]),
            "n": pd.array([1, None, 3, 4], dtype="Int64"),
            "t": [True, False, True, True],
            "o": pd.Series([[1], [2, 3], None, []], dtype=object, index=[10, 11, 12, 13]),
        },
        index=[10, 11, 12, 13],
    )
    ds = hr.from_python(frame)
    assert ds[0] == {"i": 0, "f": 0.5, "s": "x", "c": "u", "n": 1, "t": 1, "o": [1]}
    assert set(ds[1]) == {"i", "f", "c", "t", "o"} and np.isnan(ds[1]["f"]) and set(ds[2]) == {"i", "f", "s", "n", "t"}
    assert hr.from_python(frame["i"])[2] == {"i": 2}
    matrix = pd.DataFrame(np.arange(12.0).reshape(4, 3), columns=["a", "b", "c"])
    stack = next(iter(hr.Loader(hr.from_python(matrix), 4, {"x": hr.columns(["a", "b", "c"])}, shuffle=False, output="numpy")))
    assert np.array_equal(stack["x"], np.arange(12.0).reshape(4, 3))
    with pytest.raises(hr.UsageError, match="times"):
        hr.from_python(pd.DataFrame({"d": pd.to_datetime(["2020-01-01"])}))
    with pytest.raises(hr.UsageError, match="two columns of one name"):
        hr.from_python(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_polars_and_arrow() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table(
        {
            "i": pa.array([1, None, 3], pa.int32()),
            "s": ["x", None, "zz"],
            "l": pa.array([[1, 2], None, []], pa.list_(pa.int16())),
            "v": pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float32(), 2)),
            "b": pa.array([b"\0", b"", None]),
            "d": pa.array(["p", "q", "p"]).dictionary_encode(),
        }
    )
    want_l = [[1, 2], None, []]
    frames = [table, pa.concat_tables([table.slice(0, 1), table.slice(1)])]
    polars = pytest.importorskip("polars") if _has("polars") else None
    if polars is not None:
        frames.append(polars.from_arrow(table))
        with pytest.raises(hr.UsageError, match="collect"):
            hr.from_python(polars.from_arrow(table).lazy())
    for frame in frames:
        ds = hr.from_python(frame)
        assert [ds[i].get("i") for i in range(3)] == [1, None, 3] and [ds[i].get("s") for i in range(3)] == ["x", None, "zz"]
        assert [None if "l" not in ds[i] else ds[i]["l"].tolist() for i in range(3)] == want_l
        assert [ds[i]["v"].tolist() for i in range(3)] == [[1, 2], [3, 4], [5, 6]]
        assert [ds[i].get("b") for i in range(3)] == [b"\0", b"", None] and ds[1]["d"] == "q"
    sliced = hr.from_python(table.slice(2, 1))
    assert sliced[0]["s"] == "zz" and sliced[0]["i"] == 3


def test_columns_that_arrow_would_change() -> None:
    """Values that NumPy or Arrow hold as something else: as they are, or refused."""
    pd, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    things = [{1}, {2}, None]
    ds = hr.from_python(polars.DataFrame({"o": polars.Series(things, dtype=polars.Object)}))
    assert [ds[i].get("o") for i in range(3)] == things
    ds = hr.from_python(polars.DataFrame({"a": polars.Series([[1, None], [3, 4]], dtype=polars.Array(polars.Int16, 2))}))
    assert [ds[i]["a"] for i in range(2)] == [[1, None], [3, 4]]
    ds = hr.from_python(polars.DataFrame({"e": polars.Series(["u", None, "v"], dtype=polars.Enum(["v", "u"]))}))
    assert [ds[i].get("e") for i in range(3)] == ["u", None, "v"]
    if hasattr(polars, "Int128"):
        ds = hr.from_python(polars.DataFrame({"w": polars.Series([1 << 100, 5], dtype=polars.Int128)}))
        assert [ds[i]["w"] for i in range(2)] == [1 << 100, 5]
    sparse = hr.from_python(pd.DataFrame({"s": pd.arrays.SparseArray([0.0, 0.0, 1.5])}))
    assert [sparse[i]["s"] for i in range(3)] == [0.0, 0.0, 1.5]
    with pytest.raises(hr.UsageError, match="times"):
        hr.from_python(pd.DataFrame({"p": pd.period_range("2020", "2022", freq="Y")}))
    with pytest.raises(hr.UsageError, match="which no float64 holds"):
        hr.from_python(pd.DataFrame({"o": pd.Series([2**60 + 1, 0.5], dtype=object)}))
    with pytest.raises(hr.UsageError, match="which no float64 holds"):
        hr.from_python({"o": [2**53 + 1, 0.5]})
    assert hr.from_python({"o": [2**60, 0.5]})[0]["o"] == 2.0**60
    mixed = hr.from_python(pd.DataFrame({"o": ["a", 1, 2.5, None, float("nan")]}))
    assert [mixed[i].get("o") for i in range(5)] == ["a", 1, 2.5, None, None]


def _has(name: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(name) is not None


def test_a_frame_that_names_files(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    for i in range(4):
        Image.fromarray(np.full((6, 6, 3), 40 * i, np.uint8)).save(tmp_path / f"p{i}.png")
    frame = pd.DataFrame({"path": [f"p{i}.png" for i in (2, 0, 3, 1)], "label": [2, 0, 3, 1]})
    ds = hr.from_python(frame, files="path", root=tmp_path)
    batch = next(iter(hr.Loader(ds, 4, {"x": hr.image("png").resize((4, 4)), "y": hr.scalar("label")}, shuffle=False)))
    assert batch["x"].float().mean(dim=(1, 2, 3)).tolist() == [80, 0, 120, 40] and batch["y"].tolist() == [2, 0, 3, 1]
    assert ds[1]["path"] == "p0.png" and ds.where("label > 1")[0]["label"] == 2
    with pytest.raises(hr.UsageError, match="no such column; there are path, label"):
        hr.from_python(frame, files="file")
    with pytest.raises(hr.UsageError, match="names no files"):
        hr.from_python(frame, files="label")
    frame.loc[1, "path"] = "gone.png"
    with pytest.raises(hr.StorageError, match=r"gone.png"):
        hr.from_python(frame, files="path", root=tmp_path)[1]


def test_hugging_face(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    made = datasets.Dataset.from_dict({"x": list(range(50)), "s": [f"t{i}" for i in range(50)]})
    assert hr.from_python(made).format == "memory" and hr.from_python(made)[7] == {"x": 7, "s": "t7"}
    made.save_to_disk(tmp_path / "d", num_shards=2)
    stored = datasets.load_from_disk(tmp_path / "d")
    ways = {
        "arrow": [stored, stored.shuffle(seed=1), stored.select([5, 3, 9]), stored.filter(lambda r: r["x"] > 40)],
        "python": [
            stored.rename_column("x", "z"),
            stored.with_format("numpy"),
            stored.select(range(10, 20)),
            stored.map(lambda r: r).remove_columns("s"),
        ],
    }
    with caplog.at_level(logging.WARNING, "headrace"):
        for way, sets in ways.items():
            for each in sets:
                ds = hr.from_python(each)
                assert ds.format == way and len(ds) == len(each)
                for i in (0, len(each) - 1):
                    assert ds[i] == each[i]
                seen = [v for b in hr.Loader(ds, 7, tail="keep", output="numpy") for v in b[each.column_names[0]].tolist()]
                assert sorted(seen) == sorted(each[each.column_names[0]])
    assert "__getitems__" in caplog.text
    with pytest.raises(hr.UsageError, match=r"DatasetDict.*train, test"):
        hr.from_python(datasets.DatasetDict(train=stored, test=stored))


def test_a_hugging_face_data_set_that_is_not_its_files(tmp_path: Path) -> None:
    """As many rows, the same columns, and other values: its files must not be read instead."""
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    datasets.Dataset.from_dict({"x": list(range(50)), "y": list(range(100, 150))}).save_to_disk(tmp_path / "d")
    stored = datasets.load_from_disk(tmp_path / "d")
    half = stored.select(range(25))
    in_memory = datasets.Dataset.from_dict({"x": [-1] * 25, "y": [-2] * 25})
    swapped = stored.rename_columns({"x": "y", "y": "x"}).select_columns(["x", "y"])
    added = stored.remove_columns("x").add_column("x", [7] * 50).select_columns(["x", "y"])
    strange = {
        "half": datasets.concatenate_datasets([half, in_memory]),
        "turned": datasets.concatenate_datasets([stored.select(range(25, 50)), half]),
        "swapped": swapped,
        "added": added,
        "twice": datasets.concatenate_datasets([stored, stored]),
        "picked": datasets.concatenate_datasets([half, in_memory]).select([40, 3, 24, 25]),
        "filtered": swapped.filter(lambda r: r["x"] % 3 == 0),
        "sorted": stored.sort("x", reverse=True),
        "sharded": stored.shard(3, 1),
    }
    for name, each in strange.items():
        ds = hr.from_python(each)
        assert len(ds) == len(each), name
        (batch,) = hr.Loader(ds, len(each), shuffle=False, output="numpy")
        assert batch["x"].tolist() == list(each["x"]) and batch["y"].tolist() == list(each["y"]), name


@pytest.mark.parametrize("kind", ["torch", "numpy", "none", "transform"])
def test_hugging_face_formats(tmp_path: Path, kind: str) -> None:
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_dict({"x": [[float(i)] * 3 for i in range(20)], "y": list(range(20))})
    if kind == "torch":
        made.set_format("torch")
    elif kind == "numpy":
        made.set_format("numpy", columns=["x"])
    elif kind == "transform":
        made.set_transform(lambda rows: {"x": [np.asarray(v, np.float32) * 2 for v in rows["x"]], "y": rows["y"]})
    ds = hr.from_python(made.select([3, 1, 4, 15, 9]))
    (batch,) = hr.Loader(ds, 5, shuffle=False, output="numpy")
    scale = 2 if kind == "transform" else 1
    got = np.stack([np.asarray(v) for v in batch["x"]])
    assert got[:, 0].tolist() == [scale * i for i in (3, 1, 4, 15, 9)]
    assert ("y" in batch) == (kind != "numpy") and (kind == "numpy" or batch["y"].tolist() == [3, 1, 4, 15, 9])


def test_messages_of_open_name_the_way() -> None:
    for source, words in ((np.arange(3), "from_python"), (torch.utils.data.TensorDataset(torch.arange(3)), "from_torch")):
        with pytest.raises(hr.UsageError, match=words):
            hr.open(source)
        with pytest.raises(hr.UsageError, match=words):
            hr.Loader(source, 1)
    with pytest.raises(hr.UsageError, match="from_python takes other"):
        hr.from_torch([1, 2])


LISTS = [[1, 2, 3], [], [4], [5, 6]]


@pytest.mark.parametrize("kind", ["dict", "pandas", "items", "hugging face"])
def test_lists_of_numbers_are_arrays_of_any_length(kind: str) -> None:
    source: Any
    if kind == "dict":
        source = {"ids": LISTS}
    elif kind == "pandas":
        source = pytest.importorskip("pandas").DataFrame({"ids": LISTS})
    elif kind == "items":
        source = [{"ids": ids} for ids in LISTS]
    else:
        source = pytest.importorskip("datasets").Dataset.from_dict({"ids": LISTS})
    ds = hr.from_python(source)
    (batch,) = hr.Loader(ds, 4, shuffle=False, output="numpy")
    assert [v.tolist() for v in batch["ids"]] == LISTS and all(v.dtype == np.int64 for v in batch["ids"])
    (batch,) = hr.Loader(ds, 4, {"ids": hr.tokens("ids", documents=True, max_len=2, pad_value=9)}, shuffle=False, output="numpy")
    assert batch["ids"][0].tolist() == [[1, 2], [9, 9], [4, 9], [5, 6]]
    rows = [b["ids"].tolist() for b in hr.Loader(hr.packed(ds, 4, "ids"), 1, shuffle=False)]
    assert rows == [[[1, 2, 3, 4]], [[5, 6, 0, 0]]]


@pytest.mark.parametrize(
    "values", [[[1, None], [2]], [["a"], []], [[True], [False]], [[[1], [2]], [[3]]], [[1], (2,)], [[1 << 70], [1]], [[], []]]
)
def test_other_lists_stay_as_they_are(values: list[Any]) -> None:
    for source in ({"x": values}, [{"x": v} for v in values]):
        (batch,) = hr.Loader(hr.from_python(source), 2, shuffle=False)
        assert batch["x"] == values


def test_lists_with_and_without_fractions() -> None:
    for source in ({"x": [[1], [0.5, 2]]}, [{"x": [1]}, {"x": [0.5, 2]}]):
        (batch,) = hr.Loader(hr.from_python(source), 2, shuffle=False, output="numpy")
        assert [v.tolist() for v in batch["x"]] == [[1.0], [0.5, 2.0]] and batch["x"][0].dtype == np.float64
    with pytest.raises(hr.UsageError, match="no float64 holds"):
        hr.from_python({"x": [[(1 << 60) + 1], [0.5]]})
    late = hr.from_python([{"x": [1]}] * 5 + [{"x": [0.5]}] + [{"x": [1]}] * 5)
    with pytest.raises(hr.UsageError, match=r"sample 5.*list of float.*probe"):
        list(hr.Loader(late, 11, shuffle=False))


def test_tensors_of_truth_values() -> None:
    flags = torch.tensor([[True, False], [False, True], [True, True]])
    for source in (flags, list(flags), {"0": flags}):
        (batch,) = hr.Loader(hr.from_python(source), 3, shuffle=False, output="numpy")
        assert batch["0"].dtype == np.uint8 and batch["0"].tolist() == [[1, 0], [0, 1], [1, 1]]
