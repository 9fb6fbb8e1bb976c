# SPDX-License-Identifier: Apache-2.0
"""Functions that numba compiled with a declared signature: the engine's threads call them without the GIL."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from .dtypes import NAMES
from .errors import UsageError

_WRAPPER = """
def wrapper(value, shape, out, out_shape, a, b):
    x = {value}
    try:
        {call}
    except Exception:
        return 1
    return 0
"""


class Compiled(NamedTuple):
    """A function as C calls it: (value, its shape, result, its shape, two numbers drawn) -> 0 where it succeeds."""

    address: int
    takes: tuple[str, int]  # type and number of axes of the value
    dtype: str  # NumPy's name, of the result
    axes: int  # of the result; 0: a number
    keep: Any  # lives as long as the address is called


def compiled(name: str, functions: list[Any]) -> Compiled | None:
    """The function as machine code; None where it is none of numba's, or has no signature yet."""
    numba = sys.modules.get("numba")
    if numba is None or len(functions) != 1:
        return None
    (function,) = functions
    if not isinstance(function, numba.core.dispatcher.Dispatcher) or not function.signatures:
        return None
    types, arguments = numba.types, list(function.signatures[0])
    returns = function.overloads[function.signatures[0]].signature.return_type
    gives_number = isinstance(returns, types.Number)
    expected = 1 if gives_number else 2
    seeded = len(arguments) == expected + 1 and arguments[-1] == types.uint64
    if len(arguments) - seeded != expected or not (gives_number or isinstance(arguments[1], types.Array)):
        raise UsageError(
            f"field '{name}': a function of numba's has the signature (value, out) or (value, out, uint64 seed), with shape= "
            f"declared, or gives a number for (value); this one has {function.signatures[0]}"
        )
    for argument in arguments:
        if isinstance(argument, types.Array) and argument.layout == "F":
            raise UsageError(
                f"field '{name}': numba's signature has {argument}, columns first, and values here lie row by row: write [:, ::1]"
            )
    value, result = arguments[0], returns if gives_number else arguments[1].dtype
    element = value.dtype if isinstance(value, types.Array) else value
    for kind in (element, result):
        if str(kind) not in NAMES:
            raise UsageError(f"field '{name}': numba's {kind} is no type here; the types are {', '.join(NAMES)}")
    axes = value.ndim if isinstance(value, types.Array) else 0
    out_axes = 0 if gives_number else arguments[1].ndim
    seed = ", a" if seeded else ""
    code = _WRAPPER.format(
        value=_array("value", "shape", axes) if axes else "value[0]",
        call=f"out[0] = fn(x{seed})" if gives_number else f"fn(x, {_array('out', 'out_shape', out_axes)}{seed})",
    )
    scope = {"carray": numba.carray, "fn": function}
    exec(code, scope)
    pointer, whole = types.CPointer, types.CPointer(types.int64)
    signature = types.int32(pointer(element), whole, pointer(result), whole, types.uint64, types.uint64)
    made = numba.cfunc(signature)(scope["wrapper"])
    return Compiled(int(made.address), (NAMES[str(element)], axes), str(result), out_axes, (made, function))


def _array(pointer: str, shape: str, axes: int) -> str:
    return f"carray({pointer}, ({', '.join(f'{shape}[{i}]' for i in range(axes))},))"
