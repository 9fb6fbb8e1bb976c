# SPDX-License-Identifier: Apache-2.0
"""Texts to files of tokens, with the tokenizers that people have, against what those give by themselves."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
import pytest

tokenizers = pytest.importorskip("tokenizers")

WORDS = ["the", "water", "of", "a", "river", "turns", "wheel", "after", "on", "its", "way", "down", "to", "sea", "and"]


def corpus(count: int = 300) -> list[str]:
    rng = np.random.default_rng(5)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 60))) for _ in range(count)]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small BPE, trained here."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, special_tokens=["[UNK]", "<|endoftext|>"], show_progress=False)
    made.train_from_iterator(corpus(50), trainer)
    place = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    made.save(str(place))
    return place


def as_jsonl(folder: Path, texts: list[str], name: str = "a.jsonl") -> Path:
    place = folder / name
    data = "".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in enumerate(texts)).encode()
    place.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return place


def expected(tokenizer: Path, texts: list[str]) -> list[list[int]]:
    made = tokenizers.Tokenizer.from_file(str(tokenizer))
    end = made.token_to_id("<|endoftext|>")
    return [[*e.ids, end] for e in made.encode_batch(texts, add_special_tokens=False)]


def documents(folder: Path) -> list[list[int]]:
    ds = hr.open(str(folder))
    return [ds[i]["tokens"].tolist() for i in range(len(ds))]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_corpus_becomes_what_the_tokenizer_gives(tmp_path: Path, tokenizer: Path, name: str) -> None:
    texts = corpus()
    out = tmp_path / "tokens"
    found = hr.tokenize(str(as_jsonl(tmp_path, texts, name)), out, tokenizer=tokenizer, shard_tokens=2000)
    wanted = expected(tokenizer, texts)
    assert documents(out) == wanted
    assert found["tokens"] == sum(map(len, wanted)) and found["written_documents"] == len(texts) and found["dtype"] == "u16"
    assert sum(found["lengths"].values()) == len(texts) and len(found["files"]) == found["shards"] > 3
    assert json.loads((out / "tokens.json").read_text()) == found
    with hr.Loader(str(out), 4, {"t": hr.tokens(seq_len=16)}, shuffle=False, tail="keep", output="numpy") as loader:
        rows = np.concatenate([b["t"] for b in loader.epoch(0)])
    assert rows.shape[1] == 17 and rows[0].tolist() == [n for d in wanted for n in d][:17]


def test_other_sources_and_other_tokenizers(tmp_path: Path, tokenizer: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = corpus(60)
    pq.write_table(pa.table({"id": range(60), "content": texts}), tmp_path / "t.parquet")
    (tmp_path / "files").mkdir()
    for i, text in enumerate(texts):
        (tmp_path / "files" / f"{i:03d}.txt").write_text(text)
    wanted = expected(tokenizer, texts)
    fast = tokenizers.Tokenizer.from_file(str(tokenizer))
    for n, (source, which) in enumerate([("t.parquet", fast), ("files", tokenizer.parent)]):
        hr.tokenize(str(tmp_path / source), tmp_path / f"out{n}", tokenizer=which)
        assert documents(tmp_path / f"out{n}") == wanted
    hr.tokenize(str(tmp_path / "t.parquet"), tmp_path / "bare", tokenizer=tokenizer, end_of_document=False)
    assert documents(tmp_path / "bare") == [d[:-1] for d in wanted]
    hr.tokenize(str(tmp_path / "t.parquet"), tmp_path / "unk", tokenizer=tokenizer, end_of_document="[UNK]")
    assert documents(tmp_path / "unk") == [[*d[:-1], 0] for d in wanted]


def test_a_tokenizer_of_tiktoken(tmp_path: Path) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([i]): i for i in range(256)} | {b"th": 256, b"the": 257}
    encoding = tiktoken.Encoding("tiny", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 70000})
    texts = corpus(20)
    found = hr.tokenize(str(as_jsonl(tmp_path, texts)), tmp_path / "out", tokenizer=encoding)
    assert found["dtype"] == "i32"
    assert documents(tmp_path / "out") == [[*encoding.encode_ordinary(t), 70000] for t in texts]


def test_a_tokenizer_of_sentencepiece(tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    texts = corpus(40)
    (tmp_path / "corpus.txt").write_text("\n".join(texts))
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "corpus.txt"), model_prefix=str(tmp_path / "sp"), vocab_size=30, minloglevel=2
    )
    made = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "sp.model"))
    hr.tokenize(str(as_jsonl(tmp_path, texts)), tmp_path / "out", tokenizer=tmp_path / "sp.model")
    assert documents(tmp_path / "out") == [[*made.encode(t), made.eos_id()] for t in texts]


def test_ranks_share_the_shards(tmp_path: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = corpus()
    source = str(as_jsonl(tmp_path, texts))
    hr.tokenize(source, tmp_path / "one", tokenizer=tokenizer, shard_tokens=1000)
    monkeypatch.setenv("WORLD_SIZE", "3")
    for rank in (2, 0, 1):
        monkeypatch.setenv("RANK", str(rank))
        assert not (tmp_path / "three" / "tokens.json").exists()
        hr.tokenize(source, tmp_path / "three", tokenizer=tokenizer, shard_tokens=1000)
    same = {p.name: p.read_bytes() for p in (tmp_path / "one").glob("tokens*")}
    assert same == {p.name: p.read_bytes() for p in (tmp_path / "three").glob("tokens*")}


def test_a_kill_at_any_time_costs_at_most_a_shard(tmp_path: Path, tokenizer: Path) -> None:
    source = str(as_jsonl(tmp_path, corpus(2000)))
    hr.tokenize(source, tmp_path / "one", tokenizer=tokenizer, shard_tokens=500)
    wanted = {p.name: p.read_bytes() for p in (tmp_path / "one").glob("tokens*")}
    program = f"import headrace as hr; hr.tokenize({source!r}, {str(tmp_path / 'two')!r}, tokenizer={str(tokenizer)!r}, shard_tokens=500)"
    kills = 0
    for target in (3, 12, 30):
        child = subprocess.Popen([sys.executable, "-c", program])
        done = tmp_path / "two" / ".tokenize"
        while child.poll() is None and (len(list(done.glob("*.done"))) if done.exists() else 0) < target:
            time.sleep(0.002)
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
            kills += 1
        child.wait()
    assert kills >= 2
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "two" / ".tokenize").glob("*.done")}
    hr.tokenize(source, tmp_path / "two", tokenizer=tokenizer, shard_tokens=500)
    after = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "two" / ".tokenize").glob("*.done")}
    assert len(before) >= 30 and all(after[name] == when for name, when in before.items())  # none was written again
    assert {p.name: p.read_bytes() for p in (tmp_path / "two").glob("tokens*")} == wanted


def test_bad_texts(tmp_path: Path, tokenizer: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for i, text in enumerate(corpus(10)):
        (folder / f"{i}.txt").write_bytes(b"\xff\xfe broken" if i == 4 else text.encode())
    with pytest.raises(hr.DataError, match=r"4\.txt"):
        hr.tokenize(str(folder), tmp_path / "a", tokenizer=tokenizer)
    assert not list((tmp_path / "a").glob("*tokens-*"))
    found = hr.tokenize(str(folder), tmp_path / "b", tokenizer=tokenizer, bad_samples="skip")
    assert (found["written_documents"], found["documents"]) == (9, 10)
    assert len(documents(tmp_path / "b")) == 9


def test_mistakes_are_named(tmp_path: Path, tokenizer: Path) -> None:
    source = str(as_jsonl(tmp_path, corpus(5)))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    (tmp_path / "no.json").write_text("{}")
    hr.tokenize(source, tmp_path / "done", tokenizer=tokenizer)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"tokenizer": "none.json"}, "no such tokenizer"),
        ({"tokenizer": tmp_path / "no.json"}, "no tokenizer"),
        ({"tokenizer": 3}, "tokenizer is 3"),
        ({"field": "texts"}, "have id, text"),
        ({"end_of_document": "<eot>"}, "no token '<eot>'"),
        ({"end_of_document": 10**6}, "end_of_document"),
        ({"to": tmp_path / "full"}, "has x in it"),
        ({"to": tmp_path / "done", "end_of_document": False}, "end_of_document is 1 there and None here"),
    ]
    for options, words in cases:
        given = {"to": tmp_path / "new", "tokenizer": tokenizer} | options
        with pytest.raises(hr.UsageError, match=words):
            hr.tokenize(source, **given)


def test_the_command_and_verify(tmp_path: Path, tokenizer: Path) -> None:
    source = str(as_jsonl(tmp_path, corpus(50)))
    run = [sys.executable, "-m", "headrace"]
    env = {**os.environ, "NO_COLOR": "1"}
    out = subprocess.run(
        [*run, "tokenize", source, str(tmp_path / "out"), "--tokenizer", str(tokenizer)],
        capture_output=True,
        text=True,
        env=env,
        check=True,
    )
    assert "50 of 50" in out.stdout and "1 of 1 pairs" in out.stdout
    assert subprocess.run([*run, "verify", str(tmp_path / "out")], capture_output=True, env=env).returncode == 0
    place = tmp_path / "out" / "tokens-00000.bin"
    data = bytearray(place.read_bytes())
    data[10] ^= 1
    place.write_bytes(data)
    bad = subprocess.run([*run, "verify", str(tmp_path / "out")], capture_output=True, text=True, env=env)
    assert bad.returncode == 1 and "not as it was written" in " ".join(bad.stdout.split())
