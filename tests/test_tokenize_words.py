# SPDX-License-Identifier: Apache-2.0
"""Texts by their words give the tokens that the tokenizer gives for the whole text, whatever is in them."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tokenizers = pytest.importorskip("tokenizers")

from headrace.tokenizing import words  # noqa: E402
from headrace.tokenizing.encoders import encoder_of  # noqa: E402

#: Every letter that words are found in, by itself.
LETTERS = [chr(c) for c in range(1, 0x3000) if not words._ODD.search(chr(c))]
SPLITS = {"gpt2": None, "gpt2 split": words._GPT2, "llama3": words._LLAMA3, "qwen": words._QWEN}


def made(split: str, **options: Any) -> Any:
    """A byte-level BPE trained on a text with all letters."""
    levels = tokenizers.pre_tokenizers
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE(**options))
    pattern = SPLITS[split]
    if pattern is None:
        bpe.pre_tokenizer = levels.ByteLevel(add_prefix_space=False)
    else:
        cut = levels.Split(tokenizers.Regex(pattern), "isolated")
        bpe.pre_tokenizer = levels.Sequence([cut, levels.ByteLevel(add_prefix_space=False, use_regex=False)])
    if split == "qwen":
        bpe.normalizer = tokenizers.normalizers.NFC()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=700, special_tokens=["<|endoftext|>", "[X]"], initial_alphabet=levels.ByteLevel.alphabet(), show_progress=False
    )
    bpe.train_from_iterator(["the water of a river, it's Größe 2048 — 17.5% of it's\n\n  way"] * 20 + LETTERS, trainer)
    return bpe


def texts() -> list[str]:
    draw = random.Random(3)
    out = [f"a{c}b 1{c}2 {c} {c}{c}x  {c}\n{c}'s" for c in LETTERS]
    pieces = [
        "the",
        " water",
        "it's",
        "IT'S",
        "'LL",
        "  ",
        "\n",
        "\r\n",
        "\t",
        " \n ",
        "12345",
        "²½",
        "—",
        "“x”",
        "größe",
        "ſ",
        "…",
        ".)",
        "'",
        "_",
    ]
    odd = ["水", "🙂", "\u00a0", "\u2028", "\x00", "e\u0301", "<|endoftext|>", "[X]", "\x1c", "\u00ad", "\u017f"]
    for n in range(3000):
        some = draw.choices(pieces + (odd if n % 3 == 0 else []), k=draw.randint(0, 12))
        out.append("".join(some))
    return [*out, "a" * 5000, " " * 300, "'" * 200]


@pytest.mark.parametrize("split", list(SPLITS))
def test_words_give_what_the_tokenizer_gives(split: str) -> None:
    bpe = made(split)
    encoder: Any = encoder_of(bpe)
    assert encoder._words is not None
    given = texts()
    wanted = [e.ids for e in bpe.encode_batch(given, add_special_tokens=False)]
    for _ in range(2):  # the second time all words are known
        data, lengths = encoder.encode_bytes(given, "u16", 1)
        ends = np.cumsum(lengths)
        found = np.split(np.frombuffer(data, "<u2"), ends[:-1])
        for text, ours, theirs in zip(given, found, wanted):
            assert ours.tolist() == [*theirs, 1], text
    data, lengths = encoder.encode_bytes(given, "i32", None)
    assert np.frombuffer(data, "<i4").tolist() == [n for ids in wanted for n in ids] and lengths == list(map(len, wanted))
    plain = [t for t, v in zip(given, encoder._words.encode(given, "u16")) if v is not None]
    assert len(plain) > len(given) // 2 and not any(re.search("水|endoftext|\u00a0", t) for t in plain)


def test_very_many_words_are_forgotten_and_learnt_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_MOST_WORDS", 50)
    bpe = made("gpt2")
    encoder: Any = encoder_of(bpe)
    for _ in range(3):
        given = [f"number{n} of {n * 7919}" for n in range(100)]
        data, _ = encoder.encode_bytes(given, "u16", None)
        assert np.frombuffer(data, "<u2").tolist() == [i for e in bpe.encode_batch(given) for i in e.ids]
        assert len(encoder._words._known["u16"]) == 0


def test_other_tokenizers_see_whole_texts(tmp_path: Path) -> None:
    levels = tokenizers.pre_tokenizers
    others = [made("gpt2") for _ in range(5)]
    others[0].pre_tokenizer = levels.ByteLevel(add_prefix_space=True)
    others[1].normalizer = tokenizers.normalizers.Lowercase()
    others[2].pre_tokenizer = levels.Whitespace()
    others[3].pre_tokenizer = levels.ByteLevel(add_prefix_space=False, use_regex=False)
    others[4] = made("gpt2", dropout=0.1)
    for bpe in others:
        encoder: Any = encoder_of(bpe)
        assert encoder._words is None
    given = ["The Water", " of it"]
    for bpe in others[:4]:
        data, _ = encoder_of(bpe).encode_bytes(given, "u16", None)
        assert np.frombuffer(data, "<u2").tolist() == [
            i for e in bpe.encode_batch(given, add_special_tokens=False) for i in e.ids
        ]
