# SPDX-License-Identifier: Apache-2.0
"""What all fields have in common: names, steps, packing, what a missing value becomes."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from .dtypes import dtype_name
from .errors import UsageError

#: Options that go without saying.
_USUAL = {"mode": "RGB", "strict": True, "variants": 1, "format": "xyxy", "key": "bbox", "min_area": 1.0}

Self = TypeVar("Self", bound="Field")


class Called(NamedTuple):
    """How the functions of a field are called."""

    shape: Any = None  # of what they give; None: learned from the first sample
    dtype: Any = None
    processes: int = 0  # 0: on the engine's threads
    timeout: float | None = None
    parallel: bool = False  # by several threads at a time
    named: bool = False  # the names in ``shape`` and ``dtype`` are what follows the output's own


class Group:
    """Fields that go through one function together: ``hr.map``."""

    def __init__(self, names: tuple[str, ...], function: Callable[..., Any], called: Called) -> None:
        self.names, self.function, self.called = names, function, called


class Field:
    """One output of a batch. Methods return a new field and leave this one as it is."""

    def __init__(self, what: str, field: str, **options: Any) -> None:
        if not isinstance(field, str):
            raise UsageError(f"the name of a field in the data is a text like 'jpg', not {field!r}")
        self.what = what
        self.field = field
        self.options = {k: dtype_name(v) if k == "dtype" else v for k, v in options.items()}
        self.steps: list[tuple[str, dict[str, Any]]] = []
        self.packing: str | None = None
        self.pad_value: int | float = 0  # what padded values are filled up with
        self.pad_multiple = 1  # the last axis of padded values becomes a multiple of it
        self.pad_left = False  # the padding of the last axis comes first
        self.many = False  # any number of values a sample
        self.joint = ""  # the group whose draws it shares
        self.leads = False  # the picture that the group follows
        self.functions: list[Callable[..., Any]] = []
        self.called = Called()
        self.group: Group | None = None  # of hr.map
        self.finish: str = what  # how values reach Python: array, text, bytes, json
        self.default: Any = None  # in place of a value that a sample lacks
        self.optional = False  # a sample may lack it; NAME_valid says which have it

    def __repr__(self) -> str:
        chain = "".join(f".{name}({', '.join(f'{k}={v!r}' for k, v in args.items())})" for name, args in self.steps)
        name = repr(self.field) if self.field else ""  # a key has none
        said = {k: v for k, v in self.options.items() if v not in (None, False, "", ()) and _USUAL.get(k) != v}
        given = {**said, **getattr(self, "windows", {})}
        if self.many:
            given["many"] = True
        if self.default is not None:
            given["default"] = self.default
        if self.optional:
            given["optional"] = True
        words = ", ".join([*([name] if name else []), *(f"{k}={v!r}" for k, v in given.items())])
        where = f", processes={self.called.processes}" if self.called.processes else ""
        maps = "".join(f".map({getattr(f, '__name__', repr(f))}{where})" for f in self.functions)
        return f"hr.{self.what}({words}){chain}{maps}" + (f".{self.packing}({self._padding()})" if self.packing else "")

    def _padding(self) -> str:
        """The arguments of padded() that are not the usual ones."""
        if self.packing != "padded":
            return ""
        said = {"value": self.pad_value, "multiple": self.pad_multiple, "side": "left" if self.pad_left else "right"}
        usual = {"value": 0, "multiple": 1, "side": "right"}
        return ", ".join(f"{k}={v!r}" for k, v in said.items() if v != usual[k])

    def _with(self: Self, **changes: Any) -> Self:
        other = copy.copy(self)
        other.steps = list(self.steps)
        other.functions = list(self.functions)
        for name, value in changes.items():
            setattr(other, name, value)
        return other

    def _as(self: Self, finish: str, many: bool, default: Any, optional: bool) -> Self:
        """What all fields have in common."""
        for name, value in (("many", many), ("optional", optional)):
            if not isinstance(value, bool):
                raise UsageError(f"{name} is True or False, not {value!r}")
        return self._with(finish=finish, many=many, default=default, optional=optional)

    def _step(self: Self, name: str, **params: Any) -> Self:
        if self.functions:
            raise UsageError(f"field '{self.field}': {name}() after map(): map must come last")
        other = self._with()
        given = {k: dtype_name(v) if k == "dtype" else v for k, v in params.items() if v is not None}
        other.steps.append((name, given))
        return other

    def map(
        self: Self,
        function: Callable[..., Any],
        shape: Any = None,
        dtype: Any = None,
        *,
        processes: int = 0,
        parallel: bool = False,
        timeout: float | None = 300.0,
    ) -> Self:
        """Calls ``function(value)`` for every sample: a NumPy array, a number, str or bytes.

        A function that has further parameters named ``rng``, ``key``, ``index`` or ``epoch`` (without a default, or with
        ``None``) gets these: ``rng`` is a ``numpy.random.Generator`` keyed by (seed, epoch, sample, output name). One
        named ``ctx``, or annotated ``hr.Context``, gets all of them. A function raises ``hr.BadSample`` to say that a
        sample is bad.

        It returns a number, an array, str or bytes; a dict or a tuple becomes several fields (the names of the dict;
        ``NAME_0``, ``NAME_1``, …); any other object that can be pickled goes through as a list. The function is called
        once, on the first sample, when the Loader is made, to learn what it gives, unless ``shape`` and ``dtype`` say it
        (``None`` in the shape where it varies).

        It runs on headrace's compute threads, one call at a time of all functions of a Loader, so that it may seed a
        library's generator and need not be thread-safe; ``loader.stats()["map"]`` says what that costs. ``parallel=True``: by
        several threads at a time, which pays for functions that release the GIL. ``processes=n``: in n processes that all fields of a Loader share; they are spawned once, and write
        into the batch. A process that dies, or gives nothing for ``timeout`` seconds and is killed, is named with its
        sample, which is bad data then; another process takes its place. A function compiled by ``numba.njit`` with a
        signature ``(value, out)`` and a declared ``shape`` and ``dtype`` runs on the threads without the GIL.
        """
        other = self._with()
        other.functions.append(function)
        if isinstance(processes, bool) or not isinstance(processes, int) or processes < 0:
            raise UsageError(f"field '{self.field}': processes={processes!r}: a whole number from 0 on is wanted")
        parallel = bool(parallel) and (self.called.parallel or not self.functions)  # all functions of a field, or none
        other.called = Called(shape, dtype, max(processes, self.called.processes), timeout, parallel)
        return other

    def list(self: Self) -> Self:
        """A batch holds a list, one value a sample: any shapes. With ``many``: a list of lists."""
        return self._with(packing="list")

    def padded(self: Self, value: float = 0, *, multiple: int = 1, side: str = "right") -> Self:
        """A batch holds (values filled up with ``value`` to the largest, true sizes). Not with ``many``.

        ``multiple``: the last axis becomes a multiple of it. ``side``: where the padding of the last axis goes, "right" or "left".

        ``value`` must be a number of the field's type: ``hr.tokens("ids").cast("i64").padded(value=-100)``. One that the
        type cannot hold is a ``UsageError``; ``float("nan")`` goes with floating point."""
        if isinstance(value, bool) or not isinstance(value, numbers.Real):  # NumPy's numbers are such, too
            raise UsageError(f"field '{self.field}': padded(value={value!r}): the padding is a number")
        if isinstance(multiple, bool) or not isinstance(multiple, numbers.Integral) or not 1 <= multiple <= 1 << 30:
            raise UsageError(f"field '{self.field}': padded(multiple={multiple!r}): a whole number from 1 on is wanted")
        if side not in ("right", "left"):
            raise UsageError(f'field \'{self.field}\': padded(side={side!r}): "right" or "left" is wanted')
        number = int(value) if isinstance(value, numbers.Integral) else float(value)
        return self._with(packing="padded", pad_value=number, pad_multiple=int(multiple), pad_left=side == "left")

    def ragged(self: Self) -> Self:
        """A batch holds (all values one after the other, where each begins, true sizes).

        With ``many``, for values of one shape: (all values of all samples, [total, …], and where each
        sample begins, int64 [samples + 1])."""
        return self._with(packing="ragged")
