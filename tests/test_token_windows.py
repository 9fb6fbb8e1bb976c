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
    assert ds.unused_tokens == sum(len(s) - len(windows_of(s)) * SEQ - 1 for s in streams) > 0
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


@pytest.mark.parametrize("in_memory", [False, True])
def test_positions_and_masks_go_into_the_batch_beside_the_tokens(tmp_path: Path, in_memory: bool) -> None:
    """Without the borders all columns have one size, and batches are made without a request for each sample."""
    for name in "ab":
        write_megatron(tmp_path / name, documents_of(ord(name), 60))
    fields = {"t": hr.tokens(seq_len=SEQ), "p": hr.array("positions"), "m": hr.array("loss_mask")}
    data = hr.open(str(tmp_path / "*.idx"), fields, in_memory=in_memory)
    for part in (data, data[5:40]):
        samples = [part[i] for i in range(len(part))]
        with hr.Loader(part, 7, seed=2, tail="keep", output="numpy") as loader:
            seen = []
            for batch in loader:
                for row, i in enumerate(batch.indices):
                    for name in fields:
                        assert np.array_equal(batch[name][row], samples[int(i)][name])
                    seen.append(int(i))
            assert sorted(seen) == list(range(len(part)))
            assert loader.stats()["stages"]["resolve"]["items"] == 0


def test_plain_files_of_tokens(tmp_path: Path) -> None:
    stream = np.random.default_rng(0).integers(0, 65536, 500).astype(np.uint16)
    expected = windows_of(stream)
    stream.tofile(tmp_path / "train.bin")  # nanoGPT's
    assert np.array_equal(all_of(str(tmp_path / "train.bin"), stored="u16"), expected)
    header = np.zeros(256, "<i4")
    header[:3] = 20240520, 1, len(stream)
    (tmp_path / "llmc.bin").write_bytes(header.tobytes() + stream.tobytes())
    assert np.array_equal(all_of(str(tmp_path / "llmc.bin")), expected)
    header[:3] = 20240801, 7, len(stream)
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


