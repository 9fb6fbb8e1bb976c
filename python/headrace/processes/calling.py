# SPDX-License-Identifier: Apache-2.0
"""Functions of users, called: what they are given besides the value, and what is made of what they return.

Both ends use it: the threads of the engine, and the processes, which load this file alone, by its path. So it imports
nothing of headrace, and NumPy only where there are arrays.
"""

from __future__ import annotations

import pickle
from typing import Any

#: What a function may ask for by the name of a parameter.
ASKED = ("rng", "key", "index", "epoch")


class Context:
    """What a function given to ``map`` may know of its sample: a parameter named ``ctx``, or annotated ``hr.Context``, gets it.

    ``index``: the number of the sample in its data set; ``epoch``; ``key``: its name in the tar or folder;
    ``rng``: a ``numpy.random.Generator`` keyed by (seed, epoch, sample, output name): the same numbers on any number of
    ranks, threads and processes, and after a resume.
    """

    __slots__ = ("_draws", "_rng", "epoch", "index", "key")

    def __init__(self, index: int, epoch: int, key: str, draws: tuple[int, int]) -> None:
        self.index, self.epoch, self.key = index, epoch, key
        self._draws, self._rng = draws, None

    @property
    def rng(self) -> Any:
        if self._rng is None:
            import numpy as np

            # A counter-based generator: its stream is a function of the key, and cheap to begin.
            self._rng = np.random.Generator(np.random.Philox(key=self._draws[0] | self._draws[1] << 64))  # type: ignore[assignment]
        return self._rng

    def __repr__(self) -> str:
        return f"<Context of sample {self.index}, epoch {self.epoch}, key {self.key!r}>"


class WrongResult(Exception):
    """A function gave something else than it gave for the first sample, or than was declared."""


def names_of(result: Any) -> list[str] | int | None:
    """The names of several results, or how many a tuple has; None: it is one."""
    if isinstance(result, dict):
        return list(result)
    if isinstance(result, tuple):
        names = getattr(result, "_fields", None)
        return len(result) if names is None else list(names)
    return None


class Chain:
    """Functions one after the other, over the values of one sample.

    ``spec``: plain data. "inputs": for each value its name ("" for the only one, which is no keyword) and whether it is
    "json" or an "object" to make first; "asks": for each function {parameter: what of the context}; "splits": None, or the names of the
    results; "results": for each how it is delivered ("array", "text", "bytes", "object"), NumPy's name of its type, and whether
    that was declared, not learned from the first sample.
    """

    def __init__(self, functions: list[Any], spec: dict[str, Any]) -> None:
        self.functions, self.spec = functions, spec
        self.inputs, self.asks = spec["inputs"], spec["asks"]
        self.splits, self.results = spec["splits"], spec["results"]
        self.plain = len(self.inputs) == 1 and not self.inputs[0][0]
        self.asking = any(self.asks)

    def raw(self, values: list[Any], context: Context | None) -> Any:
        """What the last function returns."""
        for i, (_, made_from) in enumerate(self.inputs):
            if made_from and values[i] is not None:
                import json

                make = json.loads if made_from == "json" else pickle.loads
                one = values[i]
                values[i] = [make(v) for v in one] if isinstance(one, list) else make(one)
        value: Any = values[0] if self.plain else None
        for n, (function, asks) in enumerate(zip(self.functions, self.asks)):
            given = {name: context if what == "ctx" else getattr(context, what) for name, what in asks.items()} if asks else {}
            if n == 0 and not self.plain:
                value = function(**{name: v for (name, _), v in zip(self.inputs, values)}, **given)
            else:
                value = function(value, **given) if given else function(value)
        return value

    def __call__(self, values: list[Any], index: int, epoch: int, key: str, a: int, b: int) -> list[Any]:
        """The results of one sample: arrays of their type, and bytes."""
        result = self.raw(values, Context(index, epoch, key, (a, b)) if self.asking else None)
        if self.splits is None:
            return [finished(result, *self.results[0])]
        return [finished(part, *how) for part, how in zip(self.split(result), self.results)]

    def split(self, result: Any) -> list[Any]:
        names = names_of(result)
        if isinstance(names, int):
            if names == len(self.splits):
                return list(result)
        elif names is not None and set(names) == set(self.splits):
            return [result[name] if isinstance(result, dict) else getattr(result, name) for name in self.splits]
        got = f"{names} values" if isinstance(names, int) else type(result).__name__ if names is None else ", ".join(names)
        if self.results[0][2]:
            raise WrongResult(f"gave {got}, and {', '.join(self.splits)} are declared")
        raise WrongResult(f"gave {', '.join(self.splits)} for the first sample and {got} for this one")


