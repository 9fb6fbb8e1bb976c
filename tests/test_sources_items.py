# SPDX-License-Identifier: Apache-2.0
"""Objects with ``__getitem__`` as data sets: whatever strangers' data sets return."""

from __future__ import annotations

import collections
import dataclasses
import pickle
import random
import sqlite3
import subprocess
import sys
import threading
import time
import traceback

import headrace as hr
import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset


class Made(Dataset):
    """Samples that a function makes."""

    def __init__(self, make, n=20):
        self.make, self.n = make, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.make(i)


def test_tuples_are_fields_by_number_and_batches_equal_collate():
    data = Made(lambda i: (torch.full((2, 3), float(i)), i, f"n{i}", b"b%d" % i), 64)
    ds = hr.from_torch(data)
    assert [name for name, _ in ds.schema] == ["0", "1", "2", "3"]
    assert len(ds) == 64 and ds[5]["2"] == "n5" and ds[-1]["1"] == 63
    seen = []
    for batch in hr.Loader(ds, 16, seed=3):
        want = torch.utils.data.default_collate([data[i] for i in batch.indices])
        assert torch.equal(batch["0"], want[0]) and batch["0"].dtype == want[0].dtype
        assert torch.equal(batch["1"], want[1]) and list(batch["2"]) == list(want[2]) and list(batch["3"]) == list(want[3])
        seen += batch.indices.tolist()
    assert sorted(seen) == list(range(64))


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=np.int16).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12, dtype=np.float32)[::2],
        np.arange(4, dtype=">i4"),
        torch.arange(6).reshape(3, 2).T,
        torch.ones(3, dtype=torch.float16),
        torch.tensor([1.5, 2.5], requires_grad=True),
        np.array([[]], dtype=np.uint8),
        np.ones((2, 2), dtype=np.bool_),
        np.float32(1.25),
        torch.tensor(2.5),
        np.array(7, np.uint8),
        np.uint64(2**63 + 1),
        True,
        2**40,
        1.5,
        "ä\0ü",
        b"\0\xff",
        "",
    ],
    ids=lambda v: f"{type(v).__name__}-{getattr(v, 'dtype', '')}",
)
def test_values_come_as_they_are(value):
    ds = hr.from_python([value] * 4)
    got = ds[2]["0"]
    want = value.detach().numpy() if isinstance(value, torch.Tensor) else value
    if isinstance(want, (str, bytes)):
        assert got == want and type(got) is type(want)
    else:
        assert np.array_equal(got, want)
    (batch,) = hr.Loader(ds, 4, output="numpy")
    if isinstance(want, np.ndarray) and want.ndim:
        assert batch["0"].shape == (4, *want.shape) and np.array_equal(batch["0"][1], want)
        assert batch["0"].dtype == (np.uint8 if want.dtype == np.bool_ else want.dtype.newbyteorder("="))
    elif isinstance(want, np.floating):
        assert batch["0"].dtype == want.dtype


def test_bfloat16_stays_bfloat16():
    value = torch.randn(5).to(torch.bfloat16)
    (batch,) = hr.Loader(hr.from_python([value] * 3), 3)
    assert batch["0"].dtype == torch.bfloat16 and torch.equal(batch["0"][2], value)


def test_dicts_nested_dicts_named_tuples_and_data_classes():
    @dataclasses.dataclass
    class Sample:
        x: np.ndarray
        y: int

    pair = collections.namedtuple("pair", "left right")
    nested = hr.from_python([{"image": np.zeros(2), "target": {"boxes": np.ones((1, 4)), "label": i}} for i in range(4)])
    assert [n for n, _ in nested.schema] == ["image", "target.boxes", "target.label"] and nested[3]["target.label"] == 3
    named = hr.from_python([pair(i, str(i)) for i in range(4)])
    assert named[2] == {"left": 2, "right": "2"}
    ds = hr.from_python([Sample(np.full(2, i), i) for i in range(4)])
    assert ds[1]["y"] == 1 and list(ds[1]["x"]) == [1, 1]
    detection = hr.from_python([(np.zeros(3), {"boxes": np.zeros((2, 4)), "label": 1})] * 3)
    assert [n for n, _ in detection.schema] == ["0", "1.boxes", "1.label"]


