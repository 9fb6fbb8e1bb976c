# SPDX-License-Identifier: Apache-2.0
"""The same samples in every format that headrace reads: what tests/test_formats.py goes through."""

from __future__ import annotations

import gzip
import io
import lzma
import pathlib
import pickle
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import headrace as hr
import numpy as np
import pytest
from headrace import photos
from support import write_tar

COUNT = 23  # a prime
SHUFFLES = [False, "global", "pool"]
GOLDEN = pathlib.Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Sample:
    number: int
    jpg: bytes
    txt: str

    @property
    def array(self) -> Any:
        return np.arange(6, dtype=np.float32).reshape(2, 3) + self.number

    @property
    def npy(self) -> bytes:
        out = io.BytesIO()
        np.save(out, self.array)
        return out.getvalue()


def make_samples(first: int = 0) -> list[Sample]:
    """`first`: what the labels begin with, so that other data are told from these."""
    return [Sample(first + i, photos.make_photo(first + i, (24 + i, 20)), f"caption {first + i} Zürich") for i in range(COUNT)]


# -- the data in each format --------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """`fields`: what picture, label, text and array are called; not there: the format holds none."""

    make: Callable[[list[Sample], pathlib.Path], pathlib.Path]
    fields: dict[str, str]
    golden: bool = False  # written elsewhere: always the same


ALL = {"image": "jpg", "label": "cls", "text": "txt", "array": "npy"}


def as_tar(samples: list[Sample], root: pathlib.Path) -> pathlib.Path:
    root.mkdir(parents=True, exist_ok=True)
    members = (
        (f"{s.number:04d}.{name}", value)
        for s in samples
        for name, value in (("jpg", s.jpg), ("cls", str(s.number).encode()), ("txt", s.txt.encode()), ("npy", s.npy))
    )
    return write_tar(root / "x.tar", members)


def packed(to: str, drop: tuple[str, ...] = ()) -> Callable[[list[Sample], pathlib.Path], pathlib.Path]:
    def make(samples: list[Sample], root: pathlib.Path) -> pathlib.Path:
        hr.pack(as_tar(samples, root / "source"), root / "data", to=to, shards=2, keep_order=True, drop=list(drop))
        return root / "data"

    return make


def as_folder(samples: list[Sample], root: pathlib.Path) -> pathlib.Path:
    for i, s in enumerate(samples):  # a class folder each: the label is the number
        folder = root / f"data/{i:03d}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, value in (("jpg", s.jpg), ("txt", s.txt.encode()), ("npy", s.npy)):
            (folder / f"x.{name}").write_bytes(value)
    return root / "data"


def as_image(samples: list[Sample], root: pathlib.Path) -> pathlib.Path:
    if shutil.which("mksquashfs") is None:
        pytest.skip("needs mksquashfs")
    folder = as_folder(samples, root / "tree")
    subprocess.run(["mksquashfs", folder, root / "x.sqfs", "-quiet", "-no-progress", "-comp", "zstd"], check=True)
    return root / "x.sqfs"


def as_zip(method: int) -> Callable[[list[Sample], pathlib.Path], pathlib.Path]:
    def make(samples: list[Sample], root: pathlib.Path) -> pathlib.Path:
        folder = as_folder(samples, root / "tree")
        with zipfile.ZipFile(root / "x.zip", "w", method) as z:
            for file in sorted(folder.rglob("*")):
                z.write(file, file.relative_to(folder))
        return root / "x.zip"

    return make


def as_pickle(samples: list[Sample], root: pathlib.Path) -> pathlib.Path:
    root.mkdir(parents=True, exist_ok=True)
    columns = {
        "jpg": [s.jpg for s in samples],
        "cls": [s.number for s in samples],
        "txt": [s.txt for s in samples],
        "npy": np.stack([s.array for s in samples]),
    }
    (root / "x.pkl").write_bytes(pickle.dumps(columns, protocol=4))
    return root / "x.pkl"


