# SPDX-License-Identifier: Apache-2.0
"""Words that users of other loaders type by habit: taken where they mean one thing here, answered with ours where not.

``Loader(num_workers=4, drop_last=True)`` is ``Loader(threads=4, tail="drop")``. The signatures that people and type
checkers see stay headrace's own: ``understood`` looks at a call before the function does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from .errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

#: Words that a Loader does without, and the value of each that asks for nothing.
_NOTHING: dict[str, tuple[Any, ...]] = {
    "pin_memory": (False, None),
    "pin_memory_device": ("", None),
    "collate_fn": (None,),
    "sampler": (None,),
    "batch_sampler": (None,),
    "prefetch_factor": (None,),
    "worker_init_fn": (None,),
    "generator": (None,),
    "timeout": (0, 0.0, None),
    "multiprocessing_context": (None,),
    "in_order": (True,),
    "persistent_workers": (True, False),  # threads live as long as the Loader
    "transform": (None,),
    "buffer_size": (None,),
}

#: What to write instead.
_ANSWERS = {
    "pin_memory": 'say device="cuda": batches are then copied to the GPU for you',
    "pin_memory_device": 'say device="cuda:0"',
    "collate_fn": "batches are made by the engine: say .padded(), .ragged() or .list() on a field whose sizes differ, "
    "as_=('image', 'label') for tuples, and as_=function for a function of whole batches",
    "sampler": "say shuffle=True or False; choose samples by a view: ds[numbers], ds.where(…), ds.balance(…); ranks share "
    "an epoch by themselves, without a DistributedSampler",
    "batch_sampler": "say batch_size and shuffle; choose samples by a view: ds[numbers], ds.where(…), ds.balance(…)",
    "prefetch_factor": "headrace reads ahead as far as memory_budget allows: say memory_budget='2GiB'",
    "worker_init_fn": "there are no worker processes to prepare: draws depend on seed=, and functions in .map() run in this "
    "process",
    "generator": "the order depends on a number: say seed=42",
    "timeout": "headrace has none: a read that fails is an error, and loader.stats() tells what it waits for",
    "multiprocessing_context": "headrace has threads and no worker processes: leave it out",
    "in_order": "batches always come in the order of the plan: leave it out",
    "transform": "say what to make of each field: fields={'image': hr.image('jpg').resize((224, 224))}; a function of yours "
    "goes into .map(function)",
    "buffer_size": 'shuffle="pool" mixes within a window of bytes: say shuffle_window="1GiB"',
}

#: The same under another name.
_SAME = {"num_threads": "threads", "shuffle_seed": "seed", "dataset": "source", "data_source": "source"}


def _put(options: dict[str, Any], habit: str, name: str, value: Any) -> None:
    if name in options and options[name] != value:
        raise UsageError(f"{habit} is headrace's {name}, and both are given: leave {habit} out")
    options[name] = value


def translated(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a Loader in headrace's words."""
    out = dict(options)
    for habit in options:
        if habit in _SAME:
            _put(out, habit, _SAME[habit], out.pop(habit))
        elif habit == "drop_last":
            value = out.pop(habit)
            if not isinstance(value, bool):
                raise UsageError(f'drop_last is True or False, not {value!r}; headrace says tail="drop", "pad" or "keep"')
            _put(out, habit, "tail", "drop" if value else "keep")
        elif habit == "num_workers":
            workers = out.pop(habit)
            if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:
                raise UsageError(f"num_workers is a number, not {workers!r}; headrace says threads=4")
            if workers > 0:  # 0: no worker processes, and there never are
                _put(out, habit, "threads", workers)
        elif habit in _NOTHING:
            value = out.pop(habit)
            if not any(value is nothing or (type(value) is type(nothing) and value == nothing) for nothing in _NOTHING[habit]):
                raise UsageError(f"Loader has no {habit}: {_ANSWERS[habit]}")
    return out


def understood(init: F) -> F:
    """``Loader.__init__``, called with the words of ``translated``."""

    @functools.wraps(init)
    def call(self: Any, *args: Any, **options: Any) -> None:
        init(self, *args, **translated(options))

    return call  # type: ignore[return-value]


def renamed(**words: str) -> Callable[[F], F]:
    """Of a function whose options had other names: ``views=2`` is ``variants=2``."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            for old, new in words.items():
                if old in options:
                    _put(options, old, new, options.pop(old))
            return function(*args, **options)

        return call  # type: ignore[return-value]

    return decorate


def refuse_source(source: Any) -> None:
    """Raises for what is no path and no data set of headrace's, but can be told what to do with."""
    module = type(source).__module__.partition(".")[0]
    bases = {f"{c.__module__.partition('.')[0]}.{c.__name__}" for c in type(source).__mro__}
    if {"torch.Dataset", "torch.IterableDataset"} & bases:
        raise UsageError(
            f"{type(source).__name__} is a Dataset of PyTorch's: hr.from_torch(dataset) takes it as it is; the files that it reads "
            "(a folder, a list of paths, a CSV), with its transforms as fields, are read without Python, and faster"
        )
    if "torch.DataLoader" in bases:
        raise UsageError("a DataLoader is no source: give the files that its data set reads, hr.Loader('folder', batch_size=32)")
    if module == "datasets":
        raise UsageError(
            "a data set of Hugging Face's: hr.from_python(dataset) takes it, and reads its Arrow files where it is made of such"
        )
    if module in ("numpy", "torch", "jax", "pandas", "polars", "pyarrow", "tensorflow"):
        raise UsageError(f"this is a {type(source).__name__} in memory: hr.from_python takes it as it is")
    if isinstance(source, Iterable) and not isinstance(source, (str, bytes)):
        wrong = next((s for s in source if not isinstance(s, str) and not hasattr(s, "__fspath__")), None)
        if wrong is not None:
            raise UsageError(f"a list of sources holds paths; this one holds {wrong!r}")
