# SPDX-License-Identifier: Apache-2.0
"""Texts and chats tokenised while they are loaded: ``hr.text("text").tokenize(…)`` and ``hr.json("messages").chat(…)``.

Each is a function given to ``map``, on the engine's threads where the tokenizer lets go of the GIL, in processes where it
does not. A tokenizer is loaded once in each process, when its first text comes.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..checks import one_of, whole
from ..dtypes import dtype_name
from ..errors import BadSample, UsageError
from ..field import Called, Field, Self
from .chat import Template, template_of
from .encoders import Encoder, Encoding, encoder_of

_LONGEST = 1 << 30
_TYPES = {"u16": (np.uint16, 1 << 16), "i32": (np.int32, 1 << 31), "u32": (np.uint32, 1 << 32), "i64": (np.int64, 1 << 63)}


class _Cut:
    """How long the numbers of a sample may be, and of which type."""

    def __init__(self, max_len: Any, truncate: Any, fixed: Any, dtype: Any) -> None:
        self.max_len = None if max_len is None else whole(max_len, "max_len", 1, _LONGEST)
        self.keeps_begin = one_of(truncate, "truncate", ("right", "left")) == "right"
        if not isinstance(fixed, bool):
            raise UsageError(f"fixed is True or False, not {fixed!r}")
        if fixed and self.max_len is None:
            raise UsageError("fixed=True fills every sample up to max_len tokens: say max_len=")
        self.fixed = fixed
        self.dtype = dtype_name(dtype)
        if self.dtype not in _TYPES:
            raise UsageError(f"dtype is one of {', '.join(_TYPES)}, not {dtype!r}")
        self.shape = (self.max_len if fixed else None,)

    def __call__(self, numbers: Sequence[int] | np.ndarray, dtype: Any, fill: int) -> np.ndarray:
        made = np.asarray(numbers, dtype)
        if self.max_len is not None and len(made) > self.max_len:
            made = made[: self.max_len] if self.keeps_begin else made[len(made) - self.max_len :]
        if not self.fixed:
            return made
        out = np.full(self.max_len or 0, fill, dtype)
        out[: len(made)] = made
        return out

    def check(self, encoder: Encoder) -> None:
        if encoder.size > _TYPES[self.dtype][1]:
            raise UsageError(f"dtype={self.dtype!r} does not hold the {encoder.size:,} numbers of this tokenizer")


class _Loaded:
    """A tokenizer that goes over to other processes as what it was made from."""

    def __init__(self, tokenizer: Any) -> None:
        self._given = tokenizer
        self._encoder: Encoder | None = encoder_of(tokenizer)  # now, so that what is wrong is said now

    @property
    def encoder(self) -> Encoder:
        if self._encoder is None:
            self._encoder = encoder_of(self._given)
        return self._encoder

    @property
    def said(self) -> str:
        """As a command names it."""
        return str(self._given) if isinstance(self._given, (str, os.PathLike)) else "TOKENIZER"

    def __getstate__(self) -> dict[str, Any]:
        given = self._given
        inner = getattr(given, "backend_tokenizer", given)
        return {"_given": inner, "_encoder": None}


class Tokens:
    """What makes the numbers of a sample. Their lengths are counted ahead where rows are packed (``lengths.py``)."""

    _tokenizer: _Loaded
    _cut: _Cut

    @property
    def is_fixed(self) -> bool:
        return self._cut.fixed

    def identity(self) -> str:
        """Names all that the number of tokens before the cut depends on: another tokenizer or template has another one."""
        raise NotImplementedError

    def options(self) -> str:
        """The same for ``headrace index --lengths FIELD``."""
        raise NotImplementedError

    def counting(self) -> Any:
        """A function of the same value, that gives the numbers alone, before the cut."""
        raise NotImplementedError

    def cut_lengths(self, lengths: np.ndarray) -> np.ndarray:
        """How long the numbers are after the cut."""
        most = self._cut.max_len
        return lengths if most is None else np.minimum(lengths, np.uint32(most))


class TokenizeText(Tokens):
    """``str`` to numbers."""

    def __init__(self, tokenizer: Any, cut: _Cut, special: bool, end: bool, pad: int) -> None:
        self._tokenizer, self._cut, self._special, self._pad = _Loaded(tokenizer), cut, special, pad
        self._end = None
        if end:
            self._end = self._tokenizer.encoder.usual_end()
            if self._end is None:
                raise UsageError("end=True: the tokenizer has no token that usually ends a document")
        self.__name__ = "tokenize"

    def __call__(self, text: Any) -> np.ndarray:
        if not isinstance(text, str):
            raise BadSample(f"a text is wanted, not {type(text).__name__}")
        numbers = self._tokenizer.encoder.encode_one(text, self._special).numbers
        if self._end is not None:
            numbers = [*numbers, self._end]
        return self._cut(numbers, _TYPES[self._cut.dtype][0], self._pad)

    def identity(self) -> str:
        return f"text {self._tokenizer.encoder.name} special={self._special} end={self._end is not None}"

    def options(self) -> str:
        more = ("" if self._special else " --no-special") + ("" if self._end is None else " --end")
        return f"--tokenizer {self._tokenizer.said}{more}"

    def counting(self) -> Any:
        other = copy.copy(self)
        other._cut = _Cut(None, "right", False, "i64")
        return other


class TokenizeChat(Tokens):
    """A list of messages to numbers and, for each, whether the assistant said it."""

    def __init__(self, tokenizer: Any, template: Any, cut: _Cut, roles: Sequence[str], tools: Any, pad: int) -> None:
        self._tokenizer, self._template = _Loaded(tokenizer), template_of(tokenizer, template)
        self._cut, self._pad, self._has_own_template = cut, pad, template is not None
        self._roles, self._tools = tuple(roles), tools
        if self._template.marks and self._roles != ("assistant",):
            raise UsageError(
                f"roles={', '.join(self._roles)!r}: the chat template marks what counts by {{% generation %}}; leave roles= out, "
                "or mark the others in the template"
            )
        self.__name__ = "chat"

    def __call__(self, messages: Any) -> tuple[np.ndarray, np.ndarray]:
        text, spans = self._template.render(messages, self._roles, self._tools)
        found = self._tokenizer.encoder.encode_one(text, False, offsets=True)
        numbers = self._cut(found.numbers, _TYPES[self._cut.dtype][0], self._pad)
        return numbers, self._cut(_mask(found, spans), np.uint8, 0)

    def identity(self) -> str:
        tools = "" if self._tools is None else f" tools={self._tools!r}"
        return f"chat {self._tokenizer.encoder.name} {self._template.text!r} {sorted(self._template.tokens.items())}{tools}"

    def options(self) -> str:
        return f"--tokenizer {self._tokenizer.said} --chat" + (" --template FILE" if self._has_own_template else "")

    def counting(self) -> Any:
        return CountChat(self._tokenizer, self._template, self._tools)


class CountChat:
    """The numbers of a chat, without looking for the answers."""

    def __init__(self, tokenizer: _Loaded, template: Template, tools: Any) -> None:
        self._tokenizer, self._template, self._tools = tokenizer, template, tools
        self.__name__ = "chat"

    def __call__(self, messages: Any) -> np.ndarray:
        text, _ = self._template.render(messages, (), self._tools)
        return np.asarray(self._tokenizer.encoder.encode_one(text, False).numbers, np.int64)


def tokens_of(field: Field) -> Tokens | None:
    """What makes the field's numbers, where they are tokens made while loading and nothing follows."""
    only = field.functions[0] if len(field.functions) == 1 else None
    return only if isinstance(only, Tokens) else None


