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


EXTENTS = [(3, 5, 2), (4, 5, 7), (1, 9, 2), (6, 5, 0)]
WAYS = {"one that is not the first": (1,), "two": (0, 2), "all": (0, 1, 2)}


def of_extents(axes, n, dtype="f4"):
    shape = tuple(EXTENTS[n][a] if a in axes else EXTENTS[0][a] for a in range(3))
    return np.random.default_rng(n).random(shape).astype(dtype)


def written_cases(folder, axes, kind, count=4):
    for n in range(count):
        if kind == "npz":
            np.savez(folder / f"c{n}.npz", x=of_extents(axes, n), label=n)
        elif kind == "nc":
            xr = pytest.importorskip("xarray")
            xr.Dataset({"x": (("a", "b", "c"), of_extents(axes, n)), "label": n}).to_netcdf(folder / f"c{n}.nc")
        else:
            with h5py.File(folder / f"c{n}.h5", "w") as f:
                big = of_extents(axes, n, ">f4" if n % 2 else "f4")
                f.create_dataset(
                    "x",
                    data=big,
                    chunks=True if kind == "gzip" and big.size else None,
                    compression="gzip" if kind == "gzip" and big.size else None,
                )
                f["label"] = n
    return str(folder / f"c*.{kind if kind in ('npz', 'nc') else 'h5'}")


@pytest.mark.parametrize("kind", ["h5", "gzip", "npz", "nc"])
@pytest.mark.parametrize("axes", WAYS.values(), ids=WAYS)
def test_any_axes_may_differ(tmp_path, axes, kind):
    url = written_cases(tmp_path, axes, kind)
    fields = {"x": hr.array("x", along="file"), "label": hr.array("label")}
    ds = hr.open(url, fields)
    for n in range(4):
        assert np.array_equal(ds[n]["x"], of_extents(axes, n)), n
        assert ds[n]["x"].dtype == "f4"
    with hr.Loader(url, 2, fields, seed=1, output="numpy") as loader:  # a list, as the data vary
        for batch in loader:
            for n, x in zip(batch["label"], batch["x"]):
                assert np.array_equal(x, of_extents(axes, int(n)))


def test_any_axes_padded_and_ragged(tmp_path):
    url = written_cases(tmp_path, (0, 1, 2), "h5")
    fields = {"x": hr.array("x", along="file").padded(value=-1), "label": hr.array("label")}
    with hr.Loader(url, 4, fields, seed=1, output="numpy") as loader:
        batch = next(iter(loader))
    values, extents = batch["x"]
    assert values.shape == (4, 6, 9, 7)
    for row, n in enumerate(batch["label"]):
        want = of_extents((0, 1, 2), int(n))
        assert tuple(extents[row]) == want.shape
        inside = tuple(slice(0, e) for e in want.shape)
        assert np.array_equal(values[row][inside], want)
        assert (
            np.delete(values[row].ravel(), np.ravel_multi_index(np.indices(want.shape), values[row].shape).ravel()) == -1
        ).all()
    fields["x"] = hr.array("x", along="file").ragged()
    with hr.Loader(url, 4, fields, seed=1, output="numpy") as loader:
        batch = next(iter(loader))
    flat = np.concatenate([of_extents((0, 1, 2), int(n)).ravel() for n in batch["label"]])
    assert np.array_equal(np.asarray(batch["x"][0]).ravel(), flat)


def test_steps_follow_and_a_dense_batch_is_refused(tmp_path):
    url = written_cases(tmp_path, (0, 1), "npz", count=3)
    ds = hr.open(url, {"x": hr.array("x", along="file", dtype="f64").normalize(0.5, 2.0)})
    for n in range(3):
        assert np.allclose(ds[n]["x"], (of_extents((0, 1), n) - 0.5) / 2, atol=1e-6)
    ds = hr.open(url, {"x": hr.array("x", along="file").map(lambda x: x.mean())})
    assert np.allclose([s["x"] for s in ds], [of_extents((0, 1), n).mean() for n in range(3)])


def test_stacked_variables_of_differing_cases(tmp_path):
    for n in range(3):
        np.savez(tmp_path / f"c{n}.npz", a=of_extents((1, 2), n), b=(of_extents((1, 2), n) * 9).astype("i2"))
    ds = hr.open(tmp_path / "c*.npz", {"x": hr.array(["a", "b"], along="file")})
    for n in range(3):
        want = of_extents((1, 2), n)
        assert np.array_equal(ds[n]["x"], np.stack([want, (want * 9).astype("i2").astype("f4")]))


def test_other_ranks_and_sel_of_an_axis_that_differs_are_refused(tmp_path):
    np.savez(tmp_path / "c0.npz", x=np.zeros((2, 3)))
    np.savez(tmp_path / "c1.npz", x=np.zeros((2, 4)))
    with pytest.raises(hr.UsageError, match="sel of axis 1"):
        hr.open(tmp_path / "c*.npz", {"x": hr.array("x", along="file", sel={"axis1": [0, 1]})})
    np.savez(tmp_path / "c1.npz", x=np.zeros((2, 4, 1)))
    with pytest.raises(hr.UsageError, match="as many axes"):
        hr.open(tmp_path / "c*.npz", {"x": hr.array("x", along="file")})
