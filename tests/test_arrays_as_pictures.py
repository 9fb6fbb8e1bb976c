# SPDX-License-Identifier: Apache-2.0
"""Arrays taken as pictures and as boxes, wherever they lie: HDF5, Zarr, npy, npz, Parquet, Arrow, safetensors, tar, pickle, MNIST's idx."""

from __future__ import annotations

import io
import json
import pathlib
import pickle
import struct
from collections.abc import Callable
from typing import Any

import headrace as hr
import numpy as np
import pytest
from support import write_tar

COUNT = 6
PIXELS = np.random.default_rng(3).integers(0, 256, (COUNT, 12, 10, 3), dtype=np.uint8)


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def hdf5(path: pathlib.Path, **arrays: Any) -> pathlib.Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path / "x.h5", "w") as f:
        for name, array in arrays.items():
            f[name] = array
    return path / "x.h5"


def chunked_hdf5(path: pathlib.Path, **arrays: Any) -> pathlib.Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path / "x.h5", "w") as f:
        for name, array in arrays.items():
            f.create_dataset(name, data=array, chunks=(4, *array.shape[1:]), compression="gzip", shuffle=True)
    return path / "x.h5"


def zarr(path: pathlib.Path, **arrays: Any) -> pathlib.Path:
    library = pytest.importorskip("zarr")
    group = library.open_group(str(path / "x.zarr"), mode="w")
    for name, array in arrays.items():
        made = group.create_array(name, shape=array.shape, dtype=array.dtype, chunks=(4, *array.shape[1:]))
        made[:] = array
    return path / "x.zarr"


def one_npy(path: pathlib.Path, **arrays: Any) -> pathlib.Path:
    ((name, array),) = arrays.items()
    np.save(path / f"{name}.npy", array)
    return path / f"{name}.npy"


def npz(path: pathlib.Path, **arrays: Any) -> pathlib.Path:
    np.savez(path / "x.npz", **arrays)
    return path / "x.npz"


def table_of(arrays: dict[str, Any], flat: bool) -> Any:
    import pyarrow as pa

    def column(array: Any) -> Any:
        rows = [row.ravel() for row in array] if flat else list(array)
        return pa.array([r.tolist() for r in rows], pa.list_(pa.from_numpy_dtype(array.dtype)) if flat else None)

    return pa.table({name: column(array) for name, array in arrays.items()})


def parquet_lists(path: pathlib.Path, **arrays: Any) -> pathlib.Path:
    import pyarrow.parquet as pq

    pq.write_table(table_of(arrays, flat=True), path / "x.parquet", row_group_size=4)
    return path / "x.parquet"


def arrow_lists(path: pathlib.Path, **arrays: Any) -> pathlib.Path:
    from pyarrow import feather

    feather.write_feather(table_of(arrays, flat=True), str(path / "x.arrow"), compression="uncompressed")
    return path / "x.arrow"


