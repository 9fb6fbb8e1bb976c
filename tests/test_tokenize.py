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
    place.write_bytes(packed(data, name))
    return place


def packed(data: bytes, name: str) -> bytes:
    if name.endswith(".gz"):  # two members, as `cat a.gz b.gz` makes them
        return gzip.compress(data[:100]) + gzip.compress(data[100:])
    if name.endswith(".zst"):
        import pyarrow as pa

        return bytes(pa.compress(data, codec="zstd", asbytes=True))
    return data


def expected(tokenizer: Path, texts: list[str]) -> list[list[int]]:
    made = tokenizers.Tokenizer.from_file(str(tokenizer))
    end = made.token_to_id("<|endoftext|>")
    return [[*e.ids, end] for e in made.encode_batch(texts, add_special_tokens=False)]


def documents(folder: Path) -> list[list[int]]:
    ds = hr.open(str(folder))
    return [ds[i]["tokens"].tolist() for i in range(len(ds))]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.json.zst"])
def test_a_corpus_becomes_what_the_tokenizer_gives(tmp_path: Path, tokenizer: Path, name: str) -> None:
    texts = corpus()
    out = tmp_path / "tokens"
    found = hr.tokenize(str(as_jsonl(tmp_path, texts, name)), out, tokenizer=tokenizer, shard_tokens=2000)
    wanted = expected(tokenizer, texts)
    assert documents(out) == wanted
    assert found["tokens"] == sum(map(len, wanted)) and found["written_documents"] == len(texts) and found["dtype"] == "u16"
    assert sum(found["lengths"].values()) == len(texts) and len(found["files"]) > 3 and found["left_out"] == 0
    assert all(f["tokens"] < 4000 for f in found["files"].values())
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


def test_small_files_are_joined_and_large_ones_cut(tmp_path: Path, tokenizer: Path) -> None:
    texts = corpus(900)
    (tmp_path / "many").mkdir()
    for i in range(200):
        as_jsonl(tmp_path / "many", texts[i : i + 1], f"{i:03d}.jsonl")
    as_jsonl(tmp_path / "many", texts[200:], "large.jsonl")
    found = hr.tokenize(str(tmp_path / "many" / "*.jsonl"), tmp_path / "out", tokenizer=tokenizer, shard_tokens=6000)
    assert documents(tmp_path / "out") == expected(tokenizer, texts)
    sizes = [f["tokens"] for f in found["files"].values()]
    assert len(sizes) < 10 and all(n > 3000 for n in sizes)


def test_a_large_packed_file_fills_several_shards(tmp_path: Path, tokenizer: Path) -> None:
    """It cannot be cut before it is unpacked; what was written of it before a kill stays."""
    texts = corpus(900)
    source = str(as_jsonl(tmp_path, texts, "a.jsonl.gz"))
    found = hr.tokenize(source, tmp_path / "out", tokenizer=tokenizer, shard_tokens=3000)
    assert documents(tmp_path / "out") == expected(tokenizer, texts)
    sizes = [f["tokens"] for f in found["files"].values()]
    assert len(sizes) > 5 and all(3000 <= n < 3200 for n in sizes[:-1]) and found["tasks"] == 1
    whole = {p.name: p.read_bytes() for p in (tmp_path / "out").glob("tokens*")}
    for lost in sorted((tmp_path / "out" / ".tokenize").glob("*.done"))[3:]:
        lost.unlink()
    kept = (tmp_path / "out" / "tokens-00000-0001.bin").stat().st_mtime_ns
    hr.tokenize(source, tmp_path / "out", tokenizer=tokenizer, shard_tokens=3000)
    assert whole == {p.name: p.read_bytes() for p in (tmp_path / "out").glob("tokens*")}
    assert kept == (tmp_path / "out" / "tokens-00000-0001.bin").stat().st_mtime_ns


def test_text_files_are_documents(tmp_path: Path, tokenizer: Path) -> None:
    texts = corpus(30)
    for i, one in enumerate(texts):
        (tmp_path / f"{i:02d}.txt").write_text(one)
    hr.tokenize(str(tmp_path / "*.txt"), tmp_path / "out", tokenizer=tokenizer)
    assert documents(tmp_path / "out") == expected(tokenizer, texts)
    (tmp_path / "17.txt").write_bytes(b"good \xff bad")
    with pytest.raises(hr.DataError, match=r"17\.txt: it is not UTF-8 from byte 5 on"):
        hr.tokenize(str(tmp_path / "*.txt"), tmp_path / "raised", tokenizer=tokenizer)


