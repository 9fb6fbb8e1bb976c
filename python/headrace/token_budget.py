# SPDX-License-Identifier: Apache-2.0
"""``Loader(max_tokens=…)``: batches of as many samples as a budget of tokens allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .blend import Blend
from .checks import whole
from .dataset import Dataset
from .errors import UsageError
from .field import Field
from .lengths import lengths_of
from .packed import Grouped, Packed
from .parts import opened
from .source_paths import places_of
from .tokenizing.on_the_fly import tokens_of as made_while_loading

#: So many consecutive samples are cut into batches together.
WINDOW = 8192


class Budgeted(Grouped):
    """A data set cut into batches."""


def budgeted(
    source: Any,
    fields: Mapping[str, Field] | None,
    opening: dict[str, Any],
    max_tokens: int,
    tokens_of: str | None,
    by_length: bool,
) -> Budgeted:
    """The data as batches of at most ``max_tokens``. ``opening``: how a URL is opened."""
    if isinstance(source, (Blend, Packed)):
        raise UsageError("max_tokens is for one data set: rows of one length (hr.packed) and blends have batch_size")
    if isinstance(source, Dataset):
        data, (handle, own) = source, opened(source, fields, None, None)
    else:
        data = Dataset(places_of(source), fields, **opening)
        handle, own = data._source, data._fields
    if own is None:
        raise UsageError("max_tokens needs fields: {'tokens': hr.tokens('tokens').padded(), …}")
    name = _counted_field(own, tokens_of)
    field = own[name]
    lengths = lengths_of(data, name, field)
    if field.pad_multiple > 1:  # what a sample takes in a batch
        lengths = ((lengths.astype(np.uint64) + field.pad_multiple - 1) // field.pad_multiple * field.pad_multiple).astype(
            np.uint32
        )
    most = whole(max_tokens, "max_tokens", 1, 1 << 40)
    handle = handle.within_budget(lengths, most, field.packing == "padded", bool(by_length), 0, WINDOW)
    if handle.groups == 0:
        raise UsageError(f"no sample has a token of '{name}'")
    return Budgeted(handle, own)


def _counted_field(fields: Mapping[str, Field], tokens_of: str | None) -> str:
    if tokens_of is not None:
        if tokens_of not in fields:
            raise UsageError(f"tokens_of: there is no field '{tokens_of}'; there are {', '.join(fields)}")
        return tokens_of
    numbers = [n for n, f in fields.items() if f.what in ("tokens", "array", "text") or made_while_loading(f)]
    if len(numbers) != 1:
        raise UsageError(
            f"max_tokens: which field has the tokens? tokens_of=…: {', '.join(numbers) or 'there is none of numbers'}"
        )
    return numbers[0]
