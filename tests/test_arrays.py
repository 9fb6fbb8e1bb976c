# SPDX-License-Identifier: Apache-2.0
"""Arrays, tokens and .npy files: what NumPy wrote is what comes out."""

from __future__ import annotations

import io
import pathlib
from typing import Any

import headrace as hr
import numpy as np
import pytest
from layouts import example, feature, write_tfrecord
from support import write_tar

KINDS = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"]
NAMES = {"u1": "u8", "i1": "i8", "u2": "u16", "i2": "i16", "u4": "u32", "i4": "i32", "u8": "u64", "i8": "i64",
         "f2": "f16", "f4": "f32", "f8": "f64"}  # fmt: skip


def npy(array: Any, version: tuple[int, int] | None = None) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asanyarray(array), version=version)
    return out.getvalue()


def tar_of(path: pathlib.Path, field: str, values: list[bytes]) -> str:
    return str(write_tar(path, [(f"{i:04d}.{field}", v) for i, v in enumerate(values)]))


def batches(source: Any, fields: Any, size: int = 3, **options: Any) -> list[hr.Batch]:
    with hr.Loader(source, size, fields, shuffle=False, output="numpy", **options) as loader:
        return list(loader.epoch(0))


def some(code: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 100, shape).astype(code)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("code", KINDS)
def test_npy_of_every_type_order_and_version_is_what_numpy_reads(
    tmp_path: pathlib.Path, code: str, order: str, version: tuple[int, int]
) -> None:
    arrays = [some(order + code, (2, 3, 4), i) for i in range(3)]
    files = [npy(a, version) for a in arrays] + [npy(np.asfortranarray(arrays[0]), version)]
    url = tar_of(tmp_path / "a.tar", "npy", files)
    want = [np.load(io.BytesIO(f)) for f in files]
    for source in (hr.open(url), hr.open(url, {"npy": hr.array("npy")})):
        for sample, array in zip(source, want):
            assert sample["npy"].dtype == np.dtype(code) and sample["npy"].flags.c_contiguous
            np.testing.assert_array_equal(sample["npy"], array)
    (batch,) = batches(url, {"x": hr.array("npy")}, 4)
    assert batch["x"].shape == (4, 2, 3, 4) and batch["x"].dtype == np.dtype(code)
    np.testing.assert_array_equal(batch["x"], np.stack(want))


def test_npy_of_odd_shapes(tmp_path: pathlib.Path) -> None:
    arrays = [np.float32(3.5), np.zeros((0, 3), "f4"), np.arange(5), np.ones((1, 1, 1, 2), bool)]
    url = tar_of(tmp_path / "a.tar", "npy", [npy(a) for a in arrays])
    got = [s["npy"] for s in hr.open(url)]
    assert got[0] == 3.5 and got[1].shape == (0, 3)
    np.testing.assert_array_equal(got[2], arrays[2])
    np.testing.assert_array_equal(got[3], np.ones((1, 1, 1, 2), "u1"))


@pytest.mark.parametrize(
    ("array", "name"),
    [
        (np.array([{}], object), "object array"),
        (np.zeros(2, [("a", "i4"), ("b", "f4")]), "structured"),
        (np.array(["text"]), "texts"),
        (np.zeros(2, "c8"), "complex"),
        (np.zeros(2, "M8[s]"), "dates"),
    ],
)
def test_what_is_no_number_is_refused_by_name(tmp_path: pathlib.Path, array: Any, name: str) -> None:
    url = tar_of(tmp_path / "a.tar", "npy", [npy(array)])
    with pytest.raises(hr.Unsupported, match=name):
        hr.open(url)[0]
    with pytest.raises(hr.Unsupported, match=name):
        batches(url, {"x": hr.array("npy")}, 1)


def test_a_cut_or_damaged_npy_names_file_and_sample(tmp_path: pathlib.Path) -> None:
    good = npy(np.arange(6.0))
    url = tar_of(tmp_path / "a.tar", "npy", [good, good[:-1], b"no npy", good + b"more"])
    for i in (1, 2, 3):
        with pytest.raises(hr.DataError, match=rf"a\.tar.*sample {i}"):
            hr.open(url)[i]
        with pytest.raises(hr.DataError, match="sample 1"):
            batches(url, {"x": hr.array("npy")}, 4)
    (batch,) = batches(
        tar_of(tmp_path / "b.tar", "npy", [good, good[:-1], good]), {"x": hr.array("npy")}, 3, bad_samples="replace"
    )
    assert batch["x"].shape == (3, 6)


