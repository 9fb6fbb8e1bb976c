# SPDX-License-Identifier: Apache-2.0
"""Generators and other iterables of unknown length: batches from a buffer.

What a data set promises a stream cannot: how many batches an epoch has, an order over all samples, a resume that
reads nothing twice. What holds: each buffer of samples is a small data set of its own, shuffled by (seed, its number),
split over ranks and batched by the engine as every other; no sample is lost or comes twice; a state goes on where it
stood, if the iterable gives the same samples again.
"""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import numpy as np

from ..batch import Batch, shape_of
from ..checks import whole
from ..dataset import Dataset
from ..errors import UsageError
from ..fields import Field
from ..messages import tell_once
from ..processes.pool import TIMEOUT
from ..verdict import Verdict, verdict

if TYPE_CHECKING:
    from ..loader import Loader

_BUFFER = 4096  # samples


class Stream:
    """What ``hr.from_python(generator)`` gives: for ``hr.Loader``, and nothing else."""

    def __init__(
        self, obj: Any, owner: str, fields: Mapping[str, Field] | None, probe: int | None, buffer: int | None = None
    ) -> None:
        self.obj, self.owner, self.fields, self.probe = obj, owner, fields, probe
        self.buffer = whole(_BUFFER if buffer is None else buffer, "buffer", 1)
        self._begun = False

    def __repr__(self) -> str:
        return f"<headrace stream: {self.owner}, a buffer of {self.buffer} samples>"

    def __len__(self) -> int:
        raise TypeError(f"{self.owner} is a stream: its length is not known before its end")

    def __getitem__(self, i: Any) -> Any:
        raise UsageError(f"{self.owner} is a stream: it has no sample {i!r} to ask for; hr.Loader takes it")

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise UsageError(
            f"{self.owner} is a stream: it has no views, joins or sums; filter in the generator, or give a list, list({self.owner}())"
        )

    where = split = repeat = balance = rename = __add__ = _refuse

    def begin(self) -> Iterator[Any]:
        """From the first sample on."""
        if callable(self.obj) and not hasattr(self.obj, "__iter__"):
            return iter(self.obj())
        if isinstance(self.obj, Iterator):
            if self._begun:
                raise UsageError(
                    f"{self.owner} is used up after one epoch: give the function that makes it, hr.from_python(make), or a class with __iter__"
                )
            self._begun = True
        return iter(self.obj)


class StreamBatch(Batch):
    """A batch whose indices count from the start of the stream."""

    __slots__ = ("_first", "_state")
    _first: int
    _state: dict[str, Any]

    @property
    def indices(self) -> np.ndarray[Any, Any]:
        return super().indices + self._first

    @property
    def state(self) -> dict[str, Any]:
        return copy.deepcopy(self._state)


class _Ahead:
    """The next ``count`` samples of an iterator, read by a thread of their own.

    ``stop()`` ends the thread after the sample that it is at. Nobody waits for it then but the next epoch: a generator may
    wait for ever, for a queue that stays empty, and must not hold up a ``break``.
    """

    def __init__(self, source: Iterator[Any], count: int) -> None:
        self._stopped = threading.Event()
        self._samples: Future[list[Any]] = Future()
        self._thread = threading.Thread(target=self._run, args=(source, count), name="hr-stream", daemon=True)
        self._thread.start()

    def _run(self, source: Iterator[Any], count: int) -> None:
        found: list[Any] = []
        try:
            while len(found) < count and not self._stopped.is_set():
                try:
                    found.append(next(source))
                except StopIteration:
                    break
            self._samples.set_result(found)
        except BaseException as e:
            self._samples.set_exception(e)

    def samples(self) -> list[Any]:
        """All of them, or fewer where the stream ends; raises what the iterator raised."""
        return self._samples.result()

    def stop(self) -> None:
        self._stopped.set()

    def join(self) -> None:
        self._thread.join()


class _Buffer:
    """The samples that are shuffled among each other: a data set whose content changes between two epochs of it."""

    def __init__(self, samples: list[Any]) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, i: int) -> Any:
        return self.samples[i]


