# SPDX-License-Identifier: Apache-2.0
"""Pickled dicts of arrays and lists: read as pickle.load() gives them, and nothing is executed."""

from __future__ import annotations

import collections
import pathlib
import pickle
import struct
from typing import Any

import headrace as hr
import numpy as np
import pytest
from support import Data, write_tar

RNG = np.random.default_rng(4)
N = 60
IMAGES = RNG.integers(0, 256, (N, 12), dtype=np.uint8)
LABELS = RNG.integers(0, 10, N)
PROTOCOLS = [2, 3, 4, 5]


def batch() -> dict[Any, Any]:
    return {
        "batch_label": "training batch 1 of 5",
        "labels": LABELS.tolist(),
        "data": IMAGES,
        "filenames": [f"img{i}.png" for i in range(N)],
        "weights": RNG.normal(size=N).astype(np.float32),
    }


def short(text: str) -> bytes:
    """Python 2's str in protocol 2."""
    return b"U" + bytes([len(text)]) + text.encode()


def python2_batch(data: np.ndarray, labels: list[int]) -> bytes:
    """As Python 2 wrote CIFAR-10's batches: SHORT_BINSTRING and BINSTRING, numpy.core."""
    out = b"\x80\x02}q\x01(" + short("batch_label") + b"q\x02" + short("training batch 1 of 5") + b"q\x03"
    out += short("labels") + b"q\x04]q\x05(" + b"".join(b"K" + bytes([v]) for v in labels) + b"e"
    out += (
        short("data")
        + b"q\x06cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85q\x09U\x01bq\x0a\x87q\x0bRq\x0c"
    )
    out += (
        b"(K\x01K"
        + bytes([data.shape[0]])
        + b"K"
        + bytes([data.shape[1]])
        + b"\x86q\x0dcnumpy\ndtype\nq\x0eU\x02u1q\x0fK\x00K\x01\x87q\x10Rq\x11"
    )
    out += (
        b"(K\x03U\x01|q\x12NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x13b\x89T"
        + struct.pack("<I", data.nbytes)
        + data.tobytes()
        + b"q\x14tq\x15b"
    )
    out += short("filenames") + b"q\x16]q\x17(" + b"".join(short(f"img{i}.png") for i in range(len(labels))) + b"eu."
    return out


def check(path: Any, names: dict[str, str]) -> None:
    ds = hr.open(path, {"x": hr.bytes(names["data"]), "y": hr.scalar(names["labels"]), "n": hr.text(names["filenames"])})
    assert len(ds) == N
    assert [s["x"] for s in ds] == [row.tobytes() for row in IMAGES]
    assert [s["y"] for s in ds] == LABELS.tolist()
    assert [s["n"] for s in ds] == [f"img{i}.png" for i in range(N)]


def test_cifar_as_python_2_wrote_it(tmp_path: pathlib.Path) -> None:
    data = python2_batch(IMAGES, LABELS.tolist())
    loaded = pickle.loads(data, encoding="bytes")
    assert np.array_equal(loaded[b"data"], IMAGES) and loaded[b"labels"] == LABELS.tolist()
    (tmp_path / "data_batch_1").write_bytes(data)
    check(tmp_path / "data_batch_1", {n: n for n in ("data", "labels", "filenames")})
    assert hr.open(tmp_path / "data_batch_1").key(3) == "data_batch_1/00000003"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", [dict, collections.OrderedDict])
