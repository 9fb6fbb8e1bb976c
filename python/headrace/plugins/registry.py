# SPDX-License-Identifier: Apache-2.0
"""What was registered, by this program or by packages.

A package brings formats and codecs by an entry point, a function that registers them:

    [project.entry-points."headrace.plugins"]
    mypackage = "mypackage.headrace:register"

Packages are asked for the first time that a file or field is met which nothing here knows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .. import _core
from ..dtypes import dtype_name
from ..errors import DataError, UsageError, remember
from ..messages import warn

GROUP = "headrace.plugins"


class Extent(NamedTuple):
    """Where a value lies: ``length`` bytes from ``offset`` on; in the file itself, or in ``file`` beside it."""

    offset: int
    length: int
    file: str | None = None


@dataclass(frozen=True, eq=False)
class Format:
    """A format that was registered."""

    name: str
    samples: Callable[[Any], Iterable[Any]]
    suffixes: tuple[str, ...]
    fields: Mapping[str, tuple[str, tuple[int | None, ...]]] = field(default_factory=dict)
    example: Callable[[str], Sequence[str]] | None = None
    doc: str = ""
    version: str | None = None


@dataclass(frozen=True, eq=False)
class Codec:
    """A codec that was registered."""

    name: str
    decode: Callable[[bytes], Any]
    extensions: tuple[str, ...]
    example: Callable[[], Sequence[tuple[bytes, Any]]] | None = None

    def __call__(self, data: bytes) -> bytes:
        """The array as a .npy file. Whatever the codec raises is bad data."""
        from ..sources.items import as_array, dtype_of, npy_bytes

        try:
            value = self.decode(data)
        except (MemoryError, DataError):
            raise
        except Exception as e:
            remember(e)
            raise DataError(f"the codec '{self.name}' raised {type(e).__name__}: {e}") from e
        array = as_array(value)
        if array is None:
            raise DataError(f"the codec '{self.name}' gave a {type(value).__name__}; an array or a tensor of numbers is wanted")
        return npy_bytes(array, dtype_of(value, array))


_formats: dict[str, Format] = {}
_codecs: dict[str, Codec] = {}  # by extension


def _suffixes(values: str | Sequence[str], dot: str, what: str) -> tuple[str, ...]:
    found = (values,) if isinstance(values, str) else tuple(values)
    if not found or not all(isinstance(v, str) and v.strip(".") for v in found):
        raise UsageError(f"{what} are texts like '{dot}abc', one at least, not {values!r}")
    return tuple(dot + v.lower().lstrip(".") for v in found)


def register_format(
    name: str,
    samples: Callable[[Any], Iterable[Any]],
    *,
    extensions: str | Sequence[str],
    fields: Mapping[str, Any] | None = None,
    example: Callable[[str], Sequence[str]] | None = None,
    version: str | None = None,
) -> None:
    """A format of one's own: a function that says where samples lie; headrace reads them.

    samples: ``samples(file)`` yields ``(key, {name: value})`` for each sample, in the order of the file. ``file`` has ``path``,
        ``size`` and ``read(offset, length)``. A value is ``hr.Extent(offset, length)``, or, held by the index itself, a
        number, a text or bytes; a name that a sample lacks is missing. Called once for each file when a data set is opened.
    extensions: of its files: ``".abc"``.
    fields: the type and shape of those that are arrays of numbers as they lie, little-endian: ``{"x": ("f32", (3, 4))}``,
        ``None`` for one extent that varies. Others are what their name is for files: ``jpg``, ``png``, ``json``, ``txt``, ``npy``.
    example: ``example(folder)`` writes files of the format there and returns their paths, for ``headrace check-format``.
    version: any text that names this version of ``samples``: with it the index is kept beside the data, as those of other
        formats are, and ``samples`` is called again when files have changed or the version has. Without it the index is made
        at every start.
    """
    if not isinstance(name, str) or not name:
        raise UsageError(f"the name of a format is a text, not {name!r}")
    if name in {f["name"] for f in _core.formats()}:
        raise UsageError(f"there is a format '{name}' already: give it another name")
    if not callable(samples):
        raise UsageError(f"samples is a function of a file, not {samples!r}")
    if version is not None and not isinstance(version, str):
        raise UsageError(f"version is a text, not {version!r}")
    types = {}
    for field_name, said in (fields or {}).items():
        if not isinstance(said, tuple) or len(said) != 2 or not isinstance(said[1], tuple):
            raise UsageError(f"fields: '{field_name}' is {said!r}; its type and shape are wanted, like ('f32', (3, 4))")
        types[field_name] = (dtype_name(said[0]), said[1])
    doc = (samples.__doc__ or "").strip().partition("\n")[0]
    _formats[name] = Format(name, samples, _suffixes(extensions, ".", "extensions"), types, example, doc, version)


def register_codec(
    name: str,
    decode: Callable[[bytes], Any],
    *,
    extensions: str | Sequence[str],
    example: Callable[[], Sequence[tuple[bytes, Any]]] | None = None,
) -> None:
    """A codec of one's own: ``decode(data)`` makes an array of the bytes of a value.

    ``hr.array("dcm")`` then gives what it returns, and ``hr.image("dcm")`` takes u8 arrays (h, w) or (h, w, 3) as pictures, with
    all their steps after it. Without fields, and by ``hr.bytes``, values are bytes as before. It runs on headrace's
    threads under the GIL; what it raises is bad data.

    extensions: names of the stored fields that it is for: ``"dcm"``.
    example: gives pairs (bytes, array that they decode to), for ``headrace check-format``.
    """
    if not isinstance(name, str) or not name:
        raise UsageError(f"the name of a codec is a text, not {name!r}")
    if not callable(decode):
        raise UsageError(f"decode is a function of bytes, not {decode!r}")
    codec = Codec(name, decode, _suffixes(extensions, "", "extensions"), example)
    for extension in codec.extensions:
        _codecs[extension] = codec


@functools.cache
def load_plugins() -> None:
    """Lets packages register what they bring. Once in a process."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP):
        try:
            entry.load()()
        except Exception as e:
            warn(f"the package that brings '{entry.name}' ({entry.value}) could not register it: {type(e).__name__}: {e}")