def test_shapes_that_differ_name_the_remedies_and_the_remedies_work(tmp_path: pathlib.Path) -> None:
    arrays = [np.arange(n, dtype="f4").reshape(n, 1) for n in (2, 3, 1)]
    url = tar_of(tmp_path / "a.tar", "npy", [npy(a) for a in arrays])
    with pytest.raises(hr.UsageError, match=r"\(3, 1\), of the first sample \(2, 1\).*\.list\(\), \.padded\(\) or \.ragged\(\)"):
        batches(url, {"x": hr.array("npy")}, bad_samples="replace")
    (lists,) = batches(url, {"x": hr.array("npy").list()})
    (padded,) = batches(url, {"x": hr.array("npy").padded()})
    (ragged,) = batches(url, {"x": hr.array("npy").ragged()})
    for got, want in zip(lists["x"], arrays):
        np.testing.assert_array_equal(got, want)
    assert padded["x"][0].shape == (3, 3, 1) and padded["x"][1].tolist() == [[2, 1], [3, 1], [1, 1]]
    np.testing.assert_array_equal(ragged["x"][0], np.concatenate(arrays).ravel())
    assert ragged["x"][1].tolist() == [0, 2, 5, 6]
    assert [a.shape for a in batches(url, None)[0]["npy"]] == [(2, 1), (3, 1), (1, 1)]


def test_types_that_differ_name_dtype_and_dtype_works(tmp_path: pathlib.Path) -> None:
    url = tar_of(tmp_path / "a.tar", "npy", [npy(np.arange(3, dtype=d)) for d in ("f4", "f8", ">i2")])
    with pytest.raises(hr.UsageError, match=r"f64, of the first sample f32.*dtype="):
        batches(url, {"x": hr.array("npy")})
    for field in (hr.array("npy", dtype="f32"), hr.array("npy").cast("f32"), hr.array("npy", dtype="f32", shape=3)):
        (batch,) = batches(url, {"x": field})
        assert batch["x"].dtype == np.float32 and batch["x"].tolist() == [[0, 1, 2]] * 3
    assert [s["npy"].dtype.name for s in hr.open(url)] == ["float32", "float64", "int16"]


def test_bytes_with_a_type_are_arrays(tmp_path: pathlib.Path) -> None:
    arrays = [some("<f4", (2, 6), i) for i in range(4)]
    url = tar_of(tmp_path / "a.tar", "emb", [a.tobytes() for a in arrays])
    (batch,) = batches(url, {"x": hr.array("emb", dtype="f32", shape=(2, 6))}, 4)
    np.testing.assert_array_equal(batch["x"], np.stack(arrays))
    (batch,) = batches(url, {"x": hr.array("emb", dtype="f32", shape=(-1, 3)).list()}, 4)
    np.testing.assert_array_equal(batch["x"][1], arrays[1].reshape(-1, 3))
    assert batches(url, {"x": hr.array("emb", dtype="f32")}, 4)[0]["x"][0].shape == (12,)
    with pytest.raises(hr.DataError, match="12 elements, which do not make"):
        batches(url, {"x": hr.array("emb", dtype="f32", shape=(5,))}, 4)
    with pytest.raises(hr.Error, match="dtype="):
        batches(url, {"x": hr.array("emb")}, 4)


def test_bytes_that_are_a_npy_need_no_type(tmp_path: pathlib.Path) -> None:
    arrays = [some("<i8", (5,), i) for i in range(3)]
    url = tar_of(tmp_path / "a.tar", "emb", [npy(a) for a in arrays])
    np.testing.assert_array_equal(batches(url, {"x": hr.array("emb")})[0]["x"], np.stack(arrays))


