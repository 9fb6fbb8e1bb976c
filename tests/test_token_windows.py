# SPDX-License-Identifier: Apache-2.0
"""Windows over files of tokens: Megatron's, llm.c's, .npy, and nanoGPT's that hold nothing else."""

from __future__ import annotations

import struct
from pathlib import Path

import headrace as hr
import numpy as np
import pytest

SEQ = 8


def write_megatron(prefix: Path, documents: list[np.ndarray]) -> np.ndarray:
    """As Megatron-Core writes it: u16, a sequence a document."""
    with open(f"{prefix}.bin", "wb") as f:
        for document in documents:
            f.write(document.astype("<u2").tobytes())
    lengths = [len(d) for d in documents]
    begins = np.cumsum([0, *lengths[:-1]]) * 2
    with open(f"{prefix}.idx", "wb") as f:
        f.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(documents), len(documents) + 1))
        f.write(np.array(lengths, "<i4").tobytes() + begins.astype("<i8").tobytes())
        f.write(np.arange(len(documents) + 1, dtype="<i8").tobytes())
    return np.concatenate(documents)


def documents_of(seed: int, count: int = 40) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 50_000, rng.integers(1, 30)).astype(np.uint16) for _ in range(count)]


def windows_of(stream: np.ndarray, seq_len: int = SEQ) -> np.ndarray:
    count = (len(stream) - 1) // seq_len
    return np.stack([stream[w * seq_len : w * seq_len + seq_len + 1] for w in range(count)]).astype(np.int64)


def all_of(source: object, **options: object) -> np.ndarray:
    fields = {"t": hr.tokens(seq_len=SEQ, **options)}
    with hr.Loader(source, 4, fields, shuffle=False, output="numpy") as loader:
        return np.concatenate([b["t"] for b in loader.epoch(0)])


def test_a_batch_has_one_token_more_than_seq_len(tmp_path: Path) -> None:
    stream = write_megatron(tmp_path / "a", documents_of(1))
    rows = all_of(str(tmp_path / "a.bin"))
    assert rows.dtype == np.int64 and rows.shape[1] == SEQ + 1
    assert np.array_equal(rows, windows_of(stream))
    assert np.array_equal(rows[1:, 0], rows[:-1, -1])  # they share one token
    for dtype, expected in (("u16", np.uint16), ("i32", np.int32)):
        same = all_of(str(tmp_path / "a"), dtype=dtype)
        assert same.dtype == expected and np.array_equal(same, rows)


def test_windows_never_cross_a_file(tmp_path: Path) -> None:
    streams = [write_megatron(tmp_path / f"s{i}", documents_of(i, 10 + i)) for i in range(5)]
    expected = np.concatenate([windows_of(s) for s in streams])
    assert np.array_equal(all_of(str(tmp_path / "s*.bin")), expected)
    ds = hr.open(str(tmp_path / "s*.idx"), {"t": hr.tokens(seq_len=SEQ), "key": hr.key()})
    assert len(ds) == len(expected)
    first = len(windows_of(streams[0]))
    assert ds[first]["key"] == "s1.idx/0" and np.array_equal(ds[first]["t"], expected[first])


