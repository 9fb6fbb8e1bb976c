# SPDX-License-Identifier: Apache-2.0
"""Mixtures of data sets with exact proportions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _core
from .checks import real, whole
from .dataset import Dataset, open_data, places_of
from .errors import UsageError


class Blend:
    """Several sources drawn from in proportion; made by :func:`blend`."""

    def __init__(self, parts: Mapping[str, tuple[Any, float]], epoch_samples: int) -> None:
        self._parts = flattened(parts)
        self.epoch_samples = epoch_samples

    def sources(self) -> list[tuple[str, _core.Source]]:
        out = []
        for name, (source, _) in self._parts.items():
            out.append((name, source._source if isinstance(source, Dataset) else open_data(places_of(source), None)[0]))
        return out

    def __repr__(self) -> str:
        parts = ", ".join(f"{name!r}: {weight!r}" for name, (_, weight) in self._parts.items())
        return f"<headrace Blend of {len(self._parts)} sources: {parts}>"

    def weights(self) -> list[float]:
        return [real(weight, f"the weight of '{name}'") for name, (_, weight) in self._parts.items()]


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


def blend(parts: Mapping[str, tuple[Any, float]], *, epoch_samples: int = 0) -> Blend:
    """``hr.blend({"web": ("web-*.tar", 0.7), "books": (books, 0.3)})``.

    At the end of every mixing block (1/smallest weight draws, at least 64) each source has had its share to
    within one sample, for ever; inside a block the draws are shuffled. A source that runs out starts its next epoch. ``epoch_samples`` is the length of an epoch in draws; the
    samples of all sources together unless given. A source may be a blend: weights multiply, and its sources are called
    ``web.news``, ``web.forums``.
    """
    if not isinstance(parts, Mapping) or not parts:
        raise UsageError("blend takes a dict: {name: (source, weight)}")
    for name, part in parts.items():
        if not isinstance(name, str) or not name:
            raise UsageError(f"blend: a source's name is a text, not {name!r}")
        if not isinstance(part, tuple) or len(part) != 2:
            raise UsageError(f"blend: '{name}' is {part!r}; (source, weight) is wanted")
    return Blend(parts, whole(epoch_samples, "epoch_samples"))
