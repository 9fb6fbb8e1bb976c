# SPDX-License-Identifier: Apache-2.0
"""Files that are a sample each, of different lengths, and with texts."""

from __future__ import annotations

import headrace as hr
import numpy as np
import pytest

pytest.importorskip("hdf5plugin")  # before netCDF4, which xarray brings
h5py = pytest.importorskip("h5py")

LENGTHS = [5, 2, 9, 1, 7, 4]


def series(n):
    return np.random.default_rng(n).random((LENGTHS[n], 3), "f4")


def written(folder, kind, chunks=None):
    for n in range(len(LENGTHS)):
        path = folder / f"c{n}.{kind}"
        if kind == "h5":
            with h5py.File(path, "w") as f:
                f.create_dataset(
                    "x",
                    data=series(n),
                    chunks=(2, 3) if chunks and LENGTHS[n] > 1 else None,
                    compression="gzip" if chunks and LENGTHS[n] > 1 else None,
                )
                f["label"] = n
                f["name"] = f"Fall {n} ü" * n
                f["fixed"] = np.bytes_("f" * (n + 1))
                f.create_dataset("tags", data=[f"t{k}" for k in range(n)] or None, shape=(n,), dtype=h5py.string_dtype())
        else:
            np.savez(path, x=series(n), label=n)
    return str(folder / f"c*.{kind}")


@pytest.mark.parametrize("kind", ["h5", "npz"])
@pytest.mark.parametrize("chunks", [False, True])
def test_files_of_different_lengths_are_a_list(tmp_path, kind, chunks):
    url = written(tmp_path, kind, chunks)
    ds = hr.open(url, {"x": hr.array("x", along="file"), "label": hr.array("label")})
    for n in range(len(LENGTHS)):
        assert np.array_equal(ds[n]["x"], series(n))
        assert ds[n]["label"] == n
    with hr.Loader(url, 3, {"x": hr.array("x", along="file").list(), "n": hr.array("label")}, seed=1, output="numpy") as loader:
        for batch in loader:
            for n, x in zip(batch["n"], batch["x"]):
                assert np.array_equal(x, series(int(n)))


def test_padded_and_ragged(tmp_path):
    url = written(tmp_path, "h5")
    with hr.Loader(url, 6, {"x": hr.array("x", along="file").padded(), "n": hr.array("label")}, seed=1, output="numpy") as loader:
        batch = next(iter(loader))
    values, lengths = batch["x"]
    assert values.shape == (6, 9, 3)
    for row, (n, shape) in enumerate(zip(batch["n"], lengths)):
        assert shape.tolist() == [LENGTHS[int(n)], 3]
        assert np.array_equal(values[row, : LENGTHS[int(n)]], series(int(n)))
        assert not values[row, LENGTHS[int(n)] :].any()
    with hr.Loader(url, 6, {"x": hr.array("x", along="file").ragged(), "n": hr.array("label")}, seed=1, output="numpy") as loader:
        batch = next(iter(loader))
    assert np.array_equal(np.asarray(batch["x"][0]).ravel(), np.concatenate([series(int(n)) for n in batch["n"]]).ravel())


def test_patches_of_the_last_axes_leave_the_first(tmp_path):
    for n in range(3):
        np.savez(tmp_path / f"c{n}.npz", x=np.arange((n + 1) * 24).reshape(n + 1, 4, 6))
    ds = hr.open(tmp_path / "c*.npz", {"x": hr.array("x", along="file", patch=(4, 6))})
    assert [s["x"].shape for s in ds] == [(1, 4, 6), (2, 4, 6), (3, 4, 6)]
    assert np.array_equal(ds[2]["x"], np.arange(72).reshape(3, 4, 6))


def test_two_axes_that_differ_are_refused(tmp_path):
    for n in range(3):
        np.savez(tmp_path / f"c{n}.npz", x=np.zeros((n + 1, n + 2)))
    with pytest.raises(hr.UsageError, match="the first axis may differ"):
        hr.open(tmp_path / "c*.npz", {"x": hr.array("x", along="file")})


def test_texts_along_files(tmp_path):
    url = written(tmp_path, "h5")
    fields = {
        "x": hr.array("x", along="file"),
        "name": hr.text("name"),
        "fixed": hr.text("fixed"),
        "tags": hr.text("tags", many=True),
    }
    ds = hr.open(url, fields)
    for n in range(len(LENGTHS)):
        assert ds[n]["name"] == f"Fall {n} ü" * n
        assert ds[n]["fixed"] == "f" * (n + 1)
        assert ds[n]["tags"] == [f"t{k}" for k in range(n)]
    with hr.Loader(url, 4, fields, seed=2, tail="keep", output="numpy") as loader:
        names = {int(i): name for batch in loader for i, name in zip(batch.indices, batch["name"])}
    assert names == {n: f"Fall {n} ü" * n for n in range(len(LENGTHS))}


@pytest.mark.parametrize("kind", ["vlen", "S", "nc3", "nc4", "zarr"])
def test_texts_of_files_one_after_the_other(tmp_path, kind):
    """Of fixed lengths that differ, too."""
    xr = pytest.importorskip("xarray")
    parts = [["Zug", "Bern"], ["", "La Chaux", "x"], ["y"]]
    files = []
    for n, texts in enumerate(parts):
        path = tmp_path / (f"{n}.zarr" if kind == "zarr" else f"{n}.nc" if kind.startswith("nc") else f"{n}.h5")
        files.append(str(path))
        if kind in ("vlen", "S"):
            with h5py.File(path, "w") as f:
                f.create_dataset("t", data=texts, dtype=h5py.string_dtype()) if kind == "vlen" else f.create_dataset(
                    "t", data=np.array(texts, "S")
                )
                f["n"] = np.arange(len(texts))
            continue
        ds = xr.Dataset({"t": ("i", np.array(texts, object)), "n": ("i", np.arange(len(texts)))})
        if kind == "zarr":
            ds.to_zarr(path)
        else:
            ds.to_netcdf(path, engine="scipy" if kind == "nc3" else "netcdf4")
    got = hr.open(files, {"t": hr.text("t"), "n": hr.array("n")})
    assert [s["t"] for s in got] == [t for texts in parts for t in texts]
    with hr.Loader(files, 4, {"t": hr.text("t")}, seed=1, tail="keep", output="numpy") as loader:
        assert sorted(t for b in loader for t in b["t"]) == sorted(t for texts in parts for t in texts)
