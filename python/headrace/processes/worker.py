# SPDX-License-Identifier: Apache-2.0
"""A process of a Pool, run by its path so that it imports nothing that its functions do not need.

It finds a socket at descriptor 3 and what it calls at 4. ``python/src/worker_pool.cc`` draws the messages.
"""

from __future__ import annotations

import os
import sys

if sys.path and sys.path[0] == os.path.dirname(os.path.abspath(__file__)):
    del sys.path[0]  # its files are no modules to import

import array
import importlib.util
import mmap
import pickle
import signal
import socket
import struct
import traceback
import types
from typing import Any

NONE, PLACED = (1 << 64) - 1, (1 << 64) - 2
MOST_INLINE = 60_000  # bytes of a pickle that goes over the socket
_HEAD = struct.Struct("<6I")
_PLACE = struct.Struct("<3Q")
_SAMPLE = struct.Struct("<4QII")
FORKED = False  # this is a child of a process of the Pool: a function has forked


def die_with_parent(parent: int) -> None:
    """The kernel kills this process when the thread that spawned it ends, whatever it does then."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


def load(name: str) -> Any:
    """A file beside this one, without the package around it."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Segments:
    """The shared memory that this process has mapped, by number."""

    def __init__(self) -> None:
        self.maps: dict[int, mmap.mmap] = {}
        self.views: dict[int, memoryview] = {}

    def add(self, name: tuple[int, ...], fd: int) -> None:
        number, size = name
        self.maps[number] = mmap.mmap(fd, size)
        self.views[number] = memoryview(self.maps[number])
        os.close(fd)

    def forget(self, number: int) -> None:
        view, held = self.views.pop(number), self.maps.pop(number)
        try:
            view.release()
            held.close()
        except BufferError:  # a function still has an array of it
            pass

    def at(self, place: tuple[int, int, int]) -> memoryview:
        number, offset, size = place
        return self.views[number][offset : offset + size] if size else memoryview(bytearray())

    def find(self, view: memoryview) -> tuple[int, int] | None:
        """Where memory lies, if in a segment."""
        import numpy as np

        if not view.nbytes:
            return None
        begin = np.frombuffer(view, np.uint8).ctypes.data
        for number, held in self.views.items():
            base = np.frombuffer(held, np.uint8).ctypes.data
            if base <= begin and begin + view.nbytes <= base + held.nbytes:
                return number, begin - base
        return None


class MapTarget:
    """A function given to ``map``: the values of one sample in, its results out."""

    def __init__(self, chain: Any) -> None:
        import numpy as np

        self.np, self.chain = np, chain
        self.hows = [how for how, _ in chain.spec["takes"]]
        self.many = [many for _, many in chain.spec["takes"]]
        self.shapes = chain.spec["shapes"]  # of results that are of one shape
        self.keeps = False  # it has kept an array of a sample: from then on it gets copies

    def value(self, how: str, code: bytes, shape: tuple[int, ...], memory: memoryview, roots: list[Any]) -> Any:
        if how in ("text", "json", "key"):
            return str(memory, "utf-8", "surrogateescape")
        if how == "bytes":
            return bytes(memory)
        root = self.np.ndarray(shape, dtype_of(code), memory)
        if how == "scalar":
            return root.item()
        if self.keeps:
            return root.copy()
        roots.append(root)
        return root[...]

    def arguments(self, header: bytes, inputs: list[memoryview], roots: list[Any]) -> tuple[list[Any], Any]:
        index, epoch, a, b, key_bytes, _ = _SAMPLE.unpack_from(header)
        at = _SAMPLE.size
        key = header[at : at + key_bytes].decode("utf-8", "surrogateescape")
        at += key_bytes
        values: list[Any] = []
        n = 0
        for how, many in zip(self.hows, self.many):
            (count,) = struct.unpack_from("<I", header, at)
            at += 4
            found = []
            for _ in range(count):
                code, axes = header[at : at + 4], header[at + 4]
                shape = struct.unpack_from(f"<{axes}q", header, at + 5)
                at += 5 + 8 * axes
                found.append(self.value(how, code.rstrip(b"\0"), shape, inputs[n], roots))
                n += 1
            values.append(found if many else found[0] if found else None)
        return values, (index, epoch, key, a, b)

    def __call__(self, header: bytes, inputs: list[memoryview], places: list[memoryview]) -> tuple[bytes, list[Any]]:
        roots: list[Any] = []
        values, context = self.arguments(header, inputs, roots)
        results = self.chain(values, *context)
        if FORKED:  # the parent gives the results
            os._exit(0)
        del values
        out = bytearray(1)
        ready = []
        for i, result in enumerate(results):
            shape = result.shape if isinstance(result, self.np.ndarray) else (len(result),)
            out += struct.pack(f"<B{len(shape)}q", len(shape), *shape)
            ready.append(self.placed(result, list(shape) == self.shapes[i], places[i] if i < len(places) else None, roots))
        results = result = None
        if any(sys.getrefcount(roots[i]) > 2 for i in range(len(roots))):
            self.keeps = True
            out[0] = 1  # the memory of this sample must not go round
        return bytes(out), ready

    def placed(self, result: Any, fits: bool, place: memoryview | None, roots: list[Any]) -> memoryview | None:
        """What waits for a place of a result; None: it is in the one given."""
        if isinstance(result, bytes):
            return memoryview(result)
        if fits and place is not None:
            self.np.ndarray(result.shape, result.dtype, place)[...] = result
            return None
        if any(self.np.may_share_memory(result, root) for root in roots):
            result = result.copy()
        return memoryview(result.reshape(-1).view(self.np.uint8))


