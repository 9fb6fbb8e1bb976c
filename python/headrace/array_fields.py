# SPDX-License-Identifier: Apache-2.0
"""Fields of numbers: arrays, windows and patches of files of arrays, columns of tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .dtypes import dtype_name
from .errors import UsageError
from .field import Field


class Starts:
    """A table of samples: rows of a position, and of the corner of the patch."""

    def __init__(self, table: Any) -> None:
        import numpy as np

        rows = np.asarray(table)
        if rows.dtype.kind not in "iu" or rows.ndim not in (1, 2) or rows.size == 0:
            raise UsageError(
                f"starts is a list of positions, [7, 3], or of positions with the patch's corner, [[7, 0, 128]], not {table!r}"
            )
        self.rows = np.ascontiguousarray(rows.reshape(len(rows), -1), np.int64)

    def __repr__(self) -> str:
        return f"<{len(self.rows)} starts>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Starts) and self.rows.shape == other.rows.shape and bool((self.rows == other.rows).all())

    def __hash__(self) -> int:
        return hash(self.rows.tobytes())


class Stats(dict[str, dict[str, Any]]):
    """Statistics of variables, as ``hr.stats`` gives them."""

    def __repr__(self) -> str:
        return f"<statistics of {', '.join(self)}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """As JSON, for ``normalize(path)``."""
        import json

        with open(path, "w", encoding="utf-8") as f:
            json.dump(self, f, indent=1)
            f.write("\n")


class ArrayField(Field):
    """Numbers: arrays and tokens."""

    def __init__(self, what: str, field: str, **options: Any) -> None:
        super().__init__(what, field, **options)
        self.variables = [field]  # of a file of arrays
        self.windows: dict[str, Any] = {}  # what a sample takes of them

    def normalize(self, mean: Any, std: float | Sequence[float] | None = None) -> ArrayField:
        """``(value - mean) / std`` as f32. One number each, or one for each of the last axis.

        Or ``normalize(stats)``: what ``hr.stats`` gives, or the path of the JSON that ``headrace stats --to`` writes;
        each variable by its own, and each level where they are kept apart (``per="level"``)."""
        if std is None:
            from .arrays.statistics import load

            return self._step("normalize", stats=load(mean))
        return self._step("normalize", mean=mean, std=std)

    def random_flip(self, axes: int | Sequence[int] = -1, p: float = 0.5) -> ArrayField:
        """Turned round along each of ``axes`` with probability ``p``; axes count from the last, -1.

        Drawn for a sample by the axis alone: fields of one sample that flip the same axis do it together. Comes last,
        wherever it stands."""
        return self._step("random_flip", axes=axes, p=p)

    def truncate(self, length: int, side: str = "right") -> ArrayField:
        """Values with one axis have at most ``length`` elements; ``side``: where the others are cut off, "right" or "left"."""
        from .checks import whole

        return self._step("truncate", length=whole(length, "truncate(length)", 1, 1 << 40), side=side)

    def cast(self, dtype: Any) -> ArrayField:
        """To another type: ``"f32"``, ``"i64"``, … A number that an integer type cannot hold is an error."""
        return self._step("cast", dtype=dtype)


def _numbers(what: str, field: str, dtype: Any, shape: int | Sequence[int] | None) -> ArrayField:
    options: dict[str, Any] = {}
    if dtype is not None:
        options["dtype"] = dtype
    if shape is not None:
        options["shape"] = shape
    return ArrayField(what, field, **options)


def _window_options(options: dict[str, Any]) -> dict[str, Any]:
    """Checked, without those that were not given."""
    from .checks import whole

    out: dict[str, Any] = {k: v for k, v in options.items() if v is not None and v is not False}
    for name, least in (("window", 1), ("stride", 1), ("horizon", 1), ("dilation", 1)):
        if name in out:
            out[name] = whole(out[name], name, least, 1 << 40)
    if "along" in out and not isinstance(out["along"], str):
        raise UsageError(f"along is the name of an axis, not {out['along']!r}")
    if "patch" in out:
        sizes = out["patch"] if isinstance(out["patch"], Sequence) else [out["patch"]]
        out["patch"] = tuple(whole(n, "patch", 1, 1 << 40) for n in sizes)
    if "periodic" in out:
        names = [out["periodic"]] if isinstance(out["periodic"], str) else out["periodic"]
        if not isinstance(names, Sequence) or not all(isinstance(n, str) for n in names):
            raise UsageError(f"periodic is the name of an axis or a list of names, not {out['periodic']!r}")
        out["periodic"] = tuple(names)
    if "sel" in out and not isinstance(out["sel"], dict):
        raise UsageError(f"sel is a dict of axes and values, not {out['sel']!r}")
    if "starts" in out:
        out["starts"] = Starts(out["starts"])
    if "foreground" in out and not isinstance(out["foreground"], str):
        raise UsageError(f"foreground is the name of the label, not {out['foreground']!r}")
    if ("foreground" in out) != ("share" in out):
        raise UsageError("foreground= and share= are given together: foreground='y', share=0.4")
    if "share" in out and not (isinstance(out["share"], (int, float)) and 0 < out["share"] <= 1):
        raise UsageError(f"share is a number above 0, at most 1, not {out['share']!r}")
    if out.get("tiled") not in (None, True):
        raise UsageError(f"tiled is True or False, not {out['tiled']!r}")
    if out.get("tiled") and "patch" not in out:
        raise UsageError("tiled=True needs the size of the patches: patch=(64, 64)")
    return out


def array(
    field: str | Sequence[str],
    *,
    dtype: Any = None,
    shape: int | Sequence[int] | None = None,
    many: bool = False,
    along: str | None = None,
    window: int | None = None,
    stride: int | None = None,
    horizon: int | None = None,
    dilation: int | None = None,
    gaps: bool = False,
    patch: int | Sequence[int] | None = None,
    tiled: bool = False,
    periodic: str | Sequence[str] | None = None,
    sel: dict[str, Any] | None = None,
    starts: Any = None,
    foreground: str | None = None,
    share: float | None = None,
    default: Any = None,
    optional: bool = False,
) -> ArrayField:
    """An array: of a format that has arrays, a ``.npy`` file, a number, or bytes that hold elements.

    ``dtype``: "u8", "i8", … "u64", "i64", "f16", "bf16", "f32", "f64". Of bytes it says what they hold,
    little-endian; of all others what they become, as ``cast`` does. ``shape``: what values are brought into,
    the last axis fastest; -1 once, where the length tells. ``hr.array("emb", dtype="f32", shape=(512,))``.

    Arrays of one shape are dense in a batch, [n, …]; where the data say that the shape varies, a list.
    The shape of ``.npy`` values is the first sample's, which is looked at when the Loader is made; a sample
    of another shape is then an error, unless ``.list()``, ``.padded()`` or ``.ragged()`` is asked for.

    ``many``: a sample may have any number of values, none among them; each sample is a list of them.

    ``default``: of samples that have none: a number for every element, or an array; steps follow. ``optional``: as for
    ``hr.scalar``.

    Of files of arrays (HDF5, NetCDF-4, Zarr, npy; docs/arrays.md), a sample is a position ``along`` an axis, the first
    unless given. ``window``: so many steps from there on; without it one, and no axis for it. ``horizon``: so many
    steps after them, as ``NAME_target``. ``stride``: from one sample's position to the next one's. ``dilation``: from one
    step of a window to the next. Windows do not go over a gap in the axis's times unless ``gaps=True``. ``patch``: so much of
    the last axes, from a place that is drawn; ``tiled``: side by side, each a sample. ``periodic``: the axes over whose
    end a patch may go. ``sel``: ``{"level": [500, 850]}``, values of the coordinate, or indexes where there is none;
    ``{"time": ("1990", "2000")}``, dates, both ends included; ``slice(first, last, 4)``: every fourth of them. Several names:
    stacked on a new first axis, as the float that holds all their types; where some have a level axis and others not, each
    level is one. ``starts``: the samples, as a table: positions, or rows of a position
    and the corner of the patch.

    ``along="file"``: each file is one sample (npy, npz, HDF5, NetCDF, Zarr; ``case_0_x.npy`` and ``case_0_y.npy`` are ``x`` and
    ``y`` of one); ``along="group"``: each group of an HDF5 file. Extents may differ: a batch is
    then a list, or ``.padded()`` or ``.ragged()``, unless ``patch`` cuts pieces of one shape. ``foreground`` and ``share``: so many of the patches, at least, hold an element of that label that is not 0,
    its classes equally often.
    """
    names = [field] if isinstance(field, str) else field
    if not isinstance(names, Sequence) or not names or not all(isinstance(n, str) for n in names):
        raise UsageError(f"the name of a field in the data is a text like 'jpg', or a list of them, not {field!r}")
    out = _numbers("array", ",".join(names), dtype, shape)._as("array", many, default, optional)
    out.variables = list(names)
    out.windows = _window_options(
        {"along": along, "window": window, "stride": stride, "horizon": horizon, "patch": patch, "tiled": tiled}
        | {"dilation": dilation, "gaps": gaps or None}
        | {"periodic": periodic, "sel": sel, "starts": starts, "foreground": foreground, "share": share}
    )
    return out


class ColumnsField(ArrayField):
    """Columns of numbers, side by side."""

    columns: list[str]
    dtype: str
    missing: str | float


def columns(names: Sequence[str], *, dtype: Any = "f32", missing: str | float = "error") -> ColumnsField:
    """Columns of a table (CSV, Parquet, Arrow), side by side: [n, len(names)] in a batch.

    ``dtype``: "f32", "f64" or an integer, which holds every number exactly or the sample is bad; ``normalize`` and
    ``cast`` follow as for ``hr.array``. ``missing``: what a null or an empty cell is. "error": bad data that names
    column and sample; a number: that number; "nan"; "drop": rows without a value in one of the columns are left out of
    the data set, so that ``len`` and batches do not count them. A NaN that is stored is a number, and stays.
    """
    if isinstance(names, str) or not isinstance(names, Sequence) or not names or not all(isinstance(n, str) for n in names):
        raise UsageError(f"columns takes a list of names of columns, not {names!r}")
    number = isinstance(missing, (int, float)) and not isinstance(missing, bool)
    if not number and missing not in ("error", "nan", "drop"):
        raise UsageError(f'missing is "error", "nan", "drop" or a number, not {missing!r}')
    dtype = dtype_name(dtype)
    if missing == "nan" and dtype[:1] in "iu":
        raise UsageError(f'missing="nan" needs dtype="f32" or "f64": {dtype} has no NaN')
    out = ColumnsField("array", ",".join(names))
    out.columns, out.missing, out.dtype, out.finish = list(names), missing, dtype, "array"
    return out
