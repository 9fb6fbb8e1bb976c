# SPDX-License-Identifier: Apache-2.0
"""What headrace says to the user goes to the logger ``headrace``.

A program that has configured logging gets the messages where it wants them. In one that has not, they
go to stderr, from INFO on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

#: As logging has them.
INFO, WARNING = 20, 30

_told: set[str] = set()
_ours: tuple[logging.Handler, int] | None = None  # our handler, and the logger's level before it


def _logger() -> logging.Logger:
    """The logger, with our handler for as long as there is no other."""
    import logging

    global _ours
    logger = logging.getLogger("headrace")
    if _ours is not None:
        handler, level = _ours
        logger.removeHandler(handler)
        logger.setLevel(level)
        _ours = None
    if not logger.hasHandlers():
        handler = logging.StreamHandler()  # of sys.stderr as it is now
        handler.setFormatter(logging.Formatter("headrace: %(message)s"))
        _ours = handler, logger.level
        logger.addHandler(handler)
        if logger.level == logging.NOTSET:
            logger.setLevel(INFO)
    return logger


def warn(text: str) -> None:
    """Says something to the user, each time."""
    _logger().warning("%s", text)


def tell_once(text: str, level: int = WARNING) -> None:
    """Says something to the user, once in a process."""
    if text not in _told:
        _told.add(text)
        _logger().log(level, "%s", text)
