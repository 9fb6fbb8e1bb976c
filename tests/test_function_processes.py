# SPDX-License-Identifier: Apache-2.0
"""The processes that functions run in: killed, stuck, closed, forked, their parent killed. Nothing wrong is delivered, nothing stays."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import headrace as hr
import numpy as np
import pytest
from headrace.processes import Pool
from support import COUNT, Data


def lives(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pids: list[int], within_s: float = 5.0) -> bool:
    end = time.monotonic() + within_s
    while any(lives(p) for p in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def children() -> set[int]:
    out = set()
    for task in pathlib.Path("/proc/self/task").iterdir():
        out |= {int(p) for p in (task / "children").read_text().split()}
    return {p for p in out if lives(p)}


@pytest.fixture(autouse=True)
def _none_left() -> Any:
    before = children()
    yield
    assert gone(list(children() - before)), "a process is left"


def pids_of(loader: hr.Loader) -> list[int]:
    return loader._running.pool.core.pids()


def value_of(index: int) -> np.ndarray:
    return np.arange(index, index + 300, dtype=np.int64)


def slow_value(v: Any, index: int) -> np.ndarray:
    time.sleep(0.002)
    return value_of(index)


# -- one that dies or is stuck -----------------------------------------------------------------------------


def test_a_process_that_dies_is_named_with_its_sample_and_another_takes_its_place(data: Data) -> None:
    def fn(v: int, index: int) -> int:
        if index == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return index

    fields = {"x": hr.scalar("cls").map(fn, processes=2)}
    named = pytest.raises(hr.DataError, match=r"sample 5.*field 'x'.*process \d+ was killed by signal 9 \(Killed\)")
    with hr.Loader(data.tar, 7, fields, shuffle=False, output="numpy") as loader, named:
        list(loader.epoch(0))
    with hr.Loader(data.tar, 7, fields, shuffle=False, output="numpy", bad_samples="replace") as loader:
        for epoch in range(2):
            got = [int(v) for b in loader.epoch(epoch) for v in b["x"]]
            assert len(got) == COUNT and 5 not in got
        assert {q["sample"] for q in loader.quarantine} == {5} and "signal 9" in loader.quarantine[0]["cause"]
        assert len(pids_of(loader)) >= 1


def test_a_process_that_exits_says_with_what(data: Data) -> None:
    fields = {"x": hr.scalar("cls").map(lambda v, index: os._exit(3) if index == 2 else v, processes=1)}
    named = pytest.raises(hr.DataError, match=r"sample 2.*process \d+ ended with exit code 3")
    with hr.Loader(data.tar, 7, fields, shuffle=False, output="numpy") as loader, named:
        list(loader.epoch(0))


def test_one_that_is_stuck_is_killed_and_named(data: Data) -> None:
    def fn(v: int, index: int) -> int:
        while index == 4:
            pass
        return index

    fields = {"x": hr.scalar("cls").map(fn, processes=2, timeout=2)}
    with hr.Loader(data.tar, 7, fields, shuffle=False, output="numpy", bad_samples="replace") as loader:
        got = [int(v) for b in loader.epoch(0) for v in b["x"]]
        assert len(got) == COUNT and 4 not in got
        assert loader.quarantine[0]["sample"] == 4 and "was stuck in the function" in loader.quarantine[0]["cause"]


def test_each_function_has_its_own_timeout(data: Data) -> None:
    def slow(v: int) -> int:
        time.sleep(0.6)
        return v

    def stuck(v: int, index: int) -> int:
        if index == 1:
            time.sleep(1000)
        return v

    fields = {"s": hr.scalar("cls").map(slow, processes=2), "x": hr.scalar("cls").map(stuck, processes=2, timeout=0.5)}
    named = pytest.raises(hr.DataError, match=r"sample 1.*field 'x'.*gave nothing for 0\.5 s")
    with hr.Loader(data.tar, 2, fields, shuffle=False, output="numpy") as loader, named:
        list(loader.epoch(0))


@pytest.mark.parametrize("how", ["starts", "forks"])
def test_what_a_function_leaves_running_does_not_hide_the_end_of_its_process(data: Data, how: str) -> None:
    def fn(v: int, index: int) -> int:
        if index == 3:
            if how == "starts":
                os.system("sleep 60 > /dev/null 2>&1 < /dev/null &")
            elif os.fork() == 0:
                time.sleep(60)
                os._exit(0)
            os.kill(os.getpid(), signal.SIGKILL)
        return index

    fields = {"x": hr.scalar("cls").map(fn, processes=1, timeout=50)}
    start = time.monotonic()
    named = pytest.raises(hr.DataError, match=r"sample 3.*was killed by signal 9")
    with hr.Loader(data.tar, 7, fields, shuffle=False, output="numpy") as loader, named:
        list(loader.epoch(0))
    assert time.monotonic() - start < 40


def test_a_child_that_returns_from_a_function_gives_nothing(data: Data) -> None:
    def fn(v: int, index: int) -> np.ndarray:
        child = os.fork() if index % 4 == 1 else -1
        if child > 0:
            os.waitpid(child, 0)
        return np.full(1000, index if child else -1)

    fields = {"x": hr.scalar("cls").map(fn, processes=2)}
    with hr.Loader(data.tar, 7, fields, shuffle=False, tail="keep", output="numpy") as loader:
        for _ in range(2):
            assert [v.tolist() for b in loader for v in b["x"]] == [[i] * 1000 for i in range(COUNT)]


def kill_workers(source: str, kills: int, policy: Any) -> tuple[int, int]:
    """Kills processes at random moments: epochs that were right, and errors that were named."""
    rng = np.random.default_rng(kills)
    fields = {"x": hr.scalar("cls").map(slow_value, processes=2)}
    right = named = errors = done = 0
    with hr.Loader(source, 5, fields, seed=1, tail="keep", output="numpy", bad_samples=policy) as loader:
        stop = threading.Event()

        def killer() -> None:
            nonlocal done
            while done < kills and not stop.wait(float(rng.uniform(0.0, 0.15))):
                pids = pids_of(loader)
                if not pids:
                    continue
                try:
                    os.kill(int(rng.choice(pids)), signal.SIGKILL)
                except ProcessLookupError:  # it is gone since it was asked for
                    continue
                done += 1

        thread = threading.Thread(target=killer)
        thread.start()
        try:
            while done < kills:
                try:
                    for batch in loader.epoch(0):
                        for i, v in zip(batch.indices, batch["x"]):
                            assert np.array_equal(v, value_of(int(i)))
                    right += 1
                except hr.DataError as e:
                    named += "signal 9" in str(e) and e.sample is not None
                    errors += 1
        finally:
            stop.set()
            thread.join()
    assert named == errors
    return right, named


def test_processes_killed_in_a_dozen_places(data: Data) -> None:
    right, named = kill_workers(data.tar, 12, "raise")
    assert right + named > 0


@pytest.mark.slow  # test_processes_killed_in_a_dozen_places
@pytest.mark.parametrize("policy", ["raise", 100_000])
def test_processes_killed_in_two_hundred_places(data: Data, policy: Any) -> None:
    right, named = kill_workers(data.tar, 200, policy)
    assert right + named > 0


# -- the parent ----------------------------------------------------------------------------------------------

PARENT = """
import sys, time
import headrace as hr

