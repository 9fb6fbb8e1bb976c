# SPDX-License-Identifier: Apache-2.0
"""hr.pack: a folder becomes shards that headrace, webdataset and tarfile read; again and after a kill the same bytes."""

from __future__ import annotations

import hashlib
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
from typing import Any

import headrace as hr
import pytest
import webdataset
from support import COUNT, Data, crop, digest


def shards_of(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(folder.glob("*.tar"))


def bytes_of(folder: pathlib.Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in shards_of(folder)}


def test_packed_in_order_it_is_the_same_data_set(data: Data, tmp_path: pathlib.Path) -> None:
    result = hr.pack(data.folder, tmp_path / "out", shards=4, keep_order=True)
    ds = hr.open(tmp_path / "out")
    assert (result["samples"], result["shards"], len(ds)) == (COUNT, 4, COUNT)
    assert [(ds.key(i), ds[i]["jpg"], ds[i]["cls"]) for i in range(COUNT)] == [(s.key, s.jpeg, s.label) for s in data.samples]


@pytest.mark.parametrize("shuffle", [False, "global"])
def test_packed_in_order_it_gives_the_same_batches(data: Data, tmp_path: pathlib.Path, shuffle: object) -> None:
    hr.pack(data.folder, tmp_path / "out", shards=3, keep_order=True)
    digests = set()
    for source in (data.folder, tmp_path / "out"):
        with hr.Loader(
            source, 8, {"image": crop(), "label": hr.scalar("cls")}, shuffle=shuffle, seed=3, output="numpy"
        ) as loader:
            digests.add(digest(loader.epoch(1)))
    assert len(digests) == 1


def test_packed_at_random_it_has_every_sample_exactly_once(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(data.folder, tmp_path / "out", shards=4, seed=7)
    ds = hr.open(tmp_path / "out")
    packed = {ds.key(i): (ds[i]["jpg"], ds[i]["cls"]) for i in range(len(ds))}
    assert packed == {s.key: (s.jpeg, s.label) for s in data.samples}
    assert [ds.key(i) for i in range(COUNT)] != [s.key for s in data.samples]


def test_every_shard_is_a_part_like_the_whole(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(data.folder, tmp_path / "out", shards=2, seed=7)
    for shard in shards_of(tmp_path / "out"):
        labels = [s["cls"] for s in hr.open(shard)]
        assert labels.count(4) > 4 and labels.count(0) > 3


@pytest.mark.parametrize("shards", [1, 2, 7, 53])
def test_shards_are_even_to_within_one_sample(data: Data, tmp_path: pathlib.Path, shards: int) -> None:
    hr.pack(data.folder, tmp_path / "out", shards=shards)
    sizes = [len(hr.open(p)) for p in shards_of(tmp_path / "out")]
    assert len(sizes) == shards and sum(sizes) == COUNT and max(sizes) - min(sizes) <= 1


def test_the_number_of_shards_suits_the_ranks_and_workers(data: Data, tmp_path: pathlib.Path) -> None:
    result = hr.pack(data.folder, tmp_path / "out", shard_size="100K", for_ranks=3, for_workers=2)
    assert result["shards"] % 6 == 0


def test_other_tools_read_what_was_packed(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(data.folder, tmp_path / "out", shards=1, keep_order=True)
    (shard,) = shards_of(tmp_path / "out")
    theirs = [
        (s["__key__"], s["jpg"], s["cls"]) for s in webdataset.WebDataset([str(shard)], shardshuffle=False, empty_check=False)
    ]
    assert theirs == [(s.key, s.jpeg, str(s.label).encode()) for s in data.samples]
    with tarfile.open(shard) as tar:
        assert len(tar.getmembers()) == 2 * COUNT
    assert subprocess.run(["tar", "tf", str(shard)], capture_output=True, check=True).stdout.count(b"\n") == 2 * COUNT


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_the_bytes_do_not_depend_on_threads(data: Data, tmp_path: pathlib.Path, threads: int) -> None:
    hr.pack(data.folder, tmp_path / "a", shards=5, seed=1, threads=threads)
    hr.pack(data.folder, tmp_path / "b", shards=5, seed=1)
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b")


def test_the_same_call_again_does_nothing(data: Data, tmp_path: pathlib.Path) -> None:
    first = hr.pack(data.folder, tmp_path / "out", shards=3)
    times = {p: p.stat().st_mtime_ns for p in shards_of(tmp_path / "out")}
    again = hr.pack(data.folder, tmp_path / "out", shards=3)
    assert not first["was_complete"] and again["was_complete"]
    assert {p: p.stat().st_mtime_ns for p in shards_of(tmp_path / "out")} == times


@pytest.mark.parametrize("options", [{"shards": 4}, {"shards": 3, "seed": 1}, {"shards": 3, "keep_order": True}], ids=str)
def test_another_pack_into_the_same_folder_is_refused(data: Data, tmp_path: pathlib.Path, options: dict[str, Any]) -> None:
    hr.pack(data.folder, tmp_path / "out", shards=3)
    before = bytes_of(tmp_path / "out")
    with pytest.raises(hr.Error, match="out"):
        hr.pack(data.folder, tmp_path / "out", **options)
    assert bytes_of(tmp_path / "out") == before


def test_other_data_into_the_same_folder_is_refused(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(data.folder, tmp_path / "out", shards=3)
    with pytest.raises(hr.Error):
        hr.pack(hr.open(data.folder)[:20], tmp_path / "out", shards=3)


def test_a_folder_with_other_files_is_refused_and_left_alone(data: Data, tmp_path: pathlib.Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(hr.Error, match=r"thesis\.tex"):
        hr.pack(data.folder, tmp_path, shards=3)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_what_was_stopped_goes_on_to_the_same_bytes(data: Data, tmp_path: pathlib.Path) -> None:
    class Stop(Exception):
        pass

    def stop(done: int, total: int, *_: int) -> None:
        if done > total // 3:
            raise Stop

    hr.pack(data.folder, tmp_path / "straight", shards=8, threads=1)
    with pytest.raises(Stop):
        hr.pack(data.folder, tmp_path / "stopped", shards=8, threads=1, progress=stop)
    result = hr.pack(data.folder, tmp_path / "stopped", shards=8)
    assert 0 < result["shards_kept"] < 8
    assert bytes_of(tmp_path / "stopped") == bytes_of(tmp_path / "straight")
    assert sorted(p.name for p in (tmp_path / "stopped").iterdir()) == sorted(p.name for p in (tmp_path / "straight").iterdir())


def test_what_was_killed_goes_on_to_the_same_bytes(data: Data, tmp_path: pathlib.Path) -> None:
    code = """
import os, sys, signal, headrace as hr
def tell(done, total, *_):
    if done > int(sys.argv[3]): os.kill(os.getpid(), signal.SIGKILL)
hr.pack(sys.argv[1], sys.argv[2], shards=8, progress=tell)
"""
    hr.pack(data.folder, tmp_path / "straight", shards=8)
    for done in (5, 25, 45):
        run = subprocess.run([sys.executable, "-c", code, str(data.folder), str(tmp_path / "killed"), str(done)], check=False)
        assert run.returncode == -signal.SIGKILL
    hr.pack(data.folder, tmp_path / "killed", shards=8)
    assert bytes_of(tmp_path / "killed") == bytes_of(tmp_path / "straight")


def test_an_unfinished_pack_is_not_opened_as_a_whole(data: Data, tmp_path: pathlib.Path) -> None:
    """Fewer samples in silence would be the worst of all."""

    def stop(done: int, total: int, *_: int) -> None:
        if done > total // 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        hr.pack(data.folder, tmp_path / "out", shards=8, threads=1, progress=stop)
    with pytest.raises(hr.Error, match="unfinished"):
        hr.open(tmp_path / "out")


def test_a_bad_source_leaves_no_finished_pack(data: Data, tmp_path: pathlib.Path) -> None:
    import shutil

    shutil.copytree(data.folder, tmp_path / "in")
    ds = hr.open(tmp_path / "in")
    (tmp_path / "in/class2/img0003.jpg").unlink()
    with pytest.raises(hr.StorageError, match="img0003"):
        hr.pack(ds, tmp_path / "out", shards=3)
    assert not (tmp_path / "out/headrace.json").exists()


def test_all_fields_are_packed(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(data.tar, tmp_path / "out", shards=2, keep_order=True)
    assert list(hr.open(tmp_path / "out")) == list(hr.open(data.tar))


def test_labels_of_lists_are_packed_as_digits_and_text(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(data.csv, tmp_path / "out", shards=2, keep_order=True)
    with tarfile.open(shards_of(tmp_path / "out")[0]) as tar:
        assert tar.extractfile("class0/img0000.cls").read() == b"0"  # type: ignore[union-attr]
        assert tar.extractfile("class0/img0000.caption").read().decode() == data.samples[0].text  # type: ignore[union-attr]


def test_a_view_is_packed(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(hr.open(data.tar)[10:30], tmp_path / "out", shards=2, keep_order=True)
    ds = hr.open(tmp_path / "out")
    assert [ds.key(i) for i in range(len(ds))] == [s.key for s in data.samples[10:30]]


def test_packing_leaves_no_descriptor_open(data: Data, tmp_path: pathlib.Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for i in range(5):
        hr.pack(data.folder, tmp_path / str(i), shards=3)
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize(
    "options",
    [{"shards": -1}, {"shards": 1.5}, {"shards": 10**7}, {"to": "rar"}, {"shard_size": "big"}, {"for_ranks": 0}, {"threads": -1}],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(data: Data, tmp_path: pathlib.Path, options: dict[str, Any]) -> None:
    with pytest.raises(hr.UsageError):
        hr.pack(data.folder, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").glob("*.tar"))


@pytest.mark.parametrize("to", ["tfrecord", "recordio"])
def test_a_number_that_32_bits_cannot_hold_is_refused(tmp_path: pathlib.Path, to: str) -> None:
    table = tmp_path / "a.csv"
    table.write_text("text,score\na,1.5\nb,inf\nc,1e300\n")
    ds = hr.open(table, table=True)
    with pytest.raises(hr.Unsupported, match=r"field 'score' holds 1e\+300, and the format has 32 bits"):
        hr.pack(ds, tmp_path / "out", to=to)
    hr.pack(ds[:2], tmp_path / "good", to=to, shuffle=False)
    assert [s["label" if to == "recordio" else "score"] for s in hr.open(tmp_path / "good")] == [1.5, float("inf")]