def as_megatron(samples: list[Sample], root: pathlib.Path) -> pathlib.Path:
    import pyarrow as pa

    root.mkdir(parents=True, exist_ok=True)
    column = pa.array([[s.number] * (1 + s.number % 5) for s in samples], pa.list_(pa.int32()))
    table = pa.table({"tokens": column})
    with pa.OSFile(str(root / "x.arrow"), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    hr.pack(root / "x.arrow", root / "data", to="megatron", shards=2, keep_order=True)
    return root / "data"


def as_gzip(samples: list[Sample], root: pathlib.Path) -> pathlib.Path:
    (root / "gz").mkdir(parents=True)
    for path in packed("tfrecord")(samples, root).glob("*.tfrecord"):
        (root / f"gz/{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    return root / "gz"


def as_compressed_tar(kind: str) -> Callable[[list[Sample], pathlib.Path], pathlib.Path]:
    """Shards by Python's tarfile, compressed as a whole by the usual library."""

    def compressed(data: bytes) -> bytes:
        import pyarrow as pa

        if kind == "zst":
            return bytes(pa.Codec("zstd").compress(data).to_pybytes())
        return gzip.compress(data, mtime=0) if kind == "gz" else lzma.compress(data)

    def make(samples: list[Sample], root: pathlib.Path) -> pathlib.Path:
        (root / "data").mkdir(parents=True)
        for shard, some in enumerate((samples[: COUNT // 2], samples[COUNT // 2 :])):
            plain_tar = as_tar(some, root / f"plain{shard}")
            (root / f"data/{shard}.tar.{kind}").write_bytes(compressed(plain_tar.read_bytes()))
        return root / "data"

    return make


def as_compressed_arrow(samples: list[Sample], root: pathlib.Path) -> pathlib.Path:
    import pyarrow as pa

    root.mkdir(parents=True, exist_ok=True)
    columns = {
        "jpg": [s.jpg for s in samples],
        "cls": pa.array([s.number for s in samples], pa.int32()),
        "txt": [s.txt for s in samples],
        "npy": pa.array([s.array.tolist() for s in samples], pa.list_(pa.list_(pa.float32(), 3), 2)),
    }
    table = pa.table(columns)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(root / "x.arrow"), "wb") as out, pa.ipc.new_file(out, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=5)
    return root / "x.arrow"


def as_row_groups(samples: list[Sample], root: pathlib.Path) -> pathlib.Path:
    import pyarrow as pa
    from pyarrow import parquet

    with pa.ipc.open_file(as_compressed_arrow(samples, root)) as file:
        parquet.write_table(file.read_all(), root / "x.parquet", row_group_size=5)
    return root / "x.parquet"


def as_rows(samples: list[Sample], root: pathlib.Path) -> pathlib.Path:
    root.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        root / "x.npz",
        cls=np.array([s.number for s in samples], np.uint8),
        txt=np.array([s.txt for s in samples]),
        npy=np.stack([s.array for s in samples]),
    )
    return root / "x.npz"


def golden(name: str) -> Callable[[list[Sample], pathlib.Path], pathlib.Path]:
    def make(_: list[Sample], root: pathlib.Path) -> pathlib.Path:
        root.mkdir(parents=True, exist_ok=True)
        if name.endswith(".gz"):
            path = root / pathlib.Path(name).stem
            path.write_bytes(gzip.decompress((GOLDEN / name).read_bytes()))
            return path
        return pathlib.Path(shutil.copytree(GOLDEN / name, root / "data"))

    return make


BETON = {"image": "image", "label": "label", "array": "box"}
LITDATA = {"image": "photo", "label": "id", "text": "text", "array": "table"}
CASES = {
    "tar": Case(packed("tar"), ALL),
    "tar gzip": Case(as_compressed_tar("gz"), ALL),
    "tar zstd": Case(as_compressed_tar("zst"), ALL),
    "tar xz": Case(as_compressed_tar("xz"), ALL),
    "tfrecord": Case(packed("tfrecord"), ALL),
    "tfrecord gzip": Case(as_gzip, ALL),
    "recordio": Case(packed("recordio", ("txt", "npy")), {"image": "jpg", "label": "label"}),
    "arrow": Case(packed("arrow"), ALL),
    "arrow zstd": Case(as_compressed_arrow, ALL),
    "lmdb": Case(packed("lmdb"), ALL),
    "npz": Case(packed("npz"), ALL),
    "npz rows": Case(as_rows, {"label": "cls", "text": "txt", "array": "npy"}),
    "squashfs": Case(as_image, ALL),
    "zip": Case(as_zip(zipfile.ZIP_STORED), ALL),
    "zip deflated": Case(as_zip(zipfile.ZIP_DEFLATED), ALL),
    "megatron": Case(as_megatron, {"array": "tokens"}),
    "beton": Case(golden("beton/jpg.beton.gz"), BETON, golden=True),
    "beton raw": Case(golden("beton/raw.beton.gz"), BETON, golden=True),
    "pickle": Case(packed("pickle"), ALL),
    "pickle of Python": Case(as_pickle, ALL),
    "parquet": Case(packed("parquet"), ALL),
    "parquet row groups": Case(as_row_groups, ALL),
    "mds": Case(packed("mds"), ALL),
    "mds zstd": Case(golden("mds/zstd"), {"image": "photo", "text": "text", "array": "box"}, golden=True),
    "litdata": Case(golden("litdata/every"), LITDATA, golden=True),
    "litdata zstd": Case(golden("litdata/zstd_chunk"), LITDATA, golden=True),
    "files": Case(as_folder, ALL),
}
MADE = [name for name, case in CASES.items() if not case.golden]
PICTURES = [name for name in MADE if "image" in CASES[name].fields]


def asked_for(name: str) -> dict[str, hr.Field]:
    kinds = {"image": hr.image, "label": hr.scalar, "text": hr.text, "array": hr.array}
    return {
        what: kinds[what](field).list() if what in ("image", "array") else kinds[what](field)
        for what, field in CASES[name].fields.items()
    }


def plain(value: Any) -> Any:
    """Comparable by ==."""
    if isinstance(value, (str, bytes)):
        return value
    array = np.asarray(value)
    return array.dtype.str, array.shape, array.tobytes()
