# SPDX-License-Identifier: Apache-2.0
"""What happens to a process around a loader: its end, Ctrl-C, fork.  Nothing may hang."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from support import Data, run_python

SLOW = 20  # seconds; far more than any of these takes, far less than a hang

HEAD = """
import os, sys, threading
import headrace as hr
def make(**options):
    fields = {"image": hr.image("jpg").random_resized_crop(32), **options.pop("more", {})}
    return hr.Loader(sys.argv[1], 4, fields, output="numpy", threads=2, **options)
"""


def run(code: str, source: str, **options: object) -> subprocess.CompletedProcess[str]:
    return run_python(HEAD + code, source, timeout=SLOW, **options)


def test_a_script_may_end_with_a_running_loader(data: Data) -> None:
    assert run("loader = make(); next(iter(loader))", data.tar).returncode == 0


def test_a_script_may_end_with_an_epoch_that_was_started_only(data: Data) -> None:
    assert run("loader = make(); it = loader.epochs(1000); next(it)", data.tar).returncode == 0


def test_a_script_may_end_with_a_running_loader_that_calls_python(data: Data) -> None:
    code = "loader = make(more={'n': hr.scalar('cls').map(lambda v: sum(range(20000)) + v)}); next(iter(loader))"
    for _ in range(3):
        assert run(code, data.tar).returncode == 0


def test_a_script_may_end_with_a_loader_in_a_cycle(data: Data) -> None:
    assert run("loader = make(); loader.me = loader; next(iter(loader)); del loader", data.tar).returncode == 0


def test_sys_exit_in_the_loop_keeps_its_code(data: Data) -> None:
    assert run("for _ in make(): sys.exit(3)", data.tar).returncode == 3


def test_an_exception_in_the_loop_ends_the_script_with_its_traceback(data: Data) -> None:
    ended = run("for _ in make(): 1 / 0", data.tar)
    assert ended.returncode == 1 and "ZeroDivisionError" in ended.stderr


# Not strict: it is a race, and five runs in a row may go well.
def test_a_loader_in_a_thread_does_not_hold_the_end(data: Data) -> None:
    code = """
loader = make()
def forever():
    try:
        while True:
            for _ in loader: pass
    except hr.UsageError: pass   # closed at the end of the interpreter
threading.Thread(target=forever, daemon=True).start()
"""
    for _ in range(5):  # it is a matter of microseconds
        ended = run(code, data.tar)
        assert ended.returncode == 0, ended.stderr


def test_nothing_is_printed_by_a_run_without_trouble(data: Data) -> None:
    ended = run("with make() as loader: list(loader.epoch(0)); print(loader.stats()['consumer']['batches'])", data.tar)
    assert ended.stderr == "" and ended.stdout == "13\n"


WAITING = """
release, told = threading.Event(), threading.Event()
calls = 0
def blocks(v):
    global calls
    calls += 1
    if calls > 1:
        if not told.is_set():
            told.set(); print("waiting", flush=True)
        release.wait()
    return v
loader = make(more={"n": hr.scalar("cls").map(blocks)})
try:
    next(iter(loader))
except KeyboardInterrupt:
    print("interrupted", flush=True)
    release.set()
"""


def test_control_c_reaches_a_consumer_that_waits(data: Data) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", HEAD + WAITING, data.tar], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None and child.stdout.readline() == "waiting\n"
        start = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        assert time.monotonic() - start < 5
        assert child.wait(SLOW) == 0
    finally:
        child.kill()
        child.communicate()


def test_control_c_in_a_loop_ends_it_and_the_state_is_good(data: Data) -> None:
    code = """
import json
loader = make(tail="keep")
seen = []
try:
    for batch in loader.epoch(0):
        seen += batch.indices.tolist()
        if len(seen) == 20: os.kill(os.getpid(), 2)
except KeyboardInterrupt:
    pass
state = loader.state_dict()
again = make(tail="keep"); again.load_state_dict(state)
rest = [i for b in again for i in b.indices.tolist()]
print(sorted(seen + rest) == list(range(53)))
"""
    ended = run(code, data.tar)
    assert ended.stdout == "True\n", ended.stderr


def test_control_c_ends_a_script_with_its_own_code(data: Data) -> None:
    ended = run("for b in make().epoch(0): os.kill(os.getpid(), 2)", data.tar)
    assert ended.returncode in (-signal.SIGINT, 130) and "KeyboardInterrupt" in ended.stderr, (ended.returncode, ended.stderr)


# -- fork --------------------------------------------------------------------------------------------

FORK = """
import signal
def in_child(use):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        signal.alarm(5)     # ends a child that hangs
        code = 9
        try:
            code = use()
        except BaseException as e:
            print(type(e).__name__, e, flush=True)
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
def says_fork(what):
    def use():
        try:
            what()
        except hr.UsageError as e:
            return 0 if "fork" in str(e) else 4
        return 5
    return use