def test_missing_keys_and_none_are_missing_values():
    ds = hr.from_python([{"a": 1, "b": "x"}, {"a": 2}, {"a": 3, "b": None}, {"a": 4, "b": "y"}])
    assert ds[1] == {"a": 2} and ds[2] == {"a": 3}
    (batch,) = hr.Loader(ds, 4, shuffle=False)
    assert batch["b"] == ["x", None, None, "y"]
    fields = {"a": hr.scalar("a"), "b": hr.text("b", default="?")}
    (batch,) = hr.Loader(ds, 4, fields, shuffle=False)
    assert batch["b"] == ["x", "?", "?", "y"]
    with pytest.raises(hr.DataError, match="no field 'b'"):
        list(hr.Loader(ds, 4, {"b": hr.text("b")}))


def test_a_sample_that_is_none_is_bad_and_can_be_replaced():
    data = Made(lambda i: None if i == 7 else (np.full(2, i), i))
    ds = hr.from_torch(data)
    with pytest.raises(hr.DataError, match=r"Made.7..*returned None") as e:
        list(hr.Loader(ds, 5))
    assert e.value.sample == 7
    loader = hr.Loader(ds, 5, bad_samples="replace")
    seen = [i for batch in loader for i in batch["1"].tolist()]
    assert len(seen) == 20 and 7 not in seen
    assert [q["sample"] for q in loader.quarantine] == [7]


def test_shapes_that_differ():
    ds = hr.from_python([np.zeros((i % 3 + 1, 2), np.float32) + i for i in range(9)])
    assert [ds[i]["0"].shape for i in range(3)] == [(1, 2), (2, 2), (3, 2)]
    (batch,) = hr.Loader(ds, 9, shuffle=False)
    assert [v.shape for v in batch["0"]] == [(i % 3 + 1, 2) for i in range(9)]
    values, sizes = next(iter(hr.Loader(ds, 9, {"0": hr.array("0").padded()}, shuffle=False)))["0"]
    assert values.shape == (9, 3, 2) and sizes[2].tolist() == [3, 2]
    # Only the last but one differs: not among those that are looked at first.
    late = [np.zeros(2) for _ in range(100)]
    late[98] = np.zeros(3)
    with pytest.raises(hr.UsageError, match=r"late|list.98.*float64\[3\].*probe="):
        list(hr.Loader(hr.from_python(late), 10))
    assert hr.from_python(late, probe=100)[98]["0"].shape == (3,)


def test_types_that_change_are_refused_with_the_number_of_the_sample():
    data = [1] * 50
    data[40] = "text"
    with pytest.raises(hr.UsageError, match=r"list\[40\].*is str here and int") as e:
        list(hr.Loader(hr.from_python(data), 10))
    assert e.value.sample == 40
    assert hr.from_python([1, 2.5, 3])[0]["0"] == 1.0
    keys = [{"a": 1}] * 50
    keys[30] = {"a": 1, "new": 2}
    with pytest.raises(hr.UsageError, match=r"'new'.*probe="):
        list(hr.Loader(hr.from_python(keys), 10))
    parts = [(1, 2)] * 50
    parts[30] = (1, 2, 3)
    with pytest.raises(hr.UsageError, match="3 parts"):
        list(hr.Loader(hr.from_python(parts), 10))


def test_other_objects_come_as_lists():
    ds = hr.from_python([{"meta": {"k", i}, "boxes": [[1, 2], [3]], "x": i} for i in range(6)])
    assert ds[2]["meta"] == {"k", 2} and ds[2]["boxes"] == [[1, 2], [3]]
    batch = next(iter(hr.Loader(ds, 3, shuffle=False)))
    assert batch["meta"] == [{"k", 0}, {"k", 1}, {"k", 2}]
    batch = next(iter(hr.Loader(ds[::2].rename({"m": "meta"}), 3, {"m": hr.bytes("m")}, shuffle=False)))
    assert batch["m"] == [{"k", 0}, {"k", 2}, {"k", 4}]
    joined = hr.join(a=ds, b=ds)
    assert joined[1]["a.meta"] == {"k", 1}
    with pytest.raises(hr.UsageError, match="cannot be pickled"):
        hr.from_python([{"f": threading.Lock()}] * 3)[0]