@functools.cache
def _native_suffixes() -> tuple[str, ...]:
    return tuple(
        {s for f in _core.formats() for s in f["suffixes"]} | {".jpg", ".jpeg", ".png", ".webp", ".csv", ".json", ".jsonl"}
    )


def format_of(path: str) -> Format | None:
    """The registered format that a file's name says."""
    lower = path.lower()
    found = next((f for f in _formats.values() if lower.endswith(f.suffixes)), None)
    last = lower.rstrip("/").rpartition("/")[2]
    if found is None and "." in last and not lower.endswith(_native_suffixes()) and not load_plugins.cache_info().currsize:
        load_plugins()
        return format_of(path)
    return found


def codec_of(name: str) -> Codec | None:
    """The codec for a stored field of this name: ``dcm``, ``left.dcm``."""
    for _ in range(2):
        found = _codecs.get(name.lower()) or _codecs.get(name.lower().rpartition(".")[2])
        if found is not None:
            return found
        load_plugins()
    return None


def registered_formats() -> list[Format]:
    return list(_formats.values())


def registered_codecs() -> list[Codec]:
    return list({c.name: c for c in _codecs.values()}.values())


def with_codecs(source: _core.Source, fields: Any) -> tuple[_core.Source, Any]:
    """The data with a field more for each that a codec is to decode, and the fields as they are to be asked of it."""
    if not isinstance(fields, Mapping):
        return source, fields
    known = {f["name"]: f for f in source.fields}
    added: dict[str, dict[str, Any]] = {}
    given = dict(fields)
    for name, asked in fields.items():
        stored: str = getattr(asked, "field", None) or ""
        if getattr(asked, "what", "") not in ("array", "image") or stored not in known or known[stored]["kind"] != "bytes":
            continue
        if "dtype" in asked.options and asked.options["dtype"] is not None:
            continue  # the user says what the bytes are
        codec = codec_of(stored)
        if codec is None:
            continue
        alias = f"{stored};decoded"  # no name that data can have
        if alias not in known:
            added[alias] = {"field": stored, "name": alias, "function": codec}
        given[name] = asked._with(field=alias)
    if not added:
        return source, given
    return _core.decoded_source(source, list(added.values())), given
