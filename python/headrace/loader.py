# SPDX-License-Identifier: Apache-2.0
"""The Loader: shuffled, split over ranks, batched, ahead of the training step."""

from __future__ import annotations

import atexit
import copy
import json
import logging
import operator
import os
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from . import _core, checks, habits, ranks
from .batch import Batch, register_pytree
from .blend import Blend
from .caching import Cache, cache_of
from .caching import tell as tell_of_cache
from .dataset import Dataset, parsed
from .errors import UsageError
from .fields import Field
from .messages import tell_once, warn
from .mix import Mix, mix_options
from .parts import costs_of, parts_of
from .requests import delivered
from .staging import staged
from .staging import tell as tell_of_stage
from .storage import Storage, using
from .verdict import Verdict, verdict

_FOREVER = 1 << 62


class _Running:
    """What the views of one Loader share: the engine, and how its batches were consumed."""

    def __init__(self, core: _core.Loader, costs: dict[str, list[_core.MapCost]]) -> None:
        self.core: _core.Loader | None = core
        self.costs = costs  # of the fields' map functions
        self.batches = 0
        self.wait_s = 0.0  # in next()
        self.step_s = 0.0  # in the caller's loop
        self.map_s = 0.0  # in loader.map's functions
        self.reported = (0, 0, False)  # replaced before this epoch, delivered in it, whether it was said already
        _all_running.add(self)

    def close(self) -> None:
        core, self.core = self.core, None
        if core is not None:
            core.close()

    def __del__(self) -> None:
        self.close()


_all_running: weakref.WeakSet[_Running] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    # Threads that call Python functions must be done before the interpreter goes.
    for running in list(_all_running):
        running.close()