def test_every_protocol_gives_the_same_rows(tmp_path: pathlib.Path, protocol: int, kind: Any) -> None:
    (tmp_path / "b.pkl").write_bytes(pickle.dumps(kind(batch()), protocol))
    check(tmp_path / "b.pkl", {n: n for n in ("data", "labels", "filenames")})
    with hr.Loader(
        tmp_path / "b.pkl", 7, {"y": hr.scalar("labels"), "x": hr.bytes("data")}, shuffle=True, tail="keep", output="numpy"
    ) as loader:
        got = {int(i): x for b in loader.epoch(0) for i, x in zip(b.indices, b["x"])}
    assert [got[i] for i in range(N)] == [row.tobytes() for row in IMAGES]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_keys_and_values_may_be_bytes(tmp_path: pathlib.Path, protocol: int) -> None:
    pictures = [bytes([i, 200, 255, 0]) * (i + 1) for i in range(N)]
    (tmp_path / "b.pkl").write_bytes(pickle.dumps({b"jpg": pictures, b"x": bytearray(b"a") and LABELS}, protocol))
    ds = hr.open(tmp_path / "b.pkl", {"p": hr.bytes("jpg"), "x": hr.scalar("x")})
    assert [s["p"] for s in ds] == pictures and [s["x"] for s in ds] == LABELS.tolist()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_folder_of_dicts_is_one_sample_a_file(tmp_path: pathlib.Path, protocol: int) -> None:
    root = tmp_path / "d"
    root.mkdir()
    arrays = [RNG.normal(size=(3 + i % 4, 5)).astype(np.float32) for i in range(20)]
    for i, a in enumerate(arrays):
        (root / f"s{i:02d}.pkl").write_bytes(
            pickle.dumps({"signal": a, "label": i, "score": np.float32(i / 2), "who": f"p{i}"}, protocol)
        )
    ds = hr.open(
        root, {"signal": hr.bytes("signal"), "label": hr.scalar("label"), "score": hr.scalar("score"), "who": hr.text("who")}
    )
    assert [s["signal"] for s in ds] == [a.tobytes() for a in arrays]
    assert [s["label"] for s in ds] == list(range(20)) and [s["score"] for s in ds] == [i / 2 for i in range(20)]
    assert [s["who"] for s in ds] == [f"p{i}" for i in range(20)] and ds.key(4) == "s04"


