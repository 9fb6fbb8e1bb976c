# SPDX-License-Identifier: Apache-2.0
"""Mixtures of data sets with exact proportions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

from .checks import real, whole
from .dataset import Dataset
from .errors import UsageError
from .source_paths import places_of


class Blend:
    """Several sources drawn from in proportion; made by :func:`blend`."""

    def __init__(self, parts: Mapping[str, tuple[Any, float]], epoch_samples: int) -> None:
        self._parts = flattened(parts)
        self.epoch_samples = epoch_samples

    def parts(self) -> list[tuple[str, Any]]:
        """(name, data set or place)"""
        return [(name, source) for name, (source, _) in self._parts.items()]

    def where(self, condition: Any, fields: Any = None) -> Blend:
        """The blend of what ``where`` leaves of each source, with the same weights."""
        return self._each(lambda part: part.where(condition, fields))

    def split(self, **options: Any) -> dict[str, Blend]:
        """A blend for each part: of every source its part, with the same weights."""
        parts = {name: (_opened(source).split(**options), weight) for name, (source, weight) in self._parts.items()}
        names = next(iter(parts.values()))[0]
        return {n: Blend({name: (views[n], w) for name, (views, w) in parts.items()}, self.epoch_samples) for n in names}

    def _each(self, view: Callable[[Dataset], Dataset]) -> Blend:
        return Blend({name: (view(_opened(source)), w) for name, (source, w) in self._parts.items()}, self.epoch_samples)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise UsageError("a blend has no order of its own: make views of its sources, or hr.blend of views; a + b has one")

    repeat = balance = __getitem__ = __add__ = _refuse

    def __repr__(self) -> str:
        parts = ", ".join(f"{name!r}: {weight!r}" for name, (_, weight) in self._parts.items())
        return f"<headrace Blend of {len(self._parts)} sources: {parts}>"

    def weights(self) -> list[float]:
        return [real(weight, f"the weight of '{name}'") for name, (_, weight) in self._parts.items()]


def _opened(source: Any) -> Dataset:
    return source if isinstance(source, Dataset) else Dataset(places_of(source))


def flattened(parts: Mapping[str, tuple[Any, float]]) -> dict[str, tuple[Any, float]]:
    """A blend within a blend is its sources, each with its share of the blend's weight."""
    out: dict[str, tuple[Any, float]] = {}
    for name, (source, weight) in parts.items():
        if not isinstance(source, Blend):
            out[name] = (source, weight)
            continue
        weight = real(weight, f"the weight of '{name}'")
        inner = source.weights()
        for (own, (part, _)), share in zip(source._parts.items(), inner):
            out[f"{name}.{own}"] = (part, weight * share / (sum(inner) or 1.0))
    return out


def blend(parts: Mapping[str, tuple[Any, float] | float], *, epoch_samples: int = 0) -> Blend:
    """``hr.blend({"web": ("web-*.tar", 0.7), "books": (books, 0.3)})``.

    A source is a data set or what ``hr.open`` opens. Data sets that were opened with ``fields`` keep them, so that sources
    with other stored names and other steps give the same outputs:
    ``hr.blend({"a": (hr.open(a, fields_a), 0.7), "b": (hr.open(b, fields_b), 0.3)})``. The others get the ``fields`` of the
    Loader. All sources must give outputs of the same names, types and shapes.

    ``{url: weight}`` is short for ``{url: (url, weight)}``: the URL is then the name of the source, in states and for
    ``set_weights`` too. Give names of your own where data may move.

    At the end of every mixing block (1/smallest weight draws, at least 64) each source has had its share to
    within one sample, for ever; inside a block the draws are shuffled. A source that runs out starts its next epoch. ``epoch_samples`` is the length of an epoch in draws; the
    samples of all sources together unless given. A source may be a blend: weights multiply, and its sources are called
    ``web.news``, ``web.forums``.
    """
    if not isinstance(parts, Mapping) or not parts:
        raise UsageError("blend takes a dict: {name: (source, weight)}")
    pairs: dict[str, tuple[Any, float]] = {}
    for name, part in parts.items():
        if not isinstance(name, str) or not name:
            raise UsageError(f"blend: a source's name is a text, not {name!r}")
        if isinstance(part, Real) and not isinstance(part, bool):
            part = (name, float(part))
        if not isinstance(part, tuple) or len(part) != 2:
            raise UsageError(f"blend: '{name}' is {part!r}; (source, weight) is wanted, or a weight where the name is the URL")
        pairs[name] = part
    return Blend(pairs, whole(epoch_samples, "epoch_samples"))
