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
    functions = [("" if n == "(batch)" else n, c["busy_s"] + c["wait_gil_s"]) for n, c in stats["map"].items()]
    return Verdict(
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
