# SPDX-License-Identifier: Apache-2.0
"""``.map(fn)`` and ``hr.map({...}, fn)``: what a function asks for, and what it gives, learned from the first sample."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _core
from .compiled import Compiled, compiled
from .dtypes import NAMES, dtype_name
from .errors import DataError, UsageError, remember
from .field import Called, Field, Group
from .processes import Context, Processes
from .processes.calling import ASKED, Chain, WrongResult, names_of, numbers_of
from .processes.calling import said as said_of
from .processes.pool import TIMEOUT
from .requests import Asked, request_of

_NUMPY = {ours: name for name, ours in NAMES.items()}
_HOW = {"text": "text", "json": "text", "key": "text", "bytes": "bytes"}


def map(
    fields: Mapping[str, Field],
    function: Callable[..., Any],
    shape: Any = None,
    dtype: Any = None,
    *,
    processes: int = 0,
    parallel: bool = False,
    timeout: float | None = TIMEOUT,
) -> dict[str, Field]:
    """Several fields through one function: ``fields=hr.map({"image": hr.image("jpg"), "boxes": hr.boxes("json")}, augment)``.

    ``function(image=…, boxes=…)`` is called by keyword, and may ask for more as in ``Field.map``. The names that it
    returns, a dict, take the place of the inputs; a tuple has as many values as there are inputs; one input may go with
    one value. The result is a mapping: it serves as ``fields``, or inside them by ``**``.

    ``shape``, ``dtype``: what it gives, so that it need not be called to learn it: for each name, where there are
    several (``shape={"image": (3, 224, 224), "boxes": (None, 4)}``). ``processes``, ``parallel``, ``timeout``: as in ``Field.map``.
    """
    if not isinstance(fields, Mapping) or not fields or not all(isinstance(f, Field) for f in fields.values()):
        raise UsageError('hr.map takes fields and a function: hr.map({"image": hr.image("jpg"), "label": hr.scalar("cls")}, fn)')
    for name, field in fields.items():
        if field.functions or field.group is not None:
            raise UsageError(f"'{name}' has a function already: call it in the one given to hr.map")
    group = Group(tuple(fields), function, Called(shape, dtype, processes, timeout, bool(parallel)))
    return {name: field._with(group=group) for name, field in fields.items()}


class Result(NamedTuple):
    """One thing that a function gives."""

    how: str  # "array", "text", "bytes", "object"
    dtype: str  # NumPy's name
    shape: list[int | None]


class _InProcess:
    """A chain as the engine's threads call it."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain

    def __call__(self, values: list[Any], index: int, epoch: int, key: str, a: int, b: int) -> list[Any]:
        return [
            ((len(r),), r) if isinstance(r, bytes) else (r.shape, r.reshape(-1).view(np.uint8))
            for r in self.chain(values, index, epoch, key, a, b)
        ]


def said(error: BaseException) -> tuple[bool, str]:
    """Whether a function says that its data are bad, and a sentence; called from the bindings."""
    remember(error)
    return said_of(error)


def map_cost(costs: Sequence[_core.MapCost], processes: int) -> dict[str, Any]:
    """What a function cost, over all sources, for ``loader.stats()``."""
    waited = sum(c.gil_ns for c in costs) * 1e-9
    out: dict[str, Any] = {
        "calls": sum(c.calls for c in costs),
        "busy_s": sum(c.busy_ns for c in costs) * 1e-9,
        "wait_gil_s": waited,
    }
    if any(c.in_processes for c in costs):
        out |= {"wait_gil_s": 0.0, "wait_process_s": waited, "processes": processes}
    return out


# -- what a function asks for ------------------------------------------------------------------------


def asks_of(function: Any, taken: Sequence[str] = ()) -> dict[str, str]:
    """The parameters that are no values: {parameter: "ctx", "rng", "key", "index" or "epoch"}."""
    code = getattr(function, "func", function)  # of a partial
    if inspect.isbuiltin(code) or inspect.isclass(code):
        return {}
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return {}
    bound = getattr(function, "keywords", {}) if code is not function else {}
    out = {}
    for i, p in enumerate(parameters):
        if p.name in taken or p.name in bound or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY):
            continue
        if (i == 0 and not taken) or (
            p.default is not p.empty and p.default is not None
        ):  # the value; something else of that name
            continue
        if p.name == "ctx" or p.annotation is Context or (isinstance(p.annotation, str) and p.annotation.endswith("Context")):
            out[p.name] = "ctx"
        elif p.name in ASKED:
            out[p.name] = p.name
    return out


