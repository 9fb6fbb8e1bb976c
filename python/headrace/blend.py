# SPDX-License-Identifier: Apache-2.0
"""Mixtures of data sets with exact proportions."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

from . import _core
from .checks import one_of, real, whole
from .dataset import Dataset
from .errors import UsageError
from .messages import tell_once
from .source_paths import places_of

#: Of a mixing block, and of a weight, as ``src/plan/mixture.h`` has them.
_LEAST_BLOCK, _ONE = 64, 1 << 32
#: So far from 1 rounded shares add up: 0.33, 0.33, 0.33.
_SHARES_OFF = 0.015
_MOST_SHOWN = 5


class Part(NamedTuple):
    """One source of a blend."""

    name: str  # as users call it: for set_weights, stats, messages
    source: Any
    weight: float
    key: str = ""  # in fingerprint and state: its name, or its number where it is given as a URL


class Blend:
    """Several sources drawn from in proportion; made by :func:`blend`."""

    def __init__(
        self,
        parts: Sequence[Part],
        epoch_samples: int = 0,
        exhausted: str = "repeat",
        epochs: Mapping[str, float] | None = None,
    ) -> None:
        self._parts = _keyed(flattened(parts))
        self.epoch_samples, self.exhausted, self.epochs = epoch_samples, exhausted, epochs

    def parts(self) -> list[Part]:
        return list(self._parts)

    def where(self, condition: Any, fields: Any = None) -> Blend:
        """The blend of what ``where`` leaves of each source, with the same weights."""
        return self._each(lambda part: part.where(condition, fields))

    def split(self, **options: Any) -> dict[str, Blend]:
        """A blend for each part: of every source its part, with the same weights."""
        views = [_opened(part.source).split(**options) for part in self._parts]
        return {n: self._of([p._replace(source=v[n]) for p, v in zip(self._parts, views)]) for n in views[0]}

    def _each(self, view: Callable[[Dataset], Dataset]) -> Blend:
        return self._of([part._replace(source=view(_opened(part.source))) for part in self._parts])

    def _of(self, parts: Sequence[Part]) -> Blend:
        return Blend(parts, self.epoch_samples, self.exhausted, self.epochs)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise UsageError(
            "a blend has no order of its own, so it cannot be indexed; take the samples from its sources, or use a + b"
        )

    repeat = balance = __getitem__ = __add__ = _refuse

    def __repr__(self) -> str:
        parts = ", ".join(f"{part.name!r}: {part.weight!r}" for part in self._parts)
        return f"<headrace Blend of {len(self._parts)} sources: {parts}>"

    def weights(self, sizes: Sequence[int]) -> list[float]:
        """Of each source, given how many samples it has."""
        if self.epochs is None:
            return [part.weight for part in self._parts]
        return [self.epochs[part.name] * size for part, size in zip(self._parts, sizes)]

    def draws(self, sizes: Sequence[int]) -> int:
        """Of an epoch; 0: as many as there are samples."""
        if self.exhausted == "stop":
            most = _draws_before_a_repeat(_core.integer_weights(self.weights(sizes)), sizes)
            if most == 0:
                raise UsageError("exhausted='stop': a source of the blend has fewer samples than its share of one mixing block")
            return min(most, self.epoch_samples) if self.epoch_samples else most
        if self.epochs is not None and not self.epoch_samples:
            return round(sum(self.weights(sizes)))
        return self.epoch_samples


def _draws_before_a_repeat(weights: Sequence[int], sizes: Sequence[int]) -> int:
    """The last border of mixing blocks at which no source has had more samples than it has."""
    least = min(w for w in weights if w > 0)
    block = max(_LEAST_BLOCK, -(-_ONE // least))
    sums = [0, *itertools.accumulate(weights)]

    def fits(draws: int) -> bool:
        had = [(b * draws >> 32) - (a * draws >> 32) for a, b in itertools.pairwise(sums)]
        return all(n <= size for n, size in zip(had, sizes))

    blocks = min((size + 1) * _ONE // w for w, size in zip(weights, sizes) if w > 0) // block
    while blocks > 0 and not fits(blocks * block):
        blocks -= 1
    return blocks * block


def source_counts(
    names: Sequence[str], given: Sequence[int], sizes: Sequence[int], state: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Of each source: what a rank was given, and how often all ranks went through it, as a state says."""
    mixture = state["mixture"]
    since, weights = mixture["schedule"][0]
    draws = state["epoch"] * state["epoch_draws"] + state["g"] - since
    passed = [offset + weight * draws / _ONE for offset, weight in zip(mixture["offsets"], weights)]
    total = max(1, sum(given))
    return {
        name: {"samples": n, "share": n / total, "epochs": passes / size if size else 0.0}
        for name, n, passes, size in zip(names, given, passed, sizes)
    }


def _opened(source: Any) -> Dataset:
    return source if isinstance(source, Dataset) else Dataset(places_of(source))


def _keyed(parts: Sequence[Part]) -> list[Part]:
    """A source given as a URL goes by its number: data that moved keep their order and their states."""
    return [part if part.key else part._replace(key=str(n)) for n, part in enumerate(parts)]


