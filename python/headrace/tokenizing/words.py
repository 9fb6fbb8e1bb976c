# SPDX-License-Identifier: Apache-2.0
"""Words that come again are not tokenised again.

A byte-level BPE of Hugging Face's cuts a text into words by a pattern, and makes the tokens of each word by itself. So the
tokens of a word are asked of the tokenizer once and kept, and a text is its words looked up (docs/measurements.md has figures).

That holds for the patterns of GPT-2, Llama 3 and Qwen, and for letters whose kind all versions of Unicode agree on: ASCII,
Latin, and the usual punctuation. Texts with others, and texts in which a special token is written, go to the tokenizer as a
whole. Its words are checked one by one: of one that it would cut again, the texts go to it, too.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Sequence
from typing import Any

from .. import _core

_LETTERS = "A-Za-z\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u017e"
_NUMBERS = "0-9\u00b2\u00b3\u00b9\u00bc-\u00be"
_SPACES = " \\t\\n\\r"
#: What a text must not have for its words to be found here.
_ODD = re.compile("[^\\t\\n\\r -~\u00a1-\u00ac\u00ae-\u017e\u2010-\u2027\u2030-\u205e\u20ac]")

_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_QWEN = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

_PLAIN = re.compile(" ?[A-Za-z]+").fullmatch  # never cut, by any of these patterns
_MOST_WORDS = 1 << 20  # kept; then begun anew
_LONGEST = 128  # letters of a word that is kept


def _python(pattern: str) -> re.Pattern[str]:
    """The same for the letters that are not odd."""
    for outer, inner in (
        (r"[^\s\p{L}\p{N}]", f"[^{_SPACES}{_LETTERS}{_NUMBERS}]"),
        (r"[^\r\n\p{L}\p{N}]", f"[^\\r\\n{_LETTERS}{_NUMBERS}]"),
        (r"\p{L}", f"[{_LETTERS}]"),
        (r"\p{N}", f"[{_NUMBERS}]"),
        (r"\S", f"[^{_SPACES}]"),
        (r"\s", f"[{_SPACES}]"),
    ):
        pattern = pattern.replace(outer, inner)
    return re.compile(pattern)


def _pattern_of(settings: dict[str, Any]) -> re.Pattern[str] | None:
    """By which the tokenizer cuts, where it is one of those that are known."""
    model, before, letters = settings.get("model") or {}, settings.get("pre_tokenizer") or {}, settings.get("normalizer")
    if model.get("type") != "BPE" or model.get("dropout") or (letters is not None and letters.get("type") != "NFC"):
        return None
    steps = before.get("pretokenizers", []) if before.get("type") == "Sequence" else [before]
    if not steps or steps[-1].get("type") != "ByteLevel" or steps[-1].get("add_prefix_space"):
        return None
    if len(steps) == 1:
        return _python(_GPT2) if steps[0].get("use_regex", True) else None
    split = steps[0]
    if len(steps) > 2 or steps[1].get("use_regex", True) or split.get("type") != "Split":
        return None
    if split.get("behavior") != "Isolated" or split.get("invert"):
        return None
    pattern = (split.get("pattern") or {}).get("Regex")
    return _python(pattern) if pattern in (_GPT2, _LLAMA3, _QWEN) else None


class Words:
    """The words of one tokenizer. Thread-safe."""

    def __init__(self, tokenizer: Any, size: int, pattern: re.Pattern[str], special: Sequence[str]) -> None:
        self._tokenizer, self._size, self._cut = tokenizer, size, pattern.findall
        self._special = re.compile("|".join(map(re.escape, special))) if special else None
        self._lock = threading.Lock()
        self._known: dict[str, dict[str, Any]] = {}  # for each type: tokens of a word; None: the tokenizer cuts it again

    def encode(self, texts: Sequence[str], dtype: str) -> list[bytes | None]:
        """The tokens of each text as they are stored; None of texts that the tokenizer must see as a whole."""
        known = self._known.setdefault(dtype, {})
        out: list[bytes | None] = []
        later: list[tuple[int, list[str]]] = []
        for text in texts:
            words = self._words(text)
            out.append(None)
            if words is None:
                continue
            try:
                out[-1] = b"".join(map(known.__getitem__, words))
            except KeyError:
                later.append((len(out) - 1, words))
            except TypeError:  # of one there is None
                pass
        if later:
            with self._lock:  # what one thread learns the next one need not
                self._learn({word for _, words in later for word in words if word not in known}, known, dtype)
        for i, words in later:
            found: list[Any] = [known.get(word) for word in words]
            out[i] = None if None in found else b"".join(found)
        if len(known) > _MOST_WORDS:
            self._known[dtype] = {}
        return out

    def _words(self, text: str) -> list[str] | None:
        if _ODD.search(text) is not None or (self._special is not None and self._special.search(text) is not None):
            return None
        return self._cut(text)

    def _learn(self, new: Iterable[str], known: dict[str, Any], dtype: str) -> None:
        pieces = self._tokenizer.pre_tokenizer.pre_tokenize_str
        words = []
        for word in new:
            if len(word) <= _LONGEST and (_PLAIN(word) or len(pieces(word)) == 1):
                words.append(word)
            else:
                known[word] = None
        lists = [e.ids for e in self._tokenizer.encode_batch_fast(words, add_special_tokens=False)] if words else []
        data, lengths = _core.token_bytes(lists, dtype, -1, self._size)
        width = len(data) // max(1, sum(lengths))
        at = 0
        for word, length in zip(words, lengths):
            known[word] = data[at : at + length * width]
            at += length * width


def words_of(tokenizer: Any, size: int) -> Words | None:
    """None where a word's tokens may depend on more than the word."""
    settings = json.loads(tokenizer.to_str())
    pattern = _pattern_of(settings)
    if pattern is None or not hasattr(tokenizer, "encode_batch_fast"):
        return None
    return Words(tokenizer, size, pattern, [t["content"] for t in settings.get("added_tokens") or [] if t.get("content")])
