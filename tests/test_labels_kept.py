# SPDX-License-Identifier: Apache-2.0
"""``foreground=``: where labels lie is found once and kept beside the data; damage, changes and strangers' files are noticed."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
from typing import Any

import headrace as hr
import numpy as np
import pytest
from headrace.arrays import labels
from headrace.errors import Forbidden

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")

SHAPE = (12, 14, 16)
SIDECAR = "headrace-labels.hridx"


def label(n: int) -> Any:
    y = np.zeros(SHAPE, "u1")
    if n != 2:  # the third has none
        y[n : n + 2, 3, 4:9] = 1
        y[11, 13 - n, 15] = 2
    return y


def write(folder: pathlib.Path, kind: str, n: int) -> None:
    x, y = np.arange(np.prod(SHAPE), dtype="f4").reshape(SHAPE) + n * 10_000, label(n)
    if kind == "npz":
        np.savez(folder / f"case{n}.npz", x=x, y=y)
    elif kind == "npy":
        np.save(folder / f"case{n}_x.npy", x)
        np.save(folder / f"case{n}_y.npy", y)
    elif kind == "zarr":
        group = zarr.open_group(str(folder / f"case{n}.zarr"), mode="w")
        for name, data in (("x", x), ("y", y)):
            group.create_array(name, data=data, chunks=(5, 7, 8))
    else:
        with h5py.File(folder / ("all.h5" if kind == "groups" else f"case{n}.h5"), "a") as f:
            for name, data in (("x", x), ("y", y)):
                f.create_dataset(f"case{n}/{name}" if kind == "groups" else name, data=data, chunks=(5, 7, 8), compression="gzip")


def url_of(folder: pathlib.Path, kind: str) -> str:
    return str(folder / {"hdf5": "case*.h5", "groups": "all.h5"}.get(kind, f"case*.{kind}"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    cache = tmp_path_factory.mktemp("cache")
    cache.chmod(0o700)
    monkeypatch.setenv("HEADRACE_CACHE", str(cache))
    labels._known.clear()
    return cache


@pytest.fixture
def scans(monkeypatch):
    """How many labels were read, call by call."""
    calls: list[int] = []
    real = labels._core.find_labels

    def find_labels(d: Any, number: int, axes: int) -> Any:
        calls.append(len(d["variables"][number]["segments"]))
        return real(d, number, axes)

    monkeypatch.setattr(labels._core, "find_labels", find_labels)
    return calls


def crops(url: Any, along: str = "file") -> dict[str, Any]:
    """By the name of the volume, as a process that has just begun would draw them."""
    labels._known.clear()
    options: dict[str, Any] = {"along": along, "patch": (4, 4, 4)}
    fields = {"x": hr.array("x", foreground="y", share=1.0, **options), "y": hr.array("y", **options), "k": hr.key()}
    with hr.Loader(url, 1, fields, seed=3, output="numpy") as loader:
        return {str(b["k"][0]).rpartition("/")[2]: (np.array(b["x"][0]), np.array(b["y"][0])) for b in loader.epoch(0)}


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(u, v) for k in a for u, v in zip(a[k], b[k]))


@pytest.fixture
def four(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for n in range(4):
        write(folder, "npz", n)
    return folder


@pytest.mark.parametrize("kind", ["npz", "npy", "hdf5", "groups", "zarr"])
def test_labels_are_read_once(tmp_path, scans, kind):
    for n in range(4):
        write(tmp_path, kind, n)
    url, along = url_of(tmp_path, kind), "group" if kind == "groups" else "file"
    first = crops(url, along)
    assert scans == [4]
    assert all(y.any() == (k != "case2") for k, (_, y) in first.items())
    assert (tmp_path / SIDECAR).stat().st_mode & 0o777 == 0o666 & ~labels._umask()
    assert same(first, crops(url, along))
    assert scans == [4]
    # Another folder, with the times of its files, is the same data.
    moved = shutil.copytree(tmp_path, tmp_path / "moved", copy_function=shutil.copy2)
    if kind != "zarr":  # folders of chunks are more than this copies alike
        assert same(first, crops(url_of(moved, kind), along))
        assert scans == [4]
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_another_process_takes_them(four):
    code = (
        "import sys, headrace as hr\nfrom headrace.arrays import labels\n"
        "def no(*_): raise SystemExit(7)\nlabels._core.find_labels = no\n"
        "hr.open(sys.argv[1], {'x': hr.array('x', along='file', patch=(4, 4, 4), foreground='y', share=1.0)})[0]"
    )
    command = [sys.executable, "-c", code, url_of(four, "npz")]
    assert subprocess.run(command, timeout=60).returncode == 7
    crops(url_of(four, "npz"))
    assert subprocess.run(command, timeout=60).returncode == 0


def test_what_changed_or_came_is_read_and_nothing_else(four, scans):
    url = url_of(four, "npz")
    crops(url)
    y = np.zeros(SHAPE, "u1")
    y[6, 6, 6] = 1
    np.savez(four / "case1.npz", x=np.zeros(SHAPE, "f4"), y=y)  # of the same size
    got = crops(url)
    assert scans == [4, 1]
    assert (got["case1"][1] == 1).sum() == 1
    write(four, "npz", 4)
    crops(url)
    crops([str(four / "case0.npz"), str(four / "case3.npz")])
    crops(url)
    assert scans == [4, 1, 1]  # a part of the data is kept with the others
    (four / "case0.npz").unlink()
    write(four, "npz", 5)
    crops(url)
    assert not any("case0" in k for k in labels.read(str(four / SIDECAR)))
    # Another number of axes is another question.
    hr.open(url, {"x": hr.array("x", along="file", patch=(4, 4), foreground="y", share=1.0)})
    crops(url)
    assert scans == [4, 1, 1, 1, 5]


def test_damage_is_noticed_and_mended(four, scans):
    url = url_of(four, "npz")
    first = crops(url)
    whole = (four / SIDECAR).read_bytes()
    rng = np.random.default_rng(0)
    damaged = [whole[:n] for n in (0, 7, 15, 16, 40, len(whole) // 2, len(whole) - 1)] + [whole + b"\0", bytes(len(whole))]
    for at in [0, 8, 12, 15, 20, *rng.integers(0, len(whole), 20).tolist(), len(whole) - 1]:
        damaged.append(whole[:at] + bytes([whole[at] ^ (1 << int(rng.integers(8)))]) + whole[at + 1 :])
    for n, data in enumerate(damaged):
        (four / SIDECAR).write_bytes(data)
        assert labels.read(str(four / SIDECAR)) == {}
        assert same(first, crops(url))
        assert len(scans) == n + 2
        assert (four / SIDECAR).read_bytes() == whole


def forged(whole: bytes, change: Any) -> bytes:
    """Another table or other places under a checksum that is right."""
    _, _, size = struct.unpack_from("<8sII", whole)
    table, places = json.loads(whole[16 : 16 + size]), np.frombuffer(whole[16 + size : -16], "<i8").copy()
    table, places = change(table, places) or (table, places)
    text = json.dumps(table).encode()
    data = struct.pack("<8sII", b"hrlabels", 1, len(text)) + text + places.tobytes()
    return data + hashlib.blake2b(data, digest_size=16).digest()


def each(**values: Any) -> Any:
    return lambda table, places: [row.update(values) for row in table.values()] and None


FORGERIES: dict[str, Any] = {
    "outside": lambda t, p: p.__iadd__(12) is None or None,
    "far outside": lambda t, p: p.fill(1 << 62),
    "negative": lambda t, p: p.fill(-1),
    "too many": each(classes=[1 << 60]),
    "none in a class": each(classes=[0]),
    "less than none": each(classes=[-1]),
    "other axes": each(axes=2),
    "no axes": each(axes=0),
    "many axes": each(axes=1 << 62),
    "before the first": each(first=-3),
    "after the last": each(first=1 << 62),
    "not numbers": each(classes=["1"], axes="3"),
    "truth as number": each(first=True),
    "fractions": each(first=0.5),
    "another stamp": each(stamp="0"),
    "no stamp": each(stamp=""),
    "a list": lambda t, p: ([], p),
    "rows of nothing": lambda t, p: (dict.fromkeys(t), p),
    "nothing": lambda t, p: ({}, p),
}


@pytest.mark.parametrize("how", FORGERIES)
def test_a_strangers_sidecar_is_not_trusted(four, scans, how):
    url = url_of(four, "npz")
    first = crops(url)
    whole = (four / SIDECAR).read_bytes()
    (four / SIDECAR).write_bytes(forged(whole, lambda t, p: None))
    assert same(first, crops(url)) and scans == [4]  # what is changed below is what makes the difference
    (four / SIDECAR).write_bytes(forged(whole, FORGERIES[how]))
    assert same(first, crops(url))
    assert len(scans) == 2 and scans[1] >= 3  # that the third has no label may be believed
    assert labels.read(str(four / SIDECAR)).keys() == labels._parsed(whole).keys()


def test_what_is_no_file_is_not_waited_for(four, scans):
    os.mkfifo(four / SIDECAR)
    crops(url_of(four, "npz"))
    assert (four / SIDECAR).is_file()  # the pipe has given way
    crops(url_of(four, "npz"))
    assert scans == [4]


@pytest.mark.parametrize("why", ["a folder is in the way", "read-only"])
def test_where_the_folder_cannot_be_written_the_users_own_serves(four, own_cache, scans, why):
    url = url_of(four, "npz")
    if why == "read-only":
        if os.geteuid() == 0:
            pytest.skip("root writes everywhere")
        four.chmod(0o500)
    else:
        (four / SIDECAR).mkdir()
    options: dict[str, Any] = {"along": "file", "patch": (4, 4, 4)}
    ds = hr.open(url, {"x": hr.array("x", foreground="y", share=1.0, **options)})
    assert any("cannot be kept beside the data" in n and str(own_cache) in n for n in ds.notices)
    [kept] = own_cache.iterdir()
    assert kept.name.endswith(SIDECAR)
    crops(url)
    assert scans == [4]
    kept.write_bytes(b"hrlabels")
    crops(url)
    assert scans == [4, 4]
    four.chmod(0o700)


def test_where_nothing_can_be_written_it_is_said(four, monkeypatch):
    (four / SIDECAR).mkdir()

    def no(path: str, make: bool) -> str:
        if make:
            raise Forbidden("no folder for the cache can be written")
        return ""

    monkeypatch.setattr(labels._core, "cached_sidecar", no)
    fields = {"x": hr.array("x", along="file", patch=(4, 4, 4), foreground="y", share=1.0)}
    notices = hr.open(url_of(four, "npz"), fields).notices
    assert any("the labels are read at every start" in n for n in notices)
