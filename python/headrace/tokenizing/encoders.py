# SPDX-License-Identifier: Apache-2.0
"""The tokenizers that people have: Hugging Face's, tiktoken's, SentencePiece's, behind one face."""

from __future__ import annotations

import abc
import functools
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .. import _core
from ..errors import StorageError, UsageError
from .words import Words, words_of

#: What tokenizers call the end of a document, the most usual first.
_ENDS = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eot|>", "[SEP]")
#: And what fills rows up.
_PADS = ("<pad>", "[PAD]", "<|pad|>", "<|finetune_right_pad_id|>", "<|endoftext|>")


class Encoding(NamedTuple):
    """Of one text."""

    numbers: list[int]
    offsets: list[tuple[int, int]]  # the letters of each token, where the tokenizer knows them


class Encoder(abc.ABC):
    """Texts to numbers: many at a time on the tokenizer's own threads, or one on the caller's."""

    size: int  # the vocabulary: numbers are below it
    name: str  # tells tokenizers apart: a hash of what this one knows
    frees_gil: bool  # others run while encode_one() works
    has_offsets = False
    own_end: str | None = None  # what the tokenizer's own settings call the end of a text,
    own_pad: str | None = None  # and what fills rows up

    @abc.abstractmethod
    def encode(self, texts: Sequence[str]) -> list[Any]:
        """One value a text, of which ``numbers`` makes a list. Without the GIL where the tokenizer can."""

    def encode_bytes(self, texts: Sequence[str], dtype: str, end: int | None) -> tuple[bytes, list[int]]:
        """The tokens of all texts as they are stored, ``end`` after each, and how many each has."""
        lists = [self.numbers(v) for v in self.encode(texts)]
        data, lengths = _core.token_bytes(lists, dtype, -1 if end is None else end, self.size)
        return data, lengths

    @abc.abstractmethod
    def encode_one(self, text: str, special: bool, offsets: bool = False) -> Encoding:
        """``special``: with the tokens that the tokenizer puts around a text, such as [CLS] or <s>."""

    @abc.abstractmethod
    def number(self, token: str) -> int | None:
        """Of a token by its text."""

    def usual_pad(self) -> int | None:
        return self._first_of(self.own_pad, _PADS)

    def _first_of(self, own: str | None, usual: Sequence[str]) -> int | None:
        tokens = usual if own is None else (own, *usual)
        return next((n for n in map(self.number, tokens) if n is not None), None)

    def numbers(self, value: Any) -> list[int]:
        return value

    def usual_end(self) -> int | None:
        return self._first_of(self.own_end, _ENDS)


