# SPDX-License-Identifier: Apache-2.0
"""The exceptions: one above all, and one for each thing you can do about it."""

from __future__ import annotations

import atexit


class Error(Exception):
    """Everything headrace raises."""


class UsageError(Error, ValueError):
    """Fix the call: an argument, a field name, a state of another data set."""


class DataError(Error):
    """Fix the data. Names where the bad bytes are, as far as that is known."""

    file: str | None
    offset: int | None
    sample: int | None
    key: str | None


class BadSample(DataError):
    """For functions of your own: this sample is bad, and ``bad_samples`` says what becomes of it."""


class StorageError(Error, OSError):
    """The storage failed or refused: fix the path or the permissions, or try again."""


class NotFound(StorageError, FileNotFoundError):
    """There is nothing at this path."""


class Forbidden(StorageError, PermissionError):
    """The storage refused access."""


class Exhausted(Error, MemoryError):
    """Give it more memory, disk or file handles."""


class Unsupported(Error, NotImplementedError):
    """This build or this format cannot do it."""


#: How the engine says that code of the user's failed; what it raised follows, as ``Type: words``.
_RAISED = " raised "
_MOST_RAISED = 64
_raised: dict[str, BaseException] = {}
# Their tracebacks hold data sets, which must be gone before the extension is.
atexit.register(_raised.clear)


def remember(error: BaseException) -> None:
    """Keeps an exception of a user's function, with its traceback, for the error that the engine makes of it."""
    from .processes.calling import words_of

    text = words_of(error)
    _raised.pop(text, None)
    _raised[text] = error
    while len(_raised) > _MOST_RAISED:
        _raised.pop(next(iter(_raised)))


class RemoteTraceback(Exception):
    """What a function raised in another process, with its traceback there."""


def remember_remote(said: str, traceback: str) -> None:
    """As ``remember``, for what a process says of an exception there."""
    text = said.partition(_RAISED)[2] or said
    _raised.pop(text, None)
    _raised[text] = RemoteTraceback("\n" + traceback)
    while len(_raised) > _MOST_RAISED:
        _raised.pop(next(iter(_raised)))


_TYPES: dict[str, type[Error]] = {
    "usage": UsageError,
    "not_found": NotFound,
    "permission": Forbidden,
    "unavailable": StorageError,
    "corrupt": DataError,
    "exhausted": Exhausted,
    "unsupported": Unsupported,
}


def make(code: str, text: str, file: str, offset: int, sample: int, key: str) -> Error:
    """The exception for a failure in the engine; called from the bindings."""
    error = _TYPES.get(code, Error)(text)
    if _RAISED in text:
        said = text.partition(_RAISED)[2]  # a remedy may follow it
        error.__cause__ = _raised.get(max((t for t in _raised if said.startswith(t)), key=len, default=""))
    for name, value in (("file", file), ("key", key)):
        setattr(error, name, value or None)
    for name, number in (("offset", offset), ("sample", sample)):
        setattr(error, name, number if number >= 0 else None)
    return error
