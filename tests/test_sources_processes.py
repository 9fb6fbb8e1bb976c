# SPDX-License-Identifier: Apache-2.0
"""``hr.from_torch(dataset, processes=n)``: samples that other processes make."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
import pytest
import torch

pytest.importorskip("cloudpickle")


class Numbers(torch.utils.data.Dataset[Any]):
    def __init__(self, n: int = 200, bad: int = -1, how: str = "") -> None:
        self.n, self.bad, self.how = n, bad, how

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        if i == self.bad:
            if self.how == "die":
                os._exit(3)
            raise hr.BadSample("too dark") if self.how == "bad" else KeyError("colour")
        return {"x": torch.full((4, 5), float(i)), "i": i, "s": f"n{i}", "o": {i}, "l": [i], "pid": os.getpid()}


class Many(Numbers):
    def __getitems__(self, numbers: list[int]) -> list[Any]:
        return [self[i] for i in numbers]


@pytest.mark.parametrize("made", [Numbers, Many])
def test_the_samples_are_the_same_in_the_same_order(made: Any) -> None:
    here = [(b.indices.tolist(), b["x"]) for b in hr.Loader(hr.from_torch(Numbers()), 20, seed=4)]
    ds = hr.from_torch(made(), processes=2, fingerprint=None)
    there = list(hr.Loader(ds, 20, seed=4))
    assert [b.indices.tolist() for b in there] == [numbers for numbers, _ in here]
    assert all(torch.equal(b["x"], x) for b, (_, x) in zip(there, here))
    assert all(b["s"] == [f"n{i}" for i in b.indices] and b["o"] == [{i} for i in b.indices] for b in there)
    assert all([v.tolist() for v in b["l"]] == [[i] for i in b.indices] for b in there)
    pids = {int(p) for b in there for p in b["pid"]}
    assert os.getpid() not in pids and 1 <= len(pids) <= 2
    assert ds[7]["i"] == 7 and len(ds[::2]) == 100


def test_what_fails_there_is_named_here() -> None:
    loader = hr.Loader(hr.from_torch(Numbers(bad=67), processes=1), 20)
    with pytest.raises(hr.UsageError, match=r"Numbers\[67\].*raised KeyError: 'colour'") as e:
        list(loader)
    assert e.value.sample == 67 and "in __getitem__" in str(e.value.__cause__)
    loader = hr.Loader(hr.from_torch(Numbers(bad=67, how="bad"), processes=1), 20, bad_samples="replace")
    assert sum(len(b["i"]) for b in loader) == 200 and [q["sample"] for q in loader.quarantine] == [67]


def test_a_sample_that_ends_its_process_is_bad() -> None:
    loader = hr.Loader(hr.from_torch(Numbers(80, bad=33, how="die"), processes=1), 20, bad_samples="replace")
    seen = [i for b in loader for i in b["i"].tolist()]
    assert len(seen) == 80 and 33 not in seen and [q["sample"] for q in loader.quarantine] == [33]


def test_a_state_of_one_way_goes_on_in_the_other() -> None:
    loader = hr.Loader(hr.from_torch(Numbers(), processes=1), 20, seed=9)
    batches = iter(loader)
    state = [next(batches).state for _ in range(3)][-1]
    rest = [b.indices.tolist() for b in batches]
    other = hr.Loader(hr.from_torch(Numbers()), 20)
    other.load_state_dict(state)
    assert [b.indices.tolist() for b in other] == rest


def test_processes_end_with_their_loader() -> None:
    ds = hr.from_torch(Numbers(), processes=1)
    pid = int(next(iter(hr.Loader(ds, 10)))["pid"][0])
    del ds
    stat = Path(f"/proc/{pid}/stat")
    for _ in range(100):
        if not stat.exists() or " Z " in stat.read_text():
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} is still there")


def test_arrays_in_place_of_samples() -> None:
    with pytest.raises(hr.UsageError, match="processes"):
        hr.from_python(np.arange(3), processes=2)


class Varying(torch.utils.data.Dataset[Any]):
    """Samples of very different sizes, so that some calls have more than they were given room for."""

    def __len__(self) -> int:
        return 120

    def __getitem__(self, i: int) -> Any:
        return {"x": np.arange((i * 997) % 5000, dtype=np.float32), "i": i, "text": "x" * (i * i % 3000)}


def test_samples_of_all_sizes_come_over() -> None:
    fields = {"x": hr.array("x").list(), "i": hr.scalar("i"), "text": hr.text("text")}
    loader = hr.Loader(hr.from_torch(Varying(), processes=2, probe=120), 30, fields, seed=2)
    for _ in range(2):
        for batch in loader:
            for i, x, text in zip(batch["i"].tolist(), batch["x"], batch["text"]):
                assert x.shape == ((i * 997) % 5000,) and bool((x == torch.arange(len(x))).all()) and len(text) == i * i % 3000


class Slow(Numbers):
    def __getitem__(self, i: int) -> Any:
        end = time.perf_counter() + 1e-3
        while time.perf_counter() < end:
            pass
        return super().__getitem__(i)


class Unpicklable(Slow):
    def __reduce__(self) -> Any:
        raise TypeError("it holds a connection")


@pytest.mark.parametrize("cpus", [1, 2])
def test_auto_takes_processes_where_samples_are_worth_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, say_again: None, cpus: int
) -> None:
    monkeypatch.setattr("headrace._core.usable_cpus", lambda: cpus)

    def makers(dataset: Any) -> set[int]:
        return {int(p) for b in hr.Loader(hr.from_torch(dataset, processes="auto"), 20) for p in b["pid"]}

    assert (os.getpid() in makers(Slow(60))) == (cpus == 1)
    monkeypatch.setattr("headrace.sources.choosing.WORTH_US", 1e9)
    assert makers(Numbers(60)) == {os.getpid()}  # a process saves nothing
    monkeypatch.setattr("headrace.sources.choosing.WORTH_US", 4.0)
    assert makers(Unpicklable(60)) == {os.getpid()}
    if cpus == 2:
        assert "one thread makes them, because" in caplog.text and "it holds a connection" in caplog.text
    monkeypatch.setattr("headrace.sources.choosing.MOST_BYTES", 10)
    assert makers(Slow(60)) == {os.getpid()}
    with pytest.raises(hr.UsageError, match="processes is a whole number"):
        hr.from_torch(Numbers(), processes="many")