def flattened(parts: Sequence[Part]) -> list[Part]:
    """A blend within a blend is its sources, each with its share of the blend's weight."""
    out: list[Part] = []
    for part in parts:
        if not isinstance(part.source, Blend):
            out.append(part)
            continue
        if part.source.epochs is not None or part.source.exhausted == "stop" or part.source.epoch_samples:
            raise UsageError(
                f"blend: '{part.name}' is a blend with epochs=, exhausted= or epoch_samples=, which are for the outermost blend: "
                "give them there, and weights here"
            )
        inner = part.source.parts()
        total = sum(p.weight for p in inner) or 1.0
        for own in inner:
            name = f"{part.name}.{own.name}"
            key = f"{part.key}.{own.key}" if part.key else ""
            out.append(Part(name, own.source, part.weight * own.weight / total, key))
    return out


def blend(
    parts: Mapping[str, tuple[Any, float] | float] | str | os.PathLike[str],
    *,
    epoch_samples: int = 0,
    exhausted: str = "repeat",
    epochs: Mapping[str, float] | None = None,
) -> Blend:
    """``hr.blend({"web": ("web-*.tar", 0.7), "books": (books, 0.3)})``, or ``{"web-*.tar": 0.7, "books-*.tar": 0.3}``.

    A source is a data set or what ``hr.open`` opens. Data sets that were opened with ``fields`` keep them, so that sources
    with other stored names and other steps give the same outputs:
    ``hr.blend({"a": (hr.open(a, fields_a), 0.7), "b": (hr.open(b, fields_b), 0.3)})``. The others get the ``fields`` of the
    Loader. All sources must give outputs of the same names, types and shapes.

    Weights are proportions: they need not add up to 1, but where they look like shares of 1 and are not, a notice says so. A source that is given as ``{url: weight}`` goes by its number in
    the fingerprint and in states, so that data which moved keep theirs; ``set_weights`` and ``stats`` call it by the URL.

    A path instead of a dict is a list of files, one a line: weight, path, and the corpus that it belongs to::

        0.5  web/part-00   web
        0.2  web/part-01   web
        0.3  code/part-00  code

    Files of one corpus are one source, whose weight is the sum of theirs; without a third column every file is a source.
    A path is relative to the list, and may be without its ``.bin``, as Megatron writes it.

    At the end of every mixing block (1/smallest weight draws, at least 64) each source has had its share to
    within one sample, for ever; inside a block the draws are shuffled. ``exhausted``: "repeat", a source that runs out
    starts its next epoch; or "stop", the run has one epoch, which ends before the first source would repeat.
    ``epoch_samples`` is the length of an epoch in draws; the samples of all sources together unless given.
    ``epochs={"web": 1, "code": 2.5}``, for every source, in the place of weights: so often it comes in one epoch of the
    blend, to within a mixing block. A source may be a blend: weights multiply, and its sources are called ``web.news``, ``web.forums``.
    """
    one_of(exhausted, "exhausted", ("repeat", "stop"))
    if isinstance(parts, (str, os.PathLike)):
        from .blend_lists import read_list

        found = [Part(name, files, weight, name if named else "") for name, files, weight, named in read_list(os.fspath(parts))]
    else:
        found = _of_mapping(parts)
    out = Blend(found, whole(epoch_samples, "epoch_samples"), exhausted, None)
    names = [part.name for part in out.parts()]
    if epochs is not None:
        if not isinstance(epochs, Mapping) or set(epochs) != set(names):
            raise UsageError(f"epochs name every source, {', '.join(map(repr, names))}, not {epochs!r}")
        out.epochs = {name: _share(epochs[name], f"epochs of '{name}'") for name in names}
        if epoch_samples or exhausted == "stop":
            raise UsageError("epochs=, epoch_samples= and exhausted='stop' all say how long an epoch is; give one of them")
    if not any((out.epochs or {p.name: p.weight for p in out.parts()}).values()):
        raise UsageError("blend: no source has a weight above 0")
    if out.epochs is None:
        _tell_of_sum([part.weight for part in found])
    return out


def _tell_of_sum(weights: Sequence[float]) -> None:
    """Weights that look like shares of 1, and are not: one may be wrong, or a source be missing."""
    total = math.fsum(weights)
    if len(weights) > 1 and max(weights) < 1 and abs(total - 1) > _SHARES_OFF:
        tell_once(
            f"blend: the weights add up to {total:.4g}, not to 1; they are taken as proportions, {_percents(weights, total)}"
        )


def _percents(weights: Sequence[float], total: float) -> str:
    shown = ", ".join(f"{weight / total:.1%}" for weight in weights[:_MOST_SHOWN])
    return shown + (", …" if len(weights) > _MOST_SHOWN else "")


def _share(value: Any, what: str) -> float:
    number = real(value, what)
    if not (math.isfinite(number) and number >= 0):
        raise UsageError(f"{what} is a number from 0 on, not {value!r}")
    return number


def _of_mapping(parts: Any) -> list[Part]:
    if not isinstance(parts, Mapping) or not parts:
        raise UsageError("blend takes a dict, {name: (source, weight)} or {url: weight}, or the path of a list of files")
    out = []
    for name, part in parts.items():
        if not isinstance(name, str) or not name:
            raise UsageError(f"blend: a source's name is a text, not {name!r}")
        if isinstance(part, Real) and not isinstance(part, bool):
            out.append(Part(name, name, _share(part, f"the weight of '{name}'")))
            continue
        if not isinstance(part, tuple) or len(part) != 2:
            raise UsageError(f"blend: '{name}' is {part!r}; (source, weight) is wanted, or a weight where the name is the URL")
        out.append(Part(name, part[0], _share(part[1], f"the weight of '{name}'"), name))
    return out
