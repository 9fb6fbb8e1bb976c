# SPDX-License-Identifier: Apache-2.0
"""``.map(fn)``: what a Python function gives is learned from the first sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from .dtypes import NAMES
from .errors import DataError, UsageError, remember
from .fields import Field
from .requests import request_of


class _Chain:
    """Functions one after the other; picklable where they are."""

    def __init__(self, functions: list[Any], parse_json: bool) -> None:
        self.functions, self.parse_json = functions, parse_json

    def __call__(self, value: Any) -> Any:
        if self.parse_json:
            import json

            value = json.loads(value)
        try:
            for f in self.functions:
                value = f(value)
        except Exception as e:
            remember(e)
            raise
        return value


def _first_good(dataset: _core.Dataset, how: str, size: int) -> tuple[Any, int]:
    """The value of the first sample that is no bad data, and its number; of several the first."""
    last = min(size, 64) - 1
    for n in range(last + 1):
        try:
            value = dataset.at(n, [how])[0]
        except DataError:
            if n == last:
                raise
            continue
        if value is None:  # optional, and this sample lacks it
            continue
        if not isinstance(value, list):
            return value, n
        if value:
            return value[0], n
    raise UsageError(f"map() must see a value to learn what it gives, and the first {last + 1} samples have none")


def _as_array(name: str, result: Any) -> np.ndarray[Any, Any]:
    kind = f"{type(result).__name__} of {result.dtype}" if hasattr(result, "dtype") else type(result).__name__
    hint = "; convert it with .float()" if "bfloat16" in kind else ""
    try:
        return np.asarray(result)
    except (TypeError, ValueError):
        raise UsageError(
            f"field '{name}': map() gave {kind}, which is no array; one number, array, tensor, str or bytes is wanted{hint}"
        ) from None


def map_function(name: str, field: Field, source: _core.Source) -> _core.MapFunction:
    """The functions of a field, and what they give for the first sample that has a value."""
    how = {"text": "text", "json": "text", "key": "text", "bytes": "bytes"}.get(field.what, "array")
    # Packing and groups are of what the function gives.
    plain = request_of(name, field, packing=None, pad=None, joint="", leads=False)
    first, n = _first_good(_core.Dataset.make(source, [plain]), how, source.size)
    chain = _Chain(field.functions, field.finish == "json")
    try:
        result = chain(first)
    except DataError:
        raise
    except Exception as e:
        raise UsageError(f"field '{name}': the function given to map() failed on sample {n}: {e!r}") from e
    if isinstance(result, (str, bytes)):
        kind = "text" if isinstance(result, str) else "bytes"
        return _core.MapFunction(function=chain, result=kind, dtype="u8", numpy="uint8", shape=[])
    array = _as_array(name, result)
    if array.dtype == np.bool_:
        array = array.astype(np.uint8)
    if array.dtype.name not in NAMES:
        raise UsageError(
            f"field '{name}': map() gave {type(result).__name__} ({array.dtype}); numbers, arrays, str or bytes are understood"
        )
    varies = field.packing is not None and not (field.many and field.packing == "ragged")
    return _core.MapFunction(
        function=chain,
        result="array",
        dtype=NAMES[array.dtype.name],
        numpy=array.dtype.name,
        shape=[None for _ in array.shape] if varies else list(array.shape),
    )
