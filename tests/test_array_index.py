# SPDX-License-Identifier: Apache-2.0
"""What opening files of arrays learned is kept: the second start reads one small file, and an old or damaged one is never believed."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
import time

import headrace as hr
import numpy as np
import pytest
from headrace import _core

h5py = pytest.importorskip("h5py")
pytestmark = pytest.mark.filterwarnings("ignore")

DATA = np.random.default_rng(0).random((20, 6)).astype("f4")


def column(ds, name):
    return np.stack([np.asarray(s[name]) for s in ds])


def settle():
    """Directory times tick every 4 to 10 ms; what was written within a tick is not kept."""
    time.sleep(0.03)


def write_hdf5(path, data=DATA, first=0):
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=data, chunks=(4, 6), compression="gzip", shuffle=True)
        f["time"] = np.arange(len(data)) + first
        f["time"].make_scale("time")
        f["x"].dims[0].attach_scale(f["time"])
        f["time"].attrs["units"] = "hours since 2000-01-01"
        f.create_dataset("name", data=np.array([f"{i}" for i in range(len(data))], object), dtype=h5py.string_dtype())
        f["name"].dims[0].attach_scale(f["time"])
        f["x"].attrs.update(units="K", valid_range=np.array([0, 1], "f4"), comment="Zürich")
    settle()


def run(code, *paths):
    return subprocess.run([sys.executable, "-c", code, *map(str, paths)], capture_output=True, text=True, check=False)


def test_the_second_open_needs_no_h5py(tmp_path):
    write_hdf5(tmp_path / "a.h5")
    fields = {"x": hr.array("x", window=3), "name": hr.text("name")}
    first = hr.open(tmp_path / "a.h5", fields)
    assert (tmp_path / "a.h5.hridx").exists()
    code = """
