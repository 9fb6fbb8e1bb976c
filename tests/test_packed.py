# SPDX-License-Identifier: Apache-2.0
"""Packed rows and batches by tokens: every token once, alike on all ranks, resumed anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_token_windows import write_megatron

SEQ = 32


def documents(seed: int, count: int = 200, longest: int = SEQ) -> list[np.ndarray]:
    """Document d has tokens that no other has, so that a token says where it is from."""
    rng = np.random.default_rng(seed)
    out, next_token = [], 1
    for _ in range(count):
        n = int(rng.integers(1, longest + 1))
        out.append(np.arange(next_token, next_token + n, dtype=np.uint16))
        next_token += n
    return out


def corpus(folder: Path, seed: int = 1, count: int = 200, longest: int = SEQ) -> list[np.ndarray]:
    docs = documents(seed, count, longest)
    write_megatron(folder / "a", docs)
    return docs


def rows_of(batch: Any) -> list[list[int]]:
    """The samples of each row, cut by cu_seqlens, as lists of their tokens."""
    out = []
    for row, borders in zip(batch["tokens"], batch["cu_seqlens"]):
        out += [row[a:b].tolist() for a, b in zip(borders[:-1], borders[1:]) if row[a] != 0]
    return out


def test_every_document_is_in_one_row_whole(tmp_path: Path) -> None:
    docs = corpus(tmp_path)
    rows = hr.packed(str(tmp_path / "a.idx"), seq_len=SEQ)
    seen: list[list[int]] = []
    with hr.Loader(rows, 4, tail="keep", output="numpy") as loader:
        assert len(loader) == -(-len(rows) // 4)
        for batch in loader.epoch(0):
            assert batch["tokens"].dtype == np.int64 and batch["tokens"].shape[1] == SEQ
            found = rows_of(batch)
            assert [docs[i].tolist() for i in batch.indices] == found
            assert len(batch.groups) == len(batch["tokens"]) + 1
            seen += found
    assert sorted(seen) == sorted(d.tolist() for d in docs)
    report = rows.report
    assert report["samples"] == len(docs) and report["tokens"] == sum(map(len, docs))
    assert report["filled"] == pytest.approx(report["tokens"] / (len(rows) * SEQ)) and report["filled"] > 0.9
    assert report["saved"] == pytest.approx(1 - len(rows) / len(docs))


def test_positions_mask_and_borders_agree_with_the_tokens(tmp_path: Path) -> None:
    corpus(tmp_path)
    with hr.Loader(hr.packed(str(tmp_path / "a.idx"), SEQ, pad_value=0), 4, output="numpy") as loader:
        for batch in loader.epoch(0):
            for row in range(4):
                borders = batch["cu_seqlens"][row]
                assert borders[0] == 0 and borders[-1] == SEQ and (np.diff(borders) > 0).all()
                expected = np.concatenate([np.arange(b - a) for a, b in zip(borders[:-1], borders[1:])])
                assert np.array_equal(batch["positions"][row], expected)
                tokens, mask = batch["tokens"][row], batch["loss_mask"][row]
                assert np.array_equal(mask == 1, (tokens != 0) & (expected > 0))


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    lengths=st.lists(st.integers(0, 20), min_size=12, max_size=120),
    seq_len=st.integers(20, 40),
    within=st.integers(1, 60),
    batch=st.integers(1, 3),
    seed=st.integers(0, 5),
)
def test_rows_are_the_same_whatever_the_ranks_and_wherever_a_run_goes_on(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], seq_len: int, within: int, batch: int, seed: int
) -> None:
    if not any(lengths):
        return
    begins = np.cumsum([1, *lengths])
    docs = [np.arange(a, a + n, dtype=np.uint16) for a, n in zip(begins, lengths)]
    folder = tmp_path_factory.mktemp("packed")
    write_megatron(folder / "a", docs)
    rows = hr.packed(str(folder / "a.idx"), seq_len, within=within)

    def loader(rank: int, ranks: int) -> hr.Loader:
        options: dict[str, Any] = {"tail": "keep", "output": "numpy", "seed": seed}
        return hr.Loader(rows, global_batch_size=batch * 6, rank=rank, world_size=ranks, **options)

    with loader(0, 1) as one:
        steps = [b["tokens"].copy() for b in one.epoch(0)]
        everything = np.concatenate(steps)
    assert sorted(everything[everything > 0].tolist()) == list(range(1, int(begins[-1])))
    for ranks in (2, 3):
        parts = []
        for rank in range(ranks):
            with loader(rank, ranks) as some:
                parts.append([b["tokens"].copy() for b in some.epoch(0)])
        assert len({len(p) for p in parts}) == 1  # equal steps
        for step, whole in enumerate(steps):
            assert np.array_equal(np.concatenate([p[step] for p in parts]), whole)
    for stop in range(len(steps)):  # on two ranks from there on
        with loader(0, 1) as one:
            batches = one.epoch(0)
            for _ in range(stop):
                next(batches)
            state = json.loads(json.dumps(one.state_dict()))
        rest = []
        for rank in range(2):
            with loader(rank, 2) as some:
                some.load_state_dict(state)
                if stop < len(steps):
                    rest.append([b["tokens"].copy() for b in some.epoch(0)])
        for step, whole in enumerate(steps[stop:]):
            assert np.array_equal(np.concatenate([r[step] for r in rest]), whole)


def test_a_column_of_any_file_is_packed_with_its_labels(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    docs = documents(3, 60)
    ids = [d.tolist() for d in docs]
    labels = [[t + 5000 for t in row] for row in ids]
    table = pa.table({"input_ids": pa.array(ids, pa.list_(pa.int32())), "labels": pa.array(labels, pa.list_(pa.int64()))})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=16)
    fields = {"input_ids": hr.tokens("input_ids"), "labels": hr.tokens("labels"), "key": hr.key()}
    data = hr.open(str(tmp_path / "a.parquet"), fields)
    rows = hr.packed(data, SEQ, "input_ids", pad_value={"input_ids": 7, "labels": -100})
    seen = 0
    with hr.Loader(rows, 2, shuffle=False, output="numpy") as loader:
        for batch in loader.epoch(0):
            pad = batch["labels"] == -100
            assert (batch["input_ids"][pad] == 7).all()
            assert np.array_equal(batch["input_ids"][~pad] + 5000, batch["labels"][~pad])
            assert len(batch["key"]) == len(batch.indices)
            seen += int((~pad).sum())
    assert seen == sum(map(len, docs))


def test_lengths_are_counted_once_and_kept_beside_the_data(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table({"ids": pa.array([[1] * (n % 9 + 1) for n in range(50)], pa.list_(pa.int32()))})
    pq.write_table(table, tmp_path / "a.parquet")
    url = str(tmp_path / "a.parquet")
    first = hr.packed(url, SEQ, "ids")
    (kept,) = tmp_path.glob("*.hrlengths")
    before = kept.stat().st_mtime_ns
    again = hr.packed(url, SEQ, "ids")
    assert [again[i] for i in range(len(again))] == [first[i] for i in range(len(first))]
    assert kept.stat().st_mtime_ns == before
    damaged = bytearray(kept.read_bytes())
    damaged[-1] ^= 1
    kept.write_bytes(bytes(damaged))
    assert [hr.packed(url, SEQ, "ids")[i] for i in range(len(first))] == [first[i] for i in range(len(first))]


def test_very_many_shards_are_counted_ahead_by_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq
    from headrace import cli, lengths
    from typer.testing import CliRunner

    for shard in range(3):
        table = pa.table({"ids": pa.array([[1] * (n + shard + 1) for n in range(9)], pa.list_(pa.int32()))})
        pq.write_table(table, tmp_path / f"{shard}.parquet")
    monkeypatch.setattr(lengths, "MOST_SHARDS", 2)
    url = str(tmp_path / "*.parquet")
    with pytest.raises(hr.UsageError, match=r"3 shards are not counted yet: headrace index '.*' --lengths ids"):
        hr.packed(url, SEQ, "ids")
    done = CliRunner().invoke(cli.app, ["index", url, "--lengths", "ids"])
    assert done.exit_code == 0 and "27 samples, 162 elements of 'ids'" in done.output
    assert hr.packed(url, SEQ, "ids").report["tokens"] == 162


def test_a_sample_that_is_too_long_is_an_error_or_cut(tmp_path: Path) -> None:
    docs = corpus(tmp_path, longest=50)
    url = str(tmp_path / "a.idx")
    with pytest.raises(hr.UsageError, match=r"sample \d+ has \d+ tokens, and there is room for 32.*truncate"):
        hr.packed(url, SEQ)
    for side, cut in (("right", lambda d: d[:SEQ]), ("left", lambda d: d[-SEQ:])):
        with hr.Loader(hr.packed(url, SEQ, truncate=side), 3, tail="keep", output="numpy") as loader:
            seen = [s for batch in loader.epoch(0) for s in rows_of(batch)]
        assert sorted(seen) == sorted(cut(d).tolist() for d in docs)


def test_what_does_not_go_with_packing_says_so(tmp_path: Path) -> None:
    corpus(tmp_path)
    url = str(tmp_path / "a.idx")
    rows = hr.packed(url, SEQ)
    with pytest.raises(hr.UsageError, match="bad_samples"):
        hr.Loader(rows, 2, bad_samples="replace")
    with pytest.raises(hr.UsageError, match="fields that the data set was opened with"):
        hr.Loader(rows, 2, {"t": hr.tokens("tokens")})
    with pytest.raises(hr.UsageError, match="rows of one length already"):
        hr.packed(hr.open(url, {"t": hr.tokens(seq_len=8)}), SEQ)
    with pytest.raises(hr.UsageError, match="which field"):
        hr.packed(hr.open(url, {"key": hr.key()}), SEQ)
    other = hr.packed(url, SEQ + 1)
    with hr.Loader(rows, 2) as a, hr.Loader(other, 2) as b, pytest.raises(hr.UsageError, match="fingerprint"):
        b.load_state_dict(a.state_dict())


def test_batches_stay_within_a_budget_of_tokens_with_equal_steps_on_all_ranks(tmp_path: Path) -> None:
    docs = corpus(tmp_path, count=300)
    url = str(tmp_path / "a.idx")
    fields = {"tokens": hr.tokens(documents=True)}
    for ranks in (1, 2, 3):
        seen: list[int] = []
        steps = set()
        for rank in range(ranks):
            options: dict[str, Any] = {"rank": rank, "world_size": ranks, "tail": "keep", "output": "numpy"}
            with hr.Loader(url, fields=fields, max_tokens=200, **options) as loader:
                steps.add(len(loader))
                for batch in loader.epoch(1):
                    values, lengths = batch["tokens"]
                    assert values.size <= 200 and len(lengths) == len(batch.indices)
                    if len(lengths):
                        assert values.shape[1] == lengths.max()
                        assert lengths.max() - lengths.min() <= 8  # of about one length
                    seen += batch.indices.tolist()
        assert len(steps) == 1
        assert sorted(seen) == list(range(len(docs)))


def test_a_budget_counts_the_sum_where_nothing_is_padded_and_resumes(tmp_path: Path) -> None:
    docs = corpus(tmp_path, count=150)
    data = hr.open(str(tmp_path / "a.idx"), {"tokens": hr.tokens("tokens").ragged()})

    def loader(rank: int = 0, ranks: int = 1) -> hr.Loader:
        options: dict[str, Any] = {"rank": rank, "world_size": ranks, "tail": "keep", "output": "numpy"}
        return hr.Loader(data, max_tokens=100, bucket_by_length=False, seed=4, **options)

    with loader() as one:
        batches = list(one.epoch(0))
        assert all(b["tokens"][0].size <= 100 for b in batches)
        straight = [b.indices.tolist() for b in batches]
    with loader() as one:
        epoch = one.epoch(0)
        for _ in range(7):
            next(epoch)
        state = one.state_dict()
    rest: list[list[list[int]]] = []
    for rank in range(2):
        with loader(rank, 2) as two:
            two.load_state_dict(state)
            rest.append([b.indices.tolist() for b in two.epoch(0)])
    assert len(rest[0]) == len(rest[1])
    together = [samples for step in zip(*rest) for samples in step if samples]
    assert sorted(map(tuple, together)) == sorted(map(tuple, straight[7:]))
    assert sorted(s for step in straight for s in step) == list(range(len(docs)))


def test_a_budget_that_is_too_small_or_said_twice_is_an_error(tmp_path: Path) -> None:
    corpus(tmp_path)
    url, fields = str(tmp_path / "a.idx"), {"tokens": hr.tokens(documents=True)}
    with pytest.raises(hr.UsageError, match=r"sample \d+ has \d+ tokens.*max_tokens"):
        hr.Loader(url, fields=fields, max_tokens=8)
    with pytest.raises(hr.UsageError, match="leave batch_size"):
        hr.Loader(url, 4, fields, max_tokens=100)
    with pytest.raises(hr.UsageError, match="tokens_of"):
        hr.Loader(url, fields={**fields, "again": hr.tokens("tokens")}, max_tokens=100)


def test_an_earlier_word_means_what_it_meant(tmp_path: Path) -> None:
    """A window is steps of an array or tokens of a file: how many samples are packed together is called within."""
    corpus(tmp_path)
    url = str(tmp_path / "a.idx")

    def rows(**how: int) -> list[list[int]]:
        made = hr.packed(url, SEQ, **how)  # type: ignore[arg-type]
        return [made[i] for i in range(len(made))]

    assert rows(window=5) == rows(within=5) != rows(within=60)
    with pytest.raises(hr.UsageError, match="window is headrace's within, and both are given"):
        rows(window=5, within=6)
    with pytest.raises(hr.UsageError, match="within"):
        rows(within=0)


def test_a_blend_of_packed_rows_is_packed(tmp_path: Path) -> None:
    docs = corpus(tmp_path, count=120)
    place = str(tmp_path / "a.idx")
    parts = [hr.open(place, {"tokens": hr.tokens("tokens")})[a:b] for a, b in ((0, 50), (50, 120))]

    def blend(**options: Any) -> Any:
        return hr.blend({"x": (hr.packed(parts[0], SEQ), 1), "y": (hr.packed(parts[1], SEQ), 1)}, **options)

    with hr.Loader(blend(), 4, output="numpy") as loader:
        for batch in loader.epoch(0):
            assert batch["tokens"].shape == batch["positions"].shape == (4, SEQ)
            want = [docs[i + 50 * k].tolist() for k, i in zip(batch.sources, batch.indices)]
            assert rows_of(batch) == want
    rows = [len(hr.packed(part, SEQ)) for part in parts]
    with hr.Loader(blend(epochs={"x": 1, "y": 2}), 4, tail="keep", output="numpy") as loader:
        assert len(loader) == -(-(rows[0] + 2 * rows[1]) // 4)
        assert len(list(loader.epoch(0))) == len(loader)
        epochs = [counts["epochs"] for counts in loader.stats()["sources"].values()]
        assert epochs == pytest.approx([1, 2], abs=0.01)


def test_packed_rows_of_two_kinds_do_not_blend(tmp_path: Path) -> None:
    corpus(tmp_path)
    place = str(tmp_path / "a.idx")
    with pytest.raises(hr.UsageError, match="one seq_len"):
        hr.Loader(hr.blend({"x": (hr.packed(place, SEQ), 1), "y": (hr.packed(place, 2 * SEQ), 1)}), 4)


@pytest.mark.parametrize("shape", ["", "list", "ragged", "padded"])
def test_what_a_function_makes_of_a_value_is_packed(tmp_path: Path, shape: str) -> None:
    docs = corpus(tmp_path, longest=SEQ - 2)
    field = hr.tokens("tokens").map(lambda t: np.concatenate([t, t[:2]]))
    rows = hr.packed(hr.open(str(tmp_path / "a.idx"), {"tokens": getattr(field, shape)() if shape else field}), SEQ)
    with hr.Loader(rows, 4, output="numpy") as loader:
        for batch in loader.epoch(0):
            assert rows_of(batch) == [[*docs[i].tolist(), *docs[i][:2].tolist()] for i in batch.indices]


def test_rows_are_filled_up_with_what_the_field_is_padded_with(tmp_path: Path) -> None:
    docs = corpus(tmp_path)
    ds = hr.open(str(tmp_path / "a.idx"), {"tokens": hr.tokens(documents=True, pad_value=-7)})
    for value, wanted in ((None, -7), (3, 3)):
        with hr.Loader(hr.packed(ds, SEQ, pad_value=value), 4, output="numpy") as loader:
            for batch in loader.epoch(0):
                for row, a, b in zip(batch["tokens"], batch.groups, batch.groups[1:]):
                    tokens = np.concatenate([docs[i] for i in batch.indices[a:b]])
                    assert row.tolist() == tokens.tolist() + [wanted] * (SEQ - len(tokens))


def test_another_default_is_another_length(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    place = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"ids": [[1, 2], None, [3]]}), place)
    for default, row in (([], [1, 2, 3, 0, 0, 0]), ([9, 9, 9], [1, 2, 9, 9, 9, 3]), ([], [1, 2, 3, 0, 0, 0])):
        ds = hr.open(place, {"ids": hr.tokens("ids", default=default)})
        with hr.Loader(hr.packed(ds, 6), 1, shuffle=False, output="numpy") as loader:
            ((found,),) = (batch["ids"].tolist() for batch in loader.epoch(0))
        assert sorted(found) == sorted(row)


def test_json_lists_of_numbers_are_tokens(tmp_path: Path) -> None:
    rows = [[1, 2, 3], [], [4], [5, 6]]
    place = tmp_path / "a.jsonl"
    lines = [{"ids": r, "half": [x / 2 for x in r], "labels": [-100] * len(r)} for r in rows]
    place.write_text("".join(json.dumps(line) + "\n" for line in lines))
    fields = {
        "ids": hr.tokens("ids", documents=True, max_len=2, pad_value=9),
        "half": hr.array("half").list(),
        "small": hr.array("ids", dtype="i32").list(),
    }
    (batch,) = hr.Loader(str(place), 4, fields, shuffle=False, output="numpy")
    assert batch["ids"][0].tolist() == [[1, 2], [9, 9], [4, 9], [5, 6]]
    assert [v.tolist() for v in batch["half"]] == [[x / 2 for x in r] for r in rows]
    assert batch["half"][0].dtype == np.float64 and batch["small"][3].tolist() == [5, 6] and batch["small"][3].dtype == np.int32
    data = hr.open(str(place), {"ids": hr.tokens("ids"), "labels": hr.tokens("labels")})
    packed = hr.packed(data, 4, "ids", pad_value={"labels": -1})
    found = [(b["ids"].tolist(), b["labels"].tolist()) for b in hr.Loader(packed, 1, shuffle=False)]
    assert found == [([[1, 2, 3, 4]], [[-100] * 4]), ([[5, 6, 0, 0]], [[-100, -100, -1, -1]])]
    steps = [b["ids"][0].tolist() for b in hr.Loader(data, fields={"ids": fields["ids"]}, max_tokens=4, shuffle=False)]
    assert sum((len(rows) for rows in steps), 0) == 3


@pytest.mark.parametrize("value", ["[1, 1.5]", '["1"]', "[null]", "[[1]]", "[9223372036854775808]", "[true]"])
def test_other_json_is_bad_data(tmp_path: Path, value: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"ids": [1]}\n{"ids": ' + value + '}\n{"ids": [3]}\n')
    with pytest.raises(hr.DataError, match=r"sample 1.*no list of (whole )?numbers"):
        list(hr.Loader(str(tmp_path / "a.jsonl"), 3, {"ids": hr.tokens("ids")}, shuffle=False))
    with hr.Loader(str(tmp_path / "a.jsonl"), 3, {"ids": hr.tokens("ids")}, bad_samples="replace", shuffle=False) as loader:
        (batch,) = loader.epoch(0)
    assert sorted({int(v[0]) for v in batch["ids"]}) == [1, 3]
