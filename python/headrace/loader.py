# SPDX-License-Identifier: Apache-2.0
"""The Loader: shuffled, split over ranks, batched, ahead of the training step."""

from __future__ import annotations

import atexit
import re
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from . import _core, ranks
from .batch import Batch
from .blend import Blend
from .dataset import Dataset, field_specs, finishes, open_source, tell_once, urls_of
from .errors import UsageError
from .fields import Field

STATE_VERSION = 1
_FOREVER = 1 << 62
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

_open_loaders: weakref.WeakSet[Loader] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    # Threads that call Python functions must be done before the interpreter goes.
    for loader in list(_open_loaders):
        loader.close()


def parse_bytes(value: int | str | None, name: str) -> int:
    """A number of bytes: 0 for None; "512M", "2 GiB" are understood."""
    if value is None:
        return 0
    if isinstance(value, int) and value > 0:
        return value
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", str(value), re.IGNORECASE)
    if match is None or float(match[1]) <= 0:
        raise UsageError(f"{name} is a number of bytes or a text like '2GiB', not {value!r}")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _shuffle(value: Any) -> str:
    if value is True:
        return "auto"
    if value is False or value is None:
        return "none"
    if value in ("global", "pool"):
        return str(value)
    raise UsageError(f'shuffle is True, False, "global" or "pool", not {value!r}')


def _bad_samples(value: str | int) -> tuple[bool, int]:
    if value == "raise":
        return False, 0
    if value == "replace":
        return True, 1000
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return True, value
    raise UsageError(f'bad_samples is "raise", "replace" (at most 1000 an epoch) or the most to replace, not {value!r}')


def _check_seed(seed: int) -> int:
    if not isinstance(seed, int) or not 0 <= seed < 1 << 64:
        raise UsageError(f"seed is a whole number from 0 to 2^64-1, not {seed!r}")
    return seed


