# SPDX-License-Identifier: Apache-2.0
"""``hr.tokenize``: a corpus of texts becomes files of tokens that Megatron and ``hr.tokens(seq_len=…)`` read.

The documents are cut into runs of about ``shard_tokens``, each a shard. Which documents a shard has follows from the
data and the tokenizer alone; so ranks share the shards without a word to each other, and what was written before a kill
is not written again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..checks import one_of, path, whole
from ..dataset import Dataset
from ..dataset import open as open_dataset
from ..errors import DataError, UsageError
from ..fields import text
from ..ranks import find
from ..source_paths import urls_of
from .encoders import Encoder, encoder_of
from .shard import ShardWriter, record_of, shard_name, write_json

_BATCH_CHARACTERS = 4 << 20  # handed to the tokenizer at a time
_BATCH_DOCUMENTS = 512  # read at a time
_TRY = 4096  # read together, where one that is bad makes all of them be read one by one
_LOOK = 256  # documents that tell how long the others are
_USUAL_FIELDS = ("text", "txt", "content", "document")
MANIFEST = "tokens.json"

Progress = Callable[[int, int, int], None]


@dataclass
class _Job:
    data: Dataset
    field: str
    encoder: Encoder
    end: int | None  # put after every document
    dtype: str
    per_shard: int  # documents
    bad_samples: str

    @property
    def shards(self) -> int:
        return -(-len(self.data) // self.per_shard)

    def description(self) -> dict[str, Any]:
        """What must be the same for the same files."""
        return {
            "headrace_tokens": 1,
            "source": self.data.fingerprint,
            "documents": len(self.data),
            "field": self.field,
            "tokenizer": self.encoder.name,
            "vocabulary": self.encoder.size,
            "end_of_document": self.end,
            "dtype": self.dtype,
            "documents_per_shard": self.per_shard,
            "shards": self.shards,
        }


def tokenize(
    source: Any,
    to: Any,
    *,
    tokenizer: Any,
    field: str | None = None,
    end_of_document: int | str | bool = True,
    shard_tokens: int = 100_000_000,
    bad_samples: str = "raise",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Writes the tokens of every text as Megatron's pairs ``tokens-00000.bin`` and ``.idx`` into the folder ``to``.

    source: what ``hr.open`` opens: JSON lines (plain, .gz, .zst), Parquet, Arrow, tars, folders of texts; or a data set
    tokenizer: the path of a ``tokenizer.json`` or of a SentencePiece ``.model``, ``"tiktoken:gpt2"``, or a tokenizer
    field: with the texts; ``text``, ``txt``, ``content`` or the only one of texts unless given
    end_of_document: the token after every document, as text or number; True: the tokenizer's usual one; False: none
    shard_tokens: about so many a pair of files; documents stay whole
    bad_samples: "raise", or "skip": texts that cannot be read are left out and counted
    progress: called with (documents done, documents, tokens) of this rank

    Tokens are u16 where the vocabulary allows it, else i32. The ranks of a job (torchrun, Slurm, MPI) share the shards.
    Called again after a kill it goes on with the shards that are missing. Returns the manifest, ``tokens.json``:
    documents, tokens, and how long documents are; of this rank's shards where others are not done yet.
    """
    job = _job(source, tokenizer, field, end_of_document, whole(shard_tokens, "shard_tokens", 1), bad_samples)
    folder = Path(path(to, "to"))
    _claim(folder, job.description())
    ranks = find()
    mine = range(ranks.rank, job.shards, ranks.world)
    total = sum(min(job.per_shard, len(job.data) - s * job.per_shard) for s in mine)
    done = tokens = 0
    for shard in mine:
        name = shard_name(shard, job.shards)
        record = record_of(folder, name)
        if record is None:
            record = _write(job, folder, shard, _told(progress, done, total, tokens))
        done += min(job.per_shard, len(job.data) - shard * job.per_shard)
        tokens += record["tokens"]
        _tell(progress, done, total, tokens)
    return _manifest(folder, job)


def _told(progress: Progress | None, done: int, total: int, tokens: int) -> Callable[[int, int], None]:
    """Of a shard: what it adds to what was done before."""
    return lambda more, more_tokens: _tell(progress, done + more, total, tokens + more_tokens)


def _tell(progress: Progress | None, done: int, total: int, tokens: int) -> None:
    if progress is not None:
        progress(done, total, tokens)


def _job(source: Any, tokenizer: Any, field: str | None, end: int | str | bool, shard_tokens: int, bad_samples: str) -> _Job:
    one_of(bad_samples, "bad_samples", ("raise", "skip"))
    encoder = encoder_of(tokenizer)
    data = source if isinstance(source, Dataset) else open_dataset(urls_of(source))
    if len(data) == 0:
        raise UsageError("there is no document in the data")
    name = _field_of(data, field)
    last = _end_of(encoder, end)
    dtype = "u16" if encoder.size <= 1 << 16 else "i32"
    job = _Job(data, name, encoder, last, dtype, 1, bad_samples)
    job.per_shard = max(1, int(shard_tokens / _mean_tokens(job)))
    return job