def _mask(found: Encoding, spans: Sequence[tuple[int, int]]) -> np.ndarray:
    """1 for every token that has a letter of a span."""
    out = np.zeros(len(found.numbers), np.uint8)
    if not spans or len(out) == 0:
        return out
    offsets = np.asarray(found.offsets, np.int64)
    for begin, end in spans:
        out[(offsets[:, 1] > begin) & (offsets[:, 0] < end)] = 1
    return out


def tokenized(
    field: Self,
    tokenizer: Any,
    max_len: Any,
    truncate: Any,
    special: bool,
    end: bool,
    fixed: Any,
    pad: Any,
    dtype: Any,
    processes: Any,
) -> Self:
    """The text field with its numbers in the place of the text."""
    cut = _Cut(max_len, truncate, fixed, dtype)
    encoder = encoder_of(tokenizer)
    cut.check(encoder)
    value = _pad_value(encoder, pad)
    function = TokenizeText(tokenizer, cut, special, end, value)
    return _mapped(field, function, encoder, cut, value, cut.shape, cut.dtype, processes)


def chatted(
    field: Self,
    tokenizer: Any,
    max_len: Any,
    truncate: Any,
    template: Any,
    roles: Any,
    tools: Any,
    fixed: Any,
    pad: Any,
    dtype: Any,
    processes: Any,
) -> Self:
    cut = _Cut(max_len, truncate, fixed, dtype)
    encoder = encoder_of(tokenizer)
    cut.check(encoder)
    if not encoder.has_offsets:
        raise UsageError("chat() needs a tokenizer of Hugging Face's, which tells what letters a token stands for")
    if isinstance(roles, str):
        roles = (roles,)
    if tools is not None and not (isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools)):
        raise UsageError(f"tools is a list of dicts, as the chat template takes them, not {tools!r}")
    value = _pad_value(encoder, pad)
    function = TokenizeChat(tokenizer, template, cut, roles, tools, value)
    shapes = {"": cut.shape, "_loss_mask": cut.shape}
    return _mapped(field, function, encoder, cut, value, shapes, {"": cut.dtype, "_loss_mask": "u8"}, processes)


def _mapped(field: Self, function: Any, encoder: Encoder, cut: _Cut, pad: int, shape: Any, dtype: Any, processes: Any) -> Self:
    if field.functions or field.many:
        raise UsageError(f"field '{field.field}': tokenize() and chat() come first, and are not for many=True")
    if processes == "auto":
        processes = 0 if encoder.frees_gil else max(1, len(os.sched_getaffinity(0)))
    out = field.map(function, processes=processes)
    called = Called(shape, dtype, out.called.processes, out.called.timeout, parallel=True, named=isinstance(shape, Mapping))
    out = out._with(called=called)
    return out if cut.fixed else out.padded(value=pad)


def _pad_value(encoder: Encoder, given: Any) -> int:
    if given is None:
        return encoder.usual_pad() or 0
    if isinstance(given, str):
        found = encoder.number(given)
        if found is None:
            raise UsageError(f"pad: the tokenizer has no token {given!r}")
        return found
    return whole(given, "pad", -(1 << 31))
