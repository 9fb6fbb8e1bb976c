# SPDX-License-Identifier: Apache-2.0
"""What ``hr.tokenize`` reads: JSON lines and text files as they stream by, everything else as a data set.

A corpus is cut into *tasks*, runs of neighbouring documents of about one shard each. Which documents a task has follows
from the data and the tokenizer alone: ranks share the tasks without a word to each other.
"""

from __future__ import annotations

import abc
import hashlib
import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from ..dataset import Dataset
from ..dataset import open as open_dataset
from ..errors import BadSample, DataError, UsageError
from ..fields import Field, TextField, json_, text
from ..hub import resolved
from ..source_paths import urls_of
from ..storage import Storage, using

_LOOK_DOCUMENTS = 256  # that tell how long the others are
_LOOK_PLACES, _LOOK_BYTES = 16, 1 << 13  # of JSON lines: so many places, so much text at each
_READ_DOCUMENTS = 512  # at a time
_READ_BYTES = 1 << 20
_TRY = 4096  # read together, where one that is bad makes all of them be read one by one
_AHEAD = 8  # files whose first piece is read before they are wanted
_TEXT_KINDS = ("text", "bytes")
_USUAL_FIELDS = ("text", "txt", "content", "document")
_LINES = re.compile(r"\.(jsonl|ndjson|json)(\.(gz|zst))?$", re.IGNORECASE)
_PACKED = re.compile(r"\.(gz|zst)$", re.IGNORECASE)
_TEXTS = re.compile(r"\.(txt|text|md|rst)$", re.IGNORECASE)
_WHOLE: Any = None  # of a range: to the end of the file


class Bad(NamedTuple):
    """A document that cannot be read."""

    after: int  # documents of the task before it that can
    place: str  # "corpus/a.jsonl, line 17"
    cause: str


class Texts(NamedTuple):
    """Documents of a task, in order."""

    texts: list[str]
    bad: list[Bad]
    done: int  # units of the task that are read


class Task(NamedTuple):
    number: int
    units: int  # bytes or documents: what progress counts
    shards: int  # that it is expected to fill; the files of a task with 1 are not cut
    what: Any


class Corpus(abc.ABC):
    """Documents in a fixed order. ``unit`` is what tasks are measured by."""

    unit: str  # "bytes" or "documents"
    field: str
    units: int
    tasks: list[Task]
    skips = False  # bad documents are told of, and do not raise by themselves

    @abc.abstractmethod
    def identity(self) -> dict[str, Any]:
        """What tells the data from other data."""

    @abc.abstractmethod
    def look(self) -> tuple[list[str], int]:
        """Some texts, and the units that they took: how long are the others?"""

    @abc.abstractmethod
    def cut(self, units: float) -> None:
        """Makes ``tasks`` of about so many units."""

    @abc.abstractmethod
    def read(self, task: Task) -> Iterator[Texts]: ...


def corpus_of(source: Any, field: str | None, storage: Storage | None) -> Corpus:
    if isinstance(source, Dataset):
        return Documents(source, field)
    urls = urls_of(source)
    with using(storage, source, once=True):
        paths = [str(p) for p in _core.expand_urls(resolved(urls))]
        if paths and all(_LINES.search(p) for p in paths):
            return JsonLines(paths, field, storage)
        if paths and all(_TEXTS.search(p) for p in paths):
            return TextFiles(paths, field, storage)
    return Documents(open_dataset(urls, storage=storage), field)


def _chosen(names: Sequence[str], texts: Sequence[str]) -> str:
    """The field with the texts, where none is given."""
    usual = [n for n in _USUAL_FIELDS if n in texts]
    if usual or len(texts) == 1:
        return (usual or list(texts))[0]
    raise UsageError(f"which field has the texts? field= is one of {', '.join(texts or names)}")