def _field_of(data: Dataset, field: str | None) -> str:
    kinds = {f["name"]: f["kind"] for f in data._source.fields}
    if field is not None:
        if field not in kinds:
            raise UsageError(f"field: the data have {', '.join(kinds)}, not '{field}'")
        return field
    texts = [n for n in kinds if kinds[n] == "text"]
    usual = [n for n in _USUAL_FIELDS if n in kinds]
    if usual or len(texts) == 1:
        return (usual or texts)[0]
    raise UsageError(f"which field has the texts? field= is one of {', '.join(texts or kinds)}")


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


def _mean_tokens(job: _Job) -> float:
    """Of a document, by some that lie evenly over the data."""
    numbers = sorted({int(i) for i in np.linspace(0, len(job.data) - 1, min(_LOOK, len(job.data)))})
    texts = [t for batch in _texts(job, job.data[numbers], "skip") for t in batch]
    if not texts:
        return 1.0
    lengths = [len(job.encoder.numbers(v, "i8")) for v in job.encoder.encode(texts)]
    return max(1.0, float(np.mean(lengths)) + (job.end is not None))


def _texts(job: _Job, data: Dataset, bad_samples: str) -> Iterator[list[str]]:
    """The texts of a data set, in its order, some at a time."""
    if bad_samples == "raise":
        yield from _read(job, data)
        return
    for begin in range(0, len(data), _TRY):
        part = data[begin : begin + _TRY]
        try:
            found = list(_read(job, part))
        except DataError:
            found = [[t for i in range(len(part)) if (t := _read_one(job, part, i)) is not None]]
        yield from found


def _read(job: _Job, data: Dataset) -> Iterator[list[str]]:
    from ..loader import Loader

    size = min(_BATCH_DOCUMENTS, len(data))
    fields = {"text": text(job.field)}
    with Loader(data, size, fields, shuffle=False, tail="keep", rank=0, world_size=1, output="numpy") as loader:
        for batch in loader.epoch(0):
            yield batch["text"]


def _read_one(job: _Job, data: Dataset, i: int) -> str | None:
    """None where it cannot be read."""
    try:
        value = data[i][job.field]
        return value.decode() if isinstance(value, bytes) else str(value)
    except (DataError, KeyError, UnicodeDecodeError):
        return None


def _write(job: _Job, folder: Path, shard: int, tell: Callable[[int, int], None]) -> dict[str, Any]:
    """Tokenises one batch while the one before it is written."""
    begin = shard * job.per_shard
    data = job.data[begin : begin + job.per_shard]
    writer = ShardWriter(folder, shard_name(shard, job.shards), job.dtype)
    done = 0
    from concurrent.futures import ThreadPoolExecutor  # not for those who only import headrace

    with ThreadPoolExecutor(1, thread_name_prefix="hr-tokens") as pool:
        writing = None
        for texts in _batches(_texts(job, data, job.bad_samples)):
            values = job.encoder.encode(texts)
            if writing is not None:
                writing.result()
            done += len(texts)
            tell(done, writer.tokens)
            writing = pool.submit(_add_all, job, writer, values)
        if writing is not None:
            writing.result()
    return writer.finish()


def _batches(texts: Iterator[list[str]]) -> Iterator[list[str]]:
    """As many texts at a time as keep all threads of a tokenizer busy."""
    out: list[str] = []
    characters = 0
    for some in texts:
        for one in some:
            out.append(one)
            characters += len(one)
            if characters >= _BATCH_CHARACTERS:
                yield out
                out, characters = [], 0
    if out:
        yield out


def _add_all(job: _Job, writer: ShardWriter, values: list[Any]) -> None:
    for value in values:
        numbers = job.encoder.numbers(value, "i8")
        if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < job.encoder.size:
            raise UsageError(
                f"the tokenizer gave the number {int(numbers.max())}, and says that its vocabulary has {job.encoder.size}: "
                "its files do not belong together"
            )
        writer.add(numbers if job.end is None else np.append(numbers, job.end))


def _claim(folder: Path, description: dict[str, Any]) -> None:
    """The folder is this job's: empty, or begun by the same."""
    (folder / ".tokenize").mkdir(parents=True, exist_ok=True)
    place = folder / ".tokenize" / "job.json"
    if not place.exists():
        others = [p.name for p in folder.iterdir() if p.name != ".tokenize"]
        if others:
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
    records = {name: record_of(folder, name) for name in (shard_name(s, job.shards) for s in range(job.shards))}
    there = {name: record for name, record in records.items() if record is not None}
    lengths: dict[int, int] = {}
    for record in there.values():
        for most, count in record["lengths"].items():
            lengths[int(most)] = lengths.get(int(most), 0) + count
    out = {
        **job.description(),
        "written_documents": sum(r["documents"] for r in there.values()),
        "tokens": sum(r["tokens"] for r in there.values()),
        "lengths": {str(most): lengths[most] for most in sorted(lengths)},
        "files": {name: {k: v for k, v in record.items() if k != "lengths"} for name, record in there.items()},
    }
    if len(there) == job.shards:
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
                    problems.append(f"{place}: it is not as it was written; tokenize again")
            except OSError as e:
                problems.append(f"{place}: {e.strerror}")
    return {"files": count, "problems": problems, "samples": samples}