import sys, headrace as hr
ds = hr.open(sys.argv[1], {"x": hr.array("x", window=3), "name": hr.text("name")})
assert ds[3]["x"].shape == (3, 6) and ds[3]["name"] == "3", ds[3]
assert "h5py" not in sys.modules and "zarr" not in sys.modules
print(ds.fingerprint, len(ds))
"""
    done = run(code, tmp_path / "a.h5")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [first.fingerprint, "18"]
    again = hr.open(tmp_path / "a.h5", fields)
    for i in range(len(first)):
        assert np.array_equal(again[i]["x"], first[i]["x"])
    assert hr.to_xarray(hr.open(tmp_path / "a.h5"))["x"].attrs["comment"] == "Zürich"


def test_what_is_read_is_one_small_file(tmp_path, monkeypatch):
    (tmp_path / "far").mkdir()
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    for i in range(20):
        write_hdf5(tmp_path / f"far/t{i:02d}.h5", DATA + i, 20 * i)
    far = _core.testing_scheme("far", str(tmp_path / "far"))
    try:
        fields = {"x": hr.array("x", window=4)}
        hr.build_index("far://t*.h5", tmp_path / "index")
        slow = hr.open("far://t*.h5", fields)
        (kept,) = [p for p in (tmp_path / "cache").iterdir() if p.name.endswith(".hridx")]  # one for all files
        assert kept.stat().st_size < 40_000
        far.reset()
        by_cache = hr.open("far://t*.h5", fields)
        assert far.reads == 0
        by_index = hr.open("far://t*.h5", fields, index=tmp_path / "index")
        assert far.reads == 0
        assert len(by_cache) == len(by_index) == len(slow) == 20 * 20 - 3
        assert by_cache.fingerprint == by_index.fingerprint == slow.fingerprint
        assert np.array_equal(by_index[38]["x"], slow[38]["x"])
        with hr.Loader("far://t*.h5", 8, fields, index=tmp_path / "index", output="numpy") as loader:
            assert len(next(iter(loader))["x"]) == 8
        with pytest.raises(hr.UsageError, match="another data set"):
            hr.open("far://t0*.h5", fields, index=tmp_path / "index")
        write_hdf5(tmp_path / "far/t00.h5", np.tile(DATA, (9, 1)))
        with pytest.raises(hr.DataError, match="index the data set again"):
            hr.open("far://t*.h5", fields, index=tmp_path / "index")
        assert len(hr.open("far://t*.h5", fields)) == 28 * 20 - 3 - 3  # of times that begin again
    finally:
        far.close()


def test_a_changed_file_is_looked_at_again(tmp_path):
    write_hdf5(tmp_path / "a.h5")
    assert len(hr.open(tmp_path / "a.h5")) == 20
    write_hdf5(tmp_path / "a.h5", DATA[::-1].copy())
    assert np.array_equal(column(hr.open(tmp_path / "a.h5"), "x"), DATA[::-1])
    size, stamp = os.stat(tmp_path / "a.h5").st_size, os.stat(tmp_path / "a.h5").st_mtime_ns
    write_hdf5(tmp_path / "a.h5", DATA[:12])
    assert len(hr.open(tmp_path / "a.h5")) == 12
    assert (size, stamp) != (os.stat(tmp_path / "a.h5").st_size, os.stat(tmp_path / "a.h5").st_mtime_ns)


def test_a_damaged_index_is_built_again(tmp_path):
    write_hdf5(tmp_path / "a.h5")
    want = hr.open(tmp_path / "a.h5")
    place = tmp_path / "a.h5.hridx"
    good = place.read_bytes()
    rng = np.random.default_rng(0)
    bad = [b"", good[:20], good[:-1], b"x" * 5000, good + b"x"]
    for at in rng.integers(0, len(good), 20):
        bad.append(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
    for raw in bad:
        place.write_bytes(raw)
        ds = hr.open(tmp_path / "a.h5")
        assert np.array_equal(ds[7]["x"], want[7]["x"])
        assert place.read_bytes() == good
    place.unlink()
    place.mkdir()  # somebody's folder stays
    assert np.array_equal(hr.open(tmp_path / "a.h5")[7]["x"], want[7]["x"])
    assert place.is_dir()


@pytest.mark.parametrize("version", [2, 3])
def test_a_store_that_changes_is_looked_at_again(tmp_path, version):
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "a.zarr"
    root = zarr.open_group(str(path), mode="w", zarr_format=version)
    x = root.create_array("x", shape=(20, 6), chunks=(4, 3), dtype="f4", fill_value=-1)
    x[:8] = DATA[:8]
    settle()
    assert hr.open(path)[12]["x"].tolist() == [-1] * 6
    assert (tmp_path / "a.zarr.hridx").exists()
    code = "import sys, headrace as hr; hr.open(sys.argv[1])[0]; assert 'zarr' not in sys.modules"
    assert run(code, path).returncode == 0
    x[8:16] = DATA[8:16]  # chunks that were not there
    settle()
    assert np.array_equal(hr.open(path)[12]["x"], DATA[12])
    x.resize((24, 6))
    settle()
    assert len(hr.open(path)) == 24
    root.create_array("label", data=np.arange(24), chunks=(24,))
    settle()
    assert hr.open(path)[5]["label"] == 5
    ds = hr.open(path, {"x": hr.array("x")})
    assert np.array_equal(ds[12]["x"], DATA[12])


def test_arrays_that_were_not_asked_for_are_found_later(tmp_path):
    zarr = pytest.importorskip("zarr")
    root = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    for name in "xyz":
        root.create_array(name, data=DATA, chunks=(4, 6))
    settle()
    for name in "xyzx":
        assert np.array_equal(column(hr.open(tmp_path / "a.zarr", {"v": hr.array(name)}), "v"), DATA)
    with h5py.File(tmp_path / "many.h5", "w") as f:
        for i in range(100):
            f[f"d{i}"] = np.arange(5) + i
    settle()
    for name in ("d3", "d99", "d3"):
        assert hr.open(tmp_path / "many.h5", {"v": hr.array(name)})[1]["v"] == int(name[1:]) + 1


def test_one_file_of_a_quick_format_has_no_index_and_several_have_one(tmp_path):
    for i in range(3):
        np.save(tmp_path / f"a{i}.npy", DATA + i)
    settle()
    hr.open(tmp_path / "a0.npy")
    assert not list(tmp_path.glob("*.hridx"))
    want = np.concatenate([DATA, DATA + 1, DATA + 2])
    for _ in range(2):
        assert np.array_equal(column(hr.open(tmp_path / "a*.npy"), "data"), want)
        assert len(list(tmp_path.glob("*.hridx"))) == 1


def test_groups_and_volumes(tmp_path):
    with h5py.File(tmp_path / "cases.h5", "w") as f:
        for i in range(4):
            f[f"case{i}/x"] = DATA[: 5 + i]
    settle()
    fields = {"x": hr.array("x", along="group", patch=(3, 4))}
    first = hr.open(tmp_path / "cases.h5", fields)
    again = hr.open(tmp_path / "cases.h5", fields)
    assert again.fingerprint == first.fingerprint and again.key(0) == first.key(0)
    assert len(hr.open(tmp_path / "cases.h5#case1")) == 6  # another index


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    if os.geteuid() == 0:
        pytest.skip("root writes everywhere")
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    write_hdf5(tmp_path / "data/a.h5")
    os.chmod(tmp_path / "data", 0o500)
    for _ in range(2):
        assert np.array_equal(column(hr.open(tmp_path / "data/a.h5"), "x"), DATA)
    assert len(list((tmp_path / "cache").glob("*.hridx"))) == 1
    os.chmod(tmp_path / "data", 0o700)


def _open_many(path, barrier, out):
    barrier.wait()
    for _ in range(5):
        out.put(float(hr.open(path)[7]["x"].sum()))


def test_processes_that_write_it_at_once(tmp_path):
    write_hdf5(tmp_path / "a.h5")
    context = multiprocessing.get_context("spawn")
    barrier, out = context.Barrier(3), context.Queue()
    jobs = [context.Process(target=_open_many, args=(str(tmp_path / "a.h5"), barrier, out)) for _ in range(3)]
    for job in jobs:
        job.start()
    sums = {out.get(timeout=60) for _ in range(15)}
    for job in jobs:
        job.join()
    assert sums == {float(DATA[7].sum())}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.h5", "a.h5.hridx"]


def test_a_file_that_a_writer_holds_is_refused_as_h5py_does(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["x"] = DATA
        f.flush()
        with pytest.raises(hr.DataError, match=r"a\.h5"):
            run_open = subprocess.run(
                [sys.executable, "-c", "import sys, headrace as hr; hr.open(sys.argv[1])", str(tmp_path / "a.h5")],
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
            if "DataError" in run_open.stderr:
                raise hr.DataError(run_open.stderr)


def test_the_command_builds_it(tmp_path):
    write_hdf5(tmp_path / "a.h5")
    command = [sys.executable, "-m", "headrace", "index", str(tmp_path / "a.h5"), "--to", str(tmp_path / "index")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "20 samples" in done.stdout
    code = "import sys, headrace as hr; print(len(hr.open(sys.argv[1], index=sys.argv[2]))); assert 'h5py' not in sys.modules"
    done = run(code, tmp_path / "a.h5", tmp_path / "index")
    assert done.stdout.split() == ["20"], done.stderr
    with pytest.raises(hr.Error, match=r"headrace\.arrays"):
        hr.open(tmp_path / "a.h5", index=tmp_path / "none")


def test_an_index_made_on_purpose_notices_a_file_of_the_same_size(tmp_path):
    """Numbers lie in another place, or mean something else, and the file has as many bytes."""
    write_hdf5(tmp_path / "a.h5")
    hr.build_index(tmp_path / "a.h5", tmp_path / "index")
    first = hr.open(tmp_path / "a.h5", index=tmp_path / "index")
    assert len(first) == 20
    size = os.stat(tmp_path / "a.h5").st_size
    write_hdf5(tmp_path / "a.h5", DATA[::-1].copy())
    with open(tmp_path / "a.h5", "r+b") as f:
        f.truncate(size)
    os.utime(tmp_path / "a.h5", ns=(1, os.stat(tmp_path / "a.h5").st_mtime_ns + 1))
    with pytest.raises(hr.DataError, match="index the data set again"):
        hr.open(tmp_path / "a.h5", index=tmp_path / "index")
    hr.build_index(tmp_path / "a.h5", tmp_path / "index")
    assert len(hr.open(tmp_path / "a.h5", index=tmp_path / "index")) == 20


def test_an_index_holds_for_copies_that_keep_their_times(tmp_path):
    write_hdf5(tmp_path / "a.h5")
    hr.build_index(tmp_path / "a.h5", tmp_path / "index")
    want = hr.open(tmp_path / "a.h5").fingerprint
    shutil.copy2(tmp_path / "a.h5", tmp_path / "b.h5")
    os.rename(tmp_path / "a.h5", tmp_path / "gone.h5")
    os.rename(tmp_path / "b.h5", tmp_path / "a.h5")
    assert hr.open(tmp_path / "a.h5", index=tmp_path / "index").fingerprint == want