class _Member:
    """A text inside a JSON value."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.__name__ = "member"

    def __call__(self, value: Any) -> str:
        for name in self.path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if not isinstance(value, str):
            raise BadSample(f"its '{self.path}' is no text" if value is not None else f"it has no text '{self.path}'")
        return value


def _texts_in(kinds: Mapping[str, str]) -> list[str]:
    """Where texts may be."""
    return [f"{n}.MEMBER" if kind == "json" else n for n, kind in kinds.items() if kind in (*_TEXT_KINDS, "json")]


# -- a data set ------------------------------------------------------------------------------------


class Documents(Corpus):
    """Samples of a data set: Parquet, Arrow, tars, folders, or what a user opened."""

    unit = "documents"
    _asked: Field

    def __init__(self, data: Dataset, field: str | None) -> None:
        self.data, self.units = data, len(data)
        kinds = {f["name"]: f["kind"] for f in data._source.fields}
        texts = [n for n in kinds if kinds[n] == "text" or (kinds[n] == "bytes" and _TEXTS.search("." + n))]
        self.field = field or _chosen(_texts_in(kinds), texts)
        outer, _, member = self.field.partition(".")
        if kinds.get(self.field) in _TEXT_KINDS:
            self._asked = text(self.field)
        elif member and (kinds.get(outer) == "json" or outer in data._source.objects):
            self._asked = json_(outer).map(_Member(member))
        else:
            holds = f"'{self.field}' holds {kinds[self.field]}" if self.field in kinds else f"the data have no '{self.field}'"
            raise UsageError(f"field: {holds}; texts are in {', '.join(_texts_in(kinds)) or 'none of its fields'}")

    def identity(self) -> dict[str, Any]:
        return {"source": self.data.fingerprint, "documents": len(self.data)}

    def look(self) -> tuple[list[str], int]:
        numbers = sorted({int(i) for i in np.linspace(0, len(self.data) - 1, min(_LOOK_DOCUMENTS, len(self.data)))})
        some = [t for part in self._texts(self.data[numbers], 0) for t in part.texts]
        return some, len(some)

    def cut(self, units: float) -> None:
        size = max(1, int(units))
        begins = range(0, len(self.data), size)
        self.tasks = [Task(n, min(size, len(self.data) - b), 1, b) for n, b in enumerate(begins)]

    def read(self, task: Task) -> Iterator[Texts]:
        return self._texts(self.data[task.what : task.what + task.units], task.what)

    def _texts(self, data: Dataset, first: int) -> Iterator[Texts]:
        if not self.skips:
            done = 0
            try:
                for texts in self._fast(data):
                    done += len(texts)
                    yield Texts(texts, [], done)
            except DataError:
                for begin in range(done, len(data), _TRY):
                    bad = self._one_by_one(data[begin : begin + _TRY], first + begin, done).bad
                    if bad:  # the first one is named, and raises
                        yield Texts([], bad[:1], done)
                        return
                raise
            return
        good = 0
        for begin in range(0, len(data), _TRY):
            part = data[begin : begin + _TRY]
            try:
                found = [Texts(texts, [], 0) for texts in self._fast(part)]
            except DataError:
                found = [self._one_by_one(part, first + begin, good)]
            done = begin
            for some in found:
                good += len(some.texts)
                done += len(some.texts) + len(some.bad)
                yield some._replace(done=done)

    def _fast(self, data: Dataset) -> Iterator[list[str]]:
        from ..loader import Loader

        fields = {"text": self._asked}
        size = min(_READ_DOCUMENTS, len(data))
        with Loader(data, size, fields, shuffle=False, tail="keep", rank=0, world_size=1, output="numpy") as loader:
            for batch in loader.epoch(0):
                yield batch["text"]

    def _one_by_one(self, data: Dataset, first: int, good: int) -> Texts:
        out = Texts([], [], 0)
        stored = isinstance(self._asked, TextField)
        for i in range(len(data)):
            try:
                if stored:
                    value = data[i][self.field]
                    out.texts.append(value.decode() if isinstance(value, bytes) else str(value))
                else:
                    out.texts.extend(next(self._fast(data[i : i + 1])))
            except (DataError, KeyError, UnicodeDecodeError) as e:
                cause = f"it has no '{self.field}'" if isinstance(e, KeyError) else str(e).split("; bad_samples=")[0]
                place = getattr(e, "file", "") or f"key '{data.key(i)}'"
                out.bad.append(Bad(good + len(out.texts), f"{place}, document {first + i}", cause))
        return out


# -- files -----------------------------------------------------------------------------------------


class _Files(Corpus):
    """Files that are read as they stream by. Small ones are fused, so that thousands make no thousands of shards."""

    unit = "bytes"

    def __init__(self, paths: list[str], storage: Storage | None) -> None:
        self.paths, self._storage = paths, storage
        self.files = _core.TextFiles(paths)
        self.sizes: list[int] = list(self.files.sizes)
        self.units = sum(self.sizes)

    def identity(self) -> dict[str, Any]:
        folders = [p.split("/")[:-1] for p in self.paths]
        shared = next((n for n, names in enumerate(zip(*folders)) if len(set(names)) > 1), min(map(len, folders)))
        known = json.dumps([["/".join(p.split("/")[shared:]) for p in self.paths], self.sizes]).encode()
        return {"source": hashlib.sha256(known).hexdigest()[:32], "files_read": len(self.paths), "bytes_read": self.units}

    def cut(self, units: float) -> None:
        size = max(1.0, units)
        runs: list[list[tuple[int, int, Any]]] = [[]]  # (file, begin, end) of each task
        filled = 0
        for file, stored in enumerate(self.sizes):
            parts = round(stored / size)
            if parts > 1 and self._can_cut(file):
                borders = [stored * k // parts for k in range(parts)] + [_WHOLE]
                runs += [[(file, a, b)] for a, b in zip(borders, borders[1:])] + [[]]
                filled = 0
                continue
            if filled and filled + stored > 1.25 * size:
                runs.append([])
                filled = 0
            runs[-1].append((file, 0, _WHOLE))
            filled += stored
        runs = [run for run in runs if run]
        weights = [sum((self.sizes[f] if e is None else e) - b for f, b, e in run) for run in runs]
        self.tasks = [Task(n, w, max(1, round(w / size)), run) for n, (run, w) in enumerate(zip(runs, weights))]

    def _can_cut(self, file: int) -> bool:
        return False


class JsonLines(_Files):
    """One object a line, plain or packed. A plain file may be cut at any line; a packed one is read by one rank."""

    def __init__(self, paths: list[str], field: str | None, storage: Storage | None) -> None:
        super().__init__(paths, storage)
        self.field = field or self._usual_field()

    def _usual_field(self) -> str:
        for file in range(len(self.paths)):
            line = self.files.lines(file, 0, None, "").first_line()
            if not line:
                continue
            try:
                members = json.loads(line)
                if not isinstance(members, dict):
                    raise ValueError(f"{type(members).__name__}, and an object is wanted")
            except (ValueError, RecursionError) as e:
                raise DataError(
                    f"{self.paths[file]}: its first line is no JSON object: {e}; JSON lines have one object a line, as "
                    "jq -c '.[]' makes them of a list"
                ) from None
            inner = [f"{n}.MEMBER" for n, v in members.items() if isinstance(v, dict)]
            return _chosen(inner or list(members), [n for n, v in members.items() if isinstance(v, str)])
        raise UsageError(f"{self.paths[0]}: there is no document in the data")

    def _can_cut(self, file: int) -> bool:
        return not _PACKED.search(self.paths[file])

    def look(self) -> tuple[list[str], int]:
        ends = np.cumsum(self.sizes)
        texts: list[str] = []
        used = 0
        seen = set()
        for place in np.linspace(0, self.units, _LOOK_PLACES, endpoint=False):
            file = min(int(np.searchsorted(ends, place, side="right")), len(self.paths) - 1)
            begin = int(place - (ends[file] - self.sizes[file])) if self._can_cut(file) else 0
            if (file, begin) in seen or self.sizes[file] == 0:
                continue
            seen.add((file, begin))
            lines = self.files.lines(file, begin, None, self.field)
            texts += lines.next(_LOOK_BYTES)[0]
            used += lines.used_bytes
        return texts, used

    def read(self, task: Task) -> Iterator[Texts]:
        from concurrent.futures import ThreadPoolExecutor

        good = done = 0
        with ThreadPoolExecutor(_AHEAD if len(task.what) > 1 else 1, thread_name_prefix="hr-texts") as pool:
            waiting: deque[Any] = deque()
            ranges = iter(task.what)

            def more() -> None:
                for file, begin, end in ranges:
                    lines = self.files.lines(file, begin, end, self.field)
                    waiting.append((file, begin, lines, pool.submit(lines.next, _READ_BYTES)))
                    return

            for _ in range(_AHEAD):
                more()
            while waiting:
                file, begin, lines, first = waiting.popleft()
                more()
                texts, bad = first.result()
                here = 0
                while True:
                    yield Texts(texts, self._told(file, begin, bad, good), done + lines.used_bytes)
                    here += len(texts)
                    if lines.at_end:
                        break
                    texts, bad = lines.next(_READ_BYTES)
                good += here
                done += lines.used_bytes

    def _told(self, file: int, begin: int, bad: list[tuple[int, int, str]], good: int) -> list[Bad]:
        if not bad:
            return []
        # The range begins behind the first line end from the byte before it on.
        before = self.files.line_ends(file, begin - 1) + 1 if begin else 0
        return [Bad(good + after, f"{self.paths[file]}, line {before + line}", cause) for line, after, cause in bad]


class TextFiles(_Files):
    """Every file is a document."""

    def __init__(self, paths: list[str], field: str | None, storage: Storage | None) -> None:
        if field not in (None, "text", "txt"):
            raise UsageError(f"field: a text file is one text, and has no '{field}'")
        super().__init__(paths, storage)
        self.field = "text"

    def look(self) -> tuple[list[str], int]:
        numbers = sorted({int(i) for i in np.linspace(0, len(self.paths) - 1, min(_LOOK_DOCUMENTS, len(self.paths)))})
        texts, used = [], 0
        for n in numbers:
            data = self.files.all(n)[:_LOOK_BYTES]
            texts.append(data.decode(errors="ignore"))
            used += len(data)
        return texts, used

    def read(self, task: Task) -> Iterator[Texts]:
        from concurrent.futures import ThreadPoolExecutor

        good = done = 0
        with ThreadPoolExecutor(_AHEAD, thread_name_prefix="hr-texts") as pool:
            files = [file for file, _, _ in task.what]
            waiting = deque(pool.submit(self.files.all, f) for f in files[:_AHEAD])
            for n, file in enumerate(files):
                data = waiting.popleft().result()
                if n + _AHEAD < len(files):
                    waiting.append(pool.submit(self.files.all, files[n + _AHEAD]))
                done += len(data)
                try:
                    yield Texts([data.decode()], [], done)
                    good += 1
                except UnicodeDecodeError as e:
                    yield Texts([], [Bad(good, self.paths[file], f"it is not UTF-8 from byte {e.start} on")], done)
