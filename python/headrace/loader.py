# SPDX-License-Identifier: Apache-2.0
"""The Loader: shuffled, split over ranks, batched, ahead of the training step."""

from __future__ import annotations

import copy
import inspect
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

import headrace as hr  # for annotations: hr.Cache and hr.Mix are imported by whoever resolves them

from . import _core, checks, habits, ranks
from .batch import Batch, register_pytree, shape_of
from .blend import Blend, source_counts
from .dataset import Dataset
from .device import Decode, add_folders, target_of
from .epoch import Epoch
from .errors import UsageError
from .fields import Field
from .loader_options import TAILS, global_batch, most_bad, shuffle_of, state_text, window_bytes
from .messages import INFO, tell_once
from .opening import cache_of, tell_of_cache
from .packed import Packed, options_of
from .parts import costs_of, parts_of
from .processes import Processes
from .processes.batches import BatchCalls
from .processes.pool import TIMEOUT
from .requests import FROM_ENGINE, delivered, finished, masks
from .running import Running
from .staging import share_of, staged
from .staging import tell as tell_of_stage
from .storage import Storage, using
from .verdict import Verdict, verdict

_FOREVER = 1 << 62


class Loader:
    """Batches of a data set, in an order that is a pure function of (data, seed, epoch).

    source: a URL, a list, a data set, a view or a blend.
    batch_size: this rank's; or ``global_batch_size``, which must divide by the ranks.
    fields: what to make of each field; without it everything as it lies.
    shuffle: True (global up to 16 GiB, pool above), False, "global", "pool".
    tail: "drop", "pad" or "keep"; drop when shuffled and keep when not, unless given.
    rank, world_size: data-parallel ones, found out unless given. Tensor- and pipeline-parallel ranks of one group give the
        same and get the same batches.
    mesh: a torch DeviceMesh, which says both: the dimensions called "dp", "dp_replicate", "dp_shard", "fsdp" or "data"
        have data of their own, those called "tp", "pp", "cp" or "ep" share them; of other names, ``mesh["mine"]``.
    storage: ``hr.storage(...)``: endpoint, region and credentials of data on http(s)://, s3://, gs:// and hf://.
    threads: compute threads; "auto" uses the CPUs this rank may use.
    memory_budget: bytes, or "2GiB"; a quarter of this rank's memory and at most 8 GiB unless given.
    cache: a folder on a near disk that keeps what was read: ``"/nvme/hr"``, or ``hr.cache(path, bytes="200GB")``.
    stage: a folder on a near disk or in /dev/shm: all files are copied there in the background, once for the machine, and
        read from there as they come; the last job that uses the copy removes it.
    stage_share: copies only the files that the ranks of this node read in the first ``reassign_every`` epochs.
    device: "cpu", "cuda" (PyTorch's current device), "cuda:1": batches are delivered there, copied beside the training step.
    decode: with "cuda", who decodes JPEG: "cpu"; "gpu": the GPU's own engines; "auto": they and, where they are busy, the CPU.
    device_memory_budget: with "cuda", bytes ("2 GB") for batches ahead and pictures on their way; a quarter of what is free, at most 8 GiB.
        Pixels are the same.
    pinned: batches on the CPU lie in memory that a GPU copies from by itself.
    output: "torch", "numpy" or "jax" without a copy; "cupy" with device="cuda".
    bad_samples: "raise", "replace", or how many may be replaced in an epoch.
    mix: ``hr.mixup(...)``, ``hr.cutmix(...)``, or a list of which one is drawn for each batch.
    shuffle_window: how far "pool" mixes, in bytes (``window`` is the same). reassign_every: epochs that share one order of blocks.
    max_tokens: batches of any number of samples and at most so many tokens, instead of ``batch_size``: of a ``.padded()`` field
        samples times the longest, else their sum. tokens_of: the field that counts, where there are several.
        bucket_by_length: samples of about one length come together; else neighbours. Every rank has the same number of batches.
    as_: what a batch is delivered as: ``("image", "label")``, tuples of these fields with ``.indices``, ``.valid`` and
        ``.state``; or a function of the dict, called last, whose result is delivered.
    """

    def __new__(cls, source: Any = None, *args: Any, **options: Any) -> Any:
        if isinstance(source, (str, list, os.PathLike)):  # most: no need to know what a Stream is
            return super().__new__(cls)
        from .sources.streams import Stream, StreamLoader

        return StreamLoader(source, *args, **options) if isinstance(source, Stream) else super().__new__(cls)

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
        mesh: Any = None,
        global_batch_size: int | None = None,
        index: str | os.PathLike[str] | None = None,
        root: str | os.PathLike[str] | None = None,
        storage: Storage | None = None,
        cache: str | os.PathLike[str] | hr.Cache | None = None,
        stage: str | os.PathLike[str] | None = None,
        stage_share: bool = False,
        threads: int | Literal["auto"] = "auto",
        memory_budget: int | str | None = None,
        device: Any = "cpu",
        decode: Decode = "cpu",
        device_memory_budget: int | str | None = None,
        pinned: bool = False,
        output: Literal["torch", "numpy", "jax", "cupy"] = "torch",
        bad_samples: Literal["raise", "replace"] | int = "raise",
        mix: hr.Mix | Sequence[hr.Mix] | None = None,
        shuffle_window: int | str | None = None,
        window: int | str | None = None,
        reassign_every: int = 1,
        max_tokens: int | None = None,
        tokens_of: str | None = None,
        bucket_by_length: bool = True,
        as_: Sequence[str] | Callable[[Batch], Any] | None = None,
        _read_runs: bool = False,
    ) -> None:
        checks.one_of(output, "output", ("torch", "numpy", "jax", "cupy"))
        target = target_of(device, decode, output)
        if pinned:
            add_folders()
        mode = shuffle_of(shuffle)
        if tail is None:
            tail = "keep" if mode == _core.Shuffle.NONE else "drop"
        checks.one_of(tail, "tail", tuple(TAILS))
        self.ranks = ranks.find(rank, world_size, mesh=mesh)
        if self.ranks.world > 1 and self.ranks.rank == 0 and self.ranks.source != "the arguments":
            tell_once(f"rank 0 of {self.ranks.world}, as {self.ranks.source} says", INFO)
        most_replaced = most_bad(bad_samples)
        self._replaces = most_replaced is not None
        if isinstance(source, (Blend, Dataset, Packed)) and (index is not None or root is not None):
            raise UsageError("index and root belong to hr.open(url, index=..., root=...) when a data set or a blend is given")
        if isinstance(source, (Blend, Dataset, Packed)) and cache is not None:
            raise UsageError("cache belongs to hr.open(url, cache=...) when a data set or a blend is given")
        if max_tokens is not None:
            if batch_size is not None or global_batch_size is not None:
                raise UsageError("max_tokens= says how large batches are: leave batch_size and global_batch_size out")
            from .token_budget import budgeted

            opening = {"index": index, "root": root, "storage": storage, "cache": cache_of(cache)}
            source, fields = budgeted(source, fields, opening, max_tokens, tokens_of, bucket_by_length), None
            index = root = cache = None
            global_batch_size = self.ranks.world  # a batch for each rank
        elif tokens_of is not None:
            raise UsageError("tokens_of= goes with max_tokens=")
        pool = Processes()
        with using(storage, source, index, once=True):
            parts = parts_of(source, fields, index, root, cache_of(cache), pool)
        self._names = [part.name for part in parts]
        self._given = [0] * len(parts)  # samples of each source that were delivered
        self._one_epoch = isinstance(source, Blend) and source.exhausted == "stop"
        self._sources = [part.source for part in parts]
        self._draws_of = [s.groups or s.size for s in self._sources]  # rows, where samples are packed
        self._cached = [part.source for part in parts if part.source.cache_counts() is not None]
        finish = delivered(parts[0].asked, parts[0].source)
        self._finish = [(name, how) for name, how in finish if how in FROM_ENGINE]
        plan = _core.PlanOptions(
            seed=checks.whole(seed, "seed", 0, (1 << 64) - 1),
            shuffle=mode,
            window=window_bytes(shuffle_window, window),
            reassign_every=checks.whole(reassign_every, "reassign_every", 1),
            global_batch=global_batch(batch_size, global_batch_size, self.ranks.world),
            rank=self.ranks.rank,
            world=self.ranks.world,
            tail=TAILS[tail],
            weights=source.weights(self._draws_of) if isinstance(source, Blend) else [],
            epoch_draws=source.draws(self._draws_of) if isinstance(source, Blend) else 0,
        )
        if stage is not None:
            share = share_of(parts, plan, self.ranks, checks.whole(reassign_every, "reassign_every", 1)) if stage_share else None
            parts = [
                part._replace(source=staged(part.source, stage, None if share is None else share[n]))
                for n, part in enumerate(parts)
            ]
        elif stage_share:
            raise UsageError("stage_share=True is of stage=...: the folder that the share is copied to")
        self._staged = [part.source for part in parts if part.source.stage_counts() is not None]
        mixing = None
        if mix is not None:
            from .mix import mix_options

            mixing = mix_options(mix, parts[0].fields)
        options = _core.LoaderOptions(
            plan=plan,
            threads=0 if threads == "auto" else checks.whole(threads, 'threads ("auto" or a number)', 1, 4096),
            memory_budget=checks.byte_count(memory_budget, "memory_budget"),
            # A scheduler that bound the ranks to their cores has divided them already.
            local_ranks=self.ranks.local if _core.affinity_cpus() == _core.machine_cpus() else 1,
            most_replaced=most_replaced,
            mix=mixing,
            processes=pool.n,
            read_runs=_read_runs,
            device=target.device,
            decode=target.decode,
            device_memory_budget=checks.byte_count(device_memory_budget, "device_memory_budget"),
            pinned=bool(pinned),
            packing=options_of(source),
        )
        core = _core.Loader.make([(part.key, part.source, [a.request for a in part.asked]) for part in parts], options)
        pool.prepare()
        self._running = Running(core, costs_of(parts), pool)
        if pool.n > 0:
            core.share_memory()
            pool.start()
        core.deliver_as([(name, FROM_ENGINE.get(how, how)) for name, how in finish], output, target.stream_of)
        for note in core.notes():
            tell_once(note)
        self._output, self._copy_to = output, target.copy_to
        self._batch_maps: tuple[Callable[[Batch], Any], ...] = ()
        names = [*(name for name, how in finish if how != "hidden"), *core.added]
        self._as = shape_of(as_, [*names, *(f"{name}_valid" for name in masks(parts[0].asked))])
        self._batch_calls: tuple[BatchCalls, ...] = ()
        self._on_device = target.device is not None  # when the engine delivers them
        settings: dict[str, Any] = {"global_batch_size": plan.global_batch, "tail": tail}
        if batch_size is not None:
            settings = {"batch_size": plan.global_batch // self.ranks.world, "tail": tail}
        ranks.compare_plans(core.fingerprint(), core.plan_id(), self.ranks, settings)
        register_pytree(output)
        self._said = f"{', '.join(f'{k}={v!r}' for k, v in settings.items())}, shuffle={shuffle!r}, seed={seed!r}, fields {', '.join(name for name, how in finish if how != 'hidden')}"

    def __repr__(self) -> str:
        core = self._running.core
        steps = "closed" if core is None else f"{core.steps_in_epoch:,} batches an epoch"
        return f"<headrace Loader: {steps}, rank {self.ranks.rank} of {self.ranks.world}, {self._said}>"

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
        return self._epochs(min(total, 1) if self._one_epoch else total)

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
        if self._one_epoch and n > 0:
            raise UsageError(
                "a source of the blend is used up, and exhausted='stop' ends the run there: hr.blend(..., exhausted='repeat') goes on"
            )
        self._running.stop_calls()
        ranks.check_still(self.ranks)
        self._tell()
        return Epoch(self, *core.begin(checks.whole(n, "an epoch", 0, _FOREVER - 1), until))

    def _next(self) -> tuple[Batch, Any] | None:
        batch = Batch()
        raw: Any = self._inner.next(batch)
        if raw is None:
            return None
        for name, how in self._finish:
            batch[name] = finished(batch[name], how)
        return batch, raw

    def _through(self, calls: tuple[BatchCalls, ...]) -> tuple[Any, Any] | None:
        """The next batch, through functions in processes."""
        return self._next() if not calls else calls[-1].next(lambda: self._through(calls[:-1]))

    def _take(self) -> Any:
        core = self._inner
        taken = self._through(self._batch_calls)
        if taken is None:
            return None
        batch, raw = taken
        if self._batch_calls:
            batch = Batch(batch)
        batch._raw = raw
        if self._copy_to is not None:
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
        delivered = batch if self._as is None else self._shaped(batch)
        core.received(raw)
        if self._names != [""]:  # of a blend
            for source, count in enumerate(np.bincount(raw.sources(), minlength=len(self._given))):
                self._given[source] += int(count)
        if self._replaces:
            self._running.report_replaced(core, raw.epoch, raw.size, raw.is_last)
        return delivered

    def _shaped(self, batch: Batch) -> Any:
        """As ``as_`` says. Names that loader.map() took away are an error here."""
        assert self._as is not None
        try:
            return self._as(batch)
        except KeyError as e:
            if self._batch_maps and e.args and e.args[0] not in batch:
                raise UsageError(f"as_: a function of loader.map() left no {e.args[0]!r} in the batch") from e
            raise

    def _to_device(self, batch: Batch) -> None:
        import torch

        def move(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return value.to(self._copy_to, non_blocking=True)
            return type(value)(move(v) for v in value) if isinstance(value, (tuple, list)) else value

        for name, value in batch.items():
            batch[name] = move(value)

    def map(self, function: Callable[[Batch], Any], *, processes: int = 0, timeout: float | None = TIMEOUT) -> Loader:
        """This Loader with ``function(batch)`` called on every batch, in the consumer's thread; what it returns
        (None: the batch as changed in place) is delivered.

        ``processes=n``: in n processes, n batches at a time, before any copy to a device. The function gets a dict of NumPy
        arrays in shared memory: what it changes in place is not copied, what it makes anew once. A process that dies or
        gives nothing for ``timeout`` seconds is a ``DataError``.

        Both share one engine, one position and one ``close()``: use the one that is returned.
        """
        core = self._inner
        out = copy.copy(self)
        if processes:
            if self._on_device:
                raise UsageError(
                    'loader.map(fn, processes=n) gets batches in memory, and device="cuda" puts them on the GPU: use .map() of the fields'
                )
            if self._batch_maps:
                raise UsageError("loader.map: functions in processes come before those that run in the consumer's thread")
            calls = BatchCalls(function, processes, timeout, self._output)
            core.share_memory()
            calls.start()
            self._running.calls.append(calls)
            out._batch_calls = (*self._batch_calls, calls)
            return out
        out._batch_maps = (*self._batch_maps, function)
        return out

    # -- state ----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Where the consumer stands: plain data, equal on every rank, good for any number of them."""
        import json

        return dict(json.loads(self._inner.state()))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state, on any number of ranks. Its order wins over the arguments."""
        core = self._inner
        self._running.stop_calls()
        core.load(state_text(state))
        for line in core.differences():
            tell_once(f"going on from a state: {line}; the state's holds")

    def set_weights(self, weights: Mapping[str, float], *, at_step: int) -> None:
        """Other weights of a blend from step ``at_step`` of the current epoch on. Every rank must
        say so for the same step, and before it reaches that step. What was read for steps before it is kept."""
        core = self._inner
        if self._names == [""]:
            raise UsageError("set_weights is for a blend; this Loader has one source")
        if self._one_epoch:
            raise UsageError("set_weights: exhausted='stop' ends the run where the first weights use a source up; use 'repeat'")
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
        same, because of ``strict=False``. ``"python"``: samples that objects of
        ``hr.from_python`` gave, and seconds in them. ``"cache"``: hits, misses and bytes of ``cache=``; ``"stage"``: how much
        of the copy of ``stage=`` is there. ``"map"``: of each function calls, seconds busy, seconds waiting for the GIL or
        for a process. ``"sources"``, of a blend: of each source the samples that this rank was given, its share of them,
        and ``"epochs"``, how often all ranks together have gone through it.
        """
        core, run = self._inner, self._running
        out: dict[str, Any] = core.stats()
        out.update(run.counts(bool(self._batch_maps)))
        objects = [cost for source in self._sources for cost in source.item_costs()]
        if objects:
            out["python"] = {name: {"samples": samples, "busy_s": busy} for name, samples, busy in objects}
        out["bad_samples"] = core.quarantine()
        if self._names != [""]:
            out["sources"] = source_counts(self._names, self._given, self._draws_of, self.state_dict())
        if self._staged:
            staged_counts: Any = [s.stage_counts() for s in self._staged]
            out["stage"] = {name: sum(c[name] for c in staged_counts) for name in staged_counts[0]}
        if self._cached:
            counts: Any = [s.cache_counts() for s in self._cached]
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


# What notebooks and help() show: the options, not how a blend or a stream is made of the same call.
Loader.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [p for p in inspect.signature(Loader.__init__).parameters.values() if p.name != "self" and not p.name.startswith("_")]
)
