# SPDX-License-Identifier: Apache-2.0
"""What every thread did from when to when, as a file that ui.perfetto.dev opens."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

from . import _core, checks
from .errors import UsageError
from .messages import warn

_lock = threading.Lock()


@contextlib.contextmanager
def trace(path: str | os.PathLike[str]) -> Iterator[None]:
    """``with hr.trace("run.json"): …`` records what headrace's threads do, and writes it at the end.

    The file is JSON that https://ui.perfetto.dev and chrome://tracing open: a row for each thread under its name, with the
    stages plan, resolve, read, open, decode, pack, stage and deliver, and the batch that each was for; ``consume`` is what
    your loop does with a batch before it asks for the next. What was running when the trace began is left out. Of each
    thread the last 16,383 stages are kept, so trace seconds, not hours. For all loaders of the process; one trace at a time.
    """
    place = checks.path(path, "the path of a trace")
    if not place:
        raise UsageError("hr.trace takes the path of the file to write: hr.trace('run.json')")
    with open(place, "w", encoding="utf-8"):
        pass  # now, not after an hour: the folder may not be there
    if not _lock.acquire(blocking=False):
        raise UsageError("a trace is being recorded already: one at a time")
    try:
        _core.start_trace()
        try:
            yield
        finally:
            text, lost = _core.finish_trace()
            with open(place, "w", encoding="utf-8") as f:
                f.write(text)
    finally:
        _lock.release()
    if lost:
        warn(f"trace: {lost:,} stages at the begin were overwritten by later ones; trace a shorter part")
