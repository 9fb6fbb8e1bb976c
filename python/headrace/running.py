# SPDX-License-Identifier: Apache-2.0
"""What the views of one Loader share: the engine, how its batches were consumed, and its end."""

from __future__ import annotations

import atexit
import weakref
from typing import Any

from . import _core
from .messages import warn
from .processes import Processes
from .processes.batches import BatchCalls


class Running:
    """What the views of one Loader share: the engine, and how its batches were consumed."""

    def __init__(self, core: _core.Loader, costs: dict[str, list[_core.MapCost]], pool: Processes) -> None:
        self.core: _core.Loader | None = core
        self.costs = costs  # of the fields' map functions
        self.pool = pool  # of those that run in processes
        self.calls: list[BatchCalls] = []  # of loader.map in processes
        self.batches = 0
        self.wait_s = 0.0  # in next()
        self.step_s = 0.0  # in the caller's loop
        self.map_s = 0.0  # in loader.map's functions
        self.reported = (0, 0, False)  # replaced before this epoch, delivered in it, whether it was said already
        _all_running.add(self)

    def report_replaced(self, core: _core.Loader, epoch: int, size: int, last: bool) -> None:
        """Says how many samples were replaced when an epoch ends, and at once where they are more than 1 %."""
        replaced, delivered, told = self.reported
        delivered += size
        count = core.replaced() - replaced
        share = count / delivered
        if count and share > 0.01 and not told and delivered >= 100:
            told = True
            warn(f"{count} of the first {delivered:,} samples were bad and replaced ({share:.0%}): see loader.quarantine")
        if last:
            if count:
                warn(
                    f"{count} of {delivered:,} samples of epoch {epoch} were bad and replaced ({share:.1%}): see loader.quarantine"
                )
            replaced, delivered, told = replaced + count, 0, False
        self.reported = (replaced, delivered, told)

    def counts(self, batch_maps: bool) -> dict[str, Any]:
        """What ``stats`` says of the consumer and of functions in Python."""
        from .mapping import map_cost

        out: dict[str, Any] = {"consumer": {"batches": self.batches, "wait_s": self.wait_s, "step_s": self.step_s}}
        out["map"] = {name: map_cost(costs, self.pool.n) for name, costs in self.costs.items()}
        if batch_maps:
            out["map"]["(batch)"] = {"calls": self.batches, "busy_s": self.map_s, "wait_gil_s": 0.0}
        return out

    def close(self) -> None:
        core, self.core = self.core, None
        # First: no thread waits for a process then.
        self.pool.close()
        for calls in self.calls:
            calls.close()
        if core is not None:
            core.close()

    def stop_calls(self) -> None:
        """Batches that are in processes are given up."""
        for calls in self.calls:
            calls.stop()

    def __del__(self) -> None:
        self.close()


_all_running: weakref.WeakSet[Running] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    # Threads that call Python functions must be done before the interpreter goes.
    for running in list(_all_running):
        running.close()
