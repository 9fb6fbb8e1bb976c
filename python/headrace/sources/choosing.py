# SPDX-License-Identifier: Apache-2.0
"""``processes="auto"``: one thread or several processes, by what a sample of the data set costs here."""

from __future__ import annotations

import time
from typing import Any

from .. import _core
from ..errors import UsageError
from ..messages import tell_once
from ..processes.pool import pickled
from .items import Items

#: Samples cheaper than this come sooner from the thread: a process saves nothing that its messages do not cost.
WORTH_US = 4.0
#: A data set that takes more than this is not copied to every process unasked.
MOST_BYTES = 256 << 20
_LOOKS, _SECONDS = 48, 0.05  # samples that are timed, and how long at most


def cost_us(obj: Any, size: int) -> float:
    """What a sample costs, in microseconds: the middle of some, spread over the data set. Those that fail are passed over."""
    times = []
    end = time.perf_counter() + _SECONDS
    for k in range(min(_LOOKS, size)):
        start = time.perf_counter()
        try:
            obj[k * size // min(_LOOKS, size)]
        except Exception:
            continue
        times.append(time.perf_counter() - start)
        if time.perf_counter() > end:
            break
    return sorted(times)[len(times) // 2] * 1e6 if times else 0.0


def chosen_processes(obj: Any, items: Items, size: int) -> int:
    """How many processes; 0: the thread. Says what was chosen, and why."""
    cpus = _core.usable_cpus()
    each = cost_us(obj, size)
    if cpus < 2 or each < WORTH_US:
        return 0
    what = f"{items.owner}: a sample takes {each:.0f} us of Python"
    try:
        bytes_each = len(pickled(obj, items.owner))
    except UsageError as e:
        tell_once(f"{what}; one thread makes them, because {e}")
        return 0
    if bytes_each > MOST_BYTES:
        tell_once(f"{what}; one thread makes them, because {cpus} processes would have a copy of {bytes_each >> 20} MiB each")
        return 0
    tell_once(f"{what}; {cpus} processes make them")
    return cpus
