# SPDX-License-Identifier: Apache-2.0
"""``hr.tokenize``: a corpus of texts becomes files of tokens that Megatron and ``hr.tokens(seq_len=…)`` read.

    corpus ──► tasks ──► a rank takes every n-th ──► read │ tokenise │ write ──► tokens-00000.bin and .idx
    (corpus.py)                                      side by side                 (shard.py)

Which documents a task has follows from the data and the tokenizer alone; so ranks share the tasks without a word to
each other, and what was written before a kill is not written again.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..checks import path, whole
from ..errors import DataError, Unsupported, UsageError
from ..ranks import find
from ..storage import Storage
from .corpus import Bad, Corpus, Task, Texts, corpus_of
from .encoders import Encoder, encoder_of
from .shard import ShardWriter, record_of, write_json

_BATCH_CHARACTERS = 2 << 20  # handed to the tokenizer at a time
_ENCODING = 3  # batches with the tokenizer at a time: the threads that are done with one begin the next
_MOST_TOLD = 100  # bad documents that a record names
MANIFEST = "tokens.json"

Progress = Callable[[int, int, int], None]


@dataclass
class _Job:
    corpus: Corpus
    encoder: Encoder
    end: int | None  # put after every document
    dtype: str
    shard_tokens: int
    most_bad: int | None  # documents that may be left out; None: none, they raise

    def description(self) -> dict[str, Any]:
        """What must be the same for the same files."""
        return {
            "headrace_tokens": 2,
            **self.corpus.identity(),
            "field": self.corpus.field,
            "tokenizer": self.encoder.name,
            "vocabulary": self.encoder.size,
            "end_of_document": self.end,
            "dtype": self.dtype,
            "shard_tokens": self.shard_tokens,
            "tasks": len(self.corpus.tasks),
        }

    def name(self, task: Task, part: int) -> str:
        number = f"tokens-{task.number:0{max(5, len(str(len(self.corpus.tasks) - 1)))}d}"
        return number if task.shards == 1 else f"{number}-{part:04d}"


def tokenize(
    source: Any,
    to: Any,
    *,
    tokenizer: Any,
    field: str | None = None,
    end_of_document: int | str | bool = True,
    shard_tokens: int = 100_000_000,
    bad_samples: str | int = "raise",
    storage: Storage | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Writes the tokens of every text as Megatron's pairs ``tokens-00000.bin`` and ``.idx`` into the folder ``to``.

    source: JSON lines (plain, .gz, .zst) and text files, which are read as they stream by; or what ``hr.open`` opens:
        Parquet, Arrow, tars, folders of texts; or a data set. From any store that ``hr.open`` reads.
    tokenizer: the path of a ``tokenizer.json`` or of a SentencePiece ``.model``, ``"tiktoken:gpt2"``, or a tokenizer
    field: with the texts; ``text``, ``txt``, ``content`` or the only one of texts unless given. Of JSON lines ``"meta.body"``
        is a member of a member.
    end_of_document: the token after every document, as text or number; True: the tokenizer's usual one; False: none
    shard_tokens: about so many a pair of files; documents stay whole, small files are joined
    bad_samples: "raise"; "skip": texts that cannot be read are left out and counted; or the most that a rank may leave out
    storage: ``hr.storage(...)``, as for ``hr.open``
    progress: called with (done, total, tokens) of this rank; bytes of files that stream by, documents of others

    Tokens are u16 where the vocabulary allows it, else i32. The ranks of a job (torchrun, Slurm, PBS, MPI) share the work.
    Called again after a kill it goes on with the files that are missing. Returns the manifest, ``tokens.json``:
    documents, tokens, how long documents are, and which were left out; of what is there where other ranks are not done yet.
    """
    job = _job(source, tokenizer, field, end_of_document, whole(shard_tokens, "shard_tokens", 1), bad_samples, storage)
    folder = Path(path(to, "to"))
    if "://" in path(to, "to"):
        raise Unsupported(f"{to}: tokens are written to a folder of a file system; copy them to the store afterwards")
    _claim(folder, job.description())
    ranks = find()
    mine = job.corpus.tasks[ranks.rank :: ranks.world]
    told = _Told(progress, sum(task.units for task in mine), job.most_bad)
    for task in mine:
        _write(job, folder, task, told)
    return _manifest(folder, job)


class _Told:
    """What this rank has done, for the bar; and how much was bad."""

    def __init__(self, progress: Progress | None, total: int, most_bad: int | None) -> None:
        self._progress, self._total, self._most_bad = progress, total, most_bad
        self._bad = 0
        self.done = self.tokens = 0  # of tasks before this one

    def tell(self, done: int, tokens: int) -> None:
        if self._progress is not None:
            self._progress(self.done + done, self._total, self.tokens + tokens)

    def check(self, bad: list[Bad]) -> None:
        if not bad:
            return
        if self._most_bad is None:
            raise DataError(f"{bad[0].place}: {bad[0].cause}; bad_samples='skip' leaves such documents out")
        self._bad += len(bad)
        if self._bad > self._most_bad:
            raise DataError(
                f"{bad[-1].place}: {bad[-1].cause}; it is the bad document number {self._bad}, and bad_samples allows {self._most_bad}"
            )