def test_tars_and_arrow_files(tmp_path: Path, tokenizer: Path) -> None:
    import io
    import tarfile

    import pyarrow as pa

    texts = corpus(40)
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for i, one in enumerate(texts):
            info = tarfile.TarInfo(f"{i:03d}.txt")
            info.size = len(one)
            tar.addfile(info, io.BytesIO(one.encode()))
    table = pa.table({"text": texts})
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as out:
        out.write_table(table, max_chunksize=7)
    for name in ("a.tar", "a.arrow"):
        hr.tokenize(str(tmp_path / name), tmp_path / f"out-{name}", tokenizer=tokenizer)
        assert documents(tmp_path / f"out-{name}") == expected(tokenizer, texts)


def test_texts_of_a_server(tmp_path: Path, tokenizer: Path) -> None:
    texts = corpus(300)
    (tmp_path / "far").mkdir()
    for n, name in enumerate(("a.jsonl", "b.jsonl.gz", "c.jsonl")):
        as_jsonl(tmp_path / "far", texts[n * 100 : n * 100 + 100], name)
    far = hr._core.testing_scheme("farther", str(tmp_path / "far"), latency_ms=1)
    try:
        urls = [f"farther://{name}" for name in ("a.jsonl", "b.jsonl.gz", "c.jsonl")]
        hr.tokenize(urls, tmp_path / "out", tokenizer=tokenizer, shard_tokens=2000)
    finally:
        far.close()
    assert documents(tmp_path / "out") == expected(tokenizer, texts)


def test_a_member_of_a_member(tmp_path: Path, tokenizer: Path) -> None:
    texts = corpus(9)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"meta": {"body": t}, "n": 1}) + "\n" for t in texts))
    hr.tokenize(str(tmp_path / "a.jsonl"), tmp_path / "out", tokenizer=tokenizer, field="meta.body")
    assert documents(tmp_path / "out") == expected(tokenizer, texts)


