# SPDX-License-Identifier: Apache-2.0
"""A batch is a dict of arrays, and knows which samples it holds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .errors import UsageError


class _Known:
    """What a batch knows besides its arrays."""

    __slots__ = ()
    _raw: Any

    def _origin(self) -> Any:
        try:
            return self._raw
        except AttributeError:
            raise AttributeError("this batch was rebuilt from its arrays: ask the one the loader gave") from None

    @property
    def indices(self) -> np.ndarray[Any, Any]:
        """Which samples these are: the numbers of ``ds[i]`` (int64)."""
        return self._origin().indices()

    @property
    def groups(self) -> np.ndarray[Any, Any]:
        """Of packed rows (``hr.packed``): row i has the samples ``indices[groups[i]:groups[i + 1]]``; else empty."""
        return self._origin().groups()

    @property
    def valid(self) -> np.ndarray[Any, Any]:
        """True for real samples, False for padding."""
        return np.frombuffer(bytearray(self._origin().valid()), dtype=np.bool_)  # writable, or torch warns

    @property
    def sources(self) -> np.ndarray[Any, Any]:
        """Of a blend: the number of the source each sample came from."""
        return np.asarray(self._origin().sources(), dtype=np.int64)

    @property
    def state(self) -> dict[str, Any]:
        """The loader's state as of after this batch, for wrappers that fetch one ahead."""
        import json

        return dict(json.loads(self._origin().state()))


class Batch(_Known, dict[str, Any]):
    """``batch[name]`` is a tensor (or a list, or a tuple for padded and ragged fields).

    Pickled, copied or rebuilt by another library it is a plain dict of its arrays.
    """

    __slots__ = ("_raw",)
    _raw: Any

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def _repr_html_(self) -> str:
        from .notebook import batch_html

        return batch_html(self)


class TupleBatch(_Known, tuple[Any, ...]):
    """What ``Loader(…, as_=("image", "label"))`` gives: the values of these fields, in this order.

    Pickled or copied it is a plain tuple.
    """

    _raw: Any  # a tuple has no slots of its own

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


def shape_of(as_: Any, names: Sequence[str]) -> Callable[[Batch], Any] | None:
    """``as_=`` of a Loader whose batches have these names, as a function of a batch."""
    if as_ is None:
        return None
    if callable(as_):
        return as_
    if isinstance(as_, str) or not isinstance(as_, Sequence) or not as_ or not all(isinstance(n, str) for n in as_):
        raise UsageError(f"as_ is a tuple of names of fields, like ('image', 'label'), or a function of a batch, not {as_!r}")
    missing = [n for n in as_ if n not in names]
    if missing:
        raise UsageError(f"as_: there is no field '{missing[0]}' in a batch; it has {', '.join(names)}")
    wanted = tuple(as_)

    def as_tuple(batch: Batch) -> TupleBatch:
        out = TupleBatch(batch[name] for name in wanted)
        out._raw = batch._raw
        return out

    return as_tuple


def _flatten(batch: Batch) -> tuple[list[Any], tuple[str, ...]]:
    names = tuple(sorted(batch))
    return [batch[name] for name in names], names


@functools.cache
def register_pytree(framework: str) -> None:
    """Lets jax.jit, torch.export and the like look into a batch; they look up the exact type."""
    if framework == "jax":
        import jax

        def unflatten(names: tuple[str, ...], values: Any) -> dict[str, Any]:
            return dict(zip(names, values))

        jax.tree_util.register_pytree_node(Batch, _flatten, unflatten)
        jax.tree_util.register_pytree_node(TupleBatch, lambda b: (list(b), None), lambda _, values: tuple(values))
    elif framework == "torch":
        from torch.utils import _pytree

        _pytree.register_pytree_node(Batch, _flatten, lambda values, names: dict(zip(names, values)))
        _pytree.register_pytree_node(TupleBatch, lambda b: (list(b), None), lambda values, _: tuple(values))
