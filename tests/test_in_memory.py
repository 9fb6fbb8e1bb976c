# SPDX-License-Identifier: Apache-2.0
"""``hr.open(..., in_memory=True)``: one copy for all processes of a node, whatever happens to them."""

from __future__ import annotations

import os
import pathlib
import pickle
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import headrace as hr
import numpy as np
import pytest
from support import write_tar

SHM = pathlib.Path("/dev/shm")
# They count all that headrace has there, of other processes too.
pytestmark = [pytest.mark.alone, pytest.mark.skipif(not os.access(SHM, os.W_OK), reason="no /dev/shm here")]


def ours() -> set[str]:
    return {p.name for p in SHM.glob(f"headrace-{os.geteuid()}-*") if p.suffix != ".lock"}


@pytest.fixture
def url(tmp_path: pathlib.Path) -> Iterator[str]:
    for shard in range(2):
        write_tar(tmp_path / f"s{shard}.tar", [(f"{shard}{i:03d}.txt", f"text {shard} {i}".encode() * 50) for i in range(40)])
    before = ours()
    yield str(tmp_path / "s{0..1}.tar")
    assert ours() <= before, "something is left in /dev/shm"


def texts(source: Any) -> list[str]:
    return [s["txt"] for s in source]


def run(code: str, *args: str, **options: Any) -> subprocess.Popen[str]:
    script = "import headrace as hr, os, sys, time\n" + textwrap.dedent(code)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", script, *args], **{**pipes, **options})


HOLD = """
    ds = hr.open(sys.argv[1], in_memory=True)
    print(len(ds), ds[3]["txt"][:8], flush=True)
    sys.stdin.readline()
"""


def test_samples_and_batches_are_the_same(url: str, tmp_path: pathlib.Path) -> None:
    plain, held = hr.open(url), hr.open(url, in_memory=True)
    assert texts(held) == texts(plain) and held.fingerprint == plain.fingerprint
    assert len(ours()) == 1
    with hr.Loader(held, 7, seed=3, output="numpy") as a, hr.Loader(plain, 7, seed=3, output="numpy") as b:
        assert [x["txt"] for x in a.epoch(0)] == [x["txt"] for x in b.epoch(0)]
    view = held[10:20]
    assert texts(view) == texts(plain[10:20])
    copy = pickle.loads(pickle.dumps(view))
    assert texts(copy) == texts(view) and len(ours()) == 1
    with hr.Loader(copy, 5, shuffle=False, output="numpy") as loader:
        del held, view, copy  # the loader holds on
        assert [t for b in loader.epoch(0) for t in b["txt"]] == texts(plain[10:20])


def test_the_files_are_not_read_again(url: str, tmp_path: pathlib.Path) -> None:
    ds = hr.open(url, in_memory=True)
    want = texts(ds)
    for path in tmp_path.glob("*.tar"):
        path.unlink()
    assert texts(ds) == want


def test_files_of_arrays(tmp_path: pathlib.Path) -> None:
    data = np.arange(600.0).reshape(20, 5, 6)
    np.save(tmp_path / "a.npy", data)
    window = {"x": hr.array("data", window=2, patch=(3, 3))}
    plain, held = hr.open(tmp_path / "a.npy", window), hr.open(tmp_path / "a.npy", window, in_memory=True)
    assert held.fingerprint == plain.fingerprint and len(ours()) == 1
    want = [s["x"] for s in plain]
    (tmp_path / "a.npy").unlink()
    np.testing.assert_array_equal([s["x"] for s in held], want)
    with hr.Loader(held, 4, seed=1, output="numpy") as loader:
        assert sum(len(b["x"]) for b in loader.epoch(0)) == 16
    del held, loader
    assert not ours()


def test_what_only_h5py_reads_is_read_by_it_and_the_rest_is_held(tmp_path: pathlib.Path) -> None:
    h5py = pytest.importorskip("h5py")
    data = np.arange(120, dtype="i4").reshape(30, 4)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("x", data=data, chunks=(5, 4), scaleoffset=0)
        f["y"] = data * 2
    held = hr.open(tmp_path / "a.h5", in_memory=True)
    assert len(ours()) == 1 and any("h5py" in n for n in held.notices)
    np.testing.assert_array_equal([s["x"] for s in held], data)
    np.testing.assert_array_equal([s["y"] for s in held], 2 * data)


def test_plain_files_in_folders(tmp_path: pathlib.Path) -> None:
    for c in "ab":
        for i in range(5):
            path = tmp_path / c / f"{i}.bin"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(os.urandom(i * 100))
    files = sorted(tmp_path.glob("*/*.bin"))
    listing = tmp_path / "index.txt"
    listing.write_text("".join(f"{p.relative_to(tmp_path)} 0\n" for p in files))
    ds = hr.open(listing, in_memory=True)
    assert [s["bin"] for s in ds] == [p.read_bytes() for p in files]


def test_processes_share_one_copy_and_the_last_removes_it(url: str) -> None:
    before = ours()
    children = [run(HOLD, url) for _ in range(3)]
    assert {c.stdout.readline() for c in children if c.stdout} == {"80 text 0 3\n"}
    assert len(ours() - before) == 1
    inode = {os.stat(SHM / name).st_ino for name in ours() - before}
    mine = hr.open(url, in_memory=True)
    assert {os.stat(SHM / name).st_ino for name in ours() - before} == inode
    for child in children:
        child.communicate("\n")
        assert child.returncode == 0
    assert len(ours() - before) == 1 and len(mine) == 80
    del mine
    assert ours() == before


