# SPDX-License-Identifier: Apache-2.0
"""The methods of hr::Field for the steps of pictures, and what they may be given, from the table that the engine walks."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from headrace import _core
from make_steps import ORDER

WIDTH = 100
HEAD = """// SPDX-License-Identifier: Apache-2.0
//
// Made by ./dev docs from the engine's table (src/transform): change it there.
"""
TYPES = {
    "number": "double",
    "integer": "int64_t",
    "flag": "bool",
    "text": "std::string",
    "numbers": "Numbers",
    "integers": "Numbers",
}


def _type(kind: str, words: list[str]) -> str:
    return "NumbersOrWord" if words else TYPES[kind]


def _number(value: float) -> str:
    for text, known in (("3.0 / 4", 3 / 4), ("4.0 / 3", 4 / 3)):
        if value == known:
            return text
    return repr(int(value)) if value == int(value) and abs(value) < 1e9 else repr(value)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return _number(value[0]) if len(value) == 1 else "{" + ", ".join(_number(v) for v in value) + "}"
    return _number(value)


def _comment(doc: str, indent: str) -> list[str]:
    """The Python docstring as C++ writes it; paragraphs stay, lines are filled anew."""
    out: list[str] = []
    for paragraph in re.split(r"\n\s*\n", doc.replace("``", "`").replace("hr.IMAGENET", "hr::kImageNet").strip()):
        out += textwrap.wrap(" ".join(paragraph.split()), WIDTH - len(indent) - 3)
    return [f"{indent}// {line}" for line in out]


def _steps() -> list[tuple[str, str, list[Any], list[Any]]]:
    """(name, doc, what must be given, what may be)."""
    out = []
    for name, doc, parameters in _core.steps():
        order = ORDER.get(name)
        if order is not None:
            parameters = sorted(parameters, key=lambda p: order.index(p[0]))
        out.append((name, doc, [p for p in parameters if p[2] is None], [p for p in parameters if p[2] is not None]))
    return out


def _struct(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_")) + "Options"


def options() -> str:
    lines = [HEAD.rstrip(), "#pragma once", "", "#include <cstdint>", "#include <string>", "", '#include "headrace/value.h"', ""]
    lines += ["namespace hr {", "", "// What may be left out of the steps in headrace/field.h; an empty list is left out too."]
    for name, _, _, may in _steps():
        if len(may) < 2:
            continue
        lines += ["", f"struct {_struct(name)} {{"]
        for parameter, kind, default, words in may:
            lines.append(f"  {_type(kind, words)} {parameter} = {_value(default)};")
        lines.append("};")
    return "\n".join([*lines, "", "}  // namespace hr", ""])


def _argument(parameter: str, kind: str, words: list[str], default: Any = None) -> str:
    kind = _type(kind, words)
    shown = f"const {kind}& {parameter}" if kind in ("Numbers", "NumbersOrWord", "std::string") else f"{kind} {parameter}"
    return shown if default is None else f"{shown} = {_value(default)}"


def _method(name: str, doc: str, must: list[Any], may: list[Any]) -> list[str]:
    taken = [_argument(p, kind, words) for p, kind, _, words in must]
    given = [f'{{"{p}", {p}}}' for p, *_ in must]
    if len(may) == 1:
        taken.append(_argument(may[0][0], may[0][1], may[0][3], may[0][2]))
        given.append(f'{{"{may[0][0]}", {may[0][0]}}}')
    elif may:
        taken.append(f"const {_struct(name)}& with = {{}}")
        given += [f'{{"{p}", with.{p}}}' for p, *_ in may]
    return [*_comment(doc, "  "), *_signature(name, taken), *_call(name, given), "  }"]


def _call(name: str, given: list[str]) -> list[str]:
    if not given:
        return [f'    return step("{name}");']
    one = f'    return step("{name}", given({{{", ".join(given)}}}));'
    if len(one) <= WIDTH:
        return [one]
    return [f'    return step("{name}", given({{', *(f"        {g}," for g in given[:-1]), f"        {given[-1]}}}));"]


def _signature(name: str, taken: list[str]) -> list[str]:
    one = f"  Field {name}({', '.join(taken)}) const {{"
    if len(one) <= WIDTH:
        return [one]
    pad = " " * len(f"  Field {name}(")
    return [f"  Field {name}({taken[0]},", *(f"{pad}{t}," for t in taken[1:-1]), f"{pad}{taken[-1]}) const {{"]


def methods() -> str:
    lines = [HEAD.rstrip(), "// Within struct Field."]
    for step in _steps():
        lines += ["", *_method(*step)]
    return "\n".join(lines) + "\n"
