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
        return {"x": torch.full((4, 5), float(i)), "i": i, "s": f"n{i}", "o": [i], "pid": os.getpid()}


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
    assert all(b["s"] == [f"n{i}" for i in b.indices] and b["o"] == [[i] for i in b.indices] for b in there)
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
