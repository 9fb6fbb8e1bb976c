# SPDX-License-Identifier: Apache-2.0
"""Groups of HDF5 and Zarr as splits or as fields by their path; HDF5 under any name; folders of array files."""

from __future__ import annotations

import shutil

import headrace as hr
import numpy as np
import pytest
from headrace.arrays.inspect import look_at_arrays

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")


@pytest.fixture(params=["h5", "zarr"])
def make(request, tmp_path):
    """Writes {path: array}."""

    def write(arrays):
        path = str(tmp_path / f"a.{request.param}")
        root = h5py.File(path, "w") if request.param == "h5" else zarr.open_group(path, mode="w")
        for name, data in arrays.items():
            if request.param == "h5":
                root[name] = data
            else:
                root.create_array(name, data=data)
        if request.param == "h5":
            root.close()
        return path

    return write


def episode():
    """As ALOHA keeps one."""
    rng = np.random.default_rng(0)
    return {
        "action": rng.random((6, 14), "f4"),
        "observations/qpos": rng.random((6, 14), "f4"),
        "observations/images/top": rng.integers(0, 255, (6, 4, 5, 3), "u1"),
        "observations/images/side": rng.integers(0, 255, (6, 4, 5, 3), "u1"),
    }


def test_arrays_of_groups_are_fields_by_their_path(make):
    want = episode()
    ds = hr.open(make(want))
    assert sorted(n for n, _ in ds.schema) == sorted(want)
    for name, data in want.items():
        assert np.array_equal(ds[4][name], data[4])


def test_arrays_of_two_groups_share_a_sample(make):
    want = episode()
    path = make({k: v for k, v in want.items() if k != "action"})
    ds = hr.open(path, {"q": hr.array("observations/qpos", window=2), "top": hr.array("observations/images/top")})
    assert np.array_equal(ds[3]["q"], want["observations/qpos"][3:5])
    assert np.array_equal(ds[3]["top"], want["observations/images/top"][3])
    inner = hr.open(f"{path}#observations")
    assert sorted(n for n, _ in inner.schema) == ["images/side", "images/top", "qpos"]
    assert [n for n, _ in hr.open(f"{path}#observations/images").schema] == ["side", "top"]


def test_splits_beside_arrays_are_said(make):
    data = {"train/x": np.arange(6), "val/x": np.arange(3) + 10, "classes": np.arange(4)}
    path = make(data)
    with pytest.raises(hr.UsageError, match=r"has the splits 'train', 'val': write .*#train; .*#/ are the arrays beside them"):
        hr.open(path)
    assert [s["x"] for s in hr.open(f"{path}#val")] == [10, 11, 12]
    assert [s["classes"] for s in hr.open(f"{path}#/")] == [0, 1, 2, 3]
    with pytest.raises(hr.UsageError, match=r"has no variable 'x'.*'train/x'.*splits 'train', 'val'"):
        hr.open(path, {"x": hr.array("x")})
    assert [s["x"] for s in hr.open(path, {"x": hr.array("val/x")})] == [10, 11, 12]


def test_inspect_lists_them(make):
    rows = look_at_arrays([make({**episode(), "train/x": np.arange(3)})])
    assert {row["name"] for row in rows} == {*episode(), "train/x"}


def test_many_groups_are_not_fields(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for i in range(300):
            f[f"case{i:03d}/x"] = np.arange(4) + i
        f["labels"] = np.arange(300)
    with pytest.raises(hr.UsageError, match=r'301 groups.*#GROUP.*along="group".*#/'):
        hr.open(tmp_path / "a.h5")
    assert len(hr.open(f"{tmp_path}/a.h5#/")) == 300
    assert np.array_equal(hr.open(tmp_path / "a.h5", {"x": hr.array("x", along="group")})[7]["x"], np.arange(4) + 7)


# -- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.h5ad", "a.hdf", "a.nxs", "a.he5", "a.mat", "a.anything", "bare", "v7.3.mat"])
@pytest.mark.parametrize("block", [0, 512, 2048])
def test_hdf5_is_known_by_its_first_bytes(tmp_path, name, block):
    with h5py.File(tmp_path / name, "w", userblock_size=block) as f:
        f["x"] = np.arange(5)
    if block:
        with open(tmp_path / name, "r+b") as f:
            f.write(b"MATLAB 7.3 MAT-file")
    ds = hr.open(tmp_path / name)
    assert ds.format == "hdf5"
    assert [s["x"] for s in ds] == [0, 1, 2, 3, 4]


def test_a_folder_of_array_files_is_one_of_two_things(tmp_path):
    folder = tmp_path / "cases"
    folder.mkdir()
    for i in range(3):
        with h5py.File(folder / f"c{i}.h5", "w") as f:
            f["x"] = np.arange(4.0) + 10 * i
    with pytest.raises(hr.UsageError, match=r'a folder of 3 files of arrays: write .*/cases/\*\.h5 .*along="file"'):
        hr.open(folder)
    with pytest.raises(hr.UsageError, match="a folder of 3 files"):
        hr.open(folder, {"x": hr.array("x")})
    assert len(hr.open(f"{folder}/*.h5")) == 12
    cases = hr.open(folder, {"x": hr.array("x", along="file"), "key": hr.key()})
    assert [s["key"] for s in cases] == ["c0", "c1", "c2"]
    assert np.array_equal(cases[2]["x"], np.arange(4.0) + 20)
    shutil.copy(folder / "c0.h5", folder / ".hidden.h5")
    assert len(hr.open(folder, {"x": hr.array("x", along="file")})) == 3
