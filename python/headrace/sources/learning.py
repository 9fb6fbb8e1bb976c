# SPDX-License-Identifier: Apache-2.0
"""A few samples of an object looked at, to learn what a sample is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from ..errors import BadSample, DataError, UsageError
from ..processes.calling import words_of
from .items import Items, Mismatch, Tree, merged, tree_of

_USUAL = 4  # samples: the first two, one in the middle, the last


def probed(size: int, probe: int | None) -> list[int]:
    """Which samples are looked at: the same in every process."""
    count = min(size, _USUAL if probe is None else probe)
    if count >= size:
        return list(range(size))
    spread = [i * (size - 1) // max(1, count - 1) for i in range(count)]
    return sorted({0, min(1, size - 1), *spread}) if probe is None else sorted(set(spread))


def on_thread(thread: _core.ItemThread, function: Callable[[], Any]) -> Any:
    """What the function returns or raises, called by the thread that reads the samples."""
    outcome: list[Any] = [None, None]

    def call() -> None:
        try:
            outcome[0] = function()
        except BaseException as e:
            outcome[1] = e

    thread.run(call)
    if outcome[1] is not None:
        raise outcome[1]
    return outcome[0]


def learn(owner: str, fetch: Callable[[int], Any], numbers: Sequence[int]) -> Items:
    """What the samples look like, as far as these tell. Bad ones among them are passed over."""
    tree: Tree | None = None
    last: DataError | None = None
    for n in numbers:
        try:
            item = fetch(n)
            if item is None:
                raise BadSample(f"{owner} returned None for sample {n}")
        except DataError as e:
            last = e
            continue
        except Exception as e:
            raise UsageError(f"{owner}.__getitem__({n}) raised {words_of(e)}") from e
        try:
            tree = tree_of(item) if tree is None else merged(tree, tree_of(item))
        except Mismatch as e:
            raise UsageError(f"{owner}: {e}") from None
    if tree is None:
        raise UsageError(f"{owner}: none of the samples {', '.join(map(str, numbers))} could be read: {last}") from last
    return Items(tree, owner)
