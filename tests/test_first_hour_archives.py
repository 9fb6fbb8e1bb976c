# SPDX-License-Identifier: Apache-2.0
"""A zip from Kaggle, MNIST's idx files, safetensors and torch.save, read in place."""

from __future__ import annotations

import gzip
import os
import pathlib
import pickle
import shutil
import struct
import subprocess
import zipfile

import headrace as hr
import numpy as np
import pytest
from test_first_hour_files import dogs_and_cats, keys, put


def zipped(root: pathlib.Path, to: pathlib.Path, method: int, top: str = "") -> pathlib.Path:
    with zipfile.ZipFile(to, "w", method) as z:
        for file in sorted(root.rglob("*")):
            z.write(file, os.path.join(top, file.relative_to(root)))
        z.writestr("__MACOSX/._x.jpg", b"rubbish")
    return to


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("top", ["", "dogs-vs-cats", "a/b"])
def test_a_zip_is_the_folder_that_it_holds(tmp_path: pathlib.Path, method: int, top: str) -> None:
    root = dogs_and_cats(tmp_path / "data")
    put(root / "cat" / "readme.txt", b"x")
    ds, folder = hr.open(zipped(root, tmp_path / "d.zip", method, top)), hr.open(root)
    assert ds.format == "zip" and keys(ds) == keys(folder) and ds.classes == ["cat", "dog"]
    assert [dict(s) for s in ds] == [dict(s) for s in folder]
    assert any("1 files are neither" in n for n in ds.notices)
    fields = {"image": hr.image("jpg").resize((8, 8)), "label": hr.scalar("cls")}
    a, b = (list(hr.Loader(s, 10, fields, seed=1, output="numpy", shuffle="global").epoch(0)) for s in (ds, folder))
    for x, y in zip(a, b):
        assert np.array_equal(x["image"], y["image"]) and np.array_equal(x["label"], y["label"])


def test_a_zip_with_splits(tmp_path: pathlib.Path) -> None:
    for split in ("train", "test"):
        dogs_and_cats(tmp_path / "d" / split)
    path = zipped(tmp_path / "d", tmp_path / "d.zip", zipfile.ZIP_STORED, "kaggle")
    with pytest.raises(hr.UsageError, match="splits test, train"):
        hr.open(path)
    assert len(hr.open(f"{path}#train")) == 40
    with pytest.raises(hr.Error, match="no folder 'val'"):
        hr.open(f"{path}#val")


def test_a_damaged_zip_is_an_error(tmp_path: pathlib.Path) -> None:
    path = zipped(dogs_and_cats(tmp_path / "d"), tmp_path / "d.zip", zipfile.ZIP_DEFLATED)
    data = path.read_bytes()
    with pytest.raises(hr.DataError, match="zip"):
        hr.open(put(tmp_path / "cut.zip", data[:-100]))
    ds = hr.open(path)
    broken = bytearray(data)
    with zipfile.ZipFile(path) as z:
        info = z.getinfo("cat/cat.0.jpg")
    broken[info.header_offset + 60] ^= 0xFF
    ds = hr.open(put(tmp_path / "bad.zip", bytes(broken)))
    with pytest.raises(hr.DataError, match=r"bad.zip"):
        ds[keys(ds).index("cat/cat.0")]


# -- idx --------------------------------------------------------------------------------------------

CODES = {"uint8": 8, "int8": 9, "int16": 0x0B, "int32": 0x0C, "float32": 0x0D, "float64": 0x0E}


