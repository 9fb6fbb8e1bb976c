# SPDX-License-Identifier: Apache-2.0
"""A zip from Kaggle, MNIST's idx files, safetensors and torch.save, read in place."""

from __future__ import annotations

import gzip
import io
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
from test_first_hour_files import dogs_and_cats, keys, picture, put


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


def test_torch_save_of_a_list_of_samples(tmp_path: pathlib.Path) -> None:
    import torch

    x = torch.arange(12.0).reshape(4, 3)
    torch.save([(x[i], i) for i in range(4)], tmp_path / "pairs.pt")
    ds = hr.open(tmp_path / "pairs.pt")
    assert len(ds) == 4 and ds[2]["0"].tolist() == [6, 7, 8] and ds["1"].tolist() == [0, 1, 2, 3]
    torch.save([{"x": torch.ones(i + 1, 2) * i, "name": f"n{i}"} for i in range(3)], tmp_path / "dicts.pt")
    ds = hr.open(tmp_path / "dicts.pt")
    assert ds["name"] == ["n0", "n1", "n2"] and ds[2]["x"].tolist() == [[2, 2]] * 3
    values, lengths = next(iter(hr.Loader(ds, 3, {"x": hr.array("x").padded()}, shuffle=False)))["x"]
    assert values.shape == (3, 3, 2) and lengths.tolist() == [[1, 2], [2, 2], [3, 2]]
    torch.save([x[0], x[1].clone()], tmp_path / "list.pt")
    ds = hr.open(tmp_path / "list.pt")
    assert len(ds) == 2 and ds[1]["data"].tolist() == [3, 4, 5]
    assert any("each is a sample; write '#rows'" in n for n in ds.notices)
    assert len(hr.open(str(tmp_path / "list.pt") + "#rows")) == 3


def test_a_list_of_tensors_that_may_be_samples_is_told_to_be_columns(tmp_path: pathlib.Path) -> None:
    """Pictures of 3 channels and other sizes have equal first axes by chance; two columns of a table have them by intent."""
    torch = pytest.importorskip("torch")
    tensors = [torch.full((3, 4, 5 + i), i) for i in range(4)]
    torch.save(tensors, tmp_path / "list.pt")
    ds = hr.open(tmp_path / "list.pt")
    assert len(ds) == 3 and any("each is a column" in n and "[(x,) for x in tensors]" in n for n in ds.notices)
    torch.save([(x,) for x in tensors], tmp_path / "samples.pt")
    ds = hr.open(tmp_path / "samples.pt")
    assert [s["0"].shape for s in ds] == [(3, 4, 5 + i) for i in range(4)] and not ds.notices
    torch.save([torch.ones(3, 4), torch.zeros(3, 5)], tmp_path / "two.pt")
    assert not hr.open(tmp_path / "two.pt").notices


def test_tensors_of_types_that_numpy_lacks(tmp_path: pathlib.Path) -> None:
    import safetensors.torch
    import torch

    x = torch.linspace(-3, 3, 12).reshape(4, 3).bfloat16()
    u = torch.arange(60000, 60004).to(torch.uint16)
    torch.save({"x": x, "one": x[:, 0].clone(), "view": x[:, 1:], "u": u}, tmp_path / "d.pt")
    safetensors.torch.save_file({"x": x, "one": x[:, 0].clone()}, tmp_path / "d.safetensors")
    for name in ("d.pt", "d.safetensors"):
        ds = hr.open(tmp_path / name)
        batch = next(iter(hr.Loader(ds, 4, {"x": hr.array("x"), "one": hr.scalar("one")}, shuffle=False)))
        assert batch["x"].dtype == torch.bfloat16 and torch.equal(batch["x"], x)
        assert batch["one"].tolist() == x[:, 0].float().tolist()
    ds = hr.open(tmp_path / "d.pt")
    assert ds["u"].tolist() == u.tolist()
    batch = next(iter(hr.Loader(ds, 4, {"v": hr.array("view")}, shuffle=False)))
    assert torch.equal(batch["v"], x[:, 1:])


