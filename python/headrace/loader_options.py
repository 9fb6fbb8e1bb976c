# SPDX-License-Identifier: Apache-2.0
"""Arguments of a Loader, checked and in the engine's words; states in its form."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from . import _core, checks
from .errors import UsageError


def _plain(value: Any) -> Any:
    """What json.dumps does not know, as a number, a list or a dict: states come back through all kinds of libraries."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return operator.index(value)


def state_text(state: Any) -> str:
    if not isinstance(state, Mapping) or "headrace" not in state:
        raise UsageError("this is not a state of headrace: it has no 'headrace' entry")
    import json

    try:
        return json.dumps(dict(state), default=_plain)
    except (TypeError, ValueError) as e:
        raise UsageError(f"the state holds what headrace does not write: {e}") from None


def shuffle_of(value: Any) -> _core.Shuffle:
    if value is True:
        return _core.Shuffle.AUTO
    if value is False or value is None:
        return _core.Shuffle.NONE
    if value == "global":
        return _core.Shuffle.GLOBAL
    if value == "pool":
        return _core.Shuffle.POOL
    raise UsageError(f'shuffle is True, False, "global" or "pool", not {value!r}')


TAILS = {"drop": _core.Tail.DROP, "pad": _core.Tail.PAD, "keep": _core.Tail.KEEP}


def most_bad(value: Any) -> int | None:
    """Bad samples that may be replaced in an epoch; None: they raise."""
    if value == "raise":
        return None
    if value == "replace":
        return 1000
    if isinstance(value, str):
        raise UsageError(f'bad_samples is "raise", "replace" (at most 1000 an epoch) or the most to replace, not {value!r}')
    return checks.whole(value, "bad_samples")


def global_batch(batch: int | None, total: int | None, world: int) -> int:
    if (batch is None) == (total is None):
        raise UsageError("give batch_size (this rank's) or global_batch_size, one of the two")
    if batch is not None:
        return checks.whole(batch, "batch_size", 1, 1 << 31) * world
    size = checks.whole(total, "global_batch_size", 1, 1 << 31)
    if size % world != 0:
        raise UsageError(f"global_batch_size={size} does not divide by {world} ranks")
    return size


def window_bytes(shuffle_window: Any, window: Any) -> int | None:
    """Of two names for one option."""
    if shuffle_window is None or window is None:
        given = ("window", window) if shuffle_window is None else ("shuffle_window", shuffle_window)
        return checks.byte_count(given[1], given[0]) or None
    raise UsageError("window and shuffle_window are one option, and both are given: leave window out")
