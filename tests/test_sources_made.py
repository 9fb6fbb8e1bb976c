# SPDX-License-Identifier: Apache-2.0
"""Samples of Python objects that are made right in the batch: numbers and arrays of one size, in a thread and in processes.

Whatever else a data set returns goes another way (``test_sources_items.py``); both must give the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, Subset

pytest.importorskip("cloudpickle")

WAYS = pytest.mark.parametrize("processes", [0, 2])


class Rows(Dataset[Any]):
    """Arrays and numbers of sample i, and one sample that is different."""

    def __init__(self, n: int = 103, odd: int = -1, how: str = "") -> None:
        self.n, self.odd, self.how = n, odd, how

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        x: Any = torch.full((3, 4), float(i))
        if i == self.odd:
            if self.how == "die":
                os._exit(3)
            if self.how == "none":
                return None
            if self.how == "no value":
                return {"x": None, "i": i, "f": i / 2, "p": os.getpid()}
            if self.how == "no key":
                return {"x": x, "i": i, "p": os.getpid()}
            if self.how == "shape":
                x = torch.zeros(4, 3)
            elif self.how == "type":
                x = torch.zeros(3, 4, dtype=torch.float64)
            elif self.how == "bad":
                raise hr.BadSample("too dark")
            elif self.how == "raises":
                raise KeyError("colour")
            elif self.how == "large":
                return {"x": x, "i": 1 << 70, "f": 0.5, "p": os.getpid()}
        return {"x": x, "i": i, "f": i / 2, "p": os.getpid()}


class Many(Rows):
    def __getitems__(self, numbers: list[int]) -> list[Any]:
        return [self[i] for i in numbers]


def check(batch: Any) -> None:
    numbers = torch.from_numpy(batch.indices)
    assert torch.equal(batch["i"], numbers) and torch.equal(batch["f"], numbers / 2)
    assert torch.equal(batch["x"], numbers[:, None, None].float().expand(-1, 3, 4))


@WAYS
@pytest.mark.parametrize("made", [Rows, Many])
@pytest.mark.parametrize("batch", [1, 10, 500])
def test_every_slot_holds_its_sample(processes: int, made: Any, batch: int) -> None:
    loader = hr.Loader(hr.from_torch(made(), processes=processes), batch, seed=3, tail="keep")
    for epoch in range(2):
        batches = list(loader.epoch(epoch))
        for b in batches:
            check(b)
        assert sorted(i for b in batches for i in b.indices) == list(range(103))
    assert {int(p) == os.getpid() for b in batches for p in b["p"]} == {processes == 0}
    assert loader.stats()["python"][made.__name__]["samples"] >= 206
    # The same samples, by the other way: of another type they are read and decoded.
    fields = {"x": hr.array("x"), "i": hr.scalar("i", dtype="i32"), "f": hr.scalar("f")}
    other = list(hr.Loader(hr.from_torch(made(), processes=processes), batch, fields, seed=3, tail="keep").epoch(1))
    assert [b.indices.tolist() for b in other] == [b.indices.tolist() for b in batches]
    assert all(torch.equal(a["x"], b["x"]) and torch.equal(a["f"], b["f"]) for a, b in zip(other, batches))


@WAYS
@pytest.mark.parametrize("how", ["shape", "type", "raises", "large"])
def test_what_is_wrong_is_an_error_that_names_the_sample(processes: int, how: str) -> None:
    words = {
        "shape": r"field 'x' is float32\[4,3\] here and float32\[3,4\]",
        "type": r"field 'x' is float64\[3,4\] here",
        "raises": r"__getitem__ raised KeyError: 'colour'",
        "large": r"field 'i' is another object here and int",
    }
    loader = hr.Loader(hr.from_torch(Rows(odd=67, how=how), processes=processes), 10, bad_samples="replace")
    with pytest.raises(hr.UsageError, match=r"Rows\[67\].*" + words[how]) as e:
        list(loader)
    assert e.value.sample == 67
    if how == "raises":
        assert "in __getitem__" in str(e.value.__cause__) if processes else isinstance(e.value.__cause__, KeyError)


@WAYS
@pytest.mark.parametrize("how", ["none", "no value", "no key", "bad", "die"])
def test_a_bad_sample_follows_the_policy(processes: int, how: str) -> None:
    if how == "die" and processes == 0:
        pytest.skip("it would end this process")
    words = {
        "none": "returned None",
        "no value": "no field 'x'",
        "no key": "no field 'f'",
        "bad": "too dark",
        "die": "exit code 3",
    }
    ds = hr.from_torch(Rows(odd=67, how=how), processes=processes)
    with pytest.raises(hr.DataError, match=words[how]) as e:
        list(hr.Loader(ds, 10))
    assert e.value.sample == 67 and "Rows[67]" in str(e.value)
    loader = hr.Loader(ds, 10, bad_samples="replace", tail="keep")
    batches = list(loader)
    for b in batches:
        check(b)
    seen = [i for b in batches for i in b["i"].tolist()]
    assert len(seen) == 103 and 67 not in seen and [q["sample"] for q in loader.quarantine] == [67]
    assert words[how] in loader.quarantine[0]["cause"]


@WAYS
def test_missing_values_where_they_are_allowed(processes: int) -> None:
    ds = hr.from_torch(Rows(odd=67, how="no key"), processes=processes)
    fields = {"i": hr.scalar("i"), "f": hr.scalar("f", default=-1.0)}
    found = {int(i): float(f) for b in hr.Loader(ds, 10, fields, tail="keep") for i, f in zip(b["i"], b["f"])}
    assert len(found) == 103 and found[67] == -1.0 and found[66] == 33.0


@WAYS
def test_views_blends_ranks_and_states(processes: int) -> None:
    ds = hr.from_torch(Rows(), processes=processes)
    for b in hr.Loader(ds[10:50][::3], 4, seed=1, tail="keep"):
        assert all(int(i) == 10 + 3 * int(n) for i, n in zip(b["i"], b.indices))
    two = hr.blend({"a": (ds, 0.5), "b": (hr.from_torch(Many(50), processes=processes), 0.5)})
    seen = set()
    for b in hr.Loader(two, 20):
        check(b)
        seen |= set(b.sources.tolist())
    assert seen == {0, 1}
    mixed = hr.blend({"a": (ds, 0.5), "b": (hr.from_python({"x": np.zeros((30, 3, 4), np.float32), "i": np.arange(30)}), 0.5)})
    for b in hr.Loader(mixed, 20, {"x": hr.array("x"), "i": hr.scalar("i")}):
        assert torch.equal(b["i"], torch.from_numpy(b.indices))
    whole = [b["i"].tolist() for b in hr.Loader(ds, 10, seed=5)]
    ranks = [[b["i"].tolist() for b in hr.Loader(ds, 5, seed=5, rank=r, world_size=2)] for r in range(2)]
    assert [sorted(a + b) for a, b in zip(*ranks)] == [sorted(w) for w in whole]
    loader = hr.Loader(ds, 10, seed=5)
    batches = iter(loader)
    state = [next(batches).state for _ in range(4)][-1]
    other = hr.Loader(hr.from_torch(Rows()), 10)
    other.load_state_dict(state)
    assert [b["i"].tolist() for b in other] == whole[4:]


@WAYS
def test_loaders_of_one_data_set_are_given_up_one_by_one(processes: int) -> None:
    """What one of them lets go of in the middle must not be missing in the other."""
    ds = hr.from_torch(Rows(400), processes=processes)
    steady = iter(hr.Loader(ds, 8, seed=1))
    for _ in range(25):
        passing = hr.Loader(ds, 8, seed=2)
        next(iter(passing))
        passing.close()
        check(next(steady))
    for b in steady:
        check(b)


@WAYS
def test_a_batch_is_not_written_again_while_it_is_held(processes: int) -> None:
    loader = hr.Loader(hr.from_torch(Rows(400), processes=processes), 8)
    held = [b for e in range(3) for b in loader.epoch(e)]
    assert len(held) == 150
    for b in held:
        check(b)


def odd_values(i: int) -> Any:
    return (
        np.asfortranarray(np.arange(6.0).reshape(2, 3) + i),
        np.arange(12, dtype=np.float32)[::2] + i,
        (torch.arange(6).reshape(3, 2) + i).T,
        torch.full((2,), float(i), requires_grad=True),
        np.array([[]], np.uint8),
        np.full((2, 2), i % 2, np.bool_),
        np.int16(i),
        np.float64(i),
        bool(i % 2),
        torch.tensor(i),
        torch.full((3,), i, dtype=torch.bfloat16),
        torch._neg_view(torch.full((2,), float(i))),
        np.full(2, i, ">i4"),
    )


@WAYS
def test_values_that_do_not_lie_as_they_are_wanted(processes: int) -> None:
    class Odd(Dataset[Any]):
        def __len__(self) -> int:
            return 40

        def __getitem__(self, i: int) -> Any:
            return odd_values(i)

    for batch in hr.Loader(hr.from_torch(Odd(), processes=processes), 10):
        for k, i in enumerate(batch.indices.tolist()):
            for f, want in enumerate(odd_values(i)):
                plain = (
                    want.detach().resolve_neg() if isinstance(want, torch.Tensor) else torch.from_numpy(np.asarray(want, "=f8"))
                )
                got = batch[str(f)][k]
                assert torch.equal(got.double(), plain.double().reshape(got.shape)), (f, i)


@WAYS
def test_nested_single_and_named_samples(processes: int) -> None:
    class Nested(Rows):
        def __getitem__(self, i: int) -> Any:
            return {"image": np.full(2, i, np.int32), "target": {"box": np.full(4, i), "label": i}}

    for b in hr.Loader(hr.from_torch(Nested(), processes=processes), 10):
        assert np.array_equal(b["target.label"], b.indices) and np.array_equal(b["image"][:, 0], b.indices)

    class Single(Rows):
        def __getitem__(self, i: int) -> Any:
            return np.full(2, i, np.int32)

    for b in hr.Loader(hr.from_torch(Single(), processes=processes), 10, output="numpy"):
        assert np.array_equal(b["0"][:, 1], b.indices)
    for b in hr.Loader(hr.from_torch(Subset(Rows(), range(50, 90)), processes=processes), 10, {"i": hr.scalar("i")}):
        assert np.array_equal(b["i"], b.indices + 50)


def test_one_thread_makes_all_of_them() -> None:
    threads, inside = set(), []

    class Shy(Rows):
        def __getitem__(self, i: int) -> Any:
            assert not inside, "two threads at once"
            inside.append(i)
            threads.add(threading.get_ident())
            inside.pop()
            return np.full(3, i)

    ds = hr.from_torch(Shy(200))
    for batches in zip(*(hr.Loader(ds, 7, threads=4, seed=s) for s in range(3))):
        assert all(np.array_equal(b["0"][:, 0], b.indices) for b in batches)
    assert len(threads) == 1 and threading.get_ident() not in threads


@WAYS
def test_ends_in_the_middle_leave_nothing_behind(processes: int, tmp_path: Path) -> None:
    (tmp_path / "slow_rows.py").write_text(
        "import time, numpy as np\n"
        "class Slow:\n"
        "    def __len__(self): return 10_000\n"
        "    def __getitem__(self, i):\n"
        "        time.sleep(0.001)\n"
        "        return np.full(100, i)\n"
    )
    code = f"""
import headrace as hr, slow_rows
ds = hr.from_python(slow_rows.Slow(), processes={processes})
loader = hr.Loader(ds, 8)
for epoch in range(3):
    for batch in loader.epoch(epoch): break
it = iter(hr.Loader(ds, 8)); next(it)
print("end", flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": str(tmp_path)}
    )
    assert done.returncode == 0 and done.stdout == "end\n", done.stderr