def test_rows_or_whole_as_the_user_says(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "b.pkl"
    path.write_bytes(pickle.dumps({"a": np.eye(4), "b": [1, 2, 3, 4]}, 4))
    assert len(hr.open(path)) == 4
    (sample,) = hr.open(f"{path}#whole", {"a": hr.bytes("a")})
    assert sample["a"] == np.eye(4).tobytes()
    path.write_bytes(pickle.dumps({"a": np.eye(4), "b": [1, 2, 3]}, 4))
    with pytest.raises(hr.Error, match="'b' has 3 rows, 'a' has 4"):
        hr.open(f"{path}#rows")
    path.write_bytes(pickle.dumps({"tokens": ["a", "b"], "labels": [0.5, 2]}, 4))
    assert [s["labels"] for s in hr.open(path, {"labels": hr.scalar("labels")})] == [0.5, 2]


class Touch:
    def __reduce__(self) -> Any:
        return (exec, ("raise SystemExit('executed')",))


@pytest.mark.parametrize("protocol", [0, *PROTOCOLS])
def test_code_and_object_arrays_are_refused_by_name(tmp_path: pathlib.Path, protocol: int) -> None:
    path = tmp_path / "b.pkl"
    path.write_bytes(pickle.dumps({"x": Touch(), "data": IMAGES}, protocol))
    with pytest.raises(hr.DataError, match=r"exec.*nothing was executed"):
        hr.open(path)
    path.write_bytes(pickle.dumps({"x": np.array([None, 1], dtype=object)}, protocol))
    with pytest.raises(hr.Error, match="object array"):
        hr.open(path)


def test_arrays_in_a_text_pickle_name_the_remedy(tmp_path: pathlib.Path) -> None:
    (tmp_path / "b.pkl").write_bytes(pickle.dumps({"data": IMAGES}, 0))
    with pytest.raises(hr.DataError, match="protocol 2 or above"):
        hr.open(tmp_path / "b.pkl")


def test_buffers_that_lie_elsewhere_are_refused(tmp_path: pathlib.Path) -> None:
    buffers: list[Any] = []
    (tmp_path / "b.pkl").write_bytes(pickle.dumps({"data": IMAGES}, 5, buffer_callback=buffers.append))
    with pytest.raises(hr.DataError, match="NEXT_BUFFER"):
        hr.open(tmp_path / "b.pkl")


def test_orders_that_cannot_be_read_in_place_name_the_remedy(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "b.pkl"
    path.write_bytes(pickle.dumps({"x": np.asfortranarray(np.ones((3, 4)))}, 4))
    with pytest.raises(hr.Error, match="ascontiguousarray"):
        hr.open(path)
    path.write_bytes(pickle.dumps({"x": np.ones((3, 4), ">f4"), "y": np.arange(3, dtype=">i4")}, 4))
    with pytest.raises(hr.Error, match="little-endian"):
        hr.open(path)
    path.write_bytes(pickle.dumps({"y": np.arange(3, dtype=">i4")}, 4))
    assert [s["y"] for s in hr.open(path, {"y": hr.scalar("y")})] == [0, 1, 2]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_cut_anywhere_is_an_error(tmp_path: pathlib.Path, protocol: int) -> None:
    whole = pickle.dumps({"data": IMAGES[:3], "y": [1, 2, 3]}, protocol)
    path = tmp_path / "b.pkl"
    for n in range(len(whole)):
        path.write_bytes(whole[:n])
        with pytest.raises(hr.Error, match=r"b\.pkl"):
            hr.open(path)


def test_packed_to_npz_numpy_reads_it(tmp_path: pathlib.Path) -> None:
    (tmp_path / "b.pkl").write_bytes(pickle.dumps(batch(), 2))
    hr.pack(tmp_path / "b.pkl", tmp_path / "out", to="npz", shards=1, keep_order=True)
    with np.load(tmp_path / "out/shard-000000.npz") as archive:
        assert np.array_equal(np.stack([archive[f"b/{i:08d}/data"] for i in range(N)]), IMAGES)
        assert [int(archive[f"b/{i:08d}/labels"]) for i in range(N)] == LABELS.tolist()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_changed_bytes_are_an_error_or_other_values_but_never_a_crash(tmp_path: pathlib.Path, protocol: int) -> None:
    whole = pickle.dumps({"data": IMAGES[:3], "y": [1, 2, 3], "n": np.array(["a", "b", "c"])}, protocol)
    for at in range(len(whole)):
        for value in (0xFF, whole[at] ^ 1 << at % 8):
            path = tmp_path / f"{at}-{value}.pkl"
            path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
            try:
                ds = hr.open(path)
                [ds[i] for i in range(len(ds))]
            except hr.Error:
                pass


# -- written ----------------------------------------------------------------------------------------------


def test_what_is_packed_pickle_loads(data: Data, tmp_path: pathlib.Path) -> None:
    result = hr.pack(data.tar, tmp_path / "out", to="pickle", shards=2, keep_order=True)
    shards = [pickle.loads(path.read_bytes()) for path in sorted((tmp_path / "out").glob("*.pkl"))]
    assert result["shards"] == len(shards) == 2
    assert [key for shard in shards for key in shard["__key__"]] == [s.key for s in data.samples]
    assert [jpeg for shard in shards for jpeg in shard["jpg"]] == [s.jpeg for s in data.samples]
    assert np.concatenate([shard["cls"] for shard in shards]).tolist() == [s.label for s in data.samples]
    assert [text for shard in shards for text in shard["txt"]] == [s.text for s in data.samples]


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"])
def test_types_and_shapes_survive(tmp_path: pathlib.Path, dtype: str) -> None:
    rng = np.random.default_rng(1)
    arrays = [(rng.random((3, n % 4 + 1, 2)) * 100).astype(dtype) for n in range(9)]
    for n, array in enumerate(arrays):
        np.savez(tmp_path / f"{n}.npz", x=array, fixed=array[:, :1], scalar=array.dtype.type(n))
    hr.pack(str(tmp_path / "*.npz"), tmp_path / "out", to="pickle", shards=1, keep_order=True)
    (path,) = (tmp_path / "out").glob("*.pkl")
    loaded = pickle.loads(path.read_bytes())
    back = hr.open(tmp_path / "out")
    for n, array in enumerate(arrays):
        for got in (loaded["x"][n], back[n]["x"]):
            assert got.dtype == array.dtype
            np.testing.assert_array_equal(got, array)
        np.testing.assert_array_equal(back[n]["fixed"], array[:, :1])
        assert back[n]["scalar"] == n == loaded["scalar"][n]
    assert loaded["scalar"].dtype == dtype


def test_a_single_sample_is_still_a_row(data: Data, tmp_path: pathlib.Path) -> None:
    hr.pack(hr.open(data.tar)[[4]], tmp_path / "out", to="pickle")
    (sample,) = hr.open(tmp_path / "out")
    assert sample["jpg"] == data.samples[4].jpeg and sample["cls"] == data.samples[4].label


def test_what_lists_do_not_hold_is_refused_by_name(tmp_path: pathlib.Path, data: Data) -> None:
    samples = [(f"{i}.{e}", b"1") for i in range(4) for e in (["cls", "txt"] if i != 2 else ["cls"])]
    with pytest.raises(hr.Error, match=r"txt.*drop="):
        hr.pack(write_tar(tmp_path / "gap.tar", samples), tmp_path / "out", to="pickle")