def safetensors(path: pathlib.Path, **arrays: Any) -> pathlib.Path:
    """| u64 length | JSON of names, types, shapes and offsets | bytes |"""
    types = {np.dtype(np.uint8): "U8", np.dtype(np.float32): "F32", np.dtype(np.int64): "I64"}
    head, at = {}, 0
    for name, array in arrays.items():
        head[name] = {"dtype": types[array.dtype], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(head).encode()
    body = b"".join(a.tobytes() for a in arrays.values())
    (path / "x.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)
    return path / "x.safetensors"


def tar_of_npy(path: pathlib.Path, **arrays: Any) -> pathlib.Path:
    return write_tar(path / "x.tar", [(f"{i}.{name}.npy", npy(a[i])) for i in range(COUNT) for name, a in arrays.items()])


def pickled(path: pathlib.Path, **arrays: Any) -> pathlib.Path:
    (path / "x.pkl").write_bytes(pickle.dumps(arrays))
    return path / "x.pkl"


Maker = Callable[..., pathlib.Path]
WHERE: dict[str, Maker] = {
    f.__name__: f for f in (hdf5, chunked_hdf5, zarr, one_npy, npz, parquet_lists, arrow_lists, safetensors, tar_of_npy, pickled)
}
#: Lists of a table are flat: the shape is said.
FLAT = ("parquet_lists", "arrow_lists")


def name_of(where: str, name: str) -> str:
    return {"tar_of_npy": f"{name}.npy", "one_npy": "data"}.get(where, name)


@pytest.mark.parametrize("steps", ["whole", "resized"])
@pytest.mark.parametrize("shape", ["colour", "gray", "channels first"])
@pytest.mark.parametrize("where", WHERE)
def test_u8_arrays_are_pictures(where: str, shape: str, steps: str, tmp_path: pathlib.Path) -> None:
    pixels = {"colour": PIXELS, "gray": PIXELS[..., 0], "channels first": PIXELS.transpose(0, 3, 1, 2)}[shape]
    pixels = np.ascontiguousarray(pixels)
    options: dict[str, Any] = {"layout": "CHW"} if shape == "channels first" else {}
    if where in FLAT:
        options["shape"] = pixels.shape[1:]
    field = hr.image(name_of(where, "pictures"), mode="L" if shape == "gray" else "RGB", **options).layout("NHWC")
    if steps == "resized":
        field = hr.image(field.field, **field.options).resize((6, 5)).layout("NHWC")
    source = WHERE[where](tmp_path, pictures=pixels)
    want = PIXELS[..., :1] if shape == "gray" else PIXELS
    if steps == "resized":
        members = [(f"{i}.npy", npy(np.ascontiguousarray(p[..., 0] if shape == "gray" else p))) for i, p in enumerate(want)]
        plain = hr.image("npy", mode=field.options["mode"]).resize((6, 5)).layout("NHWC")
        want = np.stack([s["x"] for s in hr.open(write_tar(tmp_path / "want.tar", members), {"x": plain})])
    ds = hr.open(source, {"x": field})
    assert len(ds) == COUNT
    assert (np.stack([ds[i]["x"] for i in range(COUNT)]) == want).all()
    with hr.Loader(
        source, 4, {"x": field if steps == "resized" else field.list()}, seed=1, tail="keep", output="numpy"
    ) as loader:
        for batch in loader:
            assert (np.stack(list(batch["x"])) == want[batch.indices]).all()


def test_mnist_idx_files_are_pictures(tmp_path: pathlib.Path) -> None:
    gray = np.ascontiguousarray(PIXELS[..., 0])
    (tmp_path / "train-images-idx3-ubyte").write_bytes(struct.pack(">BBBBIII", 0, 0, 8, 3, *gray.shape) + gray.tobytes())
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, COUNT) + bytes(range(COUNT)))
    opened = hr.open(tmp_path / "train-images-idx3-ubyte")
    name = opened.schema[0][0]
    ds = hr.open(tmp_path / "train-images-idx3-ubyte", {"x": hr.image(name, mode="L").layout("NHWC")})
    assert (np.stack([ds[i]["x"] for i in range(COUNT)])[..., 0] == gray).all()


# -- boxes ----------------------------------------------------------------------------------------

BOXES = np.random.default_rng(5).uniform(0, 20, (COUNT, 3, 2)).astype(np.float32)
BOXES = np.concatenate([BOXES, BOXES + 8], 2)  # x0 y0 x1 y1, three a sample


def jpegs() -> list[bytes]:
    from test_codecs import make_picture, save

    return [save(make_picture(i, (40, 36)), "JPEG") for i in range(COUNT)]


def ragged(i: int) -> Any:
    return BOXES[i, : i % 4]


