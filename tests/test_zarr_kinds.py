# SPDX-License-Identifier: Apache-2.0
"""Zarr beyond plain numbers: dates, complex numbers, texts, codecs that round or scale, codecs of zarr-python's, zips."""

from __future__ import annotations

import zipfile

import headrace as hr
import numpy as np
import pytest

pytest.importorskip("hdf5plugin")  # before netCDF4, which xarray brings
zarr = pytest.importorskip("zarr")
numcodecs = pytest.importorskip("numcodecs")
xr = pytest.importorskip("xarray")

pytestmark = pytest.mark.filterwarnings("ignore")


def column(ds, name):
    return np.stack([np.asarray(s[name]) for s in ds])


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("unit", ["D", "h", "s", "ms", "us", "ns"])
def test_dates_are_counts_since_1970(tmp_path, version, unit):
    dates = np.array(["1969-12-31", "2000-02-29", "2024-07-01", "NaT"], f"M8[{unit}]")
    root = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=version)
    root.create_array("when", data=dates)
    root.create_array("length", data=dates - dates[0])
    ds = hr.open(tmp_path / "a.zarr")
    assert column(ds, "when").tolist() == dates.astype("i8").tolist()
    assert column(ds, "length").tolist() == (dates - dates[0]).astype("i8").tolist()


def test_dates_select_and_have_gaps(tmp_path):
    root = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=3)
    dates = np.array(["2000-01-01", "2000-01-02", "2000-01-03", "2001-01-01", "2001-01-02"], "M8[ns]")
    root.create_array("time", data=dates, dimension_names=["time"])
    root.create_array("x", data=np.arange(5.0), dimension_names=["time"])
    ds = hr.open(tmp_path / "a.zarr", {"x": hr.array("x", window=2)})
    assert column(ds, "x")[:, 0].tolist() == [0, 1, 3]
    ds = hr.open(tmp_path / "a.zarr", {"x": hr.array("x", sel={"time": ("2000-01-03", "2001-01-01")})})
    assert column(ds, "x").tolist() == [2, 3]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_complex_numbers_are_pairs(tmp_path, version, dtype):
    rng = np.random.default_rng(0)
    data = (rng.random((7, 5)) + 1j * rng.random((7, 5))).astype(dtype)
    zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=version).create_array("x", data=data, chunks=(3, 2))
    ds = hr.open(tmp_path / "a.zarr")
    assert np.array_equal(column(ds, "x"), np.stack([data.real, data.imag], -1))
    cut = hr.open(tmp_path / "a.zarr", {"x": hr.array("x", window=2)})
    assert np.array_equal(cut[3]["x"], np.stack([data.real, data.imag], -1)[3:5])


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("dtype", ["S12", "U12", "vlen"])
def test_texts_are_those_of_zarr(tmp_path, version, dtype):
    texts = ["Zürich", "", "Bern", "x" * 12, "日本"] if dtype != "S12" else ["Zuerich", "", "Bern", "x" * 12, "y"]
    root = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=version)
    if dtype == "vlen":
        root.create_array("t", shape=(5,), chunks=(2,), dtype=str)[:] = np.array(texts, object)
    else:
        root.create_array("t", data=np.array(texts, dtype), chunks=(2,))
    root.create_array("n", data=np.arange(5), chunks=(2,))
    ds = hr.open(tmp_path / "a.zarr")
    assert [s["t"] for s in ds] == texts
    assert [s["n"] for s in ds] == list(range(5))
    assert [s["t"] for s in hr.open(tmp_path / "a.zarr", {"t": hr.text("t")})] == texts


def test_xarrays_texts(tmp_path):
    xr.Dataset({"name": ("x", np.array(["a", "bcd", "é"], object)), "v": ("x", [1.0, 2.0, 3.0])}).to_zarr(tmp_path / "a.zarr")
    ds = hr.open(tmp_path / "a.zarr")
    assert [(s["name"], s["v"]) for s in ds] == [("a", 1), ("bcd", 2), ("é", 3)]


def test_rounded_numbers_are_read_as_they_are(tmp_path):
    data = np.random.default_rng(0).random((20, 6), "f4")
    zarr.create_array(
        str(tmp_path / "a.zarr/x"),
        data=data,
        chunks=(7, 6),
        zarr_format=2,
        filters=[numcodecs.BitRound(keepbits=9)],
        compressors=numcodecs.Zlib(),
    )
    (tmp_path / "a.zarr/.zgroup").write_text('{"zarr_format": 2}')
    ds = hr.open(tmp_path / "a.zarr")
    assert np.array_equal(column(ds, "x"), zarr.open_array(str(tmp_path / "a.zarr/x"))[...])
    assert not np.array_equal(column(ds, "x"), data)
    assert [n for n in ds.notices if "zarr-python" in n] == []


