# SPDX-License-Identifier: Apache-2.0
"""What headrace says to the user goes to the logger ``headrace``.

A program that has configured logging gets the messages where it wants them. In one that has not, they
go to stderr, from INFO on.
"""

from __future__ import annotations

import logging

logger = logging.getLogger("headrace")

_told: set[str] = set()


class _Stderr(logging.StreamHandler):  # type: ignore[type-arg]
    """Ours, for as long as nobody else listens."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("headrace: %(message)s"))
        self.level_before = logger.level


_ours: _Stderr | None = None


def _configure() -> None:
    """Puts our handler in where there is no other, and takes it out again once there is."""
    global _ours
    if _ours is not None:
        logger.removeHandler(_ours)
        logger.setLevel(_ours.level_before)
        _ours = None
    if logger.hasHandlers():
        return
    _ours = _Stderr()  # of sys.stderr as it is now
    logger.addHandler(_ours)
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)


def warn(text: str) -> None:
    """Says something to the user, each time."""
    _configure()
    logger.warning("%s", text)


def tell_once(text: str, level: int = logging.WARNING) -> None:
    """Says something to the user, once in a process."""
    if text not in _told:
        _told.add(text)
        _configure()
        logger.log(level, "%s", text)