def _plain(value: Any) -> Any:
    """What json.dumps does not know, as a number, a list or a dict: states come back through all kinds of libraries."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return operator.index(value)


def _state_text(state: Any) -> str:
    if not isinstance(state, Mapping) or "headrace" not in state:
        raise UsageError("this is not a state of headrace: it has no 'headrace' entry")
    try:
        return json.dumps(dict(state), default=_plain)
    except (TypeError, ValueError) as e:
        raise UsageError(f"the state holds what headrace does not write: {e}") from None


def _shuffle(value: Any) -> _core.Shuffle:
    if value is True:
        return _core.Shuffle.AUTO
    if value is False or value is None:
        return _core.Shuffle.NONE
    if value == "global":
        return _core.Shuffle.GLOBAL
    if value == "pool":
        return _core.Shuffle.POOL
    raise UsageError(f'shuffle is True, False, "global" or "pool", not {value!r}')


_TAILS = {"drop": _core.Tail.DROP, "pad": _core.Tail.PAD, "keep": _core.Tail.KEEP}


def _most_replaced(value: Any) -> int | None:
    """Bad samples that may be replaced in an epoch; None: they raise."""
    if value == "raise":
        return None
    if value == "replace":
        return 1000
    if isinstance(value, str):
        raise UsageError(f'bad_samples is "raise", "replace" (at most 1000 an epoch) or the most to replace, not {value!r}')
    return checks.whole(value, "bad_samples")


class Loader:
    """Batches of a data set, in an order that is a pure function of (data, seed, epoch).

    source: a URL, a list, a data set, a view or a blend.
    batch_size: this rank's; or ``global_batch_size``, which must divide by the ranks.
    fields: what to make of each field; without it everything as it lies.
    shuffle: True (global up to 16 GiB, pool above), False, "global", "pool".
    tail: "drop", "pad" or "keep"; drop when shuffled and keep when not, unless given.
    storage: ``hr.storage(...)``: endpoint, region and credentials of data on http(s)://, s3://, gs:// and hf://.
    threads: compute threads; "auto" uses the CPUs this rank may use.
    memory_budget: bytes, or "2GiB"; a quarter of this rank's memory and at most 8 GiB unless given.
    cache: a folder on a near disk that keeps what was read: ``"/nvme/hr"``, or ``hr.cache(path, bytes="200GB")``.
    stage: a folder on a near disk or in /dev/shm: all files are copied there in the background, once for the machine, and
        read from there as they come; the last job that uses the copy removes it.
    output: "torch", "numpy" or "jax", without a copy.
    bad_samples: "raise", "replace", or how many may be replaced in an epoch.
    mix: ``hr.mixup(...)``, ``hr.cutmix(...)``, or a list of which one is drawn for each batch.
    window, reassign_every: how far "pool" mixes, in bytes; epochs that share one order of blocks.
    """

    @habits.understood
    def __init__(
        self,
        source: Any,
        batch_size: int | None = None,
        fields: Mapping[str, Field] | None = None,
        *,
        shuffle: bool | Literal["global", "pool"] | None = True,
        seed: int = 0,
        tail: Literal["drop", "pad", "keep"] | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        global_batch_size: int | None = None,
        index: str | os.PathLike[str] | None = None,
        root: str | os.PathLike[str] | None = None,
        storage: Storage | None = None,
        cache: str | os.PathLike[str] | Cache | None = None,
        stage: str | os.PathLike[str] | None = None,
        threads: int | Literal["auto"] = "auto",
        memory_budget: int | str | None = None,
        device: str = "cpu",
        output: Literal["torch", "numpy", "jax"] = "torch",
        bad_samples: Literal["raise", "replace"] | int = "raise",
        mix: Mix | Sequence[Mix] | None = None,
        window: int | str | None = None,
        reassign_every: int = 1,
        _read_runs: bool = False,
    ) -> None:
        checks.one_of(output, "output", ("torch", "numpy", "jax"))
        if output == "torch":
            self._need_torch(device)
        elif device != "cpu":
            raise UsageError(f'device={device!r} goes with output="torch"')
        mode = _shuffle(shuffle)
        if tail is None:
            tail = "keep" if mode == _core.Shuffle.NONE else "drop"
        checks.one_of(tail, "tail", tuple(_TAILS))
        self.ranks = ranks.find(rank, world_size)
        if self.ranks.world > 1 and self.ranks.rank == 0 and self.ranks.source != "the arguments":
            tell_once(f"rank 0 of {self.ranks.world}, as {self.ranks.source} says", logging.INFO)
        most_replaced = _most_replaced(bad_samples)
        self._replaces = most_replaced is not None
        if isinstance(source, (Blend, Dataset)) and (index is not None or root is not None):
            raise UsageError("index and root belong to hr.open(url, index=..., root=...) when a data set or a blend is given")
        if isinstance(source, (Blend, Dataset)) and cache is not None:
            raise UsageError("cache belongs to hr.open(url, cache=...) when a data set or a blend is given")
        with using(storage, source, index):
            parts = parts_of(source, fields, index, root, cache_of(cache))
        if stage is not None:
            parts = [part._replace(source=staged(part.source, stage)) for part in parts]
        self._staged = [part.source for part in parts if part.source.stage_counts() is not None]
        self._names = [part.name for part in parts]
        self._cached = [part.source for part in parts if part.source.cache_counts() is not None]
        finish = delivered(parts[0].asked, parts[0].source)
        self._json = [name for name, how in finish if how == "json"]
        plan = _core.PlanOptions(
            seed=checks.whole(seed, "seed", 0, (1 << 64) - 1),
            shuffle=mode,
            window=checks.byte_count(window, "window") or None,
            reassign_every=checks.whole(reassign_every, "reassign_every", 1),
            global_batch=self._global_batch(batch_size, global_batch_size),
            rank=self.ranks.rank,
            world=self.ranks.world,
            tail=_TAILS[tail],
            weights=source.weights() if isinstance(source, Blend) else [],
            epoch_draws=source.epoch_samples if isinstance(source, Blend) else 0,
        )
        options = _core.LoaderOptions(
            plan=plan,
            threads=0 if threads == "auto" else checks.whole(threads, 'threads ("auto" or a number)', 1, 4096),
            memory_budget=checks.byte_count(memory_budget, "memory_budget"),
            # A scheduler that bound the ranks to their cores has divided them already.
            local_ranks=self.ranks.local if _core.affinity_cpus() == _core.machine_cpus() else 1,
            most_replaced=most_replaced,
            mix=None if mix is None else mix_options(mix, parts[0].fields),
            read_runs=_read_runs,
        )
        core = _core.Loader.make([(part.name, part.source, [a.request for a in part.asked]) for part in parts], options)
        self._running = _Running(core, costs_of(parts))
        core.deliver_as([(name, "text" if how == "json" else how) for name, how in finish], output)
        for note in core.notes():
            tell_once(note)
        self._output, self._device = output, device
        self._batch_maps: tuple[Callable[[Batch], Any], ...] = ()
        settings: dict[str, Any] = {"global_batch_size": plan.global_batch, "tail": tail}
        if batch_size is not None:
            settings = {"batch_size": plan.global_batch // self.ranks.world, "tail": tail}
        ranks.compare_plans(core.fingerprint(), core.plan_id(), self.ranks, settings)
        register_pytree(output)
        self._said = f"{', '.join(f'{k}={v!r}' for k, v in settings.items())}, shuffle={shuffle!r}, seed={seed!r}, fields {', '.join(name for name, _ in finish)}"

    def __repr__(self) -> str:
        core = self._running.core
        steps = "closed" if core is None else f"{core.steps_in_epoch:,} batches an epoch"
        return f"<headrace Loader: {steps}, rank {self.ranks.rank} of {self.ranks.world}, {self._said}>"

    @staticmethod
    def _need_torch(device: str) -> None:
        try:
            import torch  # here, not at the first batch
        except ImportError:
            raise UsageError('output="torch" needs PyTorch, which is not installed; say output="numpy" or "jax"') from None
        try:
            kind = torch.device(device).type
        except (RuntimeError, TypeError) as e:
            raise UsageError(f"device={device!r}: {e}") from None
        if kind == "cuda" and not torch.cuda.is_available():
            raise UsageError(f"device={device!r}: PyTorch finds no CUDA device here")

    def _global_batch(self, batch: int | None, total: int | None) -> int:
        if (batch is None) == (total is None):
            raise UsageError("give batch_size (this rank's) or global_batch_size, one of the two")
        if batch is not None:
            return checks.whole(batch, "batch_size", 1, 1 << 31) * self.ranks.world
        size = checks.whole(total, "global_batch_size", 1, 1 << 31)
        if size % self.ranks.world != 0:
            raise UsageError(f"global_batch_size={size} does not divide by {self.ranks.world} ranks")
        return size

    @property
    def _inner(self) -> _core.Loader:
        core = self._running.core
        if core is None:
            raise UsageError("this Loader is closed")
        return core

    # -- epochs ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Batches of an epoch on this rank; the same on every rank."""
        return self._inner.steps_in_epoch

    def epoch(self, n: int) -> Epoch:
        """The batches of epoch n, from its start or from a loaded state."""
        return self._epoch(n, until=None)

    def epochs(self, total: int) -> Iterator[tuple[int, Epoch]]:
        """(epoch, batches) from where the state stands up to ``total``."""
        self._inner  # noqa: B018  # closed: now, not at the first pair
        total = checks.whole(total, "the number of epochs")
        return self._epochs(total)

    def _epochs(self, total: int) -> Iterator[tuple[int, Epoch]]:
        n = self._inner.next_epoch()
        while n < total:
            yield n, self._epoch(n, until=total)
            n += 1

    def __iter__(self) -> Epoch:
        """The next epoch: the one a loaded state stands in, the one set_epoch() named, or one more.

        An epoch that has given no batch yet is begun again: frameworks ask once only to see whether they can.
        """
        return self._epoch(self._inner.next_epoch(), until=None)

    def set_epoch(self, n: int) -> None:
        """The epoch that the next ``iter(loader)`` gives."""
        self._inner.set_epoch(checks.whole(n, "an epoch", 0, _FOREVER - 1))

    def _epoch(self, n: int, until: int | None) -> Epoch:
        core = self._inner
        ranks.check_still(self.ranks)
        self._tell()
        return Epoch(self, *core.begin(checks.whole(n, "an epoch", 0, _FOREVER - 1), until))

    def _take(self) -> Batch | None:
        core = self._inner
        batch = Batch()
        raw: Any = core.next(batch)
        if raw is None:
            return None
        batch._raw = raw
        for name in self._json:
            batch[name] = parsed(batch[name])
        if self._device != "cpu":
            self._to_device(batch)
        if self._batch_maps:
            start = time.perf_counter()
            for function in self._batch_maps:
                result = function(batch)
                if result is not None:
                    if not isinstance(result, Mapping):
                        raise UsageError(
                            f"the function given to loader.map() returned {type(result).__name__}; a dict or None is wanted"
                        )
                    mapped = Batch(result)
                    mapped._raw = raw
                    batch = mapped
            self._running.map_s += time.perf_counter() - start
        core.received(raw)
        if self._replaces:
            self._report_replaced(raw.epoch, raw.size, raw.is_last)
        return batch

    def _report_replaced(self, epoch: int, size: int, last: bool) -> None:
        """Says how many samples were replaced when an epoch ends, and at once where they are more than 1 %."""
        replaced, delivered, told = self._running.reported
        delivered += size
        count = self._inner.replaced() - replaced
        share = count / delivered
        if count and share > 0.01 and not told and delivered >= 100:
            told = True
            warn(f"{count} of the first {delivered:,} samples were bad and replaced ({share:.0%}): see loader.quarantine")
        if last:
            if count:
                warn(
                    f"{count} of {delivered:,} samples of epoch {epoch} were bad and replaced ({share:.1%}): see loader.quarantine"
                )
            replaced, delivered, told = replaced + count, 0, False
        self._running.reported = (replaced, delivered, told)

    def _to_device(self, batch: Batch) -> None:
        import torch

        def move(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return value.to(self._device, non_blocking=True)
            return type(value)(move(v) for v in value) if isinstance(value, (tuple, list)) else value

        for name, value in batch.items():
            batch[name] = move(value)

    def map(self, function: Callable[[Batch], Any]) -> Loader:
        """This Loader with ``function(batch)`` called on every batch, in the consumer's thread; what it returns
        (None: the batch as changed in place) is delivered.

        Both share one engine, one position and one ``close()``: use the one that is returned.
        """
        self._inner  # noqa: B018  # closed
        out = copy.copy(self)
        out._batch_maps = (*self._batch_maps, function)
        return out

    # -- state ----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Where the consumer stands: plain data, equal on every rank, good for any number of them."""
        return dict(json.loads(self._inner.state()))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state, on any number of ranks. Its order wins over the arguments."""
        core = self._inner
        core.load(_state_text(state))
        for line in core.differences():
            tell_once(f"going on from a state: {line}; the state's holds")

    def set_weights(self, weights: Mapping[str, float], *, at_step: int) -> None:
        """Other weights of a blend from step ``at_step`` of the current epoch on. Every rank must
        say so for the same step, and before it reaches that step. What was read for steps before it is kept."""
        core = self._inner
        if self._names == [""]:
            raise UsageError("set_weights is for a blend; this Loader has one source")
        if set(weights) != set(self._names):
            raise UsageError(f"weights name the sources {sorted(self._names)}, not {sorted(weights)}")
        at_step = checks.whole(at_step, "at_step")
        core.set_weights([checks.real(weights[n], f"the weight of '{n}'") for n in self._names], at_step)

    def plan_id(self) -> str:
        """A hash of all that fixes the order: equal on every rank, or the ranks differ."""
        return self._inner.plan_id()

    # -- insight --------------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """Counters per stage (items, bytes, seconds busy and waiting), reads, memory, bad samples.

        ``"reads"``: latency (median and p99, from request to completion), how many are under way now and were at
        most, and how many bytes ahead are worth reading. ``"damaged"``: pictures that were damaged and taken all the
        same, because of ``strict=False``. ``"cache"``: hits, misses and bytes of ``cache=``; ``"stage"``: how much
        of the copy of ``stage=`` is there.
        """
        core, run = self._inner, self._running
        out: dict[str, Any] = core.stats()
        out["consumer"] = {"batches": run.batches, "wait_s": run.wait_s, "step_s": run.step_s}
        out["map"] = {
            name: {
                "calls": sum(c.calls for c in costs),
                "busy_s": sum(c.busy_ns for c in costs) * 1e-9,
                "wait_gil_s": sum(c.gil_ns for c in costs) * 1e-9,
            }
            for name, costs in run.costs.items()
        }
        if self._batch_maps:
            out["map"]["(batch)"] = {"calls": run.batches, "busy_s": run.map_s, "wait_gil_s": 0.0}
        out["bad_samples"] = core.quarantine()
        if self._staged:
            staged_counts = [s.stage_counts() or {} for s in self._staged]
            out["stage"] = {name: sum(c[name] for c in staged_counts) for name in staged_counts[0]}
        if self._cached:
            counts = [s.cache_counts() or {} for s in self._cached]
            out["cache"] = {name: sum(c[name] for c in counts) for name in counts[0]}
        return out

    def _tell(self) -> None:
        for source in self._cached:
            tell_of_cache(source)
        for source in self._staged:
            tell_of_stage(source)

    @property
    def quarantine(self) -> list[dict[str, Any]]:
        """The samples that were replaced: sample, file, offset, key, cause."""
        return self._inner.quarantine()

    def verdict(self) -> Verdict:
        """What holds the loop back, with the numbers that show it: a text with ``.cause``, ``.numbers``, ``.advice``."""
        return verdict(self.stats())

    def __getattr__(self, name: str) -> Any:
        # Only for what is not there. A Loader must not be rebuilt around a data set, to skip batches or to shard it.
        if name in ("dataset", "sampler", "batch_sampler"):
            raise AttributeError(
                f"a Loader has no {name}: it shards, shuffles and resumes by itself, by load_state_dict(); "
                "with Hugging Face's Trainer say TrainingArguments(ignore_data_skip=True)"
            )
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    # -- end ------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends all threads. Batches that were received stay valid."""
        self._running.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Epoch(Iterator[Batch]):
    """The batches of one epoch, so many as ``len`` says; ended by the start of another."""

    def __init__(self, loader: Loader, generation: int, steps: int) -> None:
        self._loader, self._generation, self._left = loader, generation, steps
        self._returned_at: float | None = None

    def __len__(self) -> int:
        return self._left

    def __iter__(self) -> Epoch:
        return self

    def __next__(self) -> Batch:
        if self._left == 0:
            raise StopIteration
        loader, run = self._loader, self._loader._running
        if not loader._inner.is_current(self._generation):
            raise UsageError("this epoch was ended: another one was started, or a state was loaded")
        start = time.perf_counter()
        try:
            batch = loader._take()
        except BaseException:
            self._left = 0
            raise
        if batch is None:
            self._left = 0
            loader._inner  # noqa: B018  # another thread may have closed it
            raise StopIteration
        self._left -= 1
        now = time.perf_counter()
        run.batches += 1
        run.wait_s += now - start
        if self._returned_at is not None:
            run.step_s += start - self._returned_at
        self._returned_at = now
        return batch