@pytest.mark.parametrize("target", sorted(set(NAMES.values())))
@pytest.mark.parametrize("code", KINDS)
def test_cast_between_all_types_is_numpys_where_it_is_exact(tmp_path: pathlib.Path, code: str, target: str) -> None:
    array = np.arange(100).astype(code)
    url = tar_of(tmp_path / "a.tar", "npy", [npy(array)])
    (batch,) = batches(url, {"x": hr.array("npy").cast(target)}, 1)
    want = next(k for k, v in NAMES.items() if v == target)
    assert batch["x"].dtype == np.dtype(want)
    np.testing.assert_array_equal(batch["x"][0], array.astype(want))


@pytest.mark.parametrize(
    ("array", "target"),
    [([300], "u8"), ([-1], "u16"), ([0.5], "i32"), ([float("nan")], "i64"), ([2.0**63], "i64"), ([1 << 31], "i32")],
)
def test_a_number_that_does_not_fit_is_an_error(tmp_path: pathlib.Path, array: Any, target: str) -> None:
    url = tar_of(tmp_path / "a.tar", "npy", [npy(np.array(array))])
    with pytest.raises(hr.DataError, match=r"element 0 is .*cannot hold"):
        batches(url, {"x": hr.array("npy", dtype=target)}, 1)


def test_floats_to_short_floats_round_as_numpy_and_torch_do(tmp_path: pathlib.Path) -> None:
    torch = pytest.importorskip("torch")
    array = np.array([0.1, 1e-8, 65504, 1e6, -0.0, np.inf, np.nan, 3.14159], "f4")
    url = tar_of(tmp_path / "a.tar", "npy", [npy(array)])
    with np.errstate(over="ignore"):
        want = array.astype("f2")
    np.testing.assert_array_equal(batches(url, {"x": hr.array("npy").cast("f16")}, 1)[0]["x"][0], want)
    with hr.Loader(url, 1, {"x": hr.array("npy").cast("bf16")}, shuffle=False) as loader:
        (batch,) = loader.epoch(0)
    assert torch.equal(batch["x"][0].nan_to_num(7), torch.from_numpy(array).to(torch.bfloat16).nan_to_num(7))


def test_normalize_is_numpys(tmp_path: pathlib.Path) -> None:
    arrays = [some("<i2", (4, 3), i) for i in range(3)]
    url = tar_of(tmp_path / "a.tar", "npy", [npy(a) for a in arrays])
    mean, std = np.array([1, 2, 3], "f4"), np.array([2, 4, 0.5], "f4")
    (batch,) = batches(
        url, {"x": hr.array("npy").normalize(mean.tolist(), std.tolist()), "y": hr.array("npy").normalize(10, 4).cast("f64")}
    )
    np.testing.assert_array_equal(batch["x"], (np.stack(arrays).astype("f4") - mean) / std)
    np.testing.assert_array_equal(batch["y"], (np.stack(arrays) - 10.0) / 4)
    for bad, text in [
        (hr.array("npy").normalize([1, 2], [1, 2]), "last axis"),
        (hr.array("npy").normalize(1, 0), "std must not be 0"),
        (hr.array("npy").normalize(1, 2).cast("i32"), "no integers"),
        (hr.array("npy").cast("f32").normalize(1, 2), "before cast"),
        (hr.array("npy").cast("float"), "there is no type 'float'"),
        (hr.array("npy", shape=(-1, -1)), "one extent"),
        (hr.array("npy", dtype="f32").cast("f32"), "same thing"),
    ]:
        with pytest.raises(hr.UsageError, match=text):
            batches(url, {"x": bad})


def test_numbers_are_arrays_without_axes(tmp_path: pathlib.Path) -> None:
    url = tar_of(tmp_path / "a.tar", "cls", [b"3", b" 4\n", b"5"])
    (batch,) = batches(url, {"a": hr.array("cls"), "b": hr.array("cls", dtype="f32"), "c": hr.array("cls").cast("u8")})
    assert batch["a"].tolist() == [3, 4, 5] and batch["a"].dtype == np.int64
    assert batch["b"].dtype == np.float32 and batch["c"].dtype == np.uint8


