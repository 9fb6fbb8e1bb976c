# SPDX-License-Identifier: Apache-2.0
"""Jinja as chat templates use it: a sandbox, ``{% generation %}``, and the few functions that templates call."""

from __future__ import annotations

import json
import threading
from datetime import datetime
from typing import Any

from ..errors import UsageError

try:
    import jinja2
    import jinja2.ext
    from jinja2 import nodes
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError:
    raise UsageError("chat templates need the package jinja2: pip install jinja2") from None


class _Generation(jinja2.ext.Extension):
    """``{% generation %} … {% endgeneration %}``: what the assistant says."""

    tags = {"generation"}  # noqa: RUF012  # as jinja2 declares it

    def parse(self, parser: Any) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_answer"), [], [], body).set_lineno(line)

    def _answer(self, caller: Any) -> str:
        text = str(caller())
        _now.answers.append(text)
        return text


class _Now(threading.local):
    """The answers of the chat that this thread is writing."""

    answers: list[str]


_now = _Now()


class Compiled:
    """Thread-safe."""

    def __init__(self, template: Any) -> None:
        self._template = template

    def render(self, **given: Any) -> tuple[str, list[tuple[int, int]]]:
        """The text, and from where to where the assistant speaks in it."""
        _now.answers = []
        parts: list[str] = []
        spans: list[tuple[int, int]] = []
        at = 0
        for piece in self._template.generate(**given):
            if len(_now.answers) > len(spans):
                # Jinja writes what a block gives as one piece, unless the block is in a macro.
                if len(_now.answers) > len(spans) + 1 or piece != _now.answers[-1]:
                    raise UsageError("{% generation %} stands in a macro or a filter of the chat template; write it outside")
                spans.append((at, at + len(piece)))
            parts.append(piece)
            at += len(piece)
        if len(_now.answers) > len(spans):
            raise UsageError("{% generation %} stands in a macro or a filter of the chat template; write it outside")
        return "".join(parts), spans


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


def _tojson(value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def compiled(text: str) -> Compiled:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    try:
        return Compiled(environment.from_string(text))
    except jinja2.TemplateError as e:
        raise UsageError(f"the chat template is no Jinja: {e}") from None
