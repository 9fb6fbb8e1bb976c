# SPDX-License-Identifier: Apache-2.0
"""Processes that are spawned once and call functions: nothing large goes through a pipe."""

from __future__ import annotations

import atexit
import os
import pickle
import sys
import weakref
from typing import Any

from .. import _core, checks
from ..errors import UsageError

#: Seconds after which a call is given up and its process killed.
TIMEOUT = 300.0
# One thread each: there are as many processes as there is work for.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "OPENCV_FOR_THREADS_NUM")
# Arrays of a function come from memory that the process keeps: of fresh pages, those of a picture cost 0.3 ms a sample.
_KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(16 << 20), "MALLOC_TRIM_THRESHOLD_": str(16 << 20)}
_all: weakref.WeakSet[Processes] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for pool in list(_all):
        pool.close()


def pickled(function: Any, what: str) -> bytes:
    """A function by its import name; by value where it has none that a new process could import."""
    try:
        by_name = pickle.dumps(function, 5)
        if b"__main__" not in by_name and b"__mp_main__" not in by_name:
            return by_name
        why = "is defined in the script or notebook"
    except Exception as e:
        why = f"cannot be pickled ({e})"
    try:
        import cloudpickle
    except ImportError:
        raise UsageError(
            f"{what} {why}, and processes import what they call: move it into a module of its own, or pip install cloudpickle"
        ) from None
    script = sys.modules.get("__mp_main__")  # what multiprocessing calls it where it spawned this process
    try:
        if script is not None:
            cloudpickle.register_pickle_by_value(script)
        return bytes(cloudpickle.dumps(function, 5))
    except Exception as e:
        raise UsageError(f"{what} cannot be sent to other processes: {type(e).__name__}: {e}") from e
    finally:
        if script is not None:
            cloudpickle.unregister_pickle_by_value(script)


def main_classes() -> dict[str, bytes]:
    """The classes of the script or notebook by value: objects of them are pickled by a name that processes cannot import."""
    try:
        import cloudpickle
    except ImportError:
        return {}
    out = {}
    for name, value in list(vars(sys.modules["__main__"]).items()):
        if isinstance(value, type) and value.__module__ == "__main__" and value.__qualname__ == name:
            try:
                out[name] = bytes(cloudpickle.dumps(value, 5))
            except Exception:  # then objects of it are an error there
                continue
    return out


class Processes:
    """Processes for several functions: ``add`` each, then ``prepare()``; ``core`` is what the engine's threads call.

    As many as the function wants that wants most. They start with ``start()`` or with the first call, and are kept until
    ``close()``.
    """

    def __init__(self) -> None:
        self.n = 0
        self._timeouts_ms: list[int] = []
        self._targets: list[tuple[str, bytes, dict[str, Any]]] = []
        self._core: _core.WorkerPool | None = None
        self.turn = _core.MapTurn()  # of the functions that run on the engine's threads

    @property
    def core(self) -> _core.WorkerPool:
        if self._core is None:
            if not sys.executable:
                raise UsageError(
                    "processes need to know the interpreter, and sys.executable is empty: set it to the path of python"
                )
            given = {**dict.fromkeys(_ONE_THREAD, "1"), **_KEPT_MEMORY}
            self._core = _core.WorkerPool(
                command=[sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker.py")],
                environment=[f"{k}={v}" for k, v in {**given, **os.environ}.items()],
            )
            _all.add(self)
        return self._core

    def add(self, kind: str, function: Any, spec: dict[str, Any], what: str, n: int, timeout: float | None) -> int:
        """A function more; its number."""
        self.n = max(self.n, checks.whole(n, "processes", 1, 4096))
        if timeout is not None and checks.real(timeout, "timeout") <= 0:
            raise UsageError(f"timeout is a number of seconds, or None, not {timeout!r}")
        self._timeouts_ms.append(0 if timeout is None else min(max(1, round(timeout * 1000)), (1 << 31) - 1))
        self._targets.append((kind, pickled(function, what), spec))
        return len(self._targets) - 1

    def prepare(self) -> None:
        """All functions are known."""
        if not self._targets:
            return
        objects = any(made_from == "object" for _, _, spec in self._targets for _, made_from in spec.get("inputs", ()))
        payload = {
            "parent": os.getpid(),
            "path": sys.path,
            "argv": sys.argv,
            "main": main_classes() if objects else {},
            "targets": self._targets,
        }
        self.core.prepare(payload=pickle.dumps(payload, 5), processes=self.n, timeouts_ms=self._timeouts_ms)

    def start(self) -> None:
        if self._targets:
            self.core.start()

    def close(self) -> None:
        if self._core is not None:
            self._core.close()


class Pool:
    """``Pool(n, target).call(*args)`` is ``target(*args)`` in one of ``n`` processes.

    ``target``: a callable, by its import name or, where it has none (``__main__``, a lambda), by cloudpickle; it goes
    over once. ``call`` may come from any thread and holds no GIL while it waits. Arguments and result are pickled, but
    for their arrays, which lie in shared memory: arrays of batches and of earlier results go over uncopied, others are
    copied once; the arrays of the result are not copied on this side. The array arguments must not be kept by ``target``.

    What ``target`` raises comes back: a ``DataError`` as such, anything else as ``UsageError``. A process that dies, or
    that gives nothing for ``timeout`` seconds and is then killed, is a ``DataError`` that names it; the next call that
    needs it starts another. Processes end with ``close()``, with the Pool, and with this process, however it ends.
    """

    def __init__(self, n: int, target: Any, *, timeout: float | None = TIMEOUT) -> None:
        self._processes = Processes()
        self._processes.add("call", target, {}, getattr(target, "__name__", repr(target)), n, timeout)
        self._processes.prepare()

    def start(self) -> None:
        """Starts the processes now, without waiting for them."""
        self._processes.start()

    def call(self, *args: Any) -> Any:
        """``target(*args)``, in a process that is free."""
        return call(self._processes.core, 0, args)

    @property
    def pids(self) -> list[int]:
        """The processes that run now."""
        return self._processes.core.pids()

    def close(self) -> None:
        """Ends the processes; calls under way fail."""
        self._processes.close()


def call(core: _core.WorkerPool, target: int, args: tuple[Any, ...]) -> Any:
    found: list[pickle.PickleBuffer] = []
    data = pickle.dumps(args, 5, buffer_callback=found.append)
    buffers: list[Any] = [b.raw() for b in found]
    if len(data) > 60_000:
        buffers.insert(0, memoryview(data))
        data = b""
    header, results = core.call(target, data, buffers)
    return pickle.loads(header or results.pop(), buffers=results)