def idx(array: np.ndarray) -> bytes:
    head = struct.pack(">HBB", 0, CODES[array.dtype.name], array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.mark.parametrize("packed", [False, True])
def test_mnist_as_torchvision_reads_it(tmp_path: pathlib.Path, packed: bool) -> None:
    from torchvision.datasets.mnist import read_image_file, read_label_file

    rng = np.random.default_rng(1)
    ends = ".gz" if packed else ""
    for split, n in (("train", 9), ("t10k", 4)):
        for name, data in (
            ("images-idx3", rng.integers(0, 255, (n, 28, 28), np.uint8)),
            ("labels-idx1", np.arange(n, dtype=np.uint8)),
        ):
            put(tmp_path / f"{split}-{name}-ubyte", idx(data))
            if packed:
                put(tmp_path / "gz" / f"{split}-{name}-ubyte.gz", gzip.compress(idx(data)))
    folder = tmp_path / "gz" if packed else tmp_path
    with pytest.raises(hr.UsageError, match="splits test, train"):
        hr.open(folder)
    for split, theirs in (("train", "train"), ("test", "t10k")):
        images = read_image_file(str(tmp_path / f"{theirs}-images-idx3-ubyte")).numpy()
        labels = read_label_file(str(tmp_path / f"{theirs}-labels-idx1-ubyte")).numpy()
        ds = hr.open(f"{folder}#{split}")
        assert np.array_equal(np.stack(list(ds["images"])), images) and ds["labels"].tolist() == labels.tolist()
        fields = {"x": hr.array("images").cast("f32"), "y": hr.scalar("labels")}
        batch = next(iter(hr.Loader(ds, 4, fields, shuffle=False, output="numpy")))
        assert batch["x"].shape[0] == 4 and batch["y"].tolist() == labels[:4].tolist()
    one = hr.open(folder / f"train-images-idx3-ubyte{ends}")
    assert len(one) == 9 and [n for n, _ in one.schema] == ["images"]


@pytest.mark.parametrize("dtype", sorted(CODES))
def test_every_type_of_idx(tmp_path: pathlib.Path, dtype: str) -> None:
    array = np.arange(12).reshape(4, 3).astype(dtype)
    ds = hr.open(put(tmp_path / "x-idx2-ubyte", idx(array)))
    assert np.array_equal(np.stack(list(ds["x"])), array)
    with pytest.raises(hr.DataError, match="bytes of data"):
        hr.open(put(tmp_path / "y-idx2-ubyte", idx(array)[:-1]))
    with pytest.raises(hr.DataError, match="not an idx file"):
        hr.open(put(tmp_path / "z-idx2-ubyte", b"nonsense"))


# -- safetensors and torch.save ---------------------------------------------------------------------


def test_safetensors(tmp_path: pathlib.Path) -> None:
    from safetensors.numpy import save_file

    rng = np.random.default_rng(2)
    tensors = {"latents": rng.random((5, 4, 8), np.float32), "label": np.arange(5), "half": rng.random((5, 2)).astype(np.float16)}
    save_file(tensors, tmp_path / "x.safetensors", metadata={"a": "b"})
    ds = hr.open(tmp_path / "x.safetensors")
    assert len(ds) == 5 and ds["label"].tolist() == list(range(5))
    for name in ("latents", "half"):
        assert np.array_equal(np.stack(list(ds[name])), tensors[name])
    save_file({"train_x": np.ones((3, 2)), "test_x": np.ones((2, 2))}, tmp_path / "s.safetensors")
    assert len(hr.open(f"{tmp_path}/s.safetensors#train")) == 3
    with pytest.raises(hr.UsageError, match="splits"):
        hr.open(tmp_path / "s.safetensors")
    save_file({"a": np.ones((3, 2)), "b": np.ones(7)}, tmp_path / "w.safetensors")
    assert len(hr.open(tmp_path / "w.safetensors")) == 1
    data = (tmp_path / "x.safetensors").read_bytes()
    with pytest.raises(hr.DataError):
        hr.open(put(tmp_path / "cut.safetensors", data[:-4]))
    with pytest.raises(hr.DataError):
        hr.open(put(tmp_path / "no.safetensors", b"\xff" * 64))


def test_torch_save(tmp_path: pathlib.Path) -> None:
    import torch

    x = torch.randn(6, 3, 4)
    y = torch.arange(6)
    torch.save({"x": x, "y": y, "t": x.transpose(1, 2), "part": torch.arange(24).reshape(12, 2)[6:]}, tmp_path / "d.pt")
    ds = hr.open(tmp_path / "d.pt")
    assert len(ds) == 6 and ds["y"].tolist() == list(range(6))
    assert np.array_equal(np.stack(list(ds["x"])), x.numpy())
    assert np.array_equal(np.stack(list(ds["t"])), x.transpose(1, 2).numpy())
    assert np.array_equal(np.stack(list(ds["part"])), np.arange(12, 24).reshape(6, 2))
    torch.save((x, y), tmp_path / "pair.pth")
    assert [n for n, _ in hr.open(tmp_path / "pair.pth").schema] == ["0", "1"]
    torch.save(x, tmp_path / "one.pt")
    assert [n for n, _ in hr.open(tmp_path / "one.pt").schema] == ["data"]


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch /tmp/headrace-was-here",)


def test_torch_save_executes_nothing(tmp_path: pathlib.Path) -> None:
    import torch

    torch.save({"x": torch.ones(2), "e": Evil()}, tmp_path / "e.pt")
    with pytest.raises(hr.Unsupported, match=r"posix.system"):
        hr.open(tmp_path / "e.pt")
    assert not os.path.exists("/tmp/headrace-was-here")
    torch.save(torch.nn.Linear(2, 2), tmp_path / "m.pt")
    with pytest.raises(hr.Unsupported, match="only tensors"):
        hr.open(tmp_path / "m.pt")


# -- LMDB and packed tars ---------------------------------------------------------------------------


def test_lmdb_of_ocr(tmp_path: pathlib.Path) -> None:
    import lmdb
    from test_first_hour_files import picture

    with lmdb.open(str(tmp_path / "ocr"), map_size=1 << 26) as env, env.begin(write=True) as write:
        for i in range(1, 13):
            write.put(b"image-%09d" % i, picture(i))
            write.put(b"label-%09d" % i, f"Wört {i}".encode())
        write.put(b"num-samples", b"12")
    ds = hr.open(tmp_path / "ocr")
    assert len(ds) == 12 and ds["label"] == [f"Wört {i}" for i in range(1, 13)] and ds.key(2) == "000000003"
    assert [bytes(v) for v in ds["image"]] == [picture(i) for i in range(1, 13)]
    assert hr.open(tmp_path / "ocr", {"x": hr.image("image").resize((8, 8))})[11]["x"].shape == (3, 8, 8)


@pytest.mark.parametrize(("kind", "command"), [("gz", "gzip"), ("bz2", "bzip2"), ("xz", "xz"), ("zst", "zstd"), ("lz4", "lz4")])
def test_a_tar_that_is_packed_as_a_whole_names_the_remedy(tmp_path: pathlib.Path, kind: str, command: str) -> None:
    import tarfile

    import pyarrow as pa

    path = tmp_path / f"x.tar.{kind}"
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        tar.add(put(tmp_path / "a.txt", b"text"), "a.txt")
    plain = (tmp_path / "x.tar").read_bytes()
    if kind in ("zst", "lz4"):
        path.write_bytes(pa.Codec(command).compress(plain).to_pybytes())
    else:
        import bz2
        import lzma

        path.write_bytes({"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[kind](plain))
    with pytest.raises(hr.Unsupported, match=f"compressed as a whole with {command}.*{command} -d"):
        hr.open(path)


@pytest.mark.skipif(shutil.which("tar") is None, reason="tar is not installed")
def test_a_tar_with_a_volume_label(tmp_path: pathlib.Path) -> None:
    put(tmp_path / "a.txt", b"text")
    subprocess.run(["tar", "-C", str(tmp_path), "-V", "label", "-cf", str(tmp_path / "x.tar"), "a.txt"], check=True)
    ds = hr.open(tmp_path / "x.tar")
    assert keys(ds) == ["a"] and ds[0]["txt"] == "text" and ds.notices == []


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickled_array_by_itself(tmp_path: pathlib.Path, protocol: int) -> None:
    array = np.arange(12, dtype=np.float32).reshape(4, 3)
    ds = hr.open(put(tmp_path / "a.pkl", pickle.dumps(array, protocol)))
    assert np.array_equal(np.stack(list(ds["data"])), array)