def fn(v, index):
    {body}
    return index

loader = hr.Loader(sys.argv[1], 5, {{"x": hr.scalar("cls").map(fn, processes=2)}}, output="numpy", tail="keep", shuffle=False)
next(iter(loader))
print(*loader._running.pool.core.pids(), flush=True)
while True:
    for batch in loader:
        pass
"""


def kill_parent(source: str, body: str, after_s: float) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(body=body), source],
        stdout=subprocess.PIPE,
        text=True,
        cwd=pathlib.Path(__file__).parent,
    )
    assert process.stdout is not None
    pids = [int(p) for p in process.stdout.readline().split()]
    assert len(pids) == 2
    time.sleep(after_s)
    process.kill()
    process.wait()
    process.stdout.close()
    assert gone(pids), "processes outlive their parent"


def test_nothing_is_left_when_the_parent_is_killed(data: Data) -> None:
    for body, after in (("pass", 0.03), ("if index > 45: time.sleep(100)", 0.2), ("while index > 45: pass", 0.2)):
        kill_parent(data.tar, body, after)


@pytest.mark.slow  # test_nothing_is_left_when_the_parent_is_killed
@pytest.mark.timeout(900)  # fifty interpreters, one after the other
def test_the_parent_killed_in_fifty_places(data: Data) -> None:
    for i in range(50):
        kill_parent(data.tar, ("pass", "time.sleep(0.002)", "while index > 45: pass")[i % 3], 0.01 * i)


def test_the_end_of_a_program_ends_its_processes(data: Data) -> None:
    code = PARENT.format(body="pass").replace("while True:", "if False:")
    out = subprocess.run([sys.executable, "-c", code, data.tar], capture_output=True, text=True, timeout=30)
    assert out.returncode == 0 and not out.stderr
    assert gone([int(p) for p in out.stdout.split()])


def test_ctrl_c_reaches_the_program_and_not_its_processes(data: Data) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(body="time.sleep(0.01)"), data.tar],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    pids = [int(p) for p in process.stdout.readline().split()]
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert err.count("KeyboardInterrupt") == 1 and gone(pids)


# -- kept, closed, forked -----------------------------------------------------------------------------------


def test_processes_are_started_once_and_kept_over_epochs(data: Data) -> None:
    fields = {
        "x": hr.scalar("cls").map(lambda v: os.getpid(), processes=2),
        "y": hr.key().map(lambda k: os.getpid(), processes=1),
    }
    with hr.Loader(data.tar, 7, fields, output="numpy") as loader:
        pids = {int(v) for e in range(3) for b in loader.epoch(e) for name in ("x", "y") for v in b[name]}
        assert pids <= set(pids_of(loader)) and len(pids_of(loader)) == 2


def test_close_does_not_wait_for_a_function(data: Data) -> None:
    loader = hr.Loader(data.tar, 7, {"x": hr.scalar("cls").map(lambda v, index: time.sleep(30 * (index > 45)) or v, processes=2)},
                       shuffle=False, output="numpy")  # fmt: skip
    next(iter(loader))
    start = time.monotonic()
    loader.close()
    assert time.monotonic() - start < 5


def test_a_function_that_cannot_start_says_why(data: Data, tmp_path: pathlib.Path) -> None:
    (tmp_path / "only_here.py").write_text("import os\nassert os.getpid() == int(os.environ['HERE'])\ndef fn(v):\n    return v\n")
    os.environ["HERE"] = str(os.getpid())
    sys.path.insert(0, str(tmp_path))
    try:
        import only_here  # type: ignore[import-not-found]

        says = pytest.raises(hr.UsageError, match="did not start: AssertionError")
        with hr.Loader(data.tar, 7, {"x": hr.scalar("cls").map(only_here.fn, processes=1)}, output="numpy") as loader, says:
            next(iter(loader))
    finally:
        sys.path.remove(str(tmp_path))
        del os.environ["HERE"]


def test_what_cannot_be_sent_is_refused(data: Data) -> None:
    lock = threading.Lock()
    with pytest.raises(hr.UsageError, match=r"field 'x'.*cannot be sent to other processes"):
        hr.Loader(data.tar, 7, {"x": hr.scalar("cls").map(lambda v: v + bool(lock), processes=1)})


def test_a_forked_child_gets_an_error(data: Data) -> None:
    ds = hr.open(data.tar, {"x": hr.scalar("cls").map(abs, processes=1)})
    assert ds[0]["x"] == data.samples[0].label
    pid = os.fork()
    if pid == 0:
        try:
            ds[1]
        except hr.UsageError as e:
            os._exit(0 if "before a fork" in str(e) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert ds[1]["x"] == data.samples[1].label


class Keeps:
    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def __call__(self, a: np.ndarray, index: int) -> np.ndarray:
        self.seen.append(a)
        return np.asarray([int(s.sum()) for s in self.seen][-8:][::-1] + [0] * 8)[:8]


def test_an_array_that_a_function_keeps_is_not_written_over(data: Data) -> None:
    fields = {"x": hr.image("jpg").resize((64, 64)).map(Keeps(), processes=1), "y": hr.image("jpg").resize((64, 64))}
    with hr.Loader(data.tar, 1, fields, shuffle=False, output="numpy", threads=1) as loader:
        sums: list[int] = []
        for batch in loader.epoch(0):
            sums.insert(0, int(batch["y"].sum()))
            # All that it kept are as they were; in which order it saw them is for the threads.
            kept = [int(v) for v in batch["x"][0] if v]
            assert len(kept) >= min(len(sums), 8) - 2 and sums[0] in kept


@pytest.mark.unsanitized  # whose shadow memory is counted too
def test_a_process_imports_no_torch_and_takes_little_memory(data: Data) -> None:
    def fn(v: int) -> np.ndarray:
        status = pathlib.Path("/proc/self/smaps_rollup").read_text()
        private = sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("Private_"))
        return np.asarray([private, "torch" in sys.modules, "headrace" in sys.modules])

    with hr.Loader(data.tar, 7, {"x": hr.scalar("cls").map(fn, (3,), "i64", processes=1)}, output="numpy") as loader:
        kib, torch, headrace = next(iter(loader))["x"][0]
    assert not torch and not headrace and kib < 60 * 1024


def test_stats_say_what_was_waited_for(data: Data) -> None:
    fields = {"x": hr.scalar("cls").map(slow_value, processes=2)}
    with hr.Loader(data.tar, 7, fields, tail="keep", output="numpy") as loader:
        list(loader.epoch(0))
        cost = loader.stats()["map"]["x"]
        assert cost["calls"] == COUNT and cost["processes"] == 2 and cost["wait_gil_s"] == 0
        assert cost["busy_s"] > 0.002 * COUNT and cost["wait_process_s"] >= 0
        assert loader.verdict().cause == "python" and "2 processes" in loader.verdict()


def test_functions_of_a_script_work(data: Data, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport headrace as hr\nimport numpy as np\n\nADD = 100\n\n"
        "def fn(v):\n    return np.int64(v + ADD)\n\n"
        "if __name__ == '__main__':\n"
        "    with hr.Loader(sys.argv[1], 5, {'x': hr.scalar('cls').map(fn, processes=1)}, shuffle=False, output='numpy') as l:\n"
        "        print([int(v) for v in next(iter(l))['x']])\n"
    )
    out = subprocess.run([sys.executable, str(script), data.tar], capture_output=True, text=True, timeout=30)
    assert out.stdout.strip() == str([s.label + 100 for s in data.samples[:5]]), out.stderr


MAIN = """
import sys, os
import headrace as hr
import numpy as np
import torch