def _job(
    source: Any,
    tokenizer: Any,
    field: str | None,
    end: int | str | bool,
    shard_tokens: int,
    bad_samples: str | int,
    storage: Storage | None,
) -> _Job:
    if isinstance(bad_samples, str) and bad_samples not in ("raise", "skip"):
        raise UsageError(f'bad_samples is "raise", "skip" or the most to leave out, not {bad_samples!r}')
    most = {"raise": None, "skip": 1 << 62}[bad_samples] if isinstance(bad_samples, str) else whole(bad_samples, "bad_samples")
    encoder = encoder_of(tokenizer)
    last = _end_of(encoder, end)
    corpus = corpus_of(source, field, storage)
    if corpus.units == 0:
        raise UsageError("there is no document in the data")
    corpus.skips = True  # while looking: bad ones are told of when they are written
    texts, units = corpus.look()
    corpus.skips = most is not None
    dtype = "u16" if encoder.size <= 1 << 16 else "i32"
    tokens = sum(encoder.encode_bytes(texts, dtype, last)[1])
    corpus.cut(shard_tokens * units / tokens if tokens else corpus.units)
    return _Job(corpus, encoder, last, dtype, shard_tokens, most)


def _end_of(encoder: Encoder, end: int | str | bool) -> int | None:
    if end is False:
        return None
    if end is True:
        found = encoder.usual_end()
        if found is None:
            raise UsageError(
                'the tokenizer has no token that usually ends a document: end_of_document="<token>", or False for none'
            )
        return found
    if isinstance(end, str):
        number = encoder.number(end)
        if number is None:
            raise UsageError(f"end_of_document: the tokenizer has no token {end!r}")
        return number
    return whole(end, "end_of_document", 0, encoder.size - 1)


# -- one task --------------------------------------------------------------------------------------


class _TaskWriter:
    """The shards of a task, one after the other. Used by one thread at a time."""

    def __init__(self, job: _Job, folder: Path, task: Task) -> None:
        self._job, self._folder, self._task = job, folder, task
        self.skip = self.tokens = self._part = 0
        self.finished = False
        while (record := record_of(folder, job.name(task, self._part))) is not None:
            self.skip += record["documents"]
            self.tokens += record["tokens"]
            self._part += 1
            if record["last"]:
                self.finished = True
                return
        self._open: ShardWriter | None = None
        self._bad: list[Bad] = []

    def add(self, data: bytes, lengths: list[int], bad: list[Bad]) -> None:
        job = self._job
        self._bad += bad
        sizes = np.array(lengths, np.int64)
        begin = first = 0
        while first < len(sizes):
            writer = self._writer()
            count = len(sizes) - first
            if self._task.shards > 1:  # up to the document that fills the shard
                room = max(1, job.shard_tokens - writer.tokens)
                count = min(count, int(np.searchsorted(np.cumsum(sizes[first:]), room)) + 1)
            some = sizes[first : first + count]
            writer.add(data, begin, some)
            begin += int(some.sum())
            self.tokens += int(some.sum())
            first += count
            if self._task.shards > 1 and writer.tokens >= job.shard_tokens:
                self._finish(last=False)

    def finish(self) -> None:
        self._writer()
        self._finish(last=True)

    def _writer(self) -> ShardWriter:
        if self._open is None:
            self._open = ShardWriter(self._folder, self._job.name(self._task, self._part), self._job.dtype)
        return self._open

    def _finish(self, last: bool) -> None:
        told = [[b.place, b.cause] for b in self._bad[:_MOST_TOLD]]
        self._writer().finish(last=last, left_out=len(self._bad), left_out_are=told)
        self._open, self._bad = None, []
        self._part += 1


def _write(job: _Job, folder: Path, task: Task, told: _Told) -> None:
    """Reads, tokenises and writes side by side."""
    writer = _TaskWriter(job, folder, task)
    if not writer.finished:
        _run(job, task, writer, told)
    told.done += task.units
    told.tokens += writer.tokens
    told.tell(0, 0)


