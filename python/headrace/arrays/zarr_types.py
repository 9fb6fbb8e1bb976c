# SPDX-License-Identifier: Apache-2.0
"""Types, fill values and codecs of Zarr, as the engine has them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ..errors import Unsupported
from .model import Stored, is_big, number_type

_PLAIN = {"zlib": "zlib", "gzip": "gzip", "lz4": "lz4", "zstd": "zstd", "blosc": "blosc", "crc32c": "crc32c"}


def type_of3(data_type: Any) -> Any:
    """NumPy's type of version 3's name; V1 where there is none."""
    name, options = (data_type, {}) if isinstance(data_type, str) else (data_type["name"], data_type.get("configuration") or {})
    if name in ("string", "variable_length_utf8", "fixed_length_utf32"):
        return np.dtype("O")
    if name in ("null_terminated_bytes", "fixed_length_ascii"):
        return np.dtype(f"S{int(options['length_bytes'])}")
    if name in ("numpy.datetime64", "numpy.timedelta64"):
        scale = options.get("scale_factor", 1)
        return np.dtype(f"{'M8' if 'datetime' in name else 'm8'}[{scale if scale != 1 else ''}{options['unit']}]")
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype("V1")


def take_type(out: Stored, dtype: Any) -> dict[str, Any]:
    """Sets the type of the elements; gives the attributes that say what it does not. No type: the engine has none."""
    out.dtype, out.big_endian = number_type(dtype), is_big(dtype)
    if dtype.kind in "mM":
        unit, step = np.datetime_data(dtype)
        words = {"D": "days", "h": "hours", "m": "minutes", "s": "seconds", "ms": "milliseconds", "us": "microseconds"}
        words["ns"] = "nanoseconds"
        out.dtype = "i64"
        if unit not in words or step != 1:
            return {}
        return {"units": f"{words[unit]} since 1970-01-01" if dtype.kind == "M" else words[unit]}
    if dtype.kind == "c" and dtype.itemsize in (8, 16):
        out.dtype = f"f{4 * dtype.itemsize}"
        _add_inner(out, 2, "complex")  # real, imaginary
    elif dtype.kind == "S" and dtype.itemsize:
        out.kind, out.dtype, out.text_end = "text", "u8", "nuls"
        _add_inner(out, dtype.itemsize, "text")
        if len(out.shape) > 2:
            out.why = "it has several texts of fixed length a sample"
    return {}


def _add_inner(out: Stored, extent: int, name: str) -> None:
    if out.fortran and len(out.shape) > 1:
        out.why = f"its elements are {name} in Fortran order; write it in C order"
    out.fortran = False
    out.dims, out.shape, out.chunk = (*out.dims, name), (*out.shape, extent), (*out.chunk, extent)
    out.inner = 1


def take_fill(out: Stored, fill: bytes, dtype: Any) -> None:
    """One number; of complex ones both parts must be one."""
    half = len(fill) // 2
    if dtype.kind == "c" and fill:
        if fill[:half] != fill[half:]:
            out.why = "its fill value has other real than imaginary parts"
        fill = fill[:half]
    out.fill = fill


def take_scaled(out: Stored, steps: list[Any], dtype: Any) -> list[Any]:
    """numcodecs' fixedscaleoffset, where it comes first, as packed numbers; the other steps."""
    name = str(steps[0].get("id", "")) if steps else ""
    if name != "fixedscaleoffset":
        return steps
    options = steps[0]
    stored = np.dtype(options.get("astype") or options["dtype"])
    if not number_type(stored) or stored.kind not in "iu" or dtype.kind != "f" or not options["scale"]:
        raise Unsupported(f"chunks went through 'fixedscaleoffset' as {json.dumps(options)[:200]}")
    # An element that is missing has the fill value as it was scaled.
    if out.fill:
        fill = np.frombuffer(out.fill, dtype)[0]
        scaled = np.round((fill - options["offset"]) * options["scale"]) if np.isfinite(fill) else np.nan
        limits = np.iinfo(stored)
        if not limits.min <= scaled <= limits.max or scaled / options["scale"] + options["offset"] != fill:
            raise Unsupported("its fill value is none of the numbers that 'fixedscaleoffset' stores")
        out.fill = np.array(scaled).astype(stored).tobytes()
    out.dtype, out.big_endian, out.packed = number_type(stored), is_big(stored), True
    out.scale, out.offset = 1.0 / options["scale"], float(options["offset"])
    return steps[1:]


def fill_bytes(value: Any, dtype: Any) -> bytes:
    if value is None:
        return b""
    if isinstance(value, str) and value.startswith("0x"):
        return int(value, 16).to_bytes(dtype.itemsize, "big" if is_big(dtype) else "little")
    words = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
    if dtype.kind == "c" and isinstance(value, (list, tuple)):
        value = complex(*(words.get(v, v) if isinstance(v, str) else v for v in value))
    return np.array(words.get(value, value) if isinstance(value, str) else value).astype(dtype).tobytes()


def filter_step(folder: str, codec: dict[str, Any], dtype: Any) -> tuple[str, int] | None:
    """A codec of either version as a filter of ours; None for one that reading does not undo."""
    name = str(codec.get("id") or codec["name"]).removeprefix("numcodecs.")
    options = codec.get("configuration", codec)
    if name == "bitround":  # rounded when it was written
        return None
    if name in _PLAIN:
        return _PLAIN[name], 0
    if name == "shuffle":
        return "shuffle", int(options.get("elementsize", dtype.itemsize))
    if name == "delta":
        before, after = np.dtype(options["dtype"]), np.dtype(options.get("astype") or options["dtype"])
        names = ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64"]
        if before == after and number_type(before) and not (is_big(before) and before.itemsize > 1):
            return "delta", names.index(number_type(before))
    raise Unsupported(
        f"{folder}: chunks went through '{name}' as {json.dumps(options)[:200]}, which is not read; known are "
        f"{', '.join(_PLAIN)}, shuffle, delta"
    )
