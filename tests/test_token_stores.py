# SPDX-License-Identifier: Apache-2.0
"""Windows, packed rows and batches by tokens from stores that are far, slow or faulty, and from files that change."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import headrace as hr
import numpy as np
import pytest
import servers
from test_packed import corpus
from test_token_windows import documents_of, write_megatron

SEQ = 32
OPTIONS: dict[str, Any] = {"tail": "keep", "output": "numpy", "seed": 5, "threads": 2}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))


def packed(url: str, storage: Any, **options: Any) -> hr.Loader:
    data = hr.open(url, {"tokens": hr.tokens("tokens").cast("i64"), "key": hr.key()}, storage=storage)
    return hr.Loader(hr.packed(data, SEQ), global_batch_size=6, **{**OPTIONS, **options})


def by_tokens(url: str, storage: Any, **options: Any) -> hr.Loader:
    fields = {"tokens": hr.tokens(documents=True)}
    return hr.Loader(url, fields=fields, max_tokens=300, storage=storage, **{**OPTIONS, **options})


def windows(url: str, storage: Any, **options: Any) -> hr.Loader:
    fields = {"tokens": hr.tokens(seq_len=SEQ), "positions": hr.array("positions"), "loss_mask": hr.array("loss_mask")}
    return hr.Loader(url, fields=fields, global_batch_size=6, storage=storage, **{**OPTIONS, **options})


def permuted(url: str, storage: Any, **options: Any) -> hr.Loader:
    fields = {"tokens": hr.tokens(seq_len=SEQ, permute_documents=True), "cu_seqlens": hr.array("cu_seqlens").list()}
    return hr.Loader(url, fields=fields, global_batch_size=6, storage=storage, **{**OPTIONS, **options})


KINDS: dict[str, Callable[..., hr.Loader]] = {"packed": packed, "by tokens": by_tokens, "windows": windows, "permuted": permuted}


def plain(value: Any) -> Any:
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else np.asarray(value).tolist()


def batches_of(loader: hr.Loader, epochs: int = 2) -> list[Any]:
    with loader:
        return [
            (b.indices.tolist(), {name: plain(v) for name, v in b.items()})
            for _, batches in loader.epochs(epochs)
            for b in batches
        ]


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.S3]:
    with servers.versitygw(tmp_path_factory.mktemp("s3")) as server:
        (server.folder / "d").mkdir()
        corpus(server.folder / "d", count=300)
        yield server


@pytest.mark.parametrize("kind", list(KINDS))
def test_from_50_ms_away_the_batches_are_the_same(s3: servers.S3, kind: str) -> None:
    expected = batches_of(KINDS[kind](str(s3.folder / "d/a.idx"), None))
    with servers.toxiproxy(s3.port) as proxy, proxy.toxic("latency", latency=50):
        storage = s3.storage(endpoint=f"http://127.0.0.1:{proxy.port}")
        assert batches_of(KINDS[kind]("s3://bucket/d/a.idx", storage)) == expected


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_run_on_a_bad_network_goes_on_on_other_ranks(s3: servers.S3, kind: str) -> None:
    local = str(s3.folder / "d/a.idx")
    with KINDS[kind](local, None) as loader:
        straight = [(sorted(b.indices.tolist()), b.state) for b in loader.epoch(1)]
    at = len(straight) // 2
    wanted = sorted(i for indices, _ in straight[at + 1 :] for i in indices)
    with servers.toxiproxy(s3.port) as proxy, proxy.toxic("reset_peer", 0.3, timeout=5):
        storage = s3.storage(endpoint=f"http://127.0.0.1:{proxy.port}", retries=30, backoff=0.002)
        found, steps = [], set()
        for rank in range(3):
            with KINDS[kind]("s3://bucket/d/a.idx", storage, rank=rank, world_size=3) as loader:
                loader.load_state_dict(straight[at][1])
                batches = list(loader.epoch(1))
                steps.add(len(batches))
                found += [i for b in batches for i in b.indices.tolist()]
        assert sorted(found) == wanted and len(steps) == 1


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("fault", ["503", "short", "reset", "changed"])
def test_every_fault_ends_with_the_right_batches_or_an_error(tmp_path: pathlib.Path, kind: str, fault: str) -> None:
    (tmp_path / "www").mkdir()
    corpus(tmp_path / "www", count=200)
    expected = batches_of(KINDS[kind](str(tmp_path / "www/a.idx"), None), 1)
    with servers.odd_server(tmp_path / "www") as odd:
        outcomes = set()
        for position in (1, 2, 3, 5, 8, 10**6):  # the last is never reached: how many reads there are is the engine's to choose
            count = 0

            def answer(handler: Any, number: int, position: int = position) -> bool:
                nonlocal count
                if handler.command != "GET" or "Range" not in handler.headers:
                    return False
                count += 1
                if count != position:
                    return False
                if fault == "503":
                    handler.body(503, b"")
                elif fault == "short":
                    handler.good(cut=1)
                elif fault == "changed":
                    handler.good(tag="two")
                else:
                    handler.connection.close()
                    handler.close_connection = True
                return True

            odd.answer = answer
            storage = hr.storage(retries=2, backoff=0.002)
            text = ""
            try:
                assert batches_of(KINDS[kind](odd.url("a.idx"), storage), 1) == expected
            except (hr.StorageError, hr.DataError) as error:
                text = str(error)
            assert not text or (fault == "changed" and "/a." in text), text
            outcomes.add(bool(text))
        assert False in outcomes


def test_lengths_of_data_on_a_server_are_counted_once(tmp_path: pathlib.Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    (tmp_path / "www").mkdir()
    table = pa.table({"ids": pa.array([[1] * (n % 9 + 1) for n in range(50)], pa.list_(pa.int32()))})
    pq.write_table(table, tmp_path / "www/a.parquet")
    with servers.odd_server(tmp_path / "www") as odd:
        first = hr.packed(odd.url("a.parquet"), SEQ, "ids")
        before = len(odd.requests)
        again = hr.packed(odd.url("a.parquet"), SEQ, "ids")
        assert [again[i] for i in range(len(again))] == [first[i] for i in range(len(first))]
        assert len(odd.requests) - before <= 3  # opened, and nothing of the values read
        assert len(list((tmp_path / "cache").glob("*.hrlengths*"))) == 1


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("how", ["cut", "gone"])
def test_a_file_that_is_cut_while_it_is_read_gives_an_error_or_its_old_rows(
    tmp_path: pathlib.Path, in_memory: bool, how: str
) -> None:
    stream = np.arange(200 * 1024, dtype=np.uint16)
    stream.tofile(tmp_path / "a.bin")
    data = hr.open(str(tmp_path / "a.bin"), {"t": hr.tokens(seq_len=1024, stored="u16")}, in_memory=in_memory)
    with hr.Loader(data, 4, output="numpy", threads=1) as loader:
        batches = loader.epoch(0)
        given = [next(batches)]
        if how == "cut":
            os.truncate(tmp_path / "a.bin", 100 * 1024)
        else:
            os.unlink(tmp_path / "a.bin")
        text = ""
        try:
            given += list(batches)
        except (hr.DataError, hr.StorageError) as error:
            text = str(error)
        assert not text or "a.bin" in text, text
        for batch in given:
            for row, i in zip(batch["t"], batch.indices.tolist()):
                assert np.array_equal(row, stream[i * 1024 : i * 1024 + 1025])
    if in_memory:
        assert not text  # what was read into memory stays
    elif how == "cut":
        assert text


def test_an_index_that_names_more_than_the_file_has_is_refused(tmp_path: pathlib.Path) -> None:
    write_megatron(tmp_path / "a", documents_of(1))
    os.truncate(tmp_path / "a.bin", (tmp_path / "a.bin").stat().st_size - 2)
    for fields in ({"t": hr.tokens(seq_len=8)}, {"t": hr.tokens(documents=True)}):
        with pytest.raises(hr.DataError, match=r"a\.(bin|idx)"):
            list(hr.Loader(str(tmp_path / "a.idx"), 2, fields, shuffle=False))
