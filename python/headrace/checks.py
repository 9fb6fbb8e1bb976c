# SPDX-License-Identifier: Apache-2.0
"""Arguments as users write them, checked once, with an error that names the argument."""

from __future__ import annotations

import operator
import os
import re
from typing import Any

from .errors import UsageError

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def whole(value: Any, name: str, low: int = 0, high: int = (1 << 63) - 1) -> int:
    """A whole number of any integer type (NumPy's too), never a bool or a float."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise UsageError(f"{name} is a whole number from {low} on, not {value!r}")
    if not low <= number <= high:
        raise UsageError(f"{name} is a whole number from {low} to {high}, not {number}")
    return number


def byte_count(value: Any, name: str) -> int:
    """A number of bytes: 0 for None; "512M", "2 GiB" are understood."""
    if value is None:
        return 0
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", value, re.IGNORECASE)
        count = int(float(match[1]) * _UNITS[match[2].upper()]) if match else 0
        if not 1 <= count < 1 << 62:
            raise UsageError(f"{name} is a number of bytes or a text like '2GiB', not {value!r}")
        return count
    return whole(value, name, 1, (1 << 62) - 1)


def path(value: Any, name: str) -> str:
    """A path as text; "" for None."""
    if value is None:
        return ""
    if not isinstance(value, (str, os.PathLike)):
        raise UsageError(f"{name} is a path, not {value!r}")
    return os.fspath(value)


def real(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise UsageError(f"{name} is a number, not {value!r}") from None


def one_of(value: Any, name: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        words = ", ".join(f'"{c}"' for c in choices[:-1]) + f' or "{choices[-1]}"'
        raise UsageError(f"{name} is {words}, not {value!r}")
    return str(value)


def checked_bool(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{name} is True or False, not {value!r}")
    return value