# -- what it gives ---------------------------------------------------------------------------------


def _first_good(source: _core.Source, inputs: Sequence[tuple[str, Field]], alone: bool) -> tuple[list[Any], int]:
    """The values of the first sample that is no bad data, and its number. Of one field of several values the first."""
    # Packing and groups are of what the function gives.
    plain = [request_of(n, f, packing=None, pad=None, **({"joint": "", "leads": False} if alone else {})) for n, f in inputs]
    dataset = _core.Dataset.make(source, plain)
    last = min(source.size, 64) - 1
    for n in range(last + 1):
        try:
            values = dataset.at(n, [_HOW.get(f.what, "array") for _, f in inputs])[: len(inputs)]
        except DataError:
            if n == last:
                raise
            continue
        if alone and isinstance(values[0], list):
            values = values[0][:1]
        if values and (not alone or values[0] is not None):  # optional, and this sample lacks it
            return values, n
    raise UsageError(f"map() must see a value to learn what it gives, and the first {last + 1} samples have none")


def _result_of(name: str, value: Any, varies: bool) -> Result:
    if isinstance(value, (str, bytes)):
        return Result("text" if isinstance(value, str) else "bytes", "uint8", [])
    if value is None:
        raise UsageError(f"field '{name}': the function given to map() returned None; does it lack a return?")
    try:
        array = numbers_of(value)
    except WrongResult as e:
        raise UsageError(f"field '{name}': the function given to map() {e}") from None
    except Exception:
        array = np.empty(0, object)
    if array.dtype == np.bool_:
        array = array.astype(np.uint8)
    if array.dtype.name in NAMES:
        return Result("array", array.dtype.name, [None] * array.ndim if varies else list(array.shape))
    if not hasattr(value, "dtype"):
        try:
            pickle.dumps(value, 5)
        except Exception as e:
            raise UsageError(
                f"field '{name}': map() gave {type(value).__name__}, which cannot go into a batch ({e}); "
                "numbers, arrays, str, bytes and what can be pickled are understood"
            ) from None
        return Result("object", "uint8", [])
    if "bfloat16" in str(value.dtype):
        raise UsageError(
            f"field '{name}': map() gave {type(value).__name__} of {value.dtype}, which is no array of NumPy's; convert it with .float()"
        )
    raise UsageError(
        f"field '{name}': map() gave {type(value).__name__} of {value.dtype}, which is no array for a batch; "
        f"the types are {', '.join(NAMES.values())}"
    )


def _declared(name: str, shape: Any, dtype: Any) -> Result:
    if shape is None or dtype is None:
        raise UsageError(f"field '{name}': map(shape=…, dtype=…) are given together: shape=(3, 224, 224), dtype='f32'")
    ours = dtype_name(dtype)
    if ours not in _NUMPY or ours == "bf16":  # NumPy has no bfloat16
        types = ", ".join(n for n in _NUMPY if n != "bf16")
        raise UsageError(f"field '{name}': dtype={dtype!r}: there is no such type here; the types are {types}")
    try:
        axes = [None if n is None or n == -1 else int(n) for n in ([shape] if isinstance(shape, int) else shape)]
    except (TypeError, ValueError):
        raise UsageError(f"field '{name}': shape={shape!r}: whole numbers are wanted, None where they vary") from None
    return Result("array", _NUMPY[ours], axes)


class _Learned(NamedTuple):
    names: list[str] | None  # of several results
    results: list[Result]
    is_declared: bool = False


