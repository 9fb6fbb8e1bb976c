# SPDX-License-Identifier: Apache-2.0
"""Python's methods for the steps of pictures, from the table that the engine walks: names, parameters, defaults, texts."""

from __future__ import annotations

import textwrap
from typing import Any

from headrace import _core

# Written by hand: it takes a pair, or statistics, for its two parameters.
BY_HAND = {"normalize"}
# In another order than the engine takes them: that of torchvision.
ORDER = {"random_rotation": ("degrees", "interpolation", "center", "fill")}
TYPES = {
    "number": "float",
    "integer": "int",
    "flag": "bool",
    "text": "str",
    "numbers": "float | Sequence[float]",
    "integers": "int | Sequence[int]",
}
HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""The steps of pictures. Made by ./dev docs from the engine's table (src/transform): change them there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .field import Field, Self


class ImageSteps(Field):
    """What follows ``hr.image``: each method returns a new field with one step more."""
'''


def _value(value: Any) -> str:
    """A default as Python writes it; a list of one is a number, an empty one None."""
    if isinstance(value, list):
        if len(value) < 2:
            return _value(value[0]) if value else "None"
        return f"({', '.join(_value(v) for v in value)})"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float):
        return _fraction(value)
    return repr(value)


def _fraction(value: float) -> str:
    for name, known in (("3 / 4", 3 / 4), ("4 / 3", 4 / 3)):
        if value == known:
            return name
    return repr(int(value)) if value == int(value) and abs(value) < 1e9 else repr(value)


def _parameter(name: str, kind: str, default: Any, words: list[str]) -> str:
    shown = "Any" if name == "dtype" else TYPES[kind] + (" | str" if words else "")
    if default is None:
        return f"{name}: {shown}"
    may_be_none = " | None" if isinstance(default, list) else ""  # None: left out
    return f"{name}: {shown}{may_be_none} = {_value(default)}"


def _method(name: str, doc: str, parameters: list[Any]) -> str:
    order = ORDER.get(name)
    if order is not None:
        parameters = sorted(parameters, key=lambda p: order.index(p[0]))
    taken = [_parameter(*p) for p in parameters]
    call = ", ".join([f'"{name}"', *(f"{p[0]}={p[0]}" for p in parameters)])
    lines = [f"    def {name}(self: Self, {', '.join(taken)}) -> Self:", *_docstring(doc), f"        return self._step({call})"]
    return "\n".join(lines)


def _docstring(doc: str) -> list[str]:
    closing = '\n"""' if "\n" in doc or doc.endswith('"') else '"""'
    return textwrap.indent(f'"""{doc}{closing}', " " * 8, lambda line: bool(line.strip())).splitlines()


def text() -> str:
    methods = [_method(name, doc, parameters) for name, doc, parameters in _core.steps() if name not in BY_HAND]
    return HEAD + "\n" + "\n\n".join(methods) + "\n"
