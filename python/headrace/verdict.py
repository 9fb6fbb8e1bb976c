# SPDX-License-Identifier: Apache-2.0
"""Why is it slow: from the counters to a sentence."""

from __future__ import annotations

from typing import Any

from . import _core


class Verdict(str):
    """A sentence that can be asked: which cause, which numbers show it, what to change.

    cause: "model", "python", "decoder", "storage latency", "storage bandwidth" or "unknown".
    """

    cause: str
    numbers: dict[str, float]
    advice: str

    def __new__(cls, cause: str, finding: str, advice: str, numbers: dict[str, float]) -> Verdict:
        self = super().__new__(cls, f"{finding}. {advice}" if advice else finding)
        self.cause, self.numbers, self.advice = cause, numbers, advice
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        finding = self.removesuffix(f". {self.advice}") if self.advice else str(self)
        return Verdict, (self.cause, finding, self.advice, self.numbers)


def verdict(stats: dict[str, Any]) -> Verdict:
    """The bottleneck: the training step, a Python function, the decoder or the storage."""
    consumer, reads = stats["consumer"], stats["reads"]
    decode, read = stats["stages"]["decode"], stats["stages"]["read"]
    functions = [
        ("" if name == "(batch)" else name, c["busy_s"] + c["wait_gil_s"] + c.get("wait_process_s", 0.0), c.get("processes", 0))
        for name, c in stats["map"].items()
    ]
    found = Verdict(
        *_core.verdict(
            batches=consumer["batches"],
            wait_s=consumer["wait_s"],
            step_s=consumer["step_s"],
            decode_items=decode["items"],
            decode_busy_s=decode["busy_s"],
            read_items=read["items"],
            read_bytes=read["bytes"],
            read_latency_median_ms=reads["latency_median_ms"],
            read_latency_p99_ms=reads["latency_p99_ms"],
            most_reads_under_way=reads["most_under_way"],
            read_ahead_bytes=reads["ahead_bytes"],
            compute_threads=stats["compute_threads"],
            functions=functions,
        )
    )
    return _object_to_blame(found, stats) or found


def _object_to_blame(found: Verdict, stats: dict[str, Any]) -> Verdict | None:
    """What looks like slow storage may be the __getitem__ of an object."""
    if not found.cause.startswith("storage"):
        return None
    for name, cost in stats.get("python", {}).items():
        of = stats["consumer"]["wait_s"] + stats["consumer"]["step_s"]
        if cost["busy_s"] > 0.5 * of and cost["samples"]:
            each = cost["busy_s"] / cost["samples"] * 1e6
            head = found.partition("; storage")[0]
            numbers = {**found.numbers, "python_s": cost["busy_s"], "python_share": cost["busy_s"] / of, "python_us": each}
            return Verdict(
                "python",
                f"{head}; Python: {name}.__getitem__ took {each:,.0f} us a sample, {cost['busy_s']:.1f} s of {of:.1f} s",
                "Make samples in several processes, hr.from_torch(dataset, processes=4), or from the files themselves, by hr.open and fields",
                numbers,
            )
    return None