def _declared_results(name: str, called: Called) -> _Learned | None:
    if called.shape is None and called.dtype is None:
        return None
    if not isinstance(called.shape, Mapping):
        return _Learned(None, [_declared(name, called.shape, called.dtype)], True)
    if called.named:
        return _Learned(
            [name + more for more in called.shape],
            [_declared(name, called.shape[m], called.dtype[m]) for m in called.shape],
            True,
        )
    types = called.dtype if isinstance(called.dtype, Mapping) else dict.fromkeys(called.shape, called.dtype)
    if set(types) != set(called.shape):
        raise UsageError(f"field '{name}': shape= names {sorted(called.shape)} and dtype= names {sorted(types)}")
    return _Learned(list(called.shape), [_declared(n, s, types[n]) for n, s in called.shape.items()], True)


def _of_compiled(name: str, machine: Compiled, called: Called) -> _Learned:
    if called.dtype is not None and _NUMPY.get(dtype_name(called.dtype)) != machine.dtype:
        raise UsageError(f"field '{name}': dtype={called.dtype!r}, and numba's signature gives {machine.dtype}: leave dtype= out")
    if machine.axes == 0:
        return _Learned(None, [Result("array", machine.dtype, [])])
    if called.shape is None:
        raise UsageError(f"field '{name}': a function of numba's needs the shape of its result: .map(fn, shape=(3, 224, 224))")
    result = _declared(name, called.shape, machine.dtype)
    if None in result.shape or len(result.shape) != machine.axes:
        raise UsageError(f"field '{name}': shape={called.shape!r}: numba's signature wants {machine.axes} axes, each a number")
    return _Learned(None, [result])


def _call_once(name: str, chain: Chain, source: _core.Source, values: list[Any], n: int) -> Any:
    try:
        return chain.raw(values, Context(n, 0, str(source.key(n)), (0, 0)))
    except DataError:
        raise
    except Exception as e:
        raise UsageError(f"field '{name}': the function given to map() failed on sample {n}: {e!r}") from e


def _varies(field: Field | None) -> bool:
    return field is not None and field.packing is not None and not (field.many and field.packing == "ragged")


def _learn(name: str, inputs: Sequence[tuple[str, Field]], chain: Chain, source: _core.Source, alone: bool) -> _Learned:
    values, n = _first_good(source, inputs, alone)
    result = _call_once(name, chain, source, values, n)
    names = names_of(result)
    fields = dict(inputs)
    if names is None:
        if not alone and len(inputs) > 1:
            raise UsageError(
                f"hr.map of {name}: the function returned {type(result).__name__} for {len(inputs)} fields; "
                "a dict of what it gives, or a tuple of as many values, is wanted"
            )
        return _Learned(None, [_result_of(name, result, _varies(inputs[0][1]))])
    parts = list(result.values()) if isinstance(result, dict) else list(result)
    if isinstance(names, int):
        if not alone and names != len(inputs):
            raise UsageError(f"hr.map of {name}: the function returned {names} values for {len(inputs)} fields; return a dict")
        names = [f"{name}_{i}" for i in range(names)] if alone else [n for n, _ in inputs]
    if not parts:
        raise UsageError(f"field '{name}': the function given to map() returned an empty {type(result).__name__}")
    for given in names:
        if not isinstance(given, str):
            raise UsageError(f"field '{name}': the function given to map() named a result {given!r}; names are texts")
    return _Learned(names, [_result_of(n, p, _varies(fields.get(n))) for n, p in zip(names, parts)])


# -- what is asked of the engine ----------------------------------------------------------------------


def _made(
    name: str,
    functions: list[Any],
    called: Called,
    chain: Chain,
    takes: list[tuple[str, bool]],
    learned: _Learned,
    pool: Processes,
    machine: Compiled | None = None,
) -> _core.MapFunction:
    results = [(r.how, NAMES[r.dtype], list(r.shape)) for r in learned.results]
    chain.spec["splits"] = learned.names
    chain.spec["results"] = [(r.how, r.dtype, learned.is_declared) for r in learned.results]
    chain = Chain(functions, chain.spec)
    target, core, address, accepted = 0, None, 0, ("", 0)
    keep: Any = _InProcess(chain)
    if machine is not None:
        keep, address, accepted = machine.keep, machine.address, machine.takes
    if called.processes:
        shapes = [None if None in r.shape or r.how != "array" else r.shape for r in learned.results]
        what = " and ".join(getattr(f, "__name__", repr(f)) for f in functions)
        spec = {**chain.spec, "takes": takes, "shapes": shapes}
        target = pool.add("map", functions, spec, f"field '{name}': {what}", called.processes, called.timeout)
        core = pool.core
    return _core.MapFunction(
        function=keep,
        name=name,
        inputs=takes,
        results=results,
        pool=core,
        target=target,
        address=address,
        takes=accepted,
        turn=None if called.parallel else pool.turn,
    )