class CallTarget:
    """Any function: arguments and result are pickled, their arrays lie in shared memory."""

    def __init__(self, function: Any, segments: Segments) -> None:
        self.function, self.segments = function, segments

    def result(self, arguments: Any) -> Any:
        return self.function(*arguments)

    def __call__(self, header: bytes, inputs: list[memoryview], places: list[memoryview]) -> tuple[bytes, list[Any]]:
        buffers = inputs if header else inputs[1:]
        arguments = pickle.loads(header or inputs[0], buffers=buffers)
        result = self.result(arguments)
        found: list[pickle.PickleBuffer] = []
        data = pickle.dumps(result, 5, buffer_callback=found.append)
        ready: list[Any] = []
        for buffer in found:
            view = buffer.raw()
            where = self.segments.find(view)
            ready.append(view if where is None else (*where, view.nbytes))
        if len(data) > MOST_INLINE:
            ready.append(memoryview(data))
            data = b""
        return data, ready


class BatchTarget(CallTarget):
    """A function of a batch, which it may change in place."""

    def result(self, arguments: Any) -> Any:
        (batch,) = arguments
        out = self.function(batch)
        return batch if out is None else dict(out) if hasattr(out, "keys") else out


class RowsTarget:
    """Samples of a data set, by their numbers: they write themselves where the call says."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __call__(self, header: bytes, inputs: list[memoryview], places: list[memoryview]) -> tuple[bytes, list[Any]]:
        answer, more = self.rows.serve(header, places)
        return answer, [None] * len(places) + ([memoryview(more)] if more else [])


def dtype_of(code: bytes) -> Any:
    import numpy as np

    if code == b"bf16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype("<" + code.decode())


class Worker:
    """Answers one message after the other, until the socket ends."""

    def __init__(self) -> None:
        self.socket = socket.socket(fileno=3)
        self.segments = Segments()
        self.results: list[Any] = []  # of the last call; those that wait for a place
        self.targets: list[Any] = []
        self.calling: Any = None

    def on_fork(self) -> None:
        """In a child that a function forks: the pool has to hear the end of this process, whoever lives on."""
        global FORKED
        FORKED = True
        self.socket.close()

    def prepare(self) -> None:
        os.set_inheritable(3, False)  # nor has what a function starts this socket
        os.register_at_fork(after_in_child=self.on_fork)
        with mmap.mmap(4, 0, access=mmap.ACCESS_READ) as f:  # one read gives 2 GiB at most
            payload = pickle.loads(f)
        os.close(4)
        os.closerange(5, 1 << 16)
        die_with_parent(payload["parent"])
        sys.path[:] = payload["path"]
        sys.argv[:] = payload["argv"]
        self.calling = load("calling")
        self.stand_for_main(payload["main"])
        for kind, pickled, spec in payload["targets"]:
            made = pickle.loads(pickled)
            if kind == "map":
                self.targets.append(MapTarget(self.calling.Chain(made, spec)))
            elif kind == "rows":
                self.targets.append(RowsTarget(made))
            else:
                self.targets.append((BatchTarget if kind == "batch" else CallTarget)(made, self.segments))
        package = sys.modules.get("headrace")
        if package is not None and hasattr(package, "Context"):  # a function asks isinstance(ctx, hr.Context)
            self.calling.Context = package.Context

    @staticmethod
    def stand_for_main(classes: dict[str, bytes]) -> None:
        """``__main__`` is the user's script or notebook, of which only classes are known, and those when they are needed."""

        def find(name: str) -> Any:
            if name not in classes:
                raise AttributeError(f"'{name}' of the script or notebook is not known in this process")
            return pickle.loads(classes[name])

        main = types.ModuleType("__main__")
        main.__getattr__ = find  # type: ignore[method-assign]
        sys.modules["__main__"] = main

    def run(self) -> None:
        room = bytearray(1 << 18)  # of a message; memory of its own for each would be mapped and unmapped
        ancillary_room = socket.CMSG_SPACE(4 * 250)
        while True:
            size, ancillary, _, _ = self.socket.recvmsg_into([room], ancillary_room)
            if not size:
                return
            data = bytes(memoryview(room)[:size])
            descriptors = array.array("i")
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    descriptors.frombytes(content)
            try:
                reply = self.call(data, descriptors) if data[:1] == b"C" else self.place(data, descriptors)
            except BaseException as e:  # sys.exit() in a function is a mistake of the function, too
                self.results = []
                reply = self.failed(e)
            self.socket.send(reply)

    def failed(self, error: BaseException) -> bytes:
        bad, words = self.calling.said(error)
        return message_of(
            b"B" if bad else b"E", words, "".join(traceback.format_exception(type(error), error, error.__traceback__))
        )

    def call(self, data: bytes, descriptors: array.array[int]) -> bytes:
        target, header_bytes, inputs, places, news, gone = _HEAD.unpack_from(data, 1)
        at = 1 + _HEAD.size
        where = [_PLACE.unpack_from(data, at + 24 * i) for i in range(inputs + places)]
        at += 24 * len(where)
        for i in range(news):
            self.segments.add(struct.unpack_from("<2Q", data, at + 16 * i), descriptors[i])
        at += 16 * news
        for i in range(gone):
            self.segments.forget(*struct.unpack_from("<Q", data, at + 8 * i))
        at += 8 * gone
        header = data[at : at + header_bytes]
        memory = [self.segments.at(place) for place in where]
        header, results = self.targets[target](header, memory[:inputs], memory[inputs:])
        self.results = results
        out = [struct.pack("<2I", len(header), len(results))]
        for result in results:
            if result is None:
                out.append(_PLACE.pack(PLACED, 0, 0))
            elif isinstance(result, tuple):
                out.append(_PLACE.pack(*result))
            else:
                out.append(_PLACE.pack(NONE, 0, result.nbytes))
        return b"D" + b"".join(out) + header

    def place(self, data: bytes, descriptors: array.array[int]) -> bytes:
        result, news, *place = struct.unpack_from("<2I3Q", data, 1)
        for i in range(news):
            self.segments.add(struct.unpack_from("<2Q", data, 33 + 16 * i), descriptors[i])
        self.segments.at((place[0], place[1], place[2]))[:] = self.results[result].cast("B")
        self.results[result] = None
        return b"A"


def message_of(kind: bytes, words: str, more: str) -> bytes:
    said = words.encode("utf-8", "backslashreplace")[:20_000]
    return kind + struct.pack("<I", len(said)) + said + more.encode("utf-8", "backslashreplace")[-60_000:]


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
    worker = Worker()
    try:
        worker.prepare()
    except BaseException as e:
        text = "".join(traceback.format_exception(type(e), e, e.__traceback__))
        worker.socket.send(message_of(b"X", f"{type(e).__name__}: {e}", text))
        return
    try:
        worker.socket.send(b"R")
        worker.run()
    except OSError:  # the parent is gone, or has closed the pool
        pass


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