"""


@pytest.mark.parametrize("what", ["next(it)", "loader.epoch(1)", "next(iter(loader))", "list(loader.epochs(3))"])
def test_a_forked_child_that_uses_the_loader_gets_a_clear_error(data: Data, what: str) -> None:
    code = f"loader = make(); it = loader.epoch(0); next(it); assert in_child(says_fork(lambda: {what})) == 0; next(it)"
    ended = run(FORK + code, data.tar)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    "what",
    [
        "loader.close()",
        "del loader",
        "len(loader)",
        "loader.state_dict()",
        "loader.stats()",
        "loader.quarantine",
    ],
)
def test_a_forked_child_does_not_hang(data: Data, what: str) -> None:
    """Whatever the parent's threads were doing at that moment; a clear error is as good as an answer."""
    code = f"""
loader = make()
it = (b for e in range(10**6) for b in loader.epoch(e))
def use():
    global loader
    try:
        {what}
    except hr.UsageError as e:
        return 0 if "fork" in str(e) else 4
    return 0
for _ in range(60):
    next(it)
    assert in_child(use) == 0
"""
    ended = run(FORK + code, data.tar)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_forked_child_ends_as_usual(data: Data) -> None:
    """Through sys.exit(), with exit handlers, while the parent's loader runs on."""
    code = """
loader = make(); it = loader.epoch(0); next(it)
pid = os.fork()
if pid == 0: sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert len(list(it)) == 12
"""
    ended = run(code, data.tar)
    assert ended.returncode == 0, ended.stderr


def test_a_forked_child_may_make_its_own_loader(data: Data) -> None:
    code = """
loader = make(); it = loader.epoch(0); want = [b.indices.tolist() for b in it]; it = loader.epoch(0); next(it)
def use():
    mine = make()
    return 0 if [b.indices.tolist() for b in mine.epoch(0)] == want else 7
for _ in range(5): assert in_child(use) == 0
assert len(list(it)) == 12
"""
    ended = run(FORK + code, data.tar)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_data_set_works_in_forked_children_of_a_running_loader(data: Data) -> None:
    """A loader reads from the same open data set while children are forked: no lock may be taken along."""
    code = """
ds = hr.open(sys.argv[1])
loader = hr.Loader(ds, 1, {"jpg": hr.bytes("jpg")}, output="numpy", threads=2)
it = (b for e in range(10**6) for b in loader.epoch(e))
def use():
    return 0 if len(ds[7]["jpg"]) > 100 else 7
for _ in range(100):
    next(it)
    assert in_child(use) == 0
"""
    ended = run(FORK + code, data.tar)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_what_h5py_reads_works_in_a_child_that_was_forked_while_a_thread_read(tmp_path: pathlib.Path) -> None:
    """The child does not have that thread, and must not wait for it."""
    code = """
import h5py, numpy as np
from headrace.arrays.h5py import Numbers
with h5py.File(sys.argv[1], "w") as f:
    f.create_dataset("x", data=np.arange(40, dtype="i4"), chunks=(10,), scaleoffset=0)
read = Numbers(sys.argv[1], "x", 4)
began, end = threading.Event(), threading.Event()
def taken(dataset, index, take=read._taken):
    began.set()
    end.wait()
    return take(dataset, index)
read._taken = taken
thread = threading.Thread(target=read, args=(0, 4))
thread.start()
began.wait()
def use():
    del read._taken
    return 0 if read(28, 4) == np.int32(7).tobytes() else 7
code = in_child(use)
end.set()
assert code == 0, code
"""
    ended = run(FORK + code, str(tmp_path / "cube.h5"))
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_data_set_works_in_a_forked_child(data: Data) -> None:
    ended = run(
        FORK + "ds = hr.open(sys.argv[1]); want = ds[5]; assert in_child(lambda: 0 if ds[5] == want else 7) == 0", data.tar
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


# -- affinity ----------------------------------------------------------------------------------------


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_threads_stay_within_the_cores_that_were_given(data: Data) -> None:
    one = min(os.sched_getaffinity(0))
    code = """
loader = hr.Loader(sys.argv[1], 4, {"image": hr.image("jpg").resize((32, 32))}, output="numpy")
next(iter(loader))
print(loader.stats()["compute_threads"], {frozenset(os.sched_getaffinity(int(t))) for t in os.listdir("/proc/self/task")})
"""
    ended = subprocess.run(
        ["taskset", "-c", str(one), sys.executable, "-c", HEAD + code, data.tar], capture_output=True, text=True, timeout=SLOW
    )
    assert ended.stdout == f"1 {{frozenset({{{one}}})}}\n", ended.stderr


def test_processes_that_open_one_unindexed_data_set_at_once_all_succeed(data: Data, tmp_path: object) -> None:
    """One builds the index, the others wait or find it: never a half one."""
    import shutil

    for shard in sorted(data.root.glob("train-*.tar")):
        shutil.copy(shard, tmp_path)  # type: ignore[arg-type]
    code = "import sys, headrace as hr; print(len(hr.open(sys.argv[1])))"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code, f"{tmp_path}/train-*.tar"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    ended = [c.communicate(timeout=SLOW) for c in children]
    assert [out for out, _ in ended] == ["53\n"] * 4, ended