class _HuggingFace(Encoder):
    frees_gil = has_offsets = True

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
        known = tokenizer.get_vocab(with_added_tokens=True)
        self.size = max(known.values(), default=-1) + 1
        self.name = hashlib.sha256(tokenizer.to_str().encode()).hexdigest()[:32]

    def encode(self, texts: Sequence[str]) -> list[Any]:
        return self._encode(texts, add_special_tokens=False)

    @functools.cached_property
    def _words(self) -> Words | None:
        return words_of(self._tokenizer, self.size)

    def encode_bytes(self, texts: Sequence[str], dtype: str, end: int | None) -> tuple[bytes, list[int]]:
        if self._words is None:
            return super().encode_bytes(texts, dtype, end)
        found = self._words.encode(texts, dtype)
        rest = [i for i, value in enumerate(found) if value is None]
        data, lengths = super().encode_bytes([texts[i] for i in rest], dtype, None)
        width = 2 if dtype == "u16" else 4
        at = 0
        for i, length in zip(rest, lengths):
            found[i] = data[at : at + length * width]
            at += length * width
        last = b"" if end is None else end.to_bytes(width, "little")
        values = [value for value in found if value is not None]
        return b"".join([value + last for value in values]), [len(value) // width + (end is not None) for value in values]

    def numbers(self, value: Any) -> list[int]:
        return value.ids

    def encode_one(self, text: str, special: bool, offsets: bool = False) -> Encoding:
        # encode() keeps the GIL, encode_batch() does not.
        encode = self._tokenizer.encode_batch if offsets else self._encode
        (found,) = encode([text], add_special_tokens=special)
        return Encoding(found.ids, found.offsets if offsets else [])

    def number(self, token: str) -> int | None:
        return self._tokenizer.token_to_id(token)


class _Tiktoken(Encoder):
    frees_gil = True

    def __init__(self, encoding: Any) -> None:
        self._encoding = encoding
        self._threads = max(1, len(os.sched_getaffinity(0)))
        self.size = encoding.n_vocab
        ranks = (
            repr(sorted(encoding._mergeable_ranks.items())) + repr(sorted(encoding._special_tokens.items())) + encoding._pat_str
        )
        self.name = hashlib.sha256(ranks.encode()).hexdigest()[:32]

    def encode(self, texts: Sequence[str]) -> list[Any]:
        return self._encoding.encode_ordinary_batch(list(texts), num_threads=self._threads)

    def encode_one(self, text: str, special: bool, offsets: bool = False) -> Encoding:
        return Encoding(self._encoding.encode_ordinary(text), [])

    def number(self, token: str) -> int | None:
        return self._encoding._special_tokens.get(token)


class _SentencePiece(Encoder):
    frees_gil = False

    def __init__(self, processor: Any) -> None:
        self._processor = processor
        self._threads = max(1, len(os.sched_getaffinity(0)))
        self.size = processor.get_piece_size()
        self.name = hashlib.sha256(processor.serialized_model_proto()).hexdigest()[:32]

    def encode(self, texts: Sequence[str]) -> list[Any]:
        return self._processor.encode(list(texts), out_type=int, num_threads=self._threads)

    def encode_one(self, text: str, special: bool, offsets: bool = False) -> Encoding:
        return Encoding(self._processor.encode(text, out_type=int, add_bos=special, add_eos=special), [])

    def number(self, token: str) -> int | None:
        found = self._processor.piece_to_id(token)
        return None if found == self._processor.unk_id() else found

    def usual_end(self) -> int | None:
        end = self._processor.eos_id()
        return end if end >= 0 else super().usual_end()


def settings_beside(folder: str) -> dict[str, Any]:
    """What transformers keeps in the files beside a ``tokenizer.json``."""
    out: dict[str, Any] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        try:
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                read = json.load(f)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except ValueError as e:
            raise UsageError(f"{os.path.join(folder, name)}: it is no JSON: {e}") from None
        out.update({k: v for k, v in read.items() if v is not None})
    return out


def token_text(value: Any) -> str | None:
    """A token is written as text, or as an object with its text."""
    found = value.get("content") if isinstance(value, dict) else getattr(value, "content", value)
    return found if isinstance(found, str) else None


def _own_tokens(settings: Mapping[str, Any]) -> tuple[str | None, str | None]:
    return token_text(settings.get("eos_token")), token_text(settings.get("pad_token"))


def _needed(module: str, package: str, what: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise UsageError(f"{what} needs the package {package}: pip install {package}") from None


def _from_path(place: str) -> Encoder:
    if os.path.isdir(place):
        inside = [os.path.join(place, name) for name in ("tokenizer.json", "tokenizer.model")]
        found = next((p for p in inside if os.path.exists(p)), None)
        if found is None:
            raise UsageError(f"{place}: the folder has neither tokenizer.json nor tokenizer.model")
        place = found
    if not os.path.exists(place):
        raise UsageError(
            f"{place}: no such tokenizer; a tokenizer.json, a SentencePiece .model, 'tiktoken:gpt2', or a folder with one of the first two"
        )
    try:
        if place.endswith(".model"):
            return _SentencePiece(_needed("sentencepiece", "sentencepiece", place).SentencePieceProcessor(model_file=place))
        out = _HuggingFace(_needed("tokenizers", "tokenizers", place).Tokenizer.from_file(place))
        out.own_end, out.own_pad = _own_tokens(settings_beside(os.path.dirname(place) or "."))
        return out
    except UsageError:
        raise
    except Exception as e:
        raise UsageError(f"{place}: this is no tokenizer: {e}") from e


def encoder_of(tokenizer: Any) -> Encoder:
    """From a path, a name or a tokenizer."""
    if isinstance(tokenizer, (str, os.PathLike)):
        text = os.fspath(tokenizer)
        if text.startswith("tiktoken:"):
            tiktoken = _needed("tiktoken", "tiktoken", text)
            try:
                return _Tiktoken(tiktoken.get_encoding(text[len("tiktoken:") :]))
            except ValueError as e:
                raise UsageError(f"{text}: tiktoken has no such encoding: {e}") from e
            except OSError as e:  # those of requests are such, too
                raise StorageError(
                    f"{text}: tiktoken downloads an encoding once, and could not: {e}; TIKTOKEN_CACHE_DIR names a folder that has it"
                ) from e
        return _from_path(text)
    inner = getattr(tokenizer, "backend_tokenizer", tokenizer)  # of transformers
    kind = type(inner).__name__
    if kind == "Tokenizer" and hasattr(inner, "encode_batch"):
        out = _HuggingFace(type(inner).from_str(inner.to_str()))  # a copy: settings are changed
        out.own_end, out.own_pad = _own_tokens({n: getattr(tokenizer, n, None) for n in ("eos_token", "pad_token")})
        return out
    if kind == "Encoding" and hasattr(inner, "encode_ordinary_batch"):
        return _Tiktoken(inner)
    if hasattr(inner, "piece_to_id"):
        return _SentencePiece(inner)
    raise UsageError(
        f"tokenizer is {tokenizer!r}; the path of a tokenizer.json or of a SentencePiece .model, 'tiktoken:gpt2', "
        "or a tokenizer of tokenizers, transformers (a fast one), tiktoken or sentencepiece is wanted"
    )
