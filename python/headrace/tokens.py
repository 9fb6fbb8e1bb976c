# SPDX-License-Identifier: Apache-2.0
"""Tokens: whole values, or windows of one length over files of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from . import _core
from .checks import path, whole
from .dtypes import dtype_name
from .errors import UsageError
from .fields import ArrayField, Field

#: What a window has besides its tokens, where the data say where documents begin.
_OF_WINDOWS = ("tokens", "positions", "loss_mask", "cu_seqlens")
_LONGEST = 1 << 30


class TokensField(ArrayField):
    """Tokens. With ``seq_len``, a sample is a window."""

    seq_len: int | None = None
    stored: str | None = None  # the type of files that do not say it
    permutes = False  # documents, anew each epoch, before windows are cut

    def __repr__(self) -> str:
        if self.seq_len is None:
            return super().__repr__()
        dtype = self.steps[0][1]["dtype"] if self.steps else "i64"
        stored = f", stored={self.stored!r}" if self.stored else ""
        permuted = ", permute_documents=True" if self.permutes else ""
        rest = self._with(steps=self.steps[1:], seq_len=None)
        return (
            f"hr.tokens(seq_len={self.seq_len}, dtype={dtype!r}{stored}{permuted})"
            + repr(rest)[len(f"hr.tokens({self.field!r})") :]
        )


def tokens(
    field: str | None = None,
    seq_len: int | None = None,
    dtype: Any = None,
    stored: Any = None,
    *,
    permute_documents: bool = False,
    documents: bool = False,
    max_len: int | None = None,
    truncate: Literal["right", "left"] = "right",
    pad_value: int = 0,
    pad_to_multiple: int = 1,
    pad_side: Literal["right", "left"] = "right",
    shape: int | Sequence[int] | None = None,
    many: bool = False,
    default: Any = None,
    optional: bool = False,
) -> TokensField:
    """Tokens: an array with one axis.

    ``hr.tokens(seq_len=2048)``: a sample is a window over the documents of a file, one after the other. A batch holds
    ``[B, 2049]``: ``x = t[:, :-1]`` are the inputs and ``y = t[:, 1:]`` the targets. Windows share that one token, never
    cross a file, and what is left at the end of a file is not used; every other token is an input once an epoch.
    ``dtype`` is of the result, "i64" unless said otherwise. Megatron's ``.bin``/``.idx``, llm.c's files and ``.npy`` say
    what they hold; of files of nothing but tokens (nanoGPT's) ``stored="u16"`` says it.
    Where documents are known (Megatron's), ``hr.array("positions")`` counts from the begin of each document,
    ``hr.array("loss_mask")`` is 0 where the target is the first token of a document, and ``hr.array("cu_seqlens")`` has
    the borders for attention over documents of any length.

    ``permute_documents=True``: before windows are cut, the documents of each file are permuted within pools of 2^20
    tokens, anew each epoch, a pure function of (seed, epoch). Then ``batch.indices`` number the windows of that epoch.

    ``hr.tokens(documents=True, max_len=2048, pad_value=0)``: a sample is a whole document (of ``field``, "tokens" unless given),
    and a batch holds (tokens ``[B, longest]``, lengths ``[B]``), int64 unless ``dtype`` says otherwise. Documents longer than
    ``max_len`` lose their end, or with ``truncate="left"`` their beginning. Shorter ones are filled up with ``pad_value`` on
    ``pad_side`` to the longest of the batch, rounded up to a multiple of ``pad_to_multiple``.

    Without ``seq_len`` and ``documents``, values as they lie, of any length: a list in a batch; ``.padded()`` gives (values, lengths),
    ``.ragged()`` (values, offsets, lengths). Of one length (of the data, or by ``shape=2048``) they are dense.
    ``dtype``, ``shape``, ``default`` and ``optional`` as for ``hr.array``.
    """
    if permute_documents and seq_len is None:
        raise UsageError("permute_documents=True goes with seq_len=: whole documents are shuffled as all samples are")
    if documents:
        given = {"seq_len": seq_len, "stored": stored, "shape": shape, "many": many or None}
        wrong = next((name for name, value in given.items() if value is not None), None)
        if wrong is not None:
            raise UsageError(f"{wrong}= does not go with documents=True: a sample is one whole document, of any length")
        return _documents("tokens" if field is None else field, dtype, max_len, truncate, default, optional).padded(
            pad_value, multiple=pad_to_multiple, side=pad_side
        )
    said = {"max_len": max_len is not None, "truncate": truncate != "right", "pad_value": pad_value != 0}
    said |= {"pad_to_multiple": pad_to_multiple != 1, "pad_side": pad_side != "right"}
    if any(said.values()):
        raise UsageError(f"{next(k for k, v in said.items() if v)}= goes with documents=True: hr.tokens(documents=True, …)")
    if seq_len is None:
        if field is None:
            raise UsageError("hr.tokens needs the name of a field, hr.tokens('tokens'), or windows, hr.tokens(seq_len=2048)")
        if stored is not None:
            raise UsageError("stored= goes with seq_len=: whole values say themselves what they hold")
        options = {k: v for k, v in (("dtype", dtype), ("shape", shape)) if v is not None}
        return TokensField("tokens", field, **options)._as("array", many, default, optional)
    if field not in (None, "tokens"):
        raise UsageError(f"windows are over the field 'tokens' of a file, not {field!r}: leave the name out")
    if shape is not None or many or default is not None or optional:
        raise UsageError("shape=, many=, default= and optional= are for whole values; every window is there, of [seq_len + 1]")
    out = TokensField("tokens", "tokens")._as("array", False, None, False)
    out.seq_len = whole(seq_len, "seq_len", 1, _LONGEST)
    out.stored = None if stored is None else dtype_name(stored, "stored")
    out.permutes = bool(permute_documents)
    return out._step("cast", dtype="i64" if dtype is None else dtype)


def _documents(field: str, dtype: Any, max_len: int | None, truncate: str, default: Any, optional: bool) -> TokensField:
    """Whole documents, not yet padded."""
    out = TokensField("tokens", field)._as("array", False, default, optional)
    if truncate not in ("right", "left"):
        raise UsageError(f'truncate={truncate!r}: "right" or "left" is wanted')
    if max_len is not None:
        out = out._step("truncate", length=whole(max_len, "max_len", 1, _LONGEST), side=truncate)
    return out._step("cast", dtype="i64" if dtype is None else dtype)


def wants_windows(fields: Mapping[str, Field] | None) -> bool:
    return isinstance(fields, Mapping) and any(isinstance(f, TokensField) and f.seq_len for f in fields.values())


def unused_tokens(source: _core.Source, fields: Mapping[str, Field] | None) -> int:
    """At the ends of files of which a sample is a window; 0 of other data."""
    lengths = {f.seq_len for f in (fields or {}).values() if isinstance(f, TokensField) and f.seq_len}
    if not lengths:
        return 0
    (seq_len,) = lengths
    return sum(tokens - (windows * seq_len + 1 if windows else 0) for _, tokens, windows in source.shards)


def open_windows(urls: Any, fields: Mapping[str, Field], index: Any = None) -> _core.Source:
    """The windows that the fields ask for."""
    asked = {(f.seq_len, f.stored, f.permutes): name for name, f in fields.items() if isinstance(f, TokensField) and f.seq_len}
    if len(asked) > 1:
        raise UsageError(
            f"fields {', '.join(repr(n) for n in asked.values())} ask for windows of different lengths, types or orders; a sample is one window"
        )
    for name, field in fields.items():
        if isinstance(field, TokensField) and not field.seq_len:
            raise UsageError(f"field '{name}': beside windows, whole values cannot be had; open the data a second time")
        if field.what != "key" and field.field not in _OF_WINDOWS:
            raise UsageError(f"field '{name}': a window of tokens has {', '.join(_OF_WINDOWS)}, not '{field.field}'")
    ((seq_len, stored, permutes),) = asked
    return _core.open_tokens(urls, seq_len, "" if stored is None else stored, path(index, "index"), permutes)
