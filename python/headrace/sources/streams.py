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
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from ..batch import Batch, shape_of
from ..checks import whole
from ..dataset import Dataset
from ..errors import UsageError
from ..fields import Field
from ..messages import tell_once

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
        self._inner: Loader | None = None
        self._maps: tuple[Callable[[Any], Any], ...] = ()
        tell_once(
            f"{stream.owner} is a stream of unknown length: samples are shuffled within a buffer of {stream.buffer}, "
            "len(loader) is not known, every rank reads the whole stream, and a resume reads it again from its start"
        )

    def __repr__(self) -> str:
        return f"<headrace Loader of {self._stream!r}>"

    def __len__(self) -> int:
        return len(self._stream)

    @staticmethod
    def _state_of(epoch: int, window: int, first: int, inner: dict[str, Any] | None) -> dict[str, Any]:
        return {"headrace": "stream", "epoch": epoch, "window": window, "first": first, "inner": inner}

    def _open(self, samples: list[Any], last: bool) -> Loader:
        from ..loader import Loader
        from .parts import ObjectItems

        part = ObjectItems(samples, self._stream.owner, None, self._stream.probe)
        part._items = self._items
        dataset = Dataset(part, None)
        self._items = part._items
        return Loader(dataset, self._batch, self._fields, tail=self._tail if last else "keep", **self._options)

    def _global_batch(self) -> int:
        from .. import ranks

        if self._batch is None:
            return whole(self._options.get("global_batch_size"), "batch_size or global_batch_size", 1)
        found = ranks.find(self._options.get("rank"), self._options.get("world_size"))
        return whole(self._batch, "batch_size", 1) * found.world

    def epoch(self, n: int) -> Iterator[Any]:
        """The batches of epoch n, from the start of the stream or from a loaded state."""
        resume, self._resume = self._resume, None
        if resume is not None and resume["epoch"] != n:
            raise UsageError(
                f"the loaded state stands in epoch {resume['epoch']}, not {n}: iterate the loader, or epoch({resume['epoch']})"
            )
        self._epoch_next = n + 1
        return self._batches(n, resume)

    def _batches(self, n: int, resume: dict[str, Any] | None) -> Iterator[Any]:
        size = self._global_batch()
        buffer = max(size, self._stream.buffer // size * size)
        source = self._stream.begin()
        window, first = (resume["window"], resume["first"]) if resume else (0, 0)
        for _ in itertools.islice(source, first):
            pass
        with ThreadPoolExecutor(1, "hr-stream") as reader:  # the next buffer fills while this one is delivered
            coming: Future[list[Any]] = reader.submit(lambda: list(itertools.islice(source, buffer)))
            state = resume["inner"] if resume else None
            while True:
                samples = coming.result()
                last = len(samples) < buffer
                if not last:
                    coming = reader.submit(lambda: list(itertools.islice(source, buffer)))
                if samples and (not last or self._tail != "drop" or len(samples) >= size):
                    yield from self._window(n, window, first, samples, last, state)
                state = None
                if last:
                    break
                window, first = window + 1, first + len(samples)
        self._state = self._state_of(n + 1, 0, 0, None)

    def _window(self, n: int, window: int, first: int, samples: list[Any], last: bool, state: Any) -> Iterator[Any]:
        with self._open(samples, last) as inner:
            self._inner = inner
            if state is not None:
                inner.load_state_dict(state)
            number = n * 1_000_003 + window  # another order in every buffer and epoch
            for batch in inner.epoch(number):
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

    def map(self, function: Callable[[Any], Any]) -> StreamLoader:
        out = copy.copy(self)
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
        """Of the buffer that is delivered."""
        return {} if self._inner is None else self._inner.stats()

    def close(self) -> None:
        if self._inner is not None:
            self._inner.close()

    def __enter__(self) -> StreamLoader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
