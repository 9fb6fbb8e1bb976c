# SPDX-License-Identifier: Apache-2.0
"""``hr.from_torch`` and ``hr.from_python``: a data set of headrace's around what a program already has."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from ..checks import whole
from ..dataset import Dataset
from ..errors import UsageError
from ..fields import Field
from ..messages import tell_once
from .frames import frame_table, is_frame
from .items import is_tensor
from .parts import FilesAndColumns, MemoryColumns, ObjectItems

Fields = Mapping[str, Field]


def _torch_class(obj: Any, name: str) -> bool:
    torch = sys.modules.get("torch.utils.data")
    return torch is not None and type(obj) is getattr(torch, name)


def _subset(obj: Any) -> tuple[Any, list[int]] | None:
    """What a Subset is of, and which samples; also of Subsets of Subsets."""
    if not _torch_class(obj, "Subset"):
        return None
    inner = _subset(obj.dataset)
    numbers = [int(i) for i in obj.indices]
    return (obj.dataset, numbers) if inner is None else (inner[0], [inner[1][i] for i in numbers])


def from_torch(
    dataset: Any,
    fields: Fields | None = None,
    *,
    fingerprint: str | None = None,
    probe: int | None = None,
    processes: int | str = 0,
) -> Any:
    """A ``torch.utils.data.Dataset`` as it is, in headrace's order: shuffled, split over ranks, resumed as every other data set.

    A sample that is a tuple has the fields ``"0"``, ``"1"``, …; a dict those of its keys, nested dicts dotted ones. Arrays,
    tensors, numbers, str, bytes and PIL pictures come into batches; other objects come as lists. ``None`` is a value that
    is missing, and a sample that is ``None`` is bad data.

    One thread of headrace's calls ``__getitem__`` (``__getitems__``, where there is one), always the same, so the data set
    need not be thread-safe. A TensorDataset is read without Python.

    fields: what to make of each field, as for ``hr.open``.
    fingerprint: any text that tells this version of the data from another; the data set's class and length are told apart
        without it. A state is refused by data of another fingerprint.
    probe: how many samples are looked at to learn what a sample is; four unless given.
    processes: that many processes make the samples at the same time, each with a copy of the data set of its own; 0: one
        thread of this process; ``"auto"``: as many as there are CPUs, where samples are timed to be worth it and the data set
        can be pickled.
    """
    torch = sys.modules.get("torch.utils.data")
    if torch is None or not isinstance(dataset, torch.Dataset):
        hint = "hr.from_python takes other objects"
        raise UsageError(f"from_torch takes a torch.utils.data.Dataset, not a {type(dataset).__name__}; {hint}")
    return from_python(dataset, fields, fingerprint=fingerprint, probe=probe, processes=processes)


def from_python(
    obj: Any,
    fields: Fields | None = None,
    *,
    fingerprint: str | None = None,
    probe: int | None = None,
    processes: int | str = 0,
    files: str | Sequence[str] | None = None,
    root: str | os.PathLike[str] | None = None,
    buffer: int | None = None,
) -> Any:
    """A Python object as a data set.

    obj: an object with ``__len__`` and ``__getitem__`` (and ``__getitems__``, a list of numbers to a list of samples, where it
        has one); a NumPy array, a tensor, a tuple of them, a dict of columns, a frame of pandas or polars, an Arrow table:
        their memory is read as it lies, without Python; a Hugging Face ``Dataset``; an iterable with a length, which is kept
        in memory; a generator or another iterable, or a function that gives one: a stream, for ``hr.Loader`` alone.
    files, root: of a frame or a dict: columns that name files, which are read as fields by their extension; and the
        folder that they are relative to.
    buffer: of a stream: how many samples are shuffled among each other; 4096 unless given.
    fields, fingerprint, probe: as for ``hr.from_torch``.
    """
    if isinstance(obj, Dataset):
        if fields is not None:
            raise UsageError("this is a data set of headrace's: give its fields to hr.Loader")
        return obj
    if isinstance(obj, (str, os.PathLike)):
        raise UsageError(f"{os.fspath(obj)!r} is a path: hr.open reads it")
    if fingerprint is not None and not isinstance(fingerprint, str):
        raise UsageError(f"fingerprint is a text, not {fingerprint!r}")
    probe = None if probe is None else whole(probe, "probe", 1)
    if processes != "auto":
        processes = whole(processes, "processes", 0, 4096)
    owner = obj.__name__ if isinstance(obj, FunctionType) else type(obj).__name__
    if files is not None:
        return Dataset(_with_files(obj, files, root, owner, fingerprint), fields)
    if root is not None:
        raise UsageError("root= is the folder of the paths in files=; give files=['column'] too")
    if type(obj).__module__.partition(".")[0] == "datasets":
        from .hugging_face import from_hugging_face

        native = from_hugging_face(obj, fields)
        if native is not None:
            return native
    found = _columns_in(obj)
    if processes and processes != "auto" and (found is not None or not hasattr(obj, "__getitem__")):
        raise UsageError(f"processes= is for objects with __getitem__; this is a {owner}, which no process makes samples of")
    if found is not None:
        return Dataset(MemoryColumns(found, owner, fingerprint), fields)
    part = _subset(obj)
    if part is not None and _columns_in(part[0]) is not None:
        return from_python(part[0], fields, fingerprint=fingerprint)[np.asarray(part[1], np.int64)]
    if hasattr(obj, "__getitem__") and hasattr(obj, "__len__") and not isinstance(obj, type) and not _only_iterates(obj):
        return Dataset(ObjectItems(obj, owner, fingerprint, probe, processes), fields)
    return _iterable(obj, owner, fields, fingerprint, probe, buffer)


def _with_files(obj: Any, files: str | Sequence[str], root: Any, owner: str, fingerprint: str | None) -> FilesAndColumns:
    table = frame_table(obj) if is_frame(obj) else obj
    if not isinstance(table, Mapping):
        raise UsageError("files= names columns of a frame or a dict of columns")
    return FilesAndColumns(table, [files] if isinstance(files, str) else list(files), os.fspath(root or "."), owner, fingerprint)


def _only_iterates(obj: Any) -> bool:
    """PyTorch's IterableDataset inherits a __getitem__ that it does not have."""
    torch = sys.modules.get("torch.utils.data")
    return torch is not None and isinstance(obj, torch.IterableDataset)


