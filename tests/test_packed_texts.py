# SPDX-License-Identifier: Apache-2.0
"""Texts and chats that are tokenised while they are loaded, packed into rows and cut into batches by tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
import pytest
from test_text_fields import CHATML, MARKED, chats, corpus, folder, texts, tokenizers, unpadded  # noqa: F401 - fixtures

SEQ = 1024


@pytest.fixture
def own(tmp_path: Path) -> str:
    """A corpus that this test alone has: lengths are kept beside it."""
    lines = zip(texts(60), chats(60))
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": t, "messages": c}) + "\n" for t, c in lines))
    return str(tmp_path / "a.jsonl")


def alone(url: str, field: Any) -> list[dict[str, list[int]]]:
    """Every sample as it is without packing."""
    out = []
    with hr.Loader(url, 16, {"ids": field}, shuffle=False, tail="keep", output="numpy") as loader:
        for batch in loader.epoch(0):
            columns = {name: unpadded(value) for name, value in batch.items()}
            out += [dict(zip(columns, row)) for row in zip(*columns.values())]
    return out


def samples_of(batch: Any, name: str) -> list[list[int]]:
    out = []
    for row, borders, first, last in zip(batch[name], batch["cu_seqlens"], batch.groups[:-1], batch.groups[1:]):
        ends = borders[: last - first + 1]
        out += [row[a:b].tolist() for a, b in zip(ends[:-1], ends[1:])]
    return out


@pytest.mark.parametrize("processes", [0, 2])
def test_chats_are_packed_with_their_masks(own: str, folder: Path, processes: int) -> None:  # noqa: F811
    field = hr.json("messages").chat(folder, template=MARKED, processes=processes)
    wanted = alone(own, field)
    rows = hr.packed(hr.open(own, {"ids": field, "key": hr.key()}), SEQ)
    seen = []
    with hr.Loader(rows, 3, seed=1, tail="keep", output="numpy") as loader:
        assert len(loader) > 1
        for epoch, batches in loader.epochs(2):
            seen = []
            for batch in batches:
                assert batch["ids"].shape == batch["ids_loss_mask"].shape == batch["positions"].shape
                assert len(batch["key"]) == len(batch.indices)
                ids, mask = samples_of(batch, "ids"), samples_of(batch, "ids_loss_mask")
                for i, some, says in zip(batch.indices.tolist(), ids, mask):
                    assert some == wanted[i]["ids"] and says == wanted[i]["ids_loss_mask"], (epoch, i)
                for row, borders, first, last in zip(batch["ids"], batch["cu_seqlens"], batch.groups[:-1], batch.groups[1:]):
                    assert (row[borders[last - first] :] == 1).all()  # filled up with the tokenizer's <pad>
                seen += batch.indices.tolist()
            assert sorted(seen) == list(range(60))


@pytest.mark.parametrize("how", ["text", "end", "plain"])
def test_texts_are_packed(own: str, folder: Path, how: str) -> None:  # noqa: F811
    options: dict[str, Any] = {"text": {}, "end": {"end": True, "max_len": 30}, "plain": {"special": False}}[how]
    field = hr.text("text").tokenize(folder, **options)
    wanted = alone(own, field)
    filled = set()
    with hr.Loader(hr.packed(hr.open(own, {"ids": field}), 300, pad_value=499), 4, tail="keep", output="numpy") as loader:
        for batch in loader.epoch(3):
            for i, some in zip(batch.indices.tolist(), samples_of(batch, "ids")):
                assert some == wanted[i]["ids"]
            filled |= set(batch["ids"][batch["loss_mask"] == 0].tolist())
    assert 499 in filled


def test_lengths_are_kept_for_this_tokenizer_and_template_alone(own: str, folder: Path, tmp_path: Path) -> None:  # noqa: F811
    def kept() -> set[str]:
        return {p.name for p in tmp_path.glob("*.hrlengths")}

    def count(field: Any) -> int:
        return int(hr.packed(hr.open(own, {"ids": field}), 4096).report["tokens"])

    chat = hr.json("messages").chat(folder)
    first = count(chat)
    (name,) = kept()
    stamp = (tmp_path / name).stat().st_mtime_ns
    assert count(chat) == first
    assert count(hr.json("messages").chat(folder, roles=("user",), dtype="i32")) == first  # as many tokens
    assert count(hr.json("messages").chat(folder, max_len=20)) < first  # cut after they were counted
    assert kept() == {name} and (tmp_path / name).stat().st_mtime_ns == stamp
    assert count(hr.json("messages").chat(folder, template=MARKED)) != first
    assert len(kept()) == 2
    other = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=40, special_tokens=["[UNK]", "<|im_start|>", "<|im_end|>"], show_progress=False
    )
    other.train_from_iterator(texts(200), trainer)
    assert count(hr.json("messages").chat(other, template=CHATML)) != first
    assert len(kept()) == 3
    assert count(hr.text("text").tokenize(folder)) != count(hr.text("text").tokenize(folder, special=False))
    assert len(kept()) == 5


def test_a_function_after_the_tokens_is_counted_each_time(own: str, folder: Path, tmp_path: Path) -> None:  # noqa: F811
    doubled = hr.text("text").tokenize(folder).map(lambda ids: np.concatenate([ids, ids]))
    rows = hr.packed(hr.open(own, {"ids": doubled}), SEQ, "ids")
    assert rows.report["tokens"] == 2 * hr.packed(hr.open(own, {"ids": hr.text("text").tokenize(folder)}), SEQ).report["tokens"]
    assert len(list(tmp_path.glob("*.hrlengths"))) == 1  # of the tokens alone


def test_batches_by_tokens_of_texts_and_chats(own: str, folder: Path) -> None:  # noqa: F811
    for field in (hr.text("text").tokenize(folder), hr.json("messages").chat(folder)):
        wanted = alone(own, field)
        for ranks in (1, 2):
            seen, steps = [], set()
            for rank in range(ranks):
                options: dict[str, Any] = {"rank": rank, "world_size": ranks, "tail": "keep", "output": "numpy"}
                with hr.Loader(own, fields={"ids": field}, max_tokens=1000, **options) as loader:
                    steps.add(len(loader))
                    for batch in loader.epoch(0):
                        values, _ = batch["ids"]
                        assert values.size <= 1000
                        for i, some in zip(batch.indices.tolist(), unpadded(batch["ids"])):
                            assert some == wanted[i]["ids"]
                        seen += batch.indices.tolist()
            assert sorted(seen) == list(range(60)) and len(steps) == 1


def test_many_shards_are_counted_ahead_with_the_tokenizer(
    own: str,
    folder: Path,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from headrace import cli, lengths
    from typer.testing import CliRunner

    (tmp_path / "b.jsonl").write_bytes(Path(own).read_bytes())
    url = str(tmp_path / "*.jsonl")
    monkeypatch.setattr(lengths, "MOST_SHARDS", 1)
    cases = [
        (hr.json("messages").chat(folder, max_len=99), f"--lengths messages --tokenizer {folder} --chat"),
        (hr.text("text").tokenize(folder), f"--lengths text --tokenizer {folder}"),
        (
            hr.text("text").tokenize(folder, special=False, end=True),
            f"--lengths text --tokenizer {folder} --no-special --end",
        ),
    ]
    for field, command in cases:
        with pytest.raises(hr.UsageError) as refused:
            hr.packed(hr.open(url, {"ids": field}), SEQ)
        assert str(refused.value).endswith(f"headrace index '{url}' {command}")
        done = CliRunner().invoke(cli.app, ["index", url, *command.split()])
        assert done.exit_code == 0 and "120 samples" in done.output, done.output
        assert hr.packed(hr.open(url, {"ids": field}), SEQ).report["samples"] == 120


def test_what_cannot_be_packed_says_so(own: str, folder: Path, tmp_path: Path) -> None:  # noqa: F811
    fixed = hr.json("messages").chat(folder, max_len=40, fixed=True)
    with pytest.raises(hr.UsageError, match="fixed=True"):
        hr.packed(hr.open(own, {"ids": fixed}), SEQ)
    with pytest.raises(hr.UsageError, match="fixed=True"):
        hr.Loader(own, fields={"ids": fixed}, max_tokens=1000)
    both = {"a": hr.json("messages").chat(folder), "b": hr.text("text").tokenize(folder)}
    with pytest.raises(hr.UsageError, match="which field has the tokens"):
        hr.packed(hr.open(own, both), SEQ)
    with pytest.raises(hr.UsageError, match="repack is True or False"):
        hr.packed(hr.open(own, {"ids": both["a"]}), SEQ, repack="yes")  # type: ignore[arg-type]
    lines = [{"messages": chats(1)[0]}, {"messages": [{"content": "no role"}]}]
    (tmp_path / "bad.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(hr.DataError, match=r"sample 1.*bad.*message 0 is no object with a 'role'"):
        hr.packed(hr.open(str(tmp_path / "bad.jsonl"), {"ids": both["a"]}), SEQ)