def test_documents_are_cut_and_padded_on_the_side_that_is_asked_for(tmp_path: Path) -> None:
    docs = documents_of(5)
    write_megatron(tmp_path / "a", docs)
    for truncate, pad_side, multiple in (("right", "right", 1), ("left", "left", 8), ("right", "left", 5)):
        fields = {
            "t": hr.tokens(
                documents=True, max_len=12, truncate=truncate, pad_value=-1, pad_to_multiple=multiple, pad_side=pad_side
            )
        }
        with hr.Loader(str(tmp_path / "a"), 8, fields, tail="keep", output="numpy") as loader:
            seen = 0
            for batch in loader.epoch(0):
                values, lengths = batch["t"]
                assert values.dtype == np.int64
                assert values.shape[1] == -(-int(lengths.max()) // multiple) * multiple
                for row, n, i in zip(values, lengths, batch.indices):
                    expected = docs[i][:12] if truncate == "right" else docs[i][-12:]
                    assert n == len(expected)
                    kept, pad = (row[:n], row[n:]) if pad_side == "right" else (row[len(row) - n :], row[: len(row) - n])
                    assert np.array_equal(kept, expected) and (pad == -1).all()
                    seen += 1
        assert seen == len(docs)


def test_documents_that_cannot_be_say_so(tmp_path: Path) -> None:
    with pytest.raises(hr.UsageError, match="goes with documents=True"):
        hr.tokens("tokens", max_len=4)
    with pytest.raises(hr.UsageError, match="seq_len= does not go with documents=True"):
        hr.tokens(documents=True, seq_len=4)
    with pytest.raises(hr.UsageError, match="truncate"):
        hr.tokens(documents=True, truncate="middle")  # type: ignore[arg-type]
    with pytest.raises(hr.UsageError, match="goes with seq_len"):
        hr.tokens("tokens", permute_documents=True)
    write_megatron(tmp_path / "a", documents_of(1))
    with pytest.raises(hr.UsageError, match="holds 0 to 65535"):
        hr.Loader(str(tmp_path / "a"), 2, {"t": hr.tokens(documents=True, dtype="u16", pad_value=-1)})
    np.arange(100, dtype="<u2").tofile(tmp_path / "plain.bin")
    with pytest.raises(hr.UsageError, match="where documents begin"):
        hr.Loader(str(tmp_path / "plain.bin"), 2, {"t": hr.tokens(seq_len=8, stored="u16", permute_documents=True)})


def permuted(folder: Path, epoch: int, rank: int = 0, ranks: int = 1, state: object = None, **options: object) -> list:
    fields = {
        "t": hr.tokens(seq_len=SEQ, permute_documents=True),
        "positions": hr.array("positions"),
        "mask": hr.array("loss_mask"),
        "cu": hr.array("cu_seqlens").list(),
    }
    given = {"shuffle": False, "tail": "keep", "output": "numpy", **options}
    with hr.Loader(str(folder / "*.idx"), 6 // ranks, fields, rank=rank, world_size=ranks, **given) as loader:
        if state is not None:
            loader.load_state_dict(state)
        out = []
        for batch in loader.epoch(epoch):
            out.append((batch["t"], batch["positions"], batch["mask"], batch["cu"], loader.state_dict()))
    return out


def test_permuted_documents_stay_whole_and_come_in_another_order_each_epoch(tmp_path: Path) -> None:
    begins = np.cumsum([0, *np.random.default_rng(2).integers(1, 30, 60)])
    docs = [np.arange(a, b, dtype=np.uint16) for a, b in zip(begins[:-1], begins[1:])]
    write_megatron(tmp_path / "a", docs)
    streams = []
    for epoch in range(3):
        steps = permuted(tmp_path, epoch)
        rows = np.concatenate([s[0] for s in steps])
        assert np.array_equal(rows[1:, 0], rows[:-1, -1])  # they share one token, as ever
        stream = [*rows[:, :-1].ravel().tolist(), int(rows[-1, -1])]
        assert len(set(stream)) == len(stream)  # every token once at most; the rest at the end is less than a window
        assert len(stream) > int(begins[-1]) - SEQ - 1
        starts = set(begins.tolist())
        for t, positions, mask, cu, _ in steps:
            for row in range(len(t)):
                first = [k for k in range(1, SEQ) if int(t[row][k]) in starts]
                assert cu[row].tolist() == [0, *first, SEQ]
                assert [k for k in range(SEQ) if mask[row][k] == 0] == [k for k in range(SEQ) if int(t[row][k + 1]) in starts]
                assert [k for k in range(1, SEQ) if positions[row][k] == 0] == first
        for a, b in zip(stream[:-1], stream[1:]):
            assert b == a + 1 or b in starts  # inside a document tokens follow each other
        streams.append(stream)
    assert streams[0] != streams[1] != streams[2]
    again = np.concatenate([s[0] for s in permuted(tmp_path, 1)])
    assert [*again[:, :-1].ravel().tolist(), int(again[-1, -1])] == streams[1]
    other = np.concatenate([s[0] for s in permuted(tmp_path, 1, seed=5)])
    assert other[:, :-1].ravel().tolist() != streams[1][:-1]


def test_permuted_documents_resume_at_every_step_onto_other_ranks(tmp_path: Path) -> None:
    for i in range(2):
        write_megatron(tmp_path / f"s{i}", documents_of(i, 20))
    straight = permuted(tmp_path, 2, shuffle=True, seed=3)
    for ranks in (1, 2, 3):
        for step in range(len(straight) - 1):
            state = straight[step][4]
            parts = [permuted(tmp_path, 2, rank, ranks, state, shuffle=True, seed=3) for rank in range(ranks)]
            for n, whole in enumerate(straight[step + 1 :]):
                assert np.array_equal(np.concatenate([p[n][0] for p in parts]), whole[0])


def test_a_state_of_windows_in_file_order_does_not_fit_permuted_ones(tmp_path: Path) -> None:
    write_megatron(tmp_path / "a", documents_of(1))
    with (
        hr.Loader(str(tmp_path / "a"), 2, {"t": hr.tokens(seq_len=SEQ)}) as plain,
        hr.Loader(str(tmp_path / "a"), 2, {"t": hr.tokens(seq_len=SEQ, permute_documents=True)}) as other,
        pytest.raises(hr.UsageError, match="fingerprint"),
    ):
        other.load_state_dict(plain.state_dict())


def test_rows_of_plain_arrays_come_straight_from_memory_and_are_the_same(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).integers(-9, 9, (300, 7, 5)).astype(np.int16)
    np.save(tmp_path / "a.npy", rows)
    for in_memory in (False, True):
        for dtype in (None, "i64", "f32"):
            field = hr.array("a") if dtype is None else hr.array("a").cast(dtype)
            name = hr.open(str(tmp_path / "a.npy")).schema[0][0]
            data = hr.open(str(tmp_path / "a.npy"), {"x": field._with(field=name, variables=[name])}, in_memory=in_memory)
            with hr.Loader(data, 16, tail="keep", output="numpy", threads=2) as loader:
                for batch in loader.epoch(0):
                    assert np.array_equal(batch["x"], rows[batch.indices])
