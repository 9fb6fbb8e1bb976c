# SPDX-License-Identifier: Apache-2.0
"""``hr.packed``: samples of any length, packed into rows of one length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from . import _core
from .blend import Blend
from .checks import whole
from .dataset import Dataset
from .errors import UsageError
from .field import Field
from .habits import renamed
from .source_paths import places_of
from .tokens import tokens

_LONGEST = 1 << 30


class Grouped:
    """Samples that are delivered together, and the fields they are delivered with."""

    def __init__(self, source: _core.Source, fields: Mapping[str, Field]) -> None:
        self._source, self._fields = source, fields


class Packed(Grouped):
    """Rows of packed samples, for ``hr.Loader``.

    ``len(rows)`` and ``rows[i]``, the numbers of the samples in row i, are of the samples in the order of the data, as a Loader
    without shuffling packs them. A shuffled epoch has rows of its own, unless ``repack=False``."""

    def __init__(
        self,
        data: Dataset,
        fields: Mapping[str, Field],
        packing: dict[str, Any],
        lengths: Any,
        within: int,
        repack: bool,
    ) -> None:
        super().__init__(data._source.packed(lengths, packing["length"], within, repack), fields)
        self._packing = packing
        self._samples, self._tokens = int(np.count_nonzero(lengths)), int(lengths.sum(dtype=np.uint64))
        if len(self) == 0:
            raise UsageError(f"no sample has a token of '{packing['column']}': there is nothing to pack")

    def __len__(self) -> int:
        return int(self._source.groups)

    def __getitem__(self, row: int) -> list[int]:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return list(self._source.group(row % len(self)))

    @property
    def report(self) -> dict[str, Any]:
        """What packing saves: ``filled`` is the share of the rows that holds tokens, ``saved`` the share of the rows that
        one sample a row would take and that these do not."""
        length = self._packing["length"]
        return {
            "samples": self._samples,
            "tokens": self._tokens,
            "rows": len(self),
            "filled": self._tokens / (len(self) * length),
            "filled_unpacked": self._tokens / (self._samples * length),
            "saved": 1 - len(self) / self._samples,
        }

    def __repr__(self) -> str:
        r = self.report
        return (
            f"<headrace packed: {r['samples']:,} samples in {r['rows']:,} rows of {self._packing['length']}, "
            f"{r['filled']:.1%} filled ({r['filled_unpacked']:.1%} with one sample a row)>"
        )


@renamed(window="within")
def packed(
    source: Any,
    seq_len: int,
    field: str | None = None,
    *,
    pad_value: int | Mapping[str, int] | None = None,
    truncate: Literal["right", "left"] | None = None,
    within: int = 4096,
    repack: bool = True,
) -> Packed:
    """Samples of any length, several in a row of ``seq_len`` tokens: ``hr.Loader(hr.packed(ds, seq_len=2048), 8)``.

    source: a data set, opened with the fields that batches shall have; or a URL.
    field: the output whose lengths count; the only one with one axis and any length unless given. Of a URL, the stored name,
        "tokens" unless given. Other such fields ("labels") have the same lengths and are packed alike; all else stays one value a sample.
        Texts and chats that are tokenised while loading (``.tokenize``, ``.chat``, whose NAME_loss_mask is packed too) count.
    pad_value: what rows are filled up with, or one for each field, ``{"labels": -100}``; unless given what the field is padded with
        (``.tokenize``, ``.chat``, ``.padded(value=…)``), else 0.
    truncate: a sample longer than a row loses its end ("right") or its beginning ("left"); an error unless given.
    within: so many consecutive samples of the epoch's order are packed together, the longest first, each into the row that it
        leaves least room in.
    repack: False: the same samples share a row in every epoch, and every epoch has the same number of rows.

    A batch has the fields as ``[B, seq_len]`` and, unless fields have these names, ``positions`` (i32, of each token in its
    sample), ``loss_mask`` (u8, 0 for the first token of a sample and for padding) and ``cu_seqlens`` (a list, the borders in
    each row, the last one ``seq_len``). Rows are what is shuffled, split over ranks and resumed: every rank packs alike. Where
    the Loader shuffles, other samples share a row in every epoch, and epochs differ by a few rows: ``len(loader)`` is exact for
    the epoch that is under way or comes next. ``batch.indices`` are the samples, row i has those from ``batch.groups[i]`` to
    ``batch.groups[i + 1]``. Lengths are counted once and kept beside the data.
    """
    from .lengths import lengths_of

    length = whole(seq_len, "seq_len", 1, _LONGEST)
    if truncate not in (None, "right", "left"):
        raise UsageError(f'truncate={truncate!r}: "right", "left" or None is wanted')
    data, fields, name = _fields_of(source, field)
    if not isinstance(repack, bool):
        raise UsageError(f"repack is True or False, not {repack!r}")
    numbers = [n for n, f in fields.items() if _is_numbers(f) or n == name]
    pads = {n: int(fields[n].pad_value) for n in numbers}
    if pad_value is not None:
        pads |= pad_value if isinstance(pad_value, Mapping) else {name: pad_value}
    for key, value in pads.items():
        if key not in fields or isinstance(value, bool) or not isinstance(value, int):
            raise UsageError(f"pad_value: a whole number for a field of the batch is wanted, not {key!r}: {value!r}")
    lengths = lengths_of(data, name, fields[name])
    if truncate is not None:
        lengths = np.minimum(lengths, np.uint32(length))
    columns = [(n, pads.get(n, 0)) for n in numbers]
    columns += [(f"{n}_loss_mask", 0) for n in numbers if fields[n].called.named]  # of a chat
    packing = {"length": length, "column": name, "columns": columns, "keep_end": truncate == "left"}
    return Packed(data, fields, packing, lengths, whole(within, "within", 1, 1 << 30), repack)


def _fields_of(source: Any, field: str | None) -> tuple[Dataset, dict[str, Field], str]:
    """The data, the fields of a batch, and the name of the one whose lengths count."""
    if not isinstance(source, Dataset):
        name = "tokens" if field is None else field
        fields: Mapping[str, Field] = {name: tokens(name).cast("i64")}
        source = Dataset(places_of(source), fields)
    elif source._fields is None:
        name = _only(source) if field is None else field
        fields = {name: tokens(name).cast("i64")}
    else:
        fields = source._fields
        varying = [n for n, f in fields.items() if _is_numbers(f)]
        name = field if field is not None else _first(varying)
        if name not in fields:
            raise UsageError(f"there is no field '{name}' in the data set's fields; they are {', '.join(fields)}")
    if source._source.is_weighted:
        raise UsageError("samples with weights are not packed: pack first")
    for n, f in fields.items():
        if getattr(f, "seq_len", None):
            raise UsageError(f"field '{n}': windows are rows of one length already; hr.packed takes documents")
    numbers = {n for n, f in fields.items() if _is_numbers(f) or n == name}
    return source, {n: _as_values(f, n == name) if n in numbers else f for n, f in fields.items()}, name


def _as_values(field: Field, counts: bool) -> Field:
    """The field as values one by one, which rows are made of. What a function gives is of any length only where that is said."""
    mapped = field.functions and not _is_tokenised(field)
    return field._with(packing="list" if mapped and (counts or field.packing) else None)


def _is_numbers(field: Field) -> bool:
    return field.what in ("tokens", "array") or _is_tokenised(field)


def _is_tokenised(field: Field) -> bool:
    """Whether the field's numbers are tokens made while loading."""
    from .tokenizing.on_the_fly import tokens_of

    return tokens_of(field) is not None


def _only(data: Dataset) -> str:
    names = [f["name"] for f in data._source.fields if f["kind"] in ("tokens", "array", "npy")]
    return _first(names)


def _first(names: list[str]) -> str:
    if len(names) != 1:
        raise UsageError(f"which field has the tokens? hr.packed(…, field=…): {', '.join(names) or 'there is none of numbers'}")
    return names[0]


def options_of(source: Any) -> _core.RowPacking | None:
    """How the rows of a Loader's source are made: of a blend, of each of its sources."""
    if isinstance(source, Packed):
        return _core.RowPacking(**source._packing)
    packed = [part for part in source.parts() if isinstance(part.source, Packed)] if isinstance(source, Blend) else []
    if not packed:
        return None
    first = packed[0]
    for other in packed[1:]:
        if other.source._packing != first.source._packing:
            raise UsageError(
                f"the rows of '{first.name}' and '{other.name}' are packed otherwise: the sources of a blend have one seq_len, "
                "field, truncate and pad_value"
            )
    return _core.RowPacking(**first.source._packing)