def test_scalars_of_one_element_arrays(tmp_path: pathlib.Path) -> None:
    files = [npy(np.uint8(200)), npy(np.array([7], ">u1")), npy(np.array([[9]], "u1"))]
    url = tar_of(tmp_path / "a.tar", "npy", files)
    (batch,) = batches(url, {"n": hr.scalar("npy"), "f": hr.scalar("npy", dtype="f32")})
    assert batch["n"].tolist() == [200, 7, 9] and batch["n"].dtype == np.int64 and batch["f"].dtype == np.float32
    url = tar_of(tmp_path / "b.tar", "npy", [npy(np.float32(0.5))])
    assert batches(url, {"n": hr.scalar("npy")}, 1)[0]["n"].dtype == np.float64
    url = tar_of(tmp_path / "c.tar", "npy", [npy(np.arange(2))])
    with pytest.raises(hr.DataError, match="2 elements"):
        batches(url, {"n": hr.scalar("npy")}, 1)


def test_tokens_in_every_packing(tmp_path: pathlib.Path) -> None:
    documents = [np.arange(n, dtype="u2") for n in (5, 0, 3)]
    for name, values, options in (
        ("npy", [npy(d) for d in documents], {}),
        ("tok", [d.tobytes() for d in documents], {"dtype": "u16"}),
    ):
        url = tar_of(tmp_path / f"{name}.tar", name, values)
        field = hr.tokens(name, **options)
        (batch,) = batches(url, {"l": field, "p": field.padded(), "r": field.ragged(), "i": field.cast("i64").ragged()})
        for got, want in zip(batch["l"], documents):
            np.testing.assert_array_equal(got, want)
        assert batch["p"][0].shape == (3, 5) and batch["p"][1].tolist() == [5, 0, 3]
        np.testing.assert_array_equal(batch["r"][0], np.concatenate(documents))
        assert batch["r"][1].tolist() == [0, 5, 5, 8] and batch["i"][0].dtype == np.int64
    url = tar_of(tmp_path / "d.tar", "tok", [documents[0].tobytes()] * 3)
    assert batches(url, {"x": hr.tokens("tok", dtype="u16", shape=5)})[0]["x"].shape == (3, 5)
    with pytest.raises(hr.UsageError, match="one axis"):
        batches(tar_of(tmp_path / "e.tar", "npy", [npy(np.zeros((2, 2)))]), {"x": hr.tokens("npy")}, 1)


def test_arrays_of_tfrecords(tmp_path: pathlib.Path) -> None:
    samples = [{"ids": [1, 2, 3 + i], "box": [0.5, 1.5 + i], "n": [i]} for i in range(3)]
    write_tfrecord(tmp_path / "a.tfrecord", [example({k: feature(v) for k, v in s.items()}) for s in samples])
    url = str(tmp_path / "a.tfrecord")
    fields = {"ids": hr.array("ids", dtype="i64", shape=3), "box": hr.tokens("box", dtype="f32").padded(), "n": hr.array("n")}
    (batch,) = batches(url, fields)
    assert batch["ids"].tolist() == [s["ids"] for s in samples] and batch["n"].tolist() == [0, 1, 2]
    assert batch["box"][0].tolist() == [s["box"] for s in samples] and batch["box"][1].tolist() == [2, 2, 2]


def test_map_takes_arrays(tmp_path: pathlib.Path) -> None:
    arrays = [np.arange(n, dtype="f4") for n in (2, 3, 4)]
    url = tar_of(tmp_path / "a.tar", "npy", [npy(a) for a in arrays])
    (batch,) = batches(url, {"sum": hr.array("npy").map(np.sum)})
    assert batch["sum"].tolist() == [1, 3, 6]


def test_ranks_threads_and_blends_see_the_same_arrays(tmp_path: pathlib.Path) -> None:
    arrays = [some("<f4", (7,), i) for i in range(40)]
    url = tar_of(tmp_path / "a.tar", "npy", [npy(a) for a in arrays])
    for threads in (1, 4):
        seen = {}
        for rank in range(2):
            with hr.Loader(
                url, 3, {"x": hr.array("npy")}, output="numpy", rank=rank, world_size=2, threads=threads, tail="keep"
            ) as loader:
                for batch in loader.epoch(0):
                    seen.update(zip(batch.indices.tolist(), batch["x"]))
        assert len(seen) == 40 and all(np.array_equal(seen[i], arrays[i]) for i in range(40))