BROKEN = {
    "broken JSON": (b'{"text": "half', "does not end"),
    "no member": (b'{"id": 4}', "it has no text 'text'"),
    "a number": (b'{"text": 4}', "its 'text' is no text"),
    "no UTF-8": (b'{"text": "a \xff"}', "its 'text' is not UTF-8 from byte 2 on"),
    "a list": (b"[1, 2]", "one object a line is wanted"),
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_broken_line_is_named_with_file_and_line(tmp_path: Path, tokenizer: Path, what: str, name: str) -> None:
    texts = corpus(400)
    lines = [json.dumps({"text": t}).encode() for t in texts]
    lines.insert(317, BROKEN[what][0])
    (tmp_path / name).write_bytes(packed(b"\n".join(lines), name))
    options: dict[str, Any] = {"tokenizer": tokenizer, "shard_tokens": 2000}  # a plain file is cut into some ranges
    with pytest.raises(hr.DataError, match=rf"{name}, line 318: .*{BROKEN[what][1]}.*bad_samples='skip'"):
        hr.tokenize(str(tmp_path / name), tmp_path / "raised", **options)
    found = hr.tokenize(str(tmp_path / name), tmp_path / "out", bad_samples="skip", **options)
    assert documents(tmp_path / "out") == expected(tokenizer, texts)
    assert found["left_out"] == 1 and found["left_out_are"][0][0] == f"{tmp_path / name}, line 318"


def test_so_many_bad_documents_and_no_more(tmp_path: Path, tokenizer: Path) -> None:
    lines = [b"{}" if i % 10 == 0 else json.dumps({"text": t}).encode() for i, t in enumerate(corpus(100), 1)]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    with pytest.raises(hr.DataError, match="bad document number 10, and bad_samples allows 9"):
        hr.tokenize(str(tmp_path / "a.jsonl"), tmp_path / "nine", tokenizer=tokenizer, bad_samples=9)
    assert hr.tokenize(str(tmp_path / "a.jsonl"), tmp_path / "ten", tokenizer=tokenizer, bad_samples=10)["left_out"] == 10


def test_a_packed_file_that_is_cut_short_is_named(tmp_path: Path, tokenizer: Path) -> None:
    place = as_jsonl(tmp_path, corpus(200), "a.jsonl.gz")
    place.write_bytes(place.read_bytes()[:-20])
    with pytest.raises(hr.DataError, match=r"a\.jsonl\.gz.*cut short"):
        hr.tokenize(str(place), tmp_path / "out", tokenizer=tokenizer, bad_samples="skip")


def test_a_tokenizer_that_gives_more_than_its_vocabulary(tmp_path: Path) -> None:
    """Files of two tokenizers that do not belong together."""

    class Wrong:
        def __init__(self) -> None:
            self.ids = {"<s>": 1, "</s>": 2}

        def get_piece_size(self) -> int:
            return 300

        def serialized_model_proto(self) -> bytes:
            return b"model"

        def eos_id(self) -> int:
            return 2

        def unk_id(self) -> int:
            return 0

        def piece_to_id(self, piece: str) -> int:
            return self.ids.get(piece, 0)

        def encode(self, texts: list[str], out_type: type, num_threads: int) -> list[list[int]]:
            return [[5, 300] for _ in texts]

    source = str(as_jsonl(tmp_path, corpus(5)))
    with pytest.raises(hr.UsageError, match="gave the number 300, and says that its vocabulary has 300"):
        hr.tokenize(source, tmp_path / "out", tokenizer=Wrong())
    assert not list((tmp_path / "out").glob("tokens-*"))


@pytest.mark.parametrize("module", ["tokenizers", "tiktoken", "sentencepiece"])
def test_a_package_that_is_missing_is_named(
    tmp_path: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    (tmp_path / "a.model").write_bytes(b"")
    monkeypatch.setitem(sys.modules, module, None)
    wanted: Any = {"tokenizers": tokenizer, "tiktoken": "tiktoken:gpt2", "sentencepiece": tmp_path / "a.model"}[module]
    with pytest.raises(hr.UsageError, match=f"pip install {module}"):
        hr.tokenize(str(as_jsonl(tmp_path, corpus(5))), tmp_path / "out", tokenizer=wanted)


def test_a_folder_of_a_server_is_no_place_to_write(tmp_path: Path, tokenizer: Path) -> None:
    with pytest.raises(hr.Unsupported, match="a folder of a file system"):
        hr.tokenize(str(as_jsonl(tmp_path, corpus(5))), "s3://bucket/tokens", tokenizer=tokenizer)


def test_progress_goes_to_the_end_and_never_back(tmp_path: Path, tokenizer: Path) -> None:
    for name in ("a.jsonl", "b.jsonl.gz"):
        told: list[tuple[int, int, int]] = []
        source = str(as_jsonl(tmp_path, corpus(500), name))
        found = hr.tokenize(
            source,
            tmp_path / f"{name}.out",
            tokenizer=tokenizer,
            shard_tokens=2000,
            progress=lambda *now, told=told: told.append(now),
        )
        assert told == sorted(told) and told[-1] == (os.path.getsize(source), os.path.getsize(source), found["tokens"])


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
    assert (found["written_documents"], found["left_out"]) == (9, 1) and "4.txt" in found["left_out_are"][0][0]
    assert len(documents(tmp_path / "b")) == 9


def test_mistakes_are_named(tmp_path: Path, tokenizer: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = str(as_jsonl(tmp_path, corpus(5)))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    (tmp_path / "no.json").write_text("{}")
    pq.write_table(pa.table({"id": range(3), "body": ["x"] * 3}), tmp_path / "t.parquet")
    (tmp_path / "two.jsonl").write_text('{"a": "x", "b": "y"}\n')
    (tmp_path / "empty.jsonl").write_text("\n\n")
    hr.tokenize(source, tmp_path / "done", tokenizer=tokenizer)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"tokenizer": "none.json"}, "no such tokenizer"),
        ({"tokenizer": tmp_path / "no.json"}, "no tokenizer"),
        ({"tokenizer": 3}, "tokenizer is 3"),
        ({"bad_samples": "replace"}, "bad_samples"),
        ({"source": str(tmp_path / "t.parquet"), "field": "texts"}, "have no 'texts'; texts are in body"),
        ({"source": str(tmp_path / "two.jsonl")}, "which field has the texts.* a, b"),
        ({"source": str(tmp_path / "none.jsonl")}, "none.jsonl"),
        ({"source": str(tmp_path / "no-*.jsonl.gz")}, "no-"),
        ({"source": str(tmp_path / "empty.jsonl")}, "no document"),
        ({"end_of_document": "<eot>"}, "no token '<eot>'"),
        ({"end_of_document": 10**6}, "end_of_document"),
        ({"to": tmp_path / "full"}, "has x in it"),
        ({"to": tmp_path / "done", "end_of_document": False}, "end_of_document is 1 there and None here"),
    ]
    for options, words in cases:
        given = {"source": source, "to": tmp_path / "new", "tokenizer": tokenizer} | options
        with pytest.raises(hr.Error, match=words):
            hr.tokenize(**given)
    assert not list(tmp_path.glob("new*"))


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
    assert "documents  50" in out.stdout and "1 pair in" in out.stdout
    assert subprocess.run([*run, "verify", str(tmp_path / "out")], capture_output=True, env=env).returncode == 0
    place = tmp_path / "out" / "tokens-00000.bin"
    data = bytearray(place.read_bytes())
    data[10] ^= 1
    place.write_bytes(data)
    bad = subprocess.run([*run, "verify", str(tmp_path / "out")], capture_output=True, text=True, env=env)
    said = " ".join(bad.stdout.split())
    assert bad.returncode == 1 and "not as it was written; remove it and run the same headrace tokenize again" in said
    place.unlink()
    hr.tokenize(source, tmp_path / "out", tokenizer=tokenizer)
    assert subprocess.run([*run, "verify", str(tmp_path / "out")], capture_output=True, env=env).returncode == 0