def _run(job: _Job, task: Task, writer: _TaskWriter, told: _Told) -> None:
    from concurrent.futures import Future, ThreadPoolExecutor  # not for those who only import headrace

    batches = _batches(_rest(job.corpus.read(task), writer.skip))
    encoding: deque[tuple[Future[tuple[bytes, list[int]]], Texts]] = deque()
    written: Future[None] | None = None
    with ThreadPoolExecutor(2 + _ENCODING, thread_name_prefix="hr-tokens") as pool:
        reading = pool.submit(next, batches, None)
        while True:
            batch = reading.result()
            if batch is not None:
                reading = pool.submit(next, batches, None)
                told.check(batch.bad)
                encoding.append((pool.submit(job.encoder.encode_bytes, batch.texts, job.dtype, job.end), batch))
            while encoding and (batch is None or len(encoding) >= _ENCODING):
                values, of = encoding.popleft()
                made = values.result()
                if written is not None:
                    written.result()
                told.tell(min(of.done, task.units), writer.tokens)  # the last line of a range ends behind it
                written = pool.submit(writer.add, *made, of.bad)
            if batch is None:
                break
        if written is not None:
            written.result()
        writer.finish()


def _rest(texts: Iterator[Texts], skip: int) -> Iterator[Texts]:
    """Without the documents that shards of before have."""
    if skip == 0:
        yield from texts
        return
    good = 0
    for some in texts:
        before, good = good, good + len(some.texts)
        if good > skip or some.bad:
            yield Texts(some.texts[max(0, skip - before) :], [b for b in some.bad if b.after >= skip], some.done)


def _batches(texts: Iterator[Texts]) -> Iterator[Texts]:
    """As many texts at a time as keep all threads of a tokenizer busy."""
    out, characters = Texts([], [], 0), 0
    for some in texts:
        out.texts.extend(some.texts)
        out.bad.extend(some.bad)
        out = out._replace(done=some.done)
        characters += sum(map(len, some.texts))
        if characters >= _BATCH_CHARACTERS:
            yield out
            out, characters = Texts([], [], 0), 0
    if out.texts or out.bad:
        yield out


def _claim(folder: Path, description: dict[str, Any]) -> None:
    """The folder is this job's: empty, or begun by the same."""
    try:
        (folder / ".tokenize").mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"{folder}: this is a file, or lies in one; give a folder") from None
    place = folder / ".tokenize" / "job.json"
    if not place.exists():
        others = [p.name for p in folder.iterdir() if p.name != ".tokenize"]
        if others and not place.exists():  # another rank may have begun since
            (folder / ".tokenize").rmdir()
            raise UsageError(f"{folder}: the folder has {others[0]} in it; give an empty one")
        write_json(place, description)
    try:
        known = json.loads(place.read_text(encoding="utf-8"))
    except ValueError:
        known = {}
    different = [k for k in description if known.get(k) != description[k]]
    if different:
        said = ", ".join(f"{k} is {known.get(k)!r} there and {description[k]!r} here" for k in different)
        raise UsageError(f"{folder}: other texts or another tokenizer were begun here: {said}; give another folder")


def _manifest(folder: Path, job: _Job) -> dict[str, Any]:
    """Of all shards that are there; written once that is all of them."""
    there: dict[str, dict[str, Any]] = {}
    tasks = 0
    for task in job.corpus.tasks:
        part = 0
        while (record := record_of(folder, job.name(task, part))) is not None:
            there[job.name(task, part)] = record
            part += 1
            if record["last"]:
                tasks += 1
                break
    lengths: dict[int, int] = {}
    for record in there.values():
        for most, count in record["lengths"].items():
            lengths[int(most)] = lengths.get(int(most), 0) + count
    ours = ("lengths", "last", "left_out", "left_out_are")
    out = {
        **job.description(),
        "written_documents": sum(r["documents"] for r in there.values()),
        "tokens": sum(r["tokens"] for r in there.values()),
        "left_out": sum(r["left_out"] for r in there.values()),
        "left_out_are": [b for r in there.values() for b in r["left_out_are"]][:_MOST_TOLD],
        "tasks_done": tasks,
        "lengths": {str(most): lengths[most] for most in sorted(lengths)},
        "files": {name: {k: v for k, v in record.items() if k not in ours} for name, record in there.items()},
    }
    if tasks == len(job.corpus.tasks):
        write_json(folder / MANIFEST, out)
    return out


def check_files(folder: str) -> dict[str, Any] | None:
    """Compares files with the manifest of a folder that ``tokenize`` wrote; None where it is no such folder."""
    import zlib

    try:
        manifest = json.loads((Path(folder) / MANIFEST).read_text(encoding="utf-8"))
        files, samples = manifest["files"].items(), manifest["written_documents"]
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None
    count, problems = 0, []
    for name, record in files:
        for ending in ("bin", "idx"):
            place = Path(folder) / f"{name}.{ending}"
            count += 1
            try:
                found = 0
                with open(place, "rb") as f:
                    while block := f.read(1 << 20):
                        found = zlib.crc32(block, found)
                if found != record[f"{ending}_crc32"] or place.stat().st_size != record[f"{ending}_bytes"]:
                    problems.append(f"{place}: it is not as it was written; remove it and run the same headrace tokenize again")
            except OSError as e:
                problems.append(f"{place}: {e.strerror}")
    return {"files": count, "problems": problems, "samples": samples}