class StreamLoader:
    """Batches of a stream. Made by ``hr.Loader(stream, …)``, with its arguments."""

    def __init__(self, stream: Stream, batch_size: int | None = None, fields: Any = None, **options: Any) -> None:
        from ..habits import translated

        self._stream, self._batch, self._fields = stream, batch_size, fields if fields is not None else stream.fields
        self._options: dict[str, Any] = translated(options)
        shuffle = self._options.get("shuffle", True)
        self._tail: Any = self._options.pop("tail", None) or ("keep" if not shuffle else "drop")
        self._as = self._options.pop("as_", None)
        self._items: Any = None
        self._epoch_next = 0
        self._resume: dict[str, Any] | None = None
        self._state: dict[str, Any] = self._state_of(0, 0, 0, None)
        self._maps: tuple[Callable[[Any], Any], ...] = ()
        self._process_maps: tuple[tuple[Callable[[Any], Any], int, float | None], ...] = ()
        self._begin()
        tell_once(
            f"{stream.owner} is a stream of unknown length: samples are shuffled within a buffer of {stream.buffer}, "
            "len(loader) is not known, every rank reads the whole stream, and a resume reads it again from its start"
        )

    def _begin(self) -> None:
        self._full: tuple[_Buffer, Loader] | None = None  # of all buffers but the last: its processes live as long as this does
        self._inner: Loader | None = None  # of the buffer that is delivered
        self._ahead: _Ahead | None = None
        self._replaced: list[dict[str, Any]] = []
        self._closed = False

    def __repr__(self) -> str:
        return f"<headrace Loader of {self._stream!r}>"

    def __len__(self) -> int:
        return len(self._stream)

    @staticmethod
    def _state_of(epoch: int, window: int, first: int, inner: dict[str, Any] | None) -> dict[str, Any]:
        return {"headrace": "stream", "epoch": epoch, "window": window, "first": first, "inner": inner}

    def _open(self, buffer: _Buffer, last: bool) -> Loader:
        from ..loader import Loader
        from .parts import ObjectItems

        part = ObjectItems(buffer, self._stream.owner, None, self._stream.probe)
        part._items = self._items
        dataset = Dataset(part, None)
        self._items = part._items
        out = Loader(dataset, self._batch, self._fields, tail=self._tail if last else "keep", **self._options)
        for function, processes, timeout in self._process_maps:
            out = out.map(function, processes=processes, timeout=timeout)
        return out

    def _filled(self, samples: list[Any], last: bool) -> Loader:
        """A Loader of these samples: always the same one, but for the last of them, which may be fewer."""
        if last:
            return self._open(_Buffer(samples), last)
        if self._full is None:
            buffer = _Buffer(samples)
            self._full = buffer, self._open(buffer, last)
        self._full[0].samples = samples
        return self._full[1]

    def _global_batch(self) -> int:
        from .. import ranks

        if self._batch is None:
            return whole(self._options.get("global_batch_size"), "batch_size or global_batch_size", 1)
        found = ranks.find(self._options.get("rank"), self._options.get("world_size"))
        return whole(self._batch, "batch_size", 1) * found.world

    def epoch(self, n: int) -> Iterator[Any]:
        """The batches of epoch n, from the start of the stream or from a loaded state."""
        if self._closed:
            raise UsageError("this Loader is closed")
        resume, self._resume = self._resume, None
        if resume is not None and resume["epoch"] != n:
            raise UsageError(
                f"the loaded state stands in epoch {resume['epoch']}, not {n}: iterate the loader, or epoch({resume['epoch']})"
            )
        self._epoch_next = n + 1
        return self._batches(n, resume)

    def _read(self, source: Iterator[Any], count: int) -> _Ahead:
        self._ahead = _Ahead(source, count)
        return self._ahead

    def _batches(self, n: int, resume: dict[str, Any] | None) -> Iterator[Any]:
        size = self._global_batch()
        buffer = max(size, self._stream.buffer // size * size)
        if self._ahead is not None:  # an epoch that was left: one thread at a time is in the user's code
            self._ahead.stop()
            self._ahead.join()
        source = self._stream.begin()
        window, first = (resume["window"], resume["first"]) if resume else (0, 0)
        coming = self._read(itertools.islice(source, first, None), buffer)
        state = resume["inner"] if resume else None
        try:
            while True:
                samples = coming.samples()
                last = len(samples) < buffer
                if self._closed:
                    raise UsageError("this Loader is closed")
                if not last:  # it fills while this one is delivered
                    coming = self._read(source, buffer)
                if samples and (not last or self._tail != "drop" or len(samples) >= size):
                    yield from self._window(n, window, first, samples, last, state)
                state = None
                if last:
                    break
                window, first = window + 1, first + len(samples)
        finally:
            coming.stop()
        self._state = self._state_of(n + 1, 0, 0, None)

    def _window(self, n: int, window: int, first: int, samples: list[Any], last: bool, state: Any) -> Iterator[Any]:
        inner = self._inner = self._filled(samples, last)
        before = len(inner.quarantine)
        try:
            if state is not None:
                inner.load_state_dict(state)
            number = n * 1_000_003 + window  # another order in every buffer and epoch
            for batch in inner._epoch(number, until=number + 1):  # nothing ahead of it: those samples are not there yet
                out = StreamBatch(batch)
                out._raw, out._first = batch._raw, first
                after = batch.state
                ended = after["epoch"] != number
                out._state = (
                    self._state_of(n, window + 1, first + len(samples), None)
                    if ended
                    else self._state_of(n, window, first, after)
                )
                self._state = out._state
                yield self._finished(out)
        finally:
            if not self._closed:
                self._replaced += [{**bad, "sample": bad["sample"] + first} for bad in inner.quarantine[before:]]
            if last:
                inner.close()

    def _finished(self, batch: Any) -> Any:
        for function in self._maps:
            result = function(batch)
            batch = batch if result is None else result
        shape = shape_of(self._as, list(batch))
        return batch if shape is None else shape(batch)

    def __iter__(self) -> Iterator[Any]:
        return self.epoch(self._resume["epoch"] if self._resume else self._epoch_next)

    def epochs(self, total: int) -> Iterator[tuple[int, Iterator[Any]]]:
        for n in range(self._resume["epoch"] if self._resume else self._epoch_next, total):
            yield n, self.epoch(n)

    def set_epoch(self, n: int) -> None:
        self._epoch_next = whole(n, "an epoch")

    def map(self, function: Callable[[Any], Any], *, processes: int = 0, timeout: float | None = TIMEOUT) -> StreamLoader:
        """As ``Loader.map``; what is returned is a Loader of its own."""
        if processes and self._maps:
            raise UsageError("loader.map: functions in processes come before those that run in the consumer's thread")
        out = copy.copy(self)
        out._begin()
        if processes:
            out._process_maps = (*self._process_maps, (function, whole(processes, "processes", 1, 4096), timeout))
        else:
            out._maps = (*self._maps, function)
        return out

    def state_dict(self) -> dict[str, Any]:
        return copy.deepcopy(self._state)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if not isinstance(state, Mapping) or state.get("headrace") != "stream":
            raise UsageError("this is no state of a stream")
        self._resume = dict(state)
        self._state = dict(state)

    def stats(self) -> dict[str, Any]:
        """As ``Loader.stats``, since the first buffer; of the last one, which may be shorter, since its own start."""
        return {} if self._inner is None or self._closed else self._inner.stats()

    @property
    def quarantine(self) -> list[dict[str, Any]]:
        """The samples of buffers that were delivered and replaced, counted from the start of the stream."""
        return copy.deepcopy(self._replaced)

    def verdict(self) -> Verdict:
        """As ``Loader.verdict``; there must have been a batch."""
        found = self.stats()
        if not found:
            raise UsageError("verdict() is made of measurements, and there was no batch yet, or the Loader is closed")
        return verdict(found)

    def close(self) -> None:
        self._closed = True
        if self._ahead is not None:
            self._ahead.stop()
        for inner in (self._inner, self._full[1] if self._full else None):
            if inner is not None:
                inner.close()

    def __enter__(self) -> StreamLoader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
