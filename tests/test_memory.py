# SPDX-License-Identifier: Apache-2.0
"""Memory: flat over epochs, within its budget, a little beside the batches."""

from __future__ import annotations

import gc
import json

import headrace as hr
import pytest
from support import COUNT, Data, crop, resident_bytes, run_python

MIB = 1 << 20
pytestmark = pytest.mark.alone


def test_memory_is_flat_over_twenty_epochs(data: Data) -> None:
    fields = {
        "image": crop(64),
        "label": hr.scalar("cls"),
        "text": hr.text("txt"),
        "all": hr.image("jpg").padded(),
        "raw": hr.bytes("jpg"),
    }
    with hr.Loader(data.tar, 8, fields, output="numpy", tail="keep") as loader:
        sizes = []
        for epoch in range(20):
            for _ in loader.epoch(epoch):
                pass
            sizes.append(resident_bytes())
    assert max(sizes[5:]) - sizes[4] < 8 * MIB


def test_memory_is_flat_over_two_hundred_loaders(data: Data) -> None:
    def use() -> None:
        with hr.Loader(data.tar, 8, {"image": crop(96)}, output="numpy") as loader:
            next(iter(loader))

    for _ in range(40):
        use()
    gc.collect()
    before = resident_bytes()
    for _ in range(160):
        use()
    gc.collect()
    assert resident_bytes() - before < 8 * MIB


def test_memory_is_flat_over_samples_by_number(data: Data) -> None:
    ds = hr.open(data.tar, {"image": crop(96), "raw": hr.bytes("jpg")})
    for i in range(COUNT):
        ds[i]
    before = resident_bytes()
    for _ in range(10):
        for i in range(COUNT):
            ds[i]
    assert resident_bytes() - before < 4 * MIB


def test_memory_is_flat_when_epochs_are_left_early(data: Data) -> None:
    with hr.Loader(data.tar, 4, {"image": crop(96)}, output="numpy") as loader:
        for epoch in range(30):
            next(loader.epoch(epoch))
        before = resident_bytes()
        for epoch in range(150):
            next(loader.epoch(epoch))
        assert resident_bytes() - before < 8 * MIB


def test_memory_is_flat_when_states_are_loaded(data: Data) -> None:
    with hr.Loader(data.tar, 4, {"image": crop(32)}, output="numpy") as loader:
        state = loader.state_dict()

        def again(seed: int) -> None:
            loader.load_state_dict({**state, "seed": seed})
            next(iter(loader))

        for seed in range(30):
            again(seed)
        before = resident_bytes()
        for seed in range(150):
            again(seed)
        assert resident_bytes() - before < 8 * MIB


@pytest.mark.parametrize("budget", ["256K", "1MiB", "16MiB"])
def test_the_budget_holds(data: Data, budget: str) -> None:
    """64 KiB a batch: each of these has room for the batch at the head and what it reads."""
    with hr.Loader(
        data.tar, 4, {"image": hr.image("jpg").resize((74, 74))}, memory_budget=budget, output="numpy", tail="keep"
    ) as loader:
        for epoch in range(3):
            for _ in loader.epoch(epoch):
                pass
        stats = loader.stats()
    assert 0 < stats["memory_peak"] <= stats["memory_budget"]


def test_delivered_batches_leave_the_budget(data: Data) -> None:
    with hr.Loader(data.tar, 4, {"image": hr.image("jpg").resize((74, 74))}, memory_budget="256K", output="numpy") as loader:
        kept = [b["image"] for e in range(3) for b in loader.epoch(e)]
    assert sum(a.nbytes for a in kept) > MIB


def test_beside_its_batches_a_loader_needs_little(data: Data) -> None:
    """Under 100 MB for local data; measured without torch."""
    code = """
import sys, json, headrace as hr
sys.path.insert(0, sys.argv[2])
from support import resident_bytes
before = resident_bytes()
field = hr.image("jpg").random_resized_crop(224).normalize(hr.IMAGENET)
with hr.Loader(sys.argv[1], 16, {"image": field}, output="numpy") as loader:
    for e in range(4):
        for b in loader.epoch(e): size = b["image"].nbytes
    print(json.dumps([resident_bytes() - before, size * (loader.stats()["batches_ahead"] + 2)]))
"""
    run = run_python(code, data.tar, __file__.rsplit("/", 1)[0])
    assert run.returncode == 0, run.stderr
    grown, batches = json.loads(run.stdout)
    assert grown < batches + 100 * MIB
