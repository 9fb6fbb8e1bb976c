# SPDX-License-Identifier: Apache-2.0
"""A batch is a dict of arrays, and knows which samples it holds."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np


class Batch(dict[str, Any]):
    """``batch[name]`` is a tensor (or a list, or a tuple for padded and ragged fields).

    Pickled, copied or rebuilt by another library it is a plain dict of its arrays.
    """

    __slots__ = ("_raw",)
    _raw: Any

    def _origin(self) -> Any:
        try:
            return self._raw
        except AttributeError:
            raise AttributeError("this batch was rebuilt from its arrays: ask the one the loader gave") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def _repr_html_(self) -> str:
        from .notebook import batch_html

        return batch_html(self)

    @property
    def indices(self) -> np.ndarray[Any, Any]:
        """Which samples these are: the numbers of ``ds[i]`` (int64)."""
        return self._origin().indices()

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
        return dict(json.loads(self._origin().state()))


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
    elif framework == "torch":
        from torch.utils import _pytree

        _pytree.register_pytree_node(Batch, _flatten, lambda values, names: dict(zip(names, values)))
