# SPDX-License-Identifier: Apache-2.0
"""Whole runs whose values are delivered as they are stored: each value comes into memory of its own.  The same batches
as when samples are read by themselves, from every kind of store, over faults and for every view."""

from __future__ import annotations

import contextlib
import pathlib
import random
from collections.abc import Iterator
from typing import Any

import headrace as hr
import pytest
from headrace import _core
from servers import odd_server
from support import write_tar

COUNT = 240
FIELDS = {"data": hr.bytes("bin"), "again": hr.bytes("bin"), "label": hr.scalar("cls"), "key": hr.key()}
LITTLE = "3MiB"  # runs of 8 MB of data do not stay for the next epoch


def make_value(n: int) -> bytes:
    return random.Random(n).randbytes((n * 7919) % 60_000 + (0 if n % 11 else 40_000))


values = [make_value(n) for n in range(COUNT)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("runs")
    for shard in range(3):
        numbers = range(shard * COUNT // 3, (shard + 1) * COUNT // 3)
        write_tar(
            folder / f"{shard}.tar", [(f"{n:04d}.{e}", v) for n in numbers for e, v in (("cls", b"%d" % n), ("bin", values[n]))]
        )
    return folder


def check(source: Any, runs: bool, epochs: int = 2, shuffle: Any = "pool", fields: Any = None, **options: Any) -> list[int]:
    labels = []
    options = {"memory_budget": LITTLE, "tail": "keep", **options}
    with hr.Loader(source, 16, fields or FIELDS, shuffle=shuffle, seed=5, output="numpy", _read_runs=runs, **options) as loader:
        for epoch in range(epochs):
            for batch in loader.epoch(epoch):
                for i, n in enumerate(batch["label"].tolist()):
                    # Not compared by assert: pytest would look for the difference for minutes.
                    wrong = [name for name in ("data", "again") if bytes(batch[name][i]) != values[n]]
                    assert (n, batch["key"][i], wrong) == (n, f"{n:04d}", [])
                    labels.append(n)
    return labels


@pytest.fixture(scope="module")
def wanted(folder: pathlib.Path) -> list[int]:
    labels = check(str(folder), runs=False)
    assert sorted(labels) == sorted([*range(COUNT)] * 2)
    return labels


@contextlib.contextmanager
def place(kind: str, folder: pathlib.Path) -> Iterator[str]:
    if kind == "local":
        yield str(folder)
    elif kind == "far":
        store = _core.testing_scheme("far", str(folder), latency_ms=1)
        yield "far://{0..2}.tar"
        store.close()
    elif kind == "http":
        with odd_server(folder) as server:
            yield server.url("{0..2}.tar")
    else:
        fsspec = pytest.importorskip("fsspec")
        memory = fsspec.filesystem("memory")
        memory.put(str(folder), "/runs", recursive=True)
        yield "memory://runs/{0..2}.tar"
        memory.rm("/runs", recursive=True)


@pytest.mark.parametrize("kind", ["local", "far", "http", "fsspec"])
@pytest.mark.parametrize("around", ["", "cache", "stage"])
def test_from_every_store(
    folder: pathlib.Path, wanted: list[int], tmp_path: pathlib.Path, monkeypatch: Any, kind: str, around: str
) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "index"))
    options = {around: str(tmp_path / around)} if around else {}
    with place(kind, folder) as source:
        assert check(source, runs=True, **options) == wanted
        assert check(source, runs=True, shuffle=False, epochs=1, **options) == [*range(COUNT)]


@pytest.mark.parametrize("budget", [1, "400K", "1GiB"])
def test_within_every_budget(folder: pathlib.Path, wanted: list[int], budget: object) -> None:
    assert check(str(folder), runs=True, memory_budget=budget, threads=3) == wanted


def test_over_answers_that_break_off(folder: pathlib.Path, wanted: list[int], tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    with odd_server(folder) as server:

        def answer(handler: Any, number: int) -> bool:
            if number % 5 == 3 and handler.headers.get("Range") and handler.command == "GET":
                handler.good(cut=1000)
                return True
            return False

        server.answer = answer
        assert check(server.url("{0..2}.tar"), runs=True) == wanted


@pytest.mark.parametrize(
    "view",
    [
        lambda ds: ds[::3],
        lambda ds: ds.where("cls < 100"),
        lambda ds: ds.split(train=0.7, val=0.3)["train"],
        lambda ds: ds.repeat(2),
        lambda ds: ds + ds,
    ],
)
def test_of_every_view(folder: pathlib.Path, view: Any) -> None:
    ds = view(hr.open(str(folder)))
    assert check(ds, runs=True) == check(ds, runs=False)


def test_values_that_are_kept_stay_as_they_were(folder: pathlib.Path) -> None:
    with hr.Loader(
        str(folder), 16, FIELDS, shuffle="pool", memory_budget=LITTLE, output="numpy", tail="keep", _read_runs=True
    ) as loader:
        kept = [
            (n, data)
            for epoch in range(2)
            for b in loader.epoch(epoch)
            for n, data in zip(b["label"].tolist(), b["data"], strict=True)
        ]
    assert len(kept) == 2 * COUNT
    assert [n for n, data in kept if data != values[n]] == []