def test_a_process_that_ends_with_an_open_data_set_leaves_nothing(url: str) -> None:
    before = ours()
    code = "import builtins\nbuiltins.kept = hr.open(sys.argv[1], in_memory=True)\nprint('end')"
    child = run(code, url)
    assert child.communicate()[0] == "end\n" and child.returncode == 0
    assert ours() == before


def test_a_killed_user_leaves_a_file_that_is_used_again(url: str) -> None:
    before = ours()
    child = run(HOLD, url)
    assert child.stdout and child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.communicate()
    (left,) = ours() - before
    inode = os.stat(SHM / left).st_ino
    ds = hr.open(url, in_memory=True)
    assert os.stat(SHM / left).st_ino == inode and texts(ds) == texts(hr.open(url))
    del ds
    assert ours() == before


def test_a_builder_killed_half_way_breaks_nothing(tmp_path: pathlib.Path) -> None:
    """The data come through a FIFO-like pace: a file so large that the kill falls into the copy."""
    before = ours()
    value = os.urandom(1 << 20)
    write_tar(tmp_path / "a.tar", [(f"{i:04d}.bin", value) for i in range(96)])
    url = str(tmp_path / "a.tar")
    hr.open(url)  # the index is there
    killed = 0
    for _ in range(20):
        child = run(
            "print('go', flush=True)\nds = hr.open(sys.argv[1], in_memory=True)\nprint('held', flush=True)\nsys.stdin.readline()",
            url,
        )
        assert child.stdout and child.stdout.readline() == "go\n"
        while child.poll() is None:  # until the copy has begun, or is over
            names = ours() - before
            if any(n.endswith(".part") for n in names):
                child.send_signal(signal.SIGKILL)
                killed += 1
                break
            if any("." not in n for n in names):
                child.send_signal(signal.SIGKILL)
                break
        child.communicate()
        if killed:
            break
    assert killed, "no kill fell into the copy"
    waiting = [run(HOLD.replace('ds[3]["txt"][:8]', "1"), url) for _ in range(2)]
    assert [c.stdout.readline() for c in waiting if c.stdout] == ["96 1\n"] * 2
    assert len(ours() - before) == 1
    for child in waiting:
        child.communicate("\n")
    assert ours() == before


def test_changed_data_is_read_anew(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tar"
    write_tar(path, [("0.txt", b"old")])
    old = hr.open(path, in_memory=True)
    write_tar(path, [("0.txt", b"new")])
    os.utime(path, ns=(1, 1))
    new = hr.open(path, in_memory=True)
    assert (old[0]["txt"], new[0]["txt"]) == ("old", "new")


def test_a_forked_child_does_not_take_it_away(url: str) -> None:
    before = ours()
    ds = hr.open(url, in_memory=True)
    pid = os.fork()
    if pid == 0:
        good = ds[5]["txt"].startswith("text 0 5")
        del ds
        os._exit(0 if good else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(ours() - before) == 1
    mine = hr.open(url, in_memory=True)
    assert len(ours() - before) == 1 and len(mine) == 80


def test_without_room_each_process_keeps_its_own_and_says_so(url: str, tmp_path: pathlib.Path, capfd: Any) -> None:
    from headrace import _core

    handle = _core.hold(_core.open_source([url]), str(tmp_path / "missing"))
    (notice,) = handle.notices
    assert "each process keeps" in notice and "missing" in notice
    dataset = _core.Dataset.make(handle, [])
    assert dataset.at(3, ["text"])[0].startswith("text 0 3")


def test_more_than_half_of_the_memory_is_refused_with_both_numbers(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.tar"
    write_tar(path, [("0.bin", b"x")])
    hr.open(path)
    listing = tmp_path / "list.txt"
    listing.write_text("huge.bin 0\n")
    huge = tmp_path / "huge.bin"
    huge.touch()
    os.truncate(huge, 1 << 42)  # a hole: takes no room
    with pytest.raises(hr.Error, match=r"the data take 4194304 MiB, and half of the memory that may be used is \d+ MiB"):
        hr.open(listing, in_memory=True)


def test_arrays_from_memory(tmp_path: pathlib.Path) -> None:
    arrays = np.random.default_rng(0).integers(0, 256, (10, 32, 32, 3), dtype=np.uint8)
    url = write_tar(tmp_path / "a.tar", [(f"{i}.raw", a.tobytes()) for i, a in enumerate(arrays)])
    ds = hr.open(url, {"x": hr.image("raw", shape=(32, 32, 3)).layout("NHWC")}, in_memory=True)
    with hr.Loader(ds, 10, shuffle=False, output="numpy") as loader:
        (batch,) = loader.epoch(0)
    np.testing.assert_array_equal(batch["x"], arrays)


def test_anything_else_is_refused(url: str) -> None:
    with pytest.raises(hr.UsageError, match="True, False or 'decoded'"):
        hr.open(url, in_memory="pixels")
    with pytest.raises(hr.UsageError, match="for pictures"):
        hr.open(url, in_memory="decoded")
