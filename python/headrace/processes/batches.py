# SPDX-License-Identifier: Apache-2.0
"""``loader.map(fn, processes=n)``: batches through a function in processes, several at a time, delivered in their order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import UsageError
from .pool import Processes, call

#: A batch and what else is known of it; None: the epoch has ended.
Taken = tuple[Any, Any]


class BatchCalls:
    """``next(take)`` is what ``take()`` gives, through the function. One consumer at a time.

    ``n`` threads take the batches, each in its turn, and wait for a process each; at most ``n + 1`` batches are taken and
    not yet delivered.
    """

    def __init__(self, function: Any, n: int, timeout: float | None, framework: str) -> None:
        self._processes = Processes()
        what = f"loader.map: {getattr(function, '__name__', repr(function))}"
        self._processes.add("batch", function, {}, what, n, timeout)
        self._processes.prepare()
        self._framework = framework
        self._threads: list[threading.Thread] = []
        self._turn = threading.Lock()  # of take()
        self._changed = threading.Condition()
        self._reset()

    def _reset(self) -> None:
        self._results: dict[int, Any] = {}  # by place in the order: (batch, raw), None, or an exception
        self._taken = self._delivered = 0
        self._stopping = False

    def start(self) -> None:
        self._processes.start()

    @property
    def pids(self) -> list[int]:
        return self._processes.core.pids()

    def next(self, take: Callable[[], Taken | None]) -> Taken | None:
        if not self._threads:
            self._threads = [threading.Thread(target=self._run, args=(take,), daemon=True) for _ in range(self._processes.n)]
            for thread in self._threads:
                thread.start()
        with self._changed:
            while self._delivered not in self._results:
                self._changed.wait()
            result = self._results.pop(self._delivered)
            self._delivered += 1
            self._changed.notify_all()
        if result is None or isinstance(result, BaseException):
            self.stop()
        if isinstance(result, BaseException):
            raise result
        return result

    def stop(self) -> None:
        """Gives up what is under way: another epoch begins, or the Loader is closed."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        self._threads = []
        self._reset()

    def close(self) -> None:
        self._processes.close()
        self.stop()

    def _run(self, take: Callable[[], Taken | None]) -> None:
        while True:
            with self._turn:
                with self._changed:
                    while self._taken - self._delivered > len(self._threads) and not self._stopping:
                        self._changed.wait()
                    if self._stopping:
                        return
                    place = self._taken
                    self._taken += 1
                result: Any
                try:
                    result = take()
                except BaseException as e:
                    result = e
                ended = result is None or isinstance(result, BaseException)
                if ended:
                    self._stopping = True
            if not ended:
                try:
                    result = self._called(*result), result[1]
                except BaseException as e:
                    result = e
            with self._changed:
                self._results[place] = result
                self._changed.notify_all()
            if ended:
                return

    def _called(self, batch: Any, raw: Any) -> dict[str, Any]:
        given = {name: _to_numpy(name, value) for name, value in batch.items()}
        result = call(self._processes.core, 0, (given,))
        if not isinstance(result, dict):
            raise UsageError(f"the function given to loader.map() returned {type(result).__name__}; a dict or None is wanted")
        return {name: _from_numpy(value, self._framework) for name, value in result.items()}


def _to_numpy(name: str, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_to_numpy(name, v) for v in value)
    if type(value).__module__.partition(".")[0] in ("torch", "jax", "jaxlib"):
        try:
            return value.numpy() if hasattr(value, "numpy") else np.array(value)  # JAX's may not be written to
        except TypeError as e:
            raise UsageError(f"field '{name}': processes get NumPy arrays, and there is none of {value.dtype}: {e}") from None
    return value


def _from_numpy(value: Any, framework: str) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_from_numpy(v, framework) for v in value)
    if not isinstance(value, (np.ndarray, np.generic)) or framework == "numpy":
        return value
    if framework == "torch":
        import torch

        return torch.from_numpy(np.asarray(value))
    import jax.numpy as jnp

    return jnp.asarray(value)