def numbers_of(result: Any) -> Any:
    """A result as an array of NumPy's. Raises TypeError, ValueError, or what the result itself raises."""
    import numpy as np

    if isinstance(result, np.ma.MaskedArray) and np.ma.is_masked(result):
        raise WrongResult("gave an array with masked values, which a batch cannot tell from others: fill them with .filled()")
    if getattr(result, "requires_grad", False):
        result = result.detach()
    return np.asarray(result)


def object_bytes(value: Any) -> bytes:
    """Any object: by the import names of what it is made of, else by value, as of classes of the script or notebook."""
    try:
        return pickle.dumps(value, 5)
    except Exception as e:
        try:
            import cloudpickle

            return bytes(cloudpickle.dumps(value, 5))
        except Exception:
            raise e from None


def finished(result: Any, how: str, dtype: str, declared: bool = False) -> Any:
    """A result as it goes into a batch: an array of the type, of any strides, or bytes."""
    if how == "array":
        import numpy as np

        array = numbers_of(result)
        if array.dtype != dtype:
            if array.dtype == np.bool_:
                array = array.view(np.uint8)
            if array.size == 0 and array.dtype != np.object_:  # of any type: NumPy takes an empty list for float64
                return array.astype(dtype)
            if not np.can_cast(array.dtype, dtype, "same_kind"):
                given = type(result).__name__ if array.dtype == np.object_ else array.dtype
                if declared:
                    raise WrongResult(f"gave {given}, and {dtype} is declared")
                raise WrongResult(f"gave {dtype} for the first sample and {given} for this one")
            array = _cast(array, dtype, declared)
        return array
    if how == "object":
        return object_bytes(result)
    wanted = str if how == "text" else bytes
    if not isinstance(result, wanted):
        raise WrongResult(f"gave {wanted.__name__} for the first sample and {type(result).__name__} for this one")
    return result.encode() if isinstance(result, str) else result


def _cast(array: Any, dtype: str, declared: bool) -> Any:
    """The same numbers in the type of the first sample, or the one declared. Fractions are rounded; what the type cannot hold is refused."""
    import numpy as np

    with np.errstate(over="ignore"):
        cast = array.astype(dtype)
    if cast.dtype.kind == "f" and array.dtype.kind in "iu":  # whole numbers stay whole: labels, identifiers
        lost = cast.astype(np.longdouble) != array.astype(np.longdouble)
    elif cast.dtype.kind == "f":
        lost = np.isinf(cast) & np.isfinite(array)
    elif cast.dtype.itemsize < array.dtype.itemsize or cast.dtype.kind != array.dtype.kind:
        lost = cast != array
    else:
        return cast
    if lost.any():
        which = "which is declared" if declared else "the type of the first one"
        raise WrongResult(f"gave {array[lost].flat[0]} for this sample, which {dtype}, {which}, cannot hold")
    return cast


def words_of(error: BaseException) -> str:
    """``Type: words``, also of an exception that fails to say its words."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as e:
        return f"{type(error).__name__}: (its __str__ raised {type(e).__name__})"


def said(error: BaseException) -> tuple[bool, str]:
    """Whether the function says that its data are bad, and a sentence."""
    if isinstance(error, WrongResult):
        return False, f"the function given to map() {error}"
    bad = any(c.__name__ == "DataError" and c.__module__ == "headrace.errors" for c in type(error).__mro__)
    return bad, f"the function given to map() raised {words_of(error)}"
