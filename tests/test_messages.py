# SPDX-License-Identifier: Apache-2.0
"""Messages go to the logger "headrace"; to stderr only where nobody listens."""

from __future__ import annotations

import subprocess
import sys

import pytest


def in_a_new_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


SAY = """
import logging, sys
from headrace.messages import tell_once
"""


@pytest.mark.parametrize(
    ("code", "err"),
    [
        ('tell_once("a"); tell_once("a"); tell_once("b", logging.INFO)', "headrace: a\nheadrace: b\n"),
        ('logging.basicConfig(format="%(name)s|%(message)s"); tell_once("a"); tell_once("b", logging.INFO)', "headrace|a\n"),
        ('logging.basicConfig(level="INFO", format="mine %(message)s"); tell_once("b", logging.INFO)', "mine b\n"),
        (
            'tell_once("a"); logging.basicConfig(format="mine %(message)s"); tell_once("b"); tell_once("c", logging.INFO)',
            "headrace: a\nmine b\n",
        ),
        ('logging.getLogger("headrace").setLevel("ERROR"); tell_once("a")', ""),
        ('logging.getLogger("headrace").addHandler(logging.NullHandler()); tell_once("a")', ""),
    ],
)
def test_messages_go_where_the_program_wants_them(code: str, err: str) -> None:
    ended = in_a_new_python(SAY + code)
    assert ended.returncode == 0 and ended.stderr == err


def test_nothing_is_configured_at_import() -> None:
    code = "import logging, headrace\nprint(logging.getLogger().handlers, logging.getLogger('headrace').handlers)"
    assert in_a_new_python(code).stdout == "[] []\n"


def test_a_star_import_leaves_the_builtins_alone() -> None:
    code = "from headrace import *\nimport io\nprint(open is io.open, bytes, Loader.__name__)\nimport headrace as hr\nprint(hr.open, hr.bytes, hr.json)"
    ended = in_a_new_python(code)
    assert ended.stdout.startswith("True <class 'bytes'> Loader\n"), ended.stderr
    assert all(f"<function {name}" in ended.stdout for name in ("open", "bytes_", "json_"))