@pytest.mark.parametrize("stored", ["u1", "<i2", ">i4"])
def test_scaled_numbers_are_unscaled(tmp_path, stored):
    codec = numcodecs.FixedScaleOffset(offset=3, scale=10, dtype="<f8", astype=stored)
    data = 3 + np.arange(60).reshape(20, 3) / 10
    zarr.create_array(
        str(tmp_path / "a.zarr/x"), data=data, chunks=(7, 3), zarr_format=2, filters=[codec], compressors=numcodecs.Zlib()
    )
    (tmp_path / "a.zarr/.zgroup").write_text('{"zarr_format": 2}')
    want = zarr.open_array(str(tmp_path / "a.zarr/x"))[...]
    ds = hr.open(tmp_path / "a.zarr")
    np.testing.assert_allclose(column(ds, "x"), want, rtol=1e-6)
    np.testing.assert_allclose(want, data)


@pytest.mark.parametrize("codec", ["bz2", "lzma", "quantize", "packbits"])
def test_codecs_that_the_engine_lacks_are_read_through_zarr(tmp_path, codec):
    data = np.round(np.random.default_rng(0).random((20, 6), "f4"), 3)
    options = {"bz2": ([], numcodecs.BZ2()), "lzma": ([], numcodecs.LZMA()), "quantize": ([numcodecs.Quantize(3, "<f4")], None)}
    if codec == "packbits":
        data, options = data > 0.5, {"packbits": ([numcodecs.PackBits()], None)}
    filters, compressor = options[codec]
    zarr.create_array(
        str(tmp_path / "a.zarr/x"), data=data, chunks=(7, 6), zarr_format=2, filters=filters or None, compressors=compressor
    )
    (tmp_path / "a.zarr/.zgroup").write_text('{"zarr_format": 2}')
    ds = hr.open(tmp_path / "a.zarr")
    assert np.array_equal(column(ds, "x"), zarr.open_array(str(tmp_path / "a.zarr/x"))[...])
    assert any("zarr-python" in n and "slowly" in n for n in ds.notices)
    with hr.Loader(tmp_path / "a.zarr", 4, {"x": hr.array("x", window=2)}, seed=1, output="numpy") as loader:
        assert sum(len(b["x"]) for b in loader) == 16


# -- zips ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("shards", [None, (8, 6)])
@pytest.mark.parametrize("name", ["a.zarr.zip", "a.zip"])
def test_zip_stores_are_read_where_they_lie(tmp_path, version, shards, name):
    if version == 2 and shards:
        pytest.skip("version 2 has no shards")
    data = np.random.default_rng(0).random((20, 7), "f4")
    store = zarr.storage.ZipStore(str(tmp_path / name), mode="w")
    root = zarr.open_group(store, mode="w", zarr_format=version)
    root.attrs["title"] = "zipped"
    more = {"dimension_names": ["time", "x"]} if version == 3 else {}
    root.create_array("x", data=data, chunks=(4, 3), **({"shards": shards} if shards else {}), **more)
    root.create_array("n", data=np.arange(20), chunks=(6,), **({"dimension_names": ["time"]} if version == 3 else {}))
    root.create_group("deep").create_array("y", data=np.arange(20) * 2, chunks=(5,))
    store.close()
    ds = hr.open(tmp_path / name)
    assert ds.format == "zarr"
    assert np.array_equal(column(ds, "x"), data)
    assert column(ds, "n").tolist() == list(range(20))
    assert column(hr.open(f"{tmp_path / name}#deep"), "y").tolist() == list(range(0, 40, 2))
    hr.pack(tmp_path / name, tmp_path / "b.zarr", to="zarr", fields=["x", "n"])
    assert np.array_equal(zarr.open_group(str(tmp_path / "b.zarr"))["x"][...], data)


def test_a_zip_that_compresses_is_refused_with_the_remedy(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zarr.zip", "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr(".zgroup", '{"zarr_format": 2}')
        z.writestr(
            "x/.zarray",
            '{"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "<i4", "compressor": null, "fill_value": 0, "order": "C", "filters": null}',
        )
        z.writestr("x/0", np.arange(4, dtype="<i4").tobytes())
    with pytest.raises(hr.Unsupported, match=r"member 'x/0' is compressed by the zip.*ZIP_STORED"):
        hr.open(tmp_path / "a.zarr.zip")


@pytest.mark.parametrize("data", [b"", b"PK\3\4 no zip", b"not a zip at all"])
def test_a_zarr_zip_that_is_none_is_an_error(tmp_path, data):
    (tmp_path / "a.zarr.zip").write_bytes(data)
    with pytest.raises(hr.Error):
        hr.open(tmp_path / "a.zarr.zip")
