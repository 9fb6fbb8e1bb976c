# SPDX-License-Identifier: Apache-2.0
"""Types of numbers, by whatever name: ``"f32"``, ``"float32"``, ``np.float32``, ``torch.float32``."""

from __future__ import annotations

from typing import Any

from .errors import UsageError

#: Our name of each, by NumPy's and PyTorch's.
NAMES = {
    "uint8": "u8", "int8": "i8", "uint16": "u16", "int16": "i16", "uint32": "u32", "int32": "i32",
    "uint64": "u64", "int64": "i64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
}  # fmt: skip


def dtype_name(value: Any, what: str = "dtype") -> str:
    """Our name of a type. A text that is none goes through: the engine lists those there are."""
    if isinstance(value, str):
        return NAMES.get(value, value)
    if value is int or value is float or value is bool:
        raise UsageError(f"{what}={value.__name__} is of no one width: say 'i64' or 'f32'")
    if type(value).__module__ == "torch":
        name = str(value).removeprefix("torch.")
    else:
        import numpy as np

        try:
            name = np.dtype(value).name
        except TypeError:
            raise UsageError(f"{what} is a name like 'f32', or a type of NumPy's or PyTorch's, not {value!r}") from None
    if name not in NAMES:
        raise UsageError(f"{what}={value!r}: there is no such type here; the types are {', '.join(NAMES.values())}")
    return NAMES[name]