print("main", flush=True)
scale = 10

class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 12
    def __getitem__(self, i):
        return np.full(2, i * scale), os.getpid()

def fn(x):
    print("a function may print")
    return x + 1

loader = hr.Loader(hr.from_torch(Items(), processes=2), 4, {"x": hr.array("0").map(fn, processes=1), "p": hr.scalar("1")}, tail="keep")
got = {int(i): (int(x[0]), int(p)) for b in loader for i, x, p in zip(b.indices, b["x"], b["p"])}
assert {i: x for i, (x, _) in got.items()} == {i: 10 * i + 1 for i in range(12)}, got
assert os.getpid() not in {p for _, p in got.values()}
print("end", flush=True)
"""


@pytest.mark.parametrize("way", ["script", "stdin", "-c"])
def test_a_program_needs_no_guard_and_no_file(tmp_path: pathlib.Path, way: str) -> None:
    """A script without ``if __name__ == "__main__"``; a notebook's __main__ has no file, as that of stdin."""
    script = tmp_path / "script.py"
    script.write_text(MAIN)
    command = {"script": [str(script)], "stdin": ["-"], "-c": ["-c", MAIN]}[way]
    out = subprocess.run(
        [sys.executable, *command],
        input=MAIN if way == "stdin" else "",
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    lines = out.stdout.split("\n")
    assert out.returncode == 0, out.stderr
    assert lines.count("main") == 1 and lines.count("end") == 1 and lines.count("a function may print") >= 12, out.stdout


SPAWNED = """
import multiprocessing
import headrace as hr
import numpy as np

ADD = 5

class Items:
    def __len__(self):
        return 9
    def __getitem__(self, i):
        return {"v": i * 10}

def fn(v):
    return v + ADD

def rank(out):
    with hr.Loader(hr.from_python(Items(), processes=2), 3, {"x": hr.scalar("v").map(fn, processes=1)}, shuffle=False) as loader:
        out.put([int(v) for b in loader for v in b["x"]])

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    process = context.Process(target=rank, args=(out,))
    process.start()
    assert out.get(timeout=100) == [10 * i + 5 for i in range(9)]
    process.join()
    print("right")
"""


def test_functions_of_a_script_work_in_a_process_that_it_spawned(tmp_path: pathlib.Path) -> None:
    """As ranks are by torch.multiprocessing: there the script is no ``__main__``."""
    script = tmp_path / "script.py"
    script.write_text(SPAWNED)
    out = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert out.stdout == "right\n", out.stderr


OBJECTS = """
import dataclasses
import headrace as hr

class Worker:  # a name that the processes have, too
    def __init__(self, n):
        self.n = n

@dataclasses.dataclass
class Found:
    n: int
    what: Worker

def fn(v):
    return Found(v.n + 1, v)

loader = hr.Loader(hr.from_python({"v": [Worker(i) for i in range(9)]}), 3, {"x": hr.json("v").map(fn, processes=2)}, shuffle=False)
got = [v for b in loader for v in b["x"]]
assert [v.n for v in got] == list(range(1, 10)) and all(type(v) is Found and type(v.what) is Worker for v in got), got
print("right")
"""


def test_objects_of_a_scripts_classes_go_there_and_back(tmp_path: pathlib.Path) -> None:
    out = subprocess.run([sys.executable, "-c", OBJECTS], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert out.stdout == "right\n", out.stderr


# -- a pool by itself ---------------------------------------------------------------------------------------


def test_a_pool_calls_and_arrays_come_back_whole() -> None:
    pool = Pool(2, lambda n, a: {"n": n, "a": a * 2, "big": np.full((1000, 1000), n), "text": "x" * n})
    try:
        got = pool.call(100_000, np.arange(5.0))
        assert got["n"] == 100_000 and got["a"].tolist() == [0, 2, 4, 6, 8] and len(got["text"]) == 100_000
        assert (got["big"] == 100_000).all() and got["big"].flags.writeable
        others = [pool.call(i, np.zeros(1))["big"] for i in range(5)]
        assert (got["big"] == 100_000).all() and [int(o[7, 7]) for o in others] == list(range(5))
    finally:
        pool.close()


def test_what_a_pool_gives_back_of_its_arguments_is_not_copied() -> None:
    pool = Pool(1, lambda a: a)
    try:
        first = pool.call(np.arange(1000))
        again = pool.call(first)
        assert np.shares_memory(first, again) and again.tolist() == list(range(1000))
    finally:
        pool.close()


def test_a_pool_raises_what_its_target_raises() -> None:
    def target(what: str) -> Any:
        if what == "bad":
            raise hr.BadSample("no good")
        return {}[what]

    pool = Pool(1, target)
    try:
        with pytest.raises(hr.DataError, match="BadSample: no good"):
            pool.call("bad")
        with pytest.raises(hr.UsageError, match="KeyError: 'other'"):
            pool.call("other")
    finally:
        pool.close()
