# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while a server keeps everybody waiting."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

import pytest

#: Into several files of a server threads look at a time, and Ctrl-C is the main thread's alone.
AT_ONCE = "hr.storage.__globals__['each_at_once'](lambda n: hr._core.read_range(URL + str(n), 0, 10), range(40), 32)"


@pytest.mark.parametrize(
    ("path", "work"),
    [
        ("x.tar", "hr.open(URL)"),
        ("", "hr.open(URL)"),
        ("{a,b}.tar", "hr.open(URL)"),
        ("x", AT_ONCE),
        ("x.h5", "hr._core.find_array_index([URL], [''], '', None)"),
    ],
)
def test_ctrl_c_ends_the_wait_for_a_server_that_never_answers(path: str, work: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/{path}"
        code = f"import headrace as hr; URL = {url!r}; print(flush=True); {work}"
        opening = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert opening.stdout is not None
        opening.stdout.readline()
        asked, _ = silent.accept()  # it waits now, for up to 300 s
        with asked:
            opening.send_signal(signal.SIGINT)
            try:
                _, errors = opening.communicate(timeout=60)
            finally:
                opening.kill()
        assert "KeyboardInterrupt" in errors