def test_every_token_is_an_input_once_on_any_ranks_and_after_a_resume(tmp_path: Path) -> None:
    stream = write_megatron(tmp_path / "a", [np.arange(1000, dtype=np.uint16)])
    fields = {"t": hr.tokens(seq_len=SEQ)}

    def loader(rank: int, ranks: int) -> hr.Loader:
        return hr.Loader(
            str(tmp_path / "a"), 12 // ranks, fields, seed=3, tail="keep", rank=rank, world_size=ranks, output="numpy"
        )

    seen: list[np.ndarray] = []
    with loader(0, 1) as one:
        batches = one.epoch(0)
        seen += [next(batches)["t"][:, :-1] for _ in range(3)]
        state = one.state_dict()
    for rank in range(3):
        with loader(rank, 3) as part:
            part.load_state_dict(state)
            seen += [b["t"][:, :-1] for b in part.epoch(0)]
    inputs = np.sort(np.concatenate(seen).ravel())
    assert np.array_equal(inputs, stream[: (len(stream) - 1) // SEQ * SEQ])


def test_documents_give_positions_masks_and_borders(tmp_path: Path) -> None:
    documents = documents_of(7, 60)
    documents.insert(5, np.empty(0, np.uint16))
    stream = write_megatron(tmp_path / "a", documents)
    begins = set(np.cumsum([len(d) for d in documents])[:-1].tolist()) | {0}
    fields = {
        "t": hr.tokens(seq_len=SEQ),
        "p": hr.array("positions"),
        "m": hr.array("loss_mask"),
        "c": hr.array("cu_seqlens"),
    }
    ds = hr.open(str(tmp_path / "a"), fields)
    for w in range(len(ds)):
        sample, first = ds[w], w * SEQ
        positions, mask, borders = [], [], [0]
        for i in range(SEQ):
            starts = i == 0 or first + i in begins
            positions.append(0 if starts else positions[-1] + 1)
            if starts and i > 0:
                borders.append(i)
            mask.append(int(first + i + 1 not in begins))
        assert sample["p"].tolist() == positions
        assert sample["m"].tolist() == mask
        assert sample["c"].tolist() == [*borders, SEQ]
        assert np.array_equal(sample["t"], stream[first : first + SEQ + 1])
    with hr.Loader(str(tmp_path / "a"), 4, fields | {"c": hr.array("cu_seqlens").list()}, seed=1, output="numpy") as loader:
        for batch in loader.epoch(0):
            for row, w in enumerate(batch.indices):
                assert np.array_equal(batch["p"][row], ds[int(w)]["p"])
                assert np.array_equal(batch["c"][row], ds[int(w)]["c"])


def test_plain_files_of_tokens(tmp_path: Path) -> None:
    stream = np.random.default_rng(0).integers(0, 65536, 500).astype(np.uint16)
    expected = windows_of(stream)
    stream.tofile(tmp_path / "train.bin")  # nanoGPT's
    assert np.array_equal(all_of(str(tmp_path / "train.bin"), stored="u16"), expected)
    header = np.zeros(256, "<i4")
    header[:3] = 20240520, 1, len(stream)
    (tmp_path / "llmc.bin").write_bytes(header.tobytes() + stream.tobytes())
    assert np.array_equal(all_of(str(tmp_path / "llmc.bin")), expected)
    header[:3] = 20240801, 1, len(stream)
    (tmp_path / "llama.bin").write_bytes(header.tobytes() + stream.astype("<u4").tobytes())
    assert np.array_equal(all_of(str(tmp_path / "llama.bin")), expected)
    np.save(tmp_path / "t.npy", stream)
    assert np.array_equal(all_of(str(tmp_path / "t.npy")), expected)
    held = hr.open(str(tmp_path / "train.bin"), {"t": hr.tokens(seq_len=SEQ, stored="u16")}, in_memory=True)
    assert np.array_equal(np.stack([held[i]["t"] for i in range(len(held))]), expected)


def test_shuffled_in_pools_and_by_another_process(tmp_path: Path) -> None:
    import pickle

    stream = write_megatron(tmp_path / "a", documents_of(3, 100))
    ds = pickle.loads(pickle.dumps(hr.open(str(tmp_path / "a"), {"t": hr.tokens(seq_len=SEQ)})))
    for shuffle in ("pool", "global"):
        with hr.Loader(ds, 5, shuffle=shuffle, tail="keep", output="numpy") as loader:
            rows = np.concatenate([b["t"] for b in loader.epoch(0)])
            order = np.concatenate([b.indices for b in loader.epoch(1)])
        assert np.array_equal(rows[np.lexsort(rows.T[::-1])], windows_of(stream)[np.lexsort(windows_of(stream).T[::-1])])
        assert sorted(order.tolist()) == list(range(len(ds)))


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (b"\0" * 100, {}, ["plain.bin", 'stored="u16"']),
        (b"\0" * 101, {"stored": "u16"}, ["plain.bin", "101 bytes"]),
        (b"", {"stored": "u16"}, ["plain.bin", "empty"]),
        (b"\0" * 10, {"stored": "u16"}, ["9 tokens", "has 5", "smaller seq_len"]),
        (b"\0" * 100, {"stored": "f32"}, ["whole numbers"]),
        (np.array([20240520, 1, 99] + [0] * 253, "<i4").tobytes() + b"\0\0", {}, ["99 tokens", "1026"]),
        (np.array([20240520, 7, 1] + [0] * 253, "<i4").tobytes() + b"\0\0", {}, ["version 7"]),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, content: bytes, options: dict[str, str], words: list[str]) -> None:
    (tmp_path / "plain.bin").write_bytes(content)
    with pytest.raises(hr.Error) as error:
        all_of(str(tmp_path / "plain.bin"), **options)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_a_window_has_no_other_fields(tmp_path: Path) -> None:
    write_megatron(tmp_path / "a", documents_of(1))
    np.arange(100, dtype=np.uint16).tofile(tmp_path / "p.bin")
    place = str(tmp_path / "a")
    with pytest.raises(hr.UsageError, match="different lengths"):
        hr.open(place, {"a": hr.tokens(seq_len=4), "b": hr.tokens(seq_len=8)})
    with pytest.raises(hr.UsageError, match="cu_seqlens, not 'lengths'"):
        hr.open(place, {"a": hr.tokens(seq_len=4), "b": hr.array("lengths")})
    with pytest.raises(hr.UsageError, match="no field 'positions'"):  # who knows of no documents has none
        hr.open(str(tmp_path / "p.bin"), {"a": hr.tokens(seq_len=4, stored="u16"), "b": hr.array("positions")})
    with pytest.raises(hr.UsageError, match="seq_len"):
        hr.tokens()
    assert repr(hr.tokens(seq_len=4, stored="u16")) == "hr.tokens(seq_len=4, dtype='i64', stored='u16')"