def _columns_in(obj: Any) -> Mapping[Any, Any] | None:
    """What is a table of columns, as one."""
    if is_frame(obj):
        return frame_table(obj)
    if isinstance(obj, np.ndarray) or is_tensor(obj):
        return {"0": obj}
    if type(obj).__module__.partition(".")[0] in ("jax", "jaxlib"):
        return {"0": np.asarray(obj)}
    if isinstance(obj, Mapping):
        return obj
    if _torch_class(obj, "TensorDataset"):
        return {str(i): tensor for i, tensor in enumerate(obj.tensors)}
    if type(obj) is tuple and obj and all(isinstance(v, np.ndarray) or is_tensor(v) for v in obj):
        return {str(i): values for i, values in enumerate(obj)}
    return None


def _iterable(obj: Any, owner: str, fields: Fields | None, fingerprint: str | None, probe: int | None, buffer: int | None) -> Any:
    from .streams import Stream

    if hasattr(obj, "__iter__") and hasattr(obj, "__len__") and not isinstance(obj, Iterator):
        try:
            size = len(obj)
        except TypeError:  # an IterableDataset that wraps another
            return Stream(obj, owner, fields, probe, buffer)
        items = list(obj)
        if len(items) != size:
            tell_once(f"{owner}: len() says {size} and it gave {len(items)} samples; all of them are taken")
        return Dataset(ObjectItems(items, owner, fingerprint, probe), fields)
    if hasattr(obj, "__iter__") or (callable(obj) and not isinstance(obj, type)):
        return Stream(obj, owner, fields, probe, buffer)
    raise UsageError(
        f"{owner} is no data set: it needs __len__ and __getitem__, or __iter__; arrays, frames and dicts of columns are taken too"
    )