def test_names_beside_tensors_are_columns_and_what_is_left_out_is_said(tmp_path: pathlib.Path) -> None:
    import torch

    torch.save({"x": torch.ones(3, 2), "names": ["a", "b", "c"], "classes": ["u", "v"], "epoch": 7}, tmp_path / "d.pt")
    ds = hr.open(tmp_path / "d.pt")
    assert ds["names"] == ["a", "b", "c"] and [n for n, _ in ds.schema] == ["x", "names"]
    assert any("left out, because they have no value for each of the 3 rows: 'classes', 'epoch'" in n for n in ds.notices)


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


def packed_tar(folder: pathlib.Path, kind: str, files: dict[str, bytes]) -> pathlib.Path:
    """A tar by Python's tarfile, compressed as a whole by the usual library."""
    import bz2
    import lzma
    import tarfile

    import pyarrow as pa

    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for name, value in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(value)
            tar.addfile(member, io.BytesIO(value))
    compress = {"gz": gzip.compress, "tgz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    for name, codec in (("zst", "zstd"), ("lz4", "lz4")):
        compress[name] = lambda data, codec=codec: pa.Codec(codec).compress(data).to_pybytes()
    return put(folder / ("x.tgz" if kind == "tgz" else f"x.tar.{kind}"), compress[kind](plain.getvalue()))


def members(n: int) -> dict[str, bytes]:
    files = {}
    for i in range(n):
        files[f"d/{i:03}.jpg"] = picture(i)
        files[f"d/{i:03}.cls"] = str(i % 7).encode()
    return files


@pytest.mark.parametrize("kind", ["gz", "tgz", "zst", "xz"])
def test_a_tar_that_is_compressed_as_a_whole_is_read(tmp_path: pathlib.Path, kind: str) -> None:
    files = members(50)
    path = packed_tar(tmp_path, kind, files)
    ds = hr.open(path)
    assert keys(ds) == [f"d/{i:03}" for i in range(50)]
    assert all(ds[i]["jpg"] == files[f"d/{i:03}.jpg"] for i in range(50))
    fields = {"x": hr.image("jpg").resize((8, 8)), "y": hr.scalar("cls"), "key": hr.key()}
    for shuffle in (True, False, "pool"):
        seen = {}
        for batch in hr.Loader(path, 7, fields, shuffle=shuffle, tail="keep", seed=1, output="numpy"):
            seen.update(zip(batch["key"], batch["y"], strict=True))
        assert seen == {f"d/{i:03}": i % 7 for i in range(50)}
    folder = tmp_path / "packed"
    hr.pack(path, folder, to="tar", shuffle=False)
    assert [hr.open(folder)[i]["jpg"] for i in range(50)] == [ds[i]["jpg"] for i in range(50)]


def test_a_folder_of_compressed_shards_gives_the_batches_of_the_plain_ones(tmp_path: pathlib.Path) -> None:
    import tarfile

    for shard in range(3):
        path = packed_tar(tmp_path, "gz", {f"{shard}-{name[2:]}": value for name, value in members(20).items()})
        (tmp_path / "gz").mkdir(exist_ok=True)
        (tmp_path / "plain").mkdir(exist_ok=True)
        path.rename(tmp_path / "gz" / f"train-{shard}.tar.gz")
        (tmp_path / "plain" / f"train-{shard}.tar").write_bytes(
            gzip.decompress((tmp_path / "gz" / f"train-{shard}.tar.gz").read_bytes())
        )
    fields = {"y": hr.scalar("cls"), "key": hr.key()}

    def order(folder: str) -> list[str]:
        loader = hr.Loader(tmp_path / folder, 6, fields, shuffle="global", seed=3, output="numpy")
        return [key for batch in loader for key in batch["key"]]

    assert order("gz") == order("plain") and len(set(order("gz"))) == 60
    assert len(hr.open(str(tmp_path / "gz" / "train-{0..2}.tar.gz"))) == 60
    with tarfile.open(tmp_path / "gz" / "train-0.tar.gz") as tar:
        assert tar.getnames()[0] == "0-000.jpg"


def test_an_index_made_ahead_gives_the_order_of_the_compressed_shards(tmp_path: pathlib.Path) -> None:
    path = packed_tar(tmp_path, "zst", members(40))
    hr.build_index(path, tmp_path / "index")
    plain, ahead = hr.open(path), hr.open(path, index=tmp_path / "index")
    assert plain.fingerprint == ahead.fingerprint
    fields = {"key": hr.key(), "jpg": hr.bytes("jpg")}
    for shuffle in (True, "pool", "global"):
        batches = [list(hr.Loader(ds, 8, fields, seed=2, shuffle=shuffle)) for ds in (plain, ahead)]
        assert [b["key"] for b in batches[0]] == [b["key"] for b in batches[1]]
        assert [b["jpg"] for b in batches[0]] == [b["jpg"] for b in batches[1]]


def test_a_damaged_compressed_tar_names_the_file(tmp_path: pathlib.Path) -> None:
    path = packed_tar(tmp_path, "gz", members(5))
    whole = path.read_bytes()
    for cut in (1, 20, len(whole) // 2, len(whole) - 4):
        path.write_bytes(whole[:cut])
        with pytest.raises(hr.DataError, match=r"x\.tar\.gz"):
            hr.open(path)
    path.write_bytes(gzip.compress(gzip.decompress(whole)[:-10240]))
    with pytest.raises(hr.DataError, match="of the unpacked data"):
        hr.open(path)


@pytest.mark.parametrize(("kind", "command"), [("bz2", "bzip2"), ("lz4", "lz4")])
def test_a_tar_that_is_compressed_in_another_way_names_the_remedy(tmp_path: pathlib.Path, kind: str, command: str) -> None:
    path = packed_tar(tmp_path, kind, members(1))
    with pytest.raises(hr.Unsupported, match=f"compressed with {command}.*unpack it first: {command} -dk"):
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


def test_a_zip_of_tables_shards_or_detection_is_no_class_folder(tmp_path: pathlib.Path) -> None:
    def zip_of(name: str, files: dict[str, bytes]) -> pathlib.Path:
        with zipfile.ZipFile(tmp_path / name, "w") as z:
            for path, data in files.items():
                z.writestr(path, data)
        return tmp_path / name

    with pytest.raises(hr.UsageError, match=r"holds tables \(.csv\).*unzip"):
        hr.open(zip_of("tables.zip", {"train.csv": b"a,b\n1,2\n", "test.csv": b"a,b\n1,2\n"}))
    with pytest.raises(hr.UsageError, match=r"holds .parquet files.*unzip"):
        hr.open(zip_of("shards.zip", {"d/a.parquet": b"PAR1", "d/b.parquet": b"PAR1"}))
    coco = {"coco/images/0.jpg": picture(0), "coco/annotations/i.json": b"{}"}
    with pytest.raises(hr.UsageError, match=r"annotations, images of a detection set.*unzip"):
        hr.open(zip_of("coco.zip", coco))


def test_names_of_macos_in_a_zip_are_left_out(tmp_path: pathlib.Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as z:
        for name in ("top/a/0 ü.jpg", "top/b/1.jpg"):
            z.writestr(name, picture(1))
        for name in ("__MACOSX/top/a/._0.jpg", "top/.DS_Store", "top/a/._0 ü.jpg"):
            z.writestr(name, b"rubbish")
    ds = hr.open(tmp_path / "x.zip")
    assert keys(ds) == ["a/0 ü", "b/1"] and ds.classes == ["a", "b"] and ds.notices == []


def test_arrays_of_several_lengths_in_an_npz_are_one_sample_and_say_so(tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "x.npz", X=np.zeros((4, 3)), y=np.arange(4), classes=np.array(["a", "b"]))
    ds = hr.open(tmp_path / "x.npz")
    assert len(ds) == 1 and any("'X' has 4 rows and 'classes' has 2" in n for n in ds.notices)
    np.savez(tmp_path / "m.npz", train_x=np.zeros((4, 3)), train_y=np.arange(4), test_x=np.zeros((2, 3)), test_y=np.arange(2))
    with pytest.raises(hr.UsageError, match=r"holds the splits train, test: say which.*'#whole' is one sample"):
        hr.open(tmp_path / "m.npz")


def test_a_mat_file_before_version_7_3_names_the_remedy(tmp_path: pathlib.Path) -> None:
    scipy_io = pytest.importorskip("scipy.io")
    scipy_io.savemat(tmp_path / "x.mat", {"x": np.arange(6).reshape(2, 3)})
    with pytest.raises(hr.Unsupported, match=r"MATLAB before 7.3.*-v7.3"):
        hr.open(tmp_path / "x.mat")
