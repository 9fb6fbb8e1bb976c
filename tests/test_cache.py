# SPDX-License-Identifier: Apache-2.0
"""``cache=``: the same batches, and the second time from the folder near by."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys

import headrace as hr
import numpy as np
import pytest
import support
from headrace import _core

TORTURE = pathlib.Path(__file__).with_name("cache_torture.py")


def small(path: pathlib.Path) -> hr.Cache:
    return hr.cache(path, keep_free=0)


def counts(loader: hr.Loader) -> dict[str, int]:
    return loader.stats()["cache"]


def fill(loader: hr.Loader) -> list[hr.Batch]:
    batches = list(loader.epoch(0))
    for source in loader._cached:
        source.wait_until_cached()
    return batches


@pytest.mark.parametrize("shuffle", [False, "global", "pool"])
def test_batches_through_a_cache_are_those_without_one(data: support.Data, tmp_path: pathlib.Path, shuffle: object) -> None:
    fields = {"image": support.crop(), "cls": hr.scalar("cls")}
    options = {"batch_size": 16, "fields": fields, "shuffle": shuffle, "output": "numpy", "seed": 3}
    plain = support.digest(hr.Loader(data.tar, **options).epoch(0))
    first = hr.Loader(data.tar, **options, cache=small(tmp_path / "c"))
    assert support.digest(fill(first)) == plain
    assert counts(first)["filled_bytes"] > 0
    second = hr.Loader(data.tar, **options, cache=small(tmp_path / "c"))
    assert support.digest(second.epoch(0)) == plain
    assert counts(second)["hits"] > 0 and counts(second)["fetched_bytes"] == counts(second)["misses"] == 0
    assert first.state_dict()["headrace"] and second._inner.fingerprint() == first._inner.fingerprint()


def test_a_state_goes_on_with_and_without_a_cache(data: support.Data, tmp_path: pathlib.Path) -> None:
    options = {"batch_size": 8, "fields": {"cls": hr.scalar("cls")}, "output": "numpy", "seed": 1}
    cached = hr.Loader(data.tar, **options, cache=tmp_path / "c")
    batches = iter(cached.epoch(0))
    begun = [next(batches), next(batches)]
    plain = hr.Loader(data.tar, **options)
    plain.load_state_dict(cached.state_dict())
    rest = list(plain.epoch(0))
    whole = list(hr.Loader(data.tar, **options).epoch(0))
    assert support.indices_of([*begun, *rest]) == support.indices_of(whole)


def test_samples_by_number_and_pickled(data: support.Data, tmp_path: pathlib.Path) -> None:
    plain = hr.open(data.tar)
    ds = hr.open(data.tar, cache=tmp_path / "c")
    again = pickle.loads(pickle.dumps(ds[2:20]))
    assert [again[i]["jpg"] for i in range(5)] == [plain[i + 2]["jpg"] for i in range(5)]
    assert _core.list_cache(str(tmp_path / "c"))
    assert ds.fingerprint == plain.fingerprint


def test_arrays_and_lists_of_files_too(tmp_path: pathlib.Path) -> None:
    values = np.arange(60_000, dtype=np.float32).reshape(100, 600)
    np.save(tmp_path / "a.npy", values)
    for _ in range(2):
        ds = hr.open(tmp_path / "a.npy", cache=small(tmp_path / "c"))
        assert np.array_equal(next(iter(ds[7].values())), values[7])
    assert ds._source.cache_counts()["hits"] > 0


def test_a_cache_that_is_too_small_serves_what_it_holds(data: support.Data, tmp_path: pathlib.Path) -> None:
    options = {"batch_size": 16, "output": "numpy", "seed": 3}
    plain = support.digest(hr.Loader(data.tar, **options).epoch(0))
    loader = hr.Loader(data.tar, **options, cache=hr.cache(tmp_path / "c", bytes="128KiB", keep_free=0))
    for _ in range(3):
        assert support.digest(loader.epoch(0)) == plain
    assert counts(loader)["not_kept"] > 0
    assert sum(row[2] for row in _core.list_cache(str(tmp_path / "c"))) <= 256 << 10


def test_a_folder_that_is_not_ours_is_refused(data: support.Data, tmp_path: pathlib.Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(hr.UsageError, match="holds other files; give a folder that is empty"):
        hr.open(data.tar, cache=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(hr.UsageError, match="is a file"):
        hr.open(data.tar, cache=tmp_path / "file")
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_bad_arguments_are_named(data: support.Data, tmp_path: pathlib.Path) -> None:
    with pytest.raises(hr.UsageError, match="cache is a folder"):
        hr.open(data.tar, cache=3)
    with pytest.raises(hr.UsageError, match="bytes is a number"):
        hr.cache(tmp_path, bytes="much")
    with pytest.raises(hr.UsageError, match="cache belongs to hr"):
        hr.Loader(hr.open(data.tar), 4, cache=tmp_path / "c")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_may_only_be_read_is_read(data: support.Data, tmp_path: pathlib.Path) -> None:
    hr.open(data.tar, cache=small(tmp_path / "c"))[0]
    os.chmod(tmp_path / "c", 0o500)
    ds = hr.open(data.tar, cache=small(tmp_path / "c"))
    assert ds[0] and ds._source.cache_counts()["filled_bytes"] == 0
    os.chmod(tmp_path / "c", 0o700)


def test_the_command_lists_verifies_and_clears(data: support.Data, tmp_path: pathlib.Path) -> None:
    fill(hr.Loader(data.tar, 16, output="numpy", cache=small(tmp_path / "c")))

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "headrace", "cache", *words], capture_output=True, text=True, timeout=60)

    listed = json.loads(run("ls", str(tmp_path / "c"), "--json").stdout)
    assert any(row["name"].endswith(".tar") and row["cached_bytes"] > 0 for row in listed)
    done = run("verify", str(tmp_path / "c"))
    assert done.returncode == 0 and "all as written" in done.stdout
    segment = max((tmp_path / "c").glob("data/*/*"), key=lambda path: path.stat().st_blocks)
    with open(segment, "r+b") as file:
        file.seek(8192 + 100)
        file.write(b"xyz")
    done = run("verify", str(tmp_path / "c"))
    assert done.returncode == 1 and "damaged, removed" in done.stdout and not segment.exists()
    assert "removed" in run("clear", str(tmp_path / "c")).stdout and not (tmp_path / "c").exists()
    assert run("ls", str(tmp_path)).returncode == 2


def torture(folder: pathlib.Path, rounds: int, processes: int, disk_kib: int = 0, seed: int = 0) -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, str(TORTURE), str(folder), *map(str, (rounds, processes, disk_kib, seed))],
        capture_output=True,
        text=True,
        timeout=1200 * support.SLOWDOWN,
    )
    if done.returncode == 77:
        pytest.skip("no file system can be mounted here")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_processes_that_are_killed_leave_no_wrong_byte(tmp_path: pathlib.Path) -> None:
    found = torture(tmp_path, 20, 4)
    assert found["killed"] > 0 and found["ended"] > 0


def test_a_disk_that_is_full_gives_no_wrong_byte(tmp_path: pathlib.Path) -> None:
    found = torture(tmp_path, 10, 4, 3000)
    assert found["ended"] > 0


@pytest.mark.slow  # test_processes_that_are_killed_leave_no_wrong_byte
@pytest.mark.timeout(1200 * support.SLOWDOWN)
@pytest.mark.parametrize(("disk_kib", "seed"), [*((0, n) for n in range(1, 5)), *((3000, n) for n in range(5, 7))])
def test_five_hundred_rounds_of_sixteen_processes_leave_no_wrong_byte(tmp_path: pathlib.Path, disk_kib: int, seed: int) -> None:
    """Of a disk with room four parts, of one that is full two; each ends in minutes."""
    found = torture(tmp_path / "disk", 85, 16, disk_kib, seed)
    assert found["killed"] > 0 and found["ended"] > 0
    shutil.rmtree(tmp_path / "disk", ignore_errors=True)