def test_pictures_of_pillow():
    pictures = [Image.fromarray(np.full((8, 6, 3), i, np.uint8)) for i in range(4)]
    ds = hr.from_python([(p, i) for i, p in enumerate(pictures)])
    assert ds[2]["0"].shape == (8, 6, 3) and ds[2]["0"].max() == 2
    batch = next(iter(hr.Loader(ds, 4, {"image": hr.image("0").resize((4, 4)), "y": hr.scalar("1")}, shuffle=False)))
    assert batch["image"].shape[0] == 4 and batch["image"].float().mean(dim=(1, 2, 3)).tolist() == [0, 1, 2, 3]
    mixed = hr.from_python([Image.new(m, (5, 4)) for m in ("RGB", "L", "P", "RGBA", "1")], probe=5)
    assert [mixed[i]["0"].shape for i in range(5)] == [(4, 5, 3), (4, 5), (4, 5, 3), (4, 5, 4), (4, 5)]


def test_errors_keep_their_traceback_and_name_the_sample():
    def make(i):
        if i == 9:
            raise KeyError("colour")
        return i

    with pytest.raises(hr.UsageError, match=r"Made\[9\].*Made.__getitem__ raised KeyError: 'colour'") as e:
        list(hr.Loader(hr.from_torch(Made(make)), 4))
    assert isinstance(e.value.__cause__, KeyError) and e.value.sample == 9
    assert "in make" in "".join(traceback.format_exception(e.value))

    def bad(i):
        if i == 9:
            raise hr.BadSample("too dark")
        return i

    loader = hr.Loader(hr.from_torch(Made(bad)), 4, bad_samples=3)
    assert sum(len(b.indices) for b in loader) == 20 and "too dark" in loader.quarantine[0]["cause"]
    with pytest.raises(hr.UsageError, match=r"__getitem__\(0\) raised ZeroDivisionError"):
        hr.from_torch(Made(lambda i: 1 // i))


def test_one_thread_calls_always_the_same():
    threads, inside = set(), []

    class Shy:
        def __len__(self):
            return 200

        def __getitem__(self, i):
            assert not inside, "two threads at once"
            inside.append(i)
            threads.add(threading.get_ident())
            inside.pop()
            return i

    ds = hr.from_python(Shy())
    loaders = [hr.Loader(ds, 7, threads=4, seed=s) for s in range(3)]
    for _ in zip(*loaders):
        ds[3]
    assert len(threads) == 1 and threading.get_ident() not in threads


def test_a_data_base_that_is_opened_when_first_asked_for(tmp_path):
    path = str(tmp_path / "x.db")
    with sqlite3.connect(path) as made:
        made.execute("create table t (i integer, s text)")
        made.executemany("insert into t values (?, ?)", [(i, f"s{i}") for i in range(30)])

    class Base:
        def __init__(self, connection=None):
            self.connection = connection

        def __len__(self):
            return 30

        def __getitem__(self, i):
            if self.connection is None:
                self.connection = sqlite3.connect(path)
            return self.connection.execute("select s from t where i = ?", (i,)).fetchone()[0]

    ds = hr.from_python(Base())
    assert ds[4]["0"] == "s4" and sum(len(b["0"]) for b in hr.Loader(ds, 7, tail="keep")) == 30
    with pytest.raises(hr.UsageError, match="ProgrammingError"):
        hr.from_python(Base(sqlite3.connect(path)))[3]
    assert hr.from_python(Base(sqlite3.connect(path, check_same_thread=False)))[3]["0"] == "s3"


def test_an_open_h5py_file(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = np.arange(300).reshape(100, 3)

    class File:
        def __init__(self):
            self.file = h5py.File(tmp_path / "x.h5")

        def __len__(self):
            return 100

        def __getitem__(self, i):
            return self.file["x"][i]

    for batch in hr.Loader(hr.from_python(File()), 10, threads=4):
        assert np.array_equal(batch["0"][:, 0], batch.indices * 3)


def test_getitems_is_called_with_many_and_a_bad_one_is_found_alone():
    calls = []

    class Many:
        def __len__(self):
            return 100

        def __getitem__(self, i):
            return i

        def __getitems__(self, numbers):
            calls.append(len(numbers))
            if 66 in numbers:
                raise hr.BadSample("66 is bad")
            return [n * 2 for n in numbers]

    loader = hr.Loader(hr.from_python(Many()), 50, bad_samples="replace", threads=1)
    seen = [v for b in loader for v in b["0"].tolist()]
    assert len(seen) == 100 and 132 not in seen and max(calls) > 1


def test_subset_concat_and_tensor_data_sets():
    made = Made(lambda i: (np.full(2, i), i), 10)
    ds = hr.from_torch(ConcatDataset([Subset(made, [3, 1]), made]))
    assert len(ds) == 12 and [ds[i]["1"] for i in range(3)] == [3, 1, 0]
    tensors = TensorDataset(torch.arange(12).reshape(6, 2), torch.arange(6))
    assert hr.from_torch(tensors).format == "memory"
    part = hr.from_torch(Subset(Subset(tensors, [5, 4, 3]), [2, 0]))
    assert part.format == "memory" and [part[i]["1"] for i in range(2)] == [3, 5]
    train, test = torch.utils.data.random_split(made, [7, 3], torch.Generator().manual_seed(0))
    assert len(hr.from_torch(train)) == 7 and hr.from_torch(test)[0]["1"] == test[0][1]


def test_views_splits_columns_blends_joins_and_statistics():
    ds = hr.from_torch(Made(lambda i: {"x": np.full(2, i, np.float32), "y": i % 4, "s": f"k{i}"}, 40))
    assert [ds[5:9][i]["y"] for i in range(4)] == [1, 2, 3, 0]
    assert list(ds["y"])[:5] == [0, 1, 2, 3, 0] and ds["s"][3] == "k3"
    assert len(ds.where("y < 2")) == 20
    parts = ds.split(train=0.8, val=0.2, stratify="y")
    assert np.bincount(parts["train"]["y"]).tolist() == [8] * 4 and len(parts["val"]) == 8
    two = hr.blend({"a": (ds, 0.5), "b": (hr.from_torch(Made(lambda i: {"x": np.zeros(2, np.float32), "y": 9, "s": ""})), 0.5)})
    batch = next(iter(hr.Loader(two, 10)))
    assert (np.asarray(batch["y"] == 9) == (batch.sources == 1)).all()
    assert len(ds + ds) == 80
    side = hr.join(a=ds, b=hr.from_python({"z": np.arange(40)}))
    assert side[7]["z"] == 7 and side[7]["y"] == 3


def test_packing_and_reading_again(tmp_path):
    ds = hr.from_torch(Made(lambda i: {"x": np.full(3, i, np.float32), "y": i, "s": f"t{i}"}, 25))
    hr.pack(ds, tmp_path / "out", to="parquet", keep_order=True)
    again = hr.open(tmp_path / "out")
    assert len(again) == 25 and again[7]["y"] == 7 and again[7]["s"] == "t7" and list(again[7]["x"]) == [7, 7, 7]


def test_what_cannot_be_packed_or_staged(tmp_path):
    ds = hr.from_python([{"o": {1}, "a": 1}] * 4)
    with pytest.raises(hr.UsageError, match="'o' holds Python objects"):
        hr.pack(ds, tmp_path / "out", to="tar")
    with pytest.raises(hr.Unsupported, match="no files"):
        hr.Loader(ds, 2, stage=tmp_path / "near")


def test_statistics_and_functions_that_choose():
    ds = hr.from_torch(Made(lambda i: (np.full((4, 4, 3), 10 * i, np.uint8), i), 20))
    assert np.allclose(hr.stats(ds, {"x": hr.image("0")})["x"]["mean"], np.mean([10 * i for i in range(20)]) / 255)
    assert [ds.where(lambda s: s["1"] % 7 == 3, fields=["1"])[i]["1"] for i in range(3)] == [3, 10, 17]


def test_the_verdict_blames_the_object():
    def slow(i):
        end = time.perf_counter() + 0.001
        while time.perf_counter() < end:
            pass
        return i

    loader = hr.Loader(hr.from_torch(Made(slow, 200)), 20)
    assert sum(len(b.indices) for b in loader) == 200
    assert loader.stats()["python"]["Made"]["samples"] >= 200
    verdict = loader.verdict()
    assert verdict.cause == "python" and "Made.__getitem__" in verdict and "processes=" in verdict.advice


def test_order_resume_and_ranks_are_those_of_every_data_set():
    ds = hr.from_torch(Made(lambda i: i, 103))
    whole = [b["0"].tolist() for b in hr.Loader(ds, 10, seed=5)]
    ranks = [[b["0"].tolist() for b in hr.Loader(ds, 5, seed=5, rank=r, world_size=2)] for r in range(2)]
    assert [sorted(a + b) for a, b in zip(*ranks)] == [sorted(w) for w in whole]
    loader = hr.Loader(ds, 10, seed=5)
    batches = iter(loader)
    for _ in range(4):
        next(batches)
    state = loader.state_dict()
    other = hr.Loader(hr.from_torch(Made(lambda i: i, 103)), 10)
    other.load_state_dict(state)
    assert [b["0"].tolist() for b in other] == whole[4:]
    for wrong in (Made(lambda i: i, 104), type("Other", (Made,), {})(lambda i: i, 103)):
        with pytest.raises(hr.UsageError, match="fingerprint"):
            hr.Loader(hr.from_torch(wrong), 10).load_state_dict(state)
    with pytest.raises(hr.UsageError, match="fingerprint"):
        hr.Loader(hr.from_torch(Made(lambda i: i, 103), fingerprint="v2"), 10).load_state_dict(state)


class Squares:
    def __len__(self):
        return 12

    def __getitem__(self, i):
        if not 0 <= i < 12:
            raise IndexError(i)
        return {"n": i, "sq": i * i}


def test_pickled_and_under_dataloader():
    ds = hr.from_python(Squares())[::2]
    again = pickle.loads(pickle.dumps(ds))
    assert len(again) == 6 and again[2] == {"n": 4, "sq": 16} and again.fingerprint == ds.fingerprint
    for workers in (0, 1):
        loader = torch.utils.data.DataLoader(ds, batch_size=3, num_workers=workers)
        assert torch.cat([b["sq"] for b in loader]).tolist() == [0, 4, 16, 36, 64, 100]


def test_a_sample_made_of_other_samples():
    inner = hr.from_python(Squares())

    class Pairs:
        def __len__(self):
            return 6

        def __getitem__(self, i):
            return inner[i]["sq"] + inner[i + 6]["sq"]

    assert sorted(v for b in hr.Loader(hr.from_python(Pairs()), 3) for v in b["0"].tolist()) == sorted(
        i * i + (i + 6) ** 2 for i in range(6)
    )


def test_transforms_that_draw_are_read_and_fields_follow():
    data = Made(lambda i: (random.random(), np.random.rand(8, 8, 3).astype(np.float32)), 16)
    assert sum(len(b.indices) for b in hr.Loader(hr.from_torch(data), 4)) == 16
    images = hr.from_torch(Made(lambda i: (np.full((10, 10, 3), i, np.uint8), i), 16))
    batch = next(iter(hr.Loader(images, 4, {"x": hr.image("0").random_crop(6).random_flip(), "y": hr.scalar("1")})))
    assert batch["x"].shape[0] == 4 and (batch["x"].float().mean(dim=(1, 2, 3)) == batch["y"]).all()


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        ([], "no sample"),
        (Made(lambda i: (), 3), "empty"),
        (5, "no data set"),
        ("train.tar", "hr.open reads it"),
        ([{"a;b": 1}], "a;b"),
        (Made(lambda i: i, 0), "no sample"),
    ],
)
def test_what_is_no_data_set(obj, words):
    with pytest.raises(hr.UsageError, match=words):
        hr.from_python(obj)


def test_classes_of_torchvision_like_data_sets():
    data = Made(lambda i: (np.zeros(2), i % 2), 4)
    data.classes = ["cat", "dog"]
    assert hr.from_torch(data).classes == ["cat", "dog"]


def test_early_ends_leave_nothing_behind():
    """Ends in the middle: of an epoch, of a loader, of the interpreter."""
    code = """
import headrace as hr, numpy as np, time
class Slow:
    def __len__(self): return 10_000
    def __getitem__(self, i):
        time.sleep(0.001)
        return np.zeros(100)
ds = hr.from_python(Slow())
loader = hr.Loader(ds, 8)
for epoch in range(3):
    for batch in loader.epoch(epoch): break
it = iter(hr.Loader(ds, 8)); next(it)
print("end", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "end\n", done.stderr