def test_texts_inside_json_of_a_tar(tokenizer: Path, tmp_path: Path) -> None:
    import io
    import tarfile

    texts = corpus(40)
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for i, text in enumerate(texts):
            value = {"body": {"text": text if i != 7 else 7}, "id": i} if i != 9 else [1]
            data = json.dumps(value).encode() if i != 11 else b"{broken"
            info = tarfile.TarInfo(f"{i:04d}.json")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    source = str(tmp_path / "a.tar")
    with pytest.raises(hr.UsageError, match=r"json\.MEMBER"):
        hr.tokenize(source, tmp_path / "t", tokenizer=tokenizer)
    with pytest.raises(hr.DataError, match=r"document 7: its 'body.text' is no text; bad_samples='skip'"):
        hr.tokenize(source, tmp_path / "t", tokenizer=tokenizer, field="json.body.text")
    made = hr.tokenize(source, tmp_path / "u", tokenizer=tokenizer, field="json.body.text", bad_samples="skip")
    assert made["left_out"] == 3 and [place.split()[-1] for place, _ in made["left_out_are"]] == ["7", "9", "11"]
    good = [t for i, t in enumerate(texts) if i not in (7, 9, 11)]
    ds = hr.open(str(tmp_path / "u"))
    assert [ds[i]["tokens"].tolist() for i in range(len(ds))] == expected(tokenizer, good)


def test_a_missing_text_of_a_table_names_the_remedy(tokenizer: Path, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    place = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"text": ["a", None, "c"], "number": [1, 2, 3]}), place)
    with pytest.raises(hr.DataError, match=r"key 'a/0+1', document 1: it has no 'text'; bad_samples='skip'"):
        hr.tokenize(place, tmp_path / "t", tokenizer=tokenizer)
    with pytest.raises(hr.UsageError, match=r"'number' holds int; texts are in text"):
        hr.tokenize(place, tmp_path / "t", tokenizer=tokenizer, field="number")
    with pytest.raises(hr.UsageError, match="no 'other'; texts are in text"):
        hr.tokenize(place, tmp_path / "t", tokenizer=tokenizer, field="other")


def test_a_folder_of_markdown_and_a_line_of_very_deep_json(tokenizer: Path, tmp_path: Path) -> None:
    (tmp_path / "md").mkdir()
    for i, text in enumerate(corpus(5)):
        (tmp_path / "md" / f"{i}.md").write_text(text)
    hr.tokenize(str(tmp_path / "md"), tmp_path / "t", tokenizer=tokenizer)
    assert documents(tmp_path / "t") == expected(tokenizer, corpus(5))
    (tmp_path / "deep.jsonl").write_text('{"text": "a", "x": ' + "[" * 100_000 + "]" * 100_000 + "}\n")
    for field in (None, "text"):
        with pytest.raises(hr.DataError, match=r"deep\.jsonl"):
            hr.tokenize(str(tmp_path / "deep.jsonl"), tmp_path / "u", tokenizer=tokenizer, field=field)


def test_a_json_list_and_a_file_as_target_are_named(tokenizer: Path, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([{"text": "a"}]))
    with pytest.raises(hr.DataError, match=r"one object a line.*jq"):
        hr.tokenize(str(tmp_path / "a.json"), tmp_path / "t", tokenizer=tokenizer)
    for place in ("a.json", "a.json/t"):
        with pytest.raises(hr.UsageError, match="give a folder"):
            hr.tokenize(hr.from_python({"text": ["a"]}), tmp_path / place, tokenizer=tokenizer)