def table(path: pathlib.Path, kind: str) -> Any:
    """Pictures with boxes, in a Parquet file or as one line of members each."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import feather

    rows = [ragged(i) for i in range(COUNT)]
    if kind.startswith("tar"):
        content = {
            "tar, json": lambda r: ("json", json.dumps(r.tolist()).encode()),
            "tar, npy": lambda r: ("boxes.npy", npy(r)),
            "tar, npy f64": lambda r: ("boxes.npy", npy(r.astype(np.float64))),
            "tar, npy Fortran": lambda r: ("boxes.npy", npy(np.asfortranarray(r))),
        }[kind]
        members = []
        for i, (jpeg, row) in enumerate(zip(jpegs(), rows)):
            name, value = content(row)
            members += [(f"{i}.jpg", jpeg), (f"{i}.{name}", value)]
        return write_tar(path / "x.tar", members), content(rows[0])[0]
    columns = {
        "flat": pa.array([r.ravel().tolist() for r in rows], pa.list_(pa.float32())),
        "rows": pa.array([r.tolist() for r in rows], pa.list_(pa.list_(pa.float32()))),
        "fixed rows": pa.array([r.tolist() for r in rows], pa.list_(pa.list_(pa.float32(), 4))),
    }
    made = pa.table({"jpg": pa.array(jpegs(), pa.binary()), "boxes": columns[kind.split(", ")[1]]})
    if kind.startswith("parquet"):
        pq.write_table(made, path / "x.parquet", row_group_size=4)
        return path / "x.parquet", "boxes"
    feather.write_feather(made, str(path / "x.arrow"), compression="uncompressed")
    return path / "x.arrow", "boxes"


KINDS = ["tar, json", "tar, npy", "tar, npy f64", "tar, npy Fortran"]
KINDS += [f"{f}, {how}" for f in ("parquet", "arrow") for how in ("flat", "rows", "fixed rows")]


@pytest.mark.parametrize("kind", KINDS)
def test_boxes_come_from_arrays_as_from_json(kind: str, tmp_path: pathlib.Path) -> None:
    source, name = table(tmp_path, kind)
    (tmp_path / "j").mkdir()
    reference, _ = table(tmp_path / "j", "tar, json")

    def fields(name: str) -> dict[str, hr.Field]:
        return {
            **hr.joint(image=hr.image("jpg").random_resized_crop(24).random_flip(), boxes=hr.boxes(name, min_area=0.0)),
            "plain": hr.boxes(name, "xyxy", min_area=0.0),
            "centres": hr.boxes(name, "cxcywh", min_area=0.0),
        }

    got, want = hr.open(source, fields(name)), hr.open(reference, fields("json"))
    for i in range(COUNT):
        assert got[i]["plain"].shape == (i % 4, 4)
        np.testing.assert_array_equal(got[i]["plain"], ragged(i))
        for out in ("boxes", "centres"):
            np.testing.assert_allclose(got[i][out], want[i][out], rtol=1e-6, atol=1e-5)
    with hr.Loader(source, 4, fields(name), seed=2, tail="keep", output="numpy") as loader:
        for batch in loader:
            assert [len(b) for b in batch["plain"]] == [i % 4 for i in batch.indices]


def test_rows_with_more_numbers_and_points(tmp_path: pathlib.Path) -> None:
    rows = np.arange(COUNT * 2 * 5, dtype=np.int64).reshape(COUNT, 2, 5)
    rows[..., 2:4] += 50
    source = hdf5(tmp_path, rows=rows)
    ds = hr.open(source, {"b": hr.boxes("rows", extra="label"), "p": hr.points("rows", extra=("a", "b", "c"))})
    np.testing.assert_array_equal(ds[3]["b"], rows[3].astype(np.float32))
    np.testing.assert_array_equal(ds[3]["p"], rows[3].astype(np.float32))


def test_rows_of_another_width_are_refused(tmp_path: pathlib.Path) -> None:
    source = hdf5(tmp_path, rows=np.zeros((COUNT, 2, 5), np.float32))
    with pytest.raises(hr.UsageError, match=r"rows of 5 numbers, where 4 are wanted; extra="):
        hr.open(source, {"b": hr.boxes("rows")})
    tar = write_tar(tmp_path / "x.tar", [("0.b.npy", npy(np.zeros(7, np.float32)))])
    with pytest.raises(hr.DataError, match="7 numbers are no rows of 4"):
        hr.open(tar, {"b": hr.boxes("b.npy")})[0]