def _parsed(field: Field, source: _core.Source) -> str | None:
    """What a function's input is made from: "json", "object" of a Python object, None of what the engine gives as it is."""
    if field.finish == "json":
        return "json"
    return "object" if field.finish == "bytes" and field.field in source.objects else None


def ask_one(name: str, field: Field, source: _core.Source, pool: Processes) -> list[Asked]:
    """A field with functions: one output, or those that they return."""
    spec = {
        "inputs": [("", _parsed(field, source))],
        "asks": [asks_of(f) for f in field.functions],
        "splits": None,
        "results": [],
    }
    chain = Chain(field.functions, spec)
    machine = None if field.called.processes else compiled(name, field.functions)
    if machine is not None:
        learned = _of_compiled(name, machine, field.called)
    else:
        learned = _declared_results(name, field.called) or _learn(name, [(name, field)], chain, source, alone=True)
    several = learned.names is not None
    if several and field.many:
        raise UsageError(f"field '{name}': several results of a function do not go with many=True; return one array")
    mapped = _made(name, field.functions, field.called, chain, [(field.what, False)], learned, pool, machine)
    if several:
        return _several([(name, field)], mapped, learned, spec)
    result = learned.results[0]
    how = "array" if field.packing in ("padded", "ragged") else result.how
    return [Asked(request_of(name, field, map=mapped), how, mapped.cost, _wants_key(spec))]


def ask_group(group: Group, fields: Mapping[str, Field], source: _core.Source, pool: Processes) -> list[Asked]:
    """Fields that go through one function together."""
    missing = [n for n in group.names if n not in fields or fields[n].group is not group]
    if missing:
        raise UsageError(f"hr.map of {', '.join(group.names)}: '{missing[0]}' was taken out of the fields; give all of them")
    inputs = [(n, fields[n]) for n in group.names]
    spec = {
        "inputs": [(n, _parsed(f, source)) for n, f in inputs],
        "asks": [asks_of(group.function, group.names)],
        "splits": None,
        "results": [],
    }
    chain = Chain([group.function], spec)
    name = ",".join(group.names)
    learned = _declared_results(name, group.called) or _learn(name, inputs, chain, source, alone=False)
    takes = [(f.what, f.many) for _, f in inputs]
    mapped = _made(name, [group.function], group.called, chain, takes, learned, pool)
    return _several(inputs, mapped, learned, spec)


def _several(
    inputs: Sequence[tuple[str, Field]], mapped: _core.MapFunction, learned: _Learned, spec: dict[str, Any]
) -> list[Asked]:
    """Columns that nobody sees for the inputs, then the results, which the first of them makes."""
    out = []
    for i, (name, field) in enumerate(inputs):
        request = request_of(f"{name} (into map)", field, packing=None, pad=None, map=mapped, role="input", number=i)
        out.append(Asked(request, "hidden", None, _wants_key(spec)))
    fields = dict(inputs)
    names = [inputs[0][0]] if learned.names is None else learned.names
    # The other results of a function whose field is packed are packed likewise, and filled up with 0.
    other = inputs[0][1]._with(pad_value=0) if inputs[0][1].called.named else Field("key", "")
    for i, (name, result) in enumerate(zip(names, learned.results)):
        like = fields.get(name, other)
        output = Field("key", "")._with(packing=like.packing, pad_value=like.pad_value)
        how = "array" if output.packing in ("padded", "ragged") else result.how
        out.append(
            Asked(request_of(name, output, map=mapped, role="output", number=i), how, mapped.cost if i == 0 else None, False)
        )
    return out


def _wants_key(spec: dict[str, Any]) -> bool:
    return any(what in ("ctx", "key") for asks in spec["asks"] for what in asks.values())