class Loader:
    """Batches of a data set, in an order that is a pure function of (data, seed, epoch).

    source: a URL, a list, a data set, a view or a blend.
    batch_size: this rank's; or ``global_batch_size``, which must divide by the ranks.
    fields: what to make of each field; without it everything as it lies.
    shuffle: True (global up to 16 GiB, pool above), False, "global", "pool".
    tail: "drop", "pad" or "keep"; drop when shuffled and keep when not, unless given.
    threads: compute threads; "auto" uses the CPUs this rank may use.
    memory_budget: bytes, or "2GiB"; a quarter of this rank's memory and at most 8 GiB unless given.
    output: "torch", "numpy" or "jax", without a copy.
    bad_samples: "raise", "replace", or how many may be replaced in an epoch.
    window, reassign_every: how far "pool" mixes, in bytes; epochs that share one order of blocks.
    """

    def __init__(
        self,
        source: Any,
        batch_size: int | None = None,
        fields: Mapping[str, Field] | None = None,
        *,
        shuffle: bool | str = True,
        seed: int = 0,
        tail: str | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        global_batch_size: int | None = None,
        index: str | None = None,
        root: str | None = None,
        threads: int | str = "auto",
        memory_budget: int | str | None = None,
        device: str = "cpu",
        output: str = "torch",
        bad_samples: str | int = "raise",
        window: int | str | None = None,
        reassign_every: int = 1,
        _read_runs: bool = False,
    ) -> None:
        self._core: Any = None
        if output not in ("torch", "numpy", "jax"):
            raise UsageError(f'output is "torch", "numpy" or "jax", not {output!r}')
        if output == "torch":
            self._need_torch()
        elif device != "cpu":
            raise UsageError(f'device={device!r} goes with output="torch"')
        if tail not in (None, "drop", "pad", "keep"):
            raise UsageError(f'tail is "drop", "pad" or "keep", not {tail!r}')
        if threads != "auto" and (not isinstance(threads, int) or threads < 1):
            raise UsageError(f'threads is "auto" or a number from 1 on, not {threads!r}')
        mode = _shuffle(shuffle)
        self.ranks = ranks.find(rank, world_size)
        if self.ranks.world > 1 and self.ranks.rank == 0 and self.ranks.source != "the arguments":
            tell_once(f"rank 0 of {self.ranks.world}, as {self.ranks.source} says")
        replace, budget = _bad_samples(bad_samples)
        sources, weights, draws, fields = self._sources(source, fields, index, root)
        self._names = [name for name, _ in sources]
        specs = field_specs(fields, sources[0][1])
        self._finishes = finishes(fields, sources[0][1], specs)
        self._costs = {s["output"]: s["map"]["cost"] for s in specs if "map" in s}
        options = {
            "seed": _check_seed(seed),
            "shuffle": mode,
            "window": parse_bytes(window, "window") or None,
            "reassign_every": reassign_every,
            "global_batch": self._global_batch(batch_size, global_batch_size),
            "rank": self.ranks.rank,
            "world": self.ranks.world,
            "tail": tail or ("keep" if mode == "none" else "drop"),
            "weights": weights,
            "epoch_draws": draws,
            "threads": 0 if threads == "auto" else threads,
            "memory_budget": parse_bytes(memory_budget, "memory_budget"),
            # A scheduler that bound the ranks to their cores has divided them already.
            "local_ranks": self.ranks.local if _core.affinity_cpus() == _core.machine_cpus() else 1,
            "replace": replace,
            "bad_budget": budget,
            "read_runs": _read_runs,
        }
        self._core = _core.Loader.make(sources, specs, options)
        for note in self._core.notes():
            tell_once(note)
        self._global = options["global_batch"]
        self._output, self._device = output, device
        self._position = (0, 0)  # what the consumer has received
        self._next = 0  # the epoch iter() gives
        self._loaded = False  # a state was loaded and not yet gone on from
        self._finished: int | None = None  # the epoch that was consumed to its end last
        self._generation = 0
        self._batch_maps: list[Callable[[Batch], Any]] = []
        self._map_seconds = 0.0
        self._consumed = [0, 0.0, 0.0]  # batches, seconds waiting here, seconds in the caller's loop
        _open_loaders.add(self)

    @staticmethod
    def _need_torch() -> None:
        try:
            import torch  # noqa: F401 - here, not at the first batch
        except ImportError:
            raise UsageError('output="torch" needs PyTorch, which is not installed; say output="numpy" or "jax"') from None

    def _global_batch(self, batch: int | None, total: int | None) -> int:
        if (batch is None) == (total is None):
            raise UsageError("give batch_size (this rank's) or global_batch_size, one of the two")
        size = batch if batch is not None else total
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise UsageError(f"a batch size is a whole number from 1 on, not {size!r}")
        if total is not None and total % self.ranks.world != 0:
            raise UsageError(f"global_batch_size={total} does not divide by {self.ranks.world} ranks")
        return size * self.ranks.world if total is None else total

    @staticmethod
    def _sources(
        source: Any, fields: Mapping[str, Field] | None, index: str | None, root: str | None
    ) -> tuple[list[tuple[str, _core.Source]], list[float], int, Mapping[str, Field] | None]:
        if isinstance(source, Blend):
            if index is not None:
                raise UsageError("a blend's sources have their own index: hr.open(url, index=...)")
            return source.sources(), source.weights(), source.epoch_samples, fields
        if isinstance(source, Dataset):
            return [("", source._source)], [], 0, fields if fields is not None else source._fields
        return [("", open_source(urls_of(source), index, root))], [], 0, fields

    # -- epochs ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Batches of an epoch on this rank; the same on every rank."""
        return self._core.steps_in_epoch

    def epoch(self, n: int) -> Iterator[Batch]:
        """The batches of epoch n, from its start or from a loaded state."""
        return self._epoch(n, until=None)

    def epochs(self, total: int) -> Iterator[tuple[int, Iterator[Batch]]]:
        """(epoch, batches) from where the state stands up to ``total``."""
        n = self._core.settle(*self._position)[0] if self._loaded or self._finished is not None else self._next
        while n < total:
            yield n, self._epoch(n, until=total)
            n += 1

    def __iter__(self) -> Iterator[Batch]:
        """The next epoch: the one a loaded state stands in, the one set_epoch() named, or one more."""
        return self._epoch(self._core.settle(*self._position)[0] if self._loaded else self._next, until=None)

    def set_epoch(self, n: int) -> None:
        """The epoch that the next ``iter(loader)`` gives."""
        self._check_epoch(n)
        self._next = n

    def _check_epoch(self, n: int) -> None:
        if not isinstance(n, int) or n < 0:
            raise UsageError(f"an epoch is a whole number from 0 on, not {n!r}")
        if self._loaded:
            stands = self._core.settle(*self._position)[0]
            if n != stands:
                raise UsageError(
                    f"the loaded state stands in epoch {stands}, not {n}: go on with loader.epoch({stands}) or "
                    f"`for epoch, batches in loader.epochs(total)`, or make a new Loader to start epoch {n} afresh"
                )

    def _epoch(self, n: int, until: int | None) -> Iterator[Batch]:
        self._alive()
        self._check_epoch(n)
        start = self._core.settle(*self._position) if self._loaded else (n, 0)
        # Ahead into the next epoch where the caller is going there: no stall in between.
        in_order = until is not None or self._finished == n - 1
        continues = not self._loaded and self._core.continues_with(n)
        if not continues:
            self._core.begin(start[0], start[1], in_order, until if until is not None else _FOREVER)
        self._loaded = False
        self._finished = None
        self._position = start
        self._next = n + 1
        self._generation += 1
        return _Epoch(self, self._generation, self._core.steps_from(start[1]))

    def _take(self) -> Batch | None:
        raw = self._core.next()
        if raw is None:
            return None
        batch = Batch()
        for c, (name, how) in enumerate(self._finishes):
            value = raw.column(c, "text" if how == "json" else how, self._output)
            if how == "json":
                import json

                value = [json.loads(v) for v in value]
            batch[name] = value
        batch._raw, batch._loader = raw, self
        if self._device != "cpu":
            self._to_device(batch)
        if self._batch_maps:
            start = time.perf_counter()
            for function in self._batch_maps:
                result = function(batch)
                if result is not None:
                    mapped = Batch(result)
                    mapped._raw, mapped._loader = raw, self
                    batch = mapped
            self._map_seconds += time.perf_counter() - start
        epoch, g, last = raw.after
        self._position = (epoch, g)
        if last:
            self._finished = epoch - 1
        return batch

    def _to_device(self, batch: Batch) -> None:
        import torch

        for name, value in batch.items():
            if isinstance(value, torch.Tensor):
                batch[name] = value.to(self._device, non_blocking=True)

    def map(self, function: Callable[[Batch], Any]) -> Loader:
        """Calls ``function(batch)`` on every batch, in the consumer's thread; what it returns
        (None: the batch as changed in place) is delivered."""
        self._batch_maps.append(function)
        return self

    # -- state ----------------------------------------------------------------------------------

    def _state_at(self, epoch: int, g: int) -> dict[str, Any]:
        return {"headrace": STATE_VERSION, **self._core.state(epoch, g)}

    def state_dict(self) -> dict[str, Any]:
        """Where the consumer stands: plain data, equal on every rank, good for any number of them."""
        self._alive()
        return self._state_at(*self._position)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state, on any number of ranks. Its order wins over the arguments."""
        self._alive()
        if not isinstance(state, Mapping) or "headrace" not in state:
            raise UsageError("this is not a state of headrace: it has no 'headrace' entry")
        if state["headrace"] != STATE_VERSION:
            raise UsageError(f"the state has version {state['headrace']}, this headrace reads {STATE_VERSION}")
        self._core.load(dict(state))
        for line in self._core.differences():
            tell_once(f"going on from a state: {line}; the state's holds")
        self._position = (int(state["epoch"]), int(state["g"]))
        self._loaded = True
        self._finished = None
        self._generation += 1

    def set_weights(self, weights: Mapping[str, float], *, at_step: int) -> None:
        """Other weights of a blend from step ``at_step`` of the current epoch on. Every rank must
        say so for the same step, and before it reaches that step."""
        self._alive()
        epoch, g = self._position
        if set(weights) != set(self._names):
            raise UsageError(f"weights name the sources {sorted(self._names)}, not {sorted(weights)}")
        draw = epoch * self._core.epoch_length + at_step * self._global
        if at_step * self._global < g:
            raise UsageError(f"step {at_step} is already past: the loader stands at step {g // self._global}")
        running = self._generation
        self._core.set_weights([float(weights[n]) for n in self._names], draw)
        if running and not self._loaded and self._finished is None:
            self._core.begin(epoch, g, False, 0)  # what was read ahead knew nothing of it

    def plan_id(self) -> str:
        """A hash of all that fixes the order: equal on every rank, or the ranks differ."""
        return self._core.plan_id()

    # -- insight --------------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """Counters per stage (items, bytes, seconds busy and waiting), memory, bad samples."""
        self._alive()
        out = self._core.stats()
        batches, waited, outside = self._consumed
        out["consumer"] = {"batches": batches, "wait_s": waited, "step_s": outside}
        out["map"] = {
            name: {"calls": c.calls, "busy_s": c.busy_ns * 1e-9, "wait_gil_s": c.gil_ns * 1e-9}
            for name, c in self._costs.items()
        }
        if self._batch_maps:
            out["map"]["(batch)"] = {"calls": batches, "busy_s": self._map_seconds, "wait_gil_s": 0.0}
        out["bad_samples"] = self._core.quarantine()
        return out

    @property
    def quarantine(self) -> list[dict[str, Any]]:
        """The samples that were replaced: sample, file, offset, key, cause."""
        self._alive()
        return self._core.quarantine()

    def verdict(self) -> str:
        """What holds the loop back, with the numbers that show it."""
        from .verdict import verdict

        return verdict(self.stats())

    # -- end ------------------------------------------------------------------------------------

    def _alive(self) -> None:
        if self._core is None:
            raise UsageError("this Loader is closed")

    def close(self) -> None:
        """Ends all threads. Batches that were received stay valid."""
        if self._core is not None:
            self._core.stop()
            self._core = None

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_core", None) is not None:
            self.close()


class _Epoch:
    """The batches of one epoch; ended by the start of another."""

    def __init__(self, loader: Loader, generation: int, steps: int) -> None:
        self._loader, self._generation, self._left = loader, generation, steps
        self._returned_at: float | None = None

    def __len__(self) -> int:
        return self._left

    def __iter__(self) -> _Epoch:
        return self

    def __next__(self) -> Batch:
        if self._left == 0:
            raise StopIteration
        loader = self._loader
        loader._alive()
        if loader._generation != self._generation:
            raise UsageError("this epoch was ended: another one was started, or a state was loaded")
        start = time.perf_counter()
        try:
            batch = loader._take()
        except BaseException:
            self._left = 0
            raise
        if batch is None:
            self._left = 0
            raise StopIteration
        self._left -= 1
        now = time.perf_counter()
        consumed = loader._consumed
        consumed[0] += 1
        consumed[1] += now - start
        if self._returned_at is not None:
            consumed[2] += start - self._returned_at
        self._returned_at = now
        return batch
