# SPDX-License-Identifier: Apache-2.0
"""Why is it slow: from the counters to a sentence."""

from __future__ import annotations

from typing import Any

#: A read that moves fewer bytes a second than this spends its time waiting for the first one.
_LATENCY_BOUND = 20e6
_FAR_MS = 1.0


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


def _numbers(stats: dict[str, Any], total: float) -> dict[str, float]:
    """Rates are of the time the consumer spent in its epochs: pauses between them are nobody's fault.

    Reads complete by themselves, many at a time: how many were under way follows from how often and how long
    (Little's law), not from the time a thread was busy with them.
    """
    decode, read, reads = stats["stages"]["decode"], stats["stages"]["read"], stats["reads"]
    return {
        "waited_share": stats["consumer"]["wait_s"] / total,
        "samples_per_s": decode["items"] / total,
        "compute_threads": stats["compute_threads"],
        "decode_busy_share": min(1.0, decode["busy_s"] / (stats["compute_threads"] * total)),
        "decode_ms": 1000 * decode["busy_s"] / max(1, decode["items"]),
        "read_bytes_per_s": read["bytes"] / total,
        "read_bytes": read["bytes"] / max(1, read["items"]),
        "read_latency_median_ms": reads["latency_median_ms"],
        "read_latency_p99_ms": reads["latency_p99_ms"],
        "reads_under_way": read["items"] * reads["latency_median_ms"] / 1000 / total,
        "most_reads_under_way": reads["most_under_way"],
        "read_ahead_bytes": reads["ahead_bytes"],
    }


def _python(stats: dict[str, Any], head: str, numbers: dict[str, float]) -> Verdict | None:
    for name, cost in stats["map"].items():
        spent = cost["busy_s"] + cost["wait_gil_s"]
        on_batch = name == "(batch)"
        of = stats["consumer"]["wait_s"] if on_batch else stats["stages"]["decode"]["busy_s"]
        if spent <= 0.5 * max(of, 1e-9):
            continue
        numbers |= {"python_s": spent, "python_share": spent / max(of, 1e-9)}
        if on_batch:
            return Verdict(
                "python",
                f"{head}; Python: the functions given to loader.map() took {spent:.1f} s of {of:.1f} s of waiting",
                "Do it in the fields' own steps, which run ahead in threads, or make it cheaper",
                numbers,
            )
        return Verdict(
            "python",
            f"{head}; Python: map() on '{name}' and waiting for the GIL took {spent:.1f} s of {of:.1f} s of computing",
            "Do it in the fields' own steps, or on the batch",
            numbers,
        )
    return None


def _storage(head: str, n: dict[str, float]) -> Verdict:
    rate, size = n["read_bytes_per_s"] / 1e6, n["read_bytes"] / 1e3
    median, p99 = n["read_latency_median_ms"], n["read_latency_p99_ms"]
    idle = 100 * (1 - n["decode_busy_share"])
    reads = f"reads of {size:.0f} kB took {median:.2f} ms in the median and {p99:.2f} ms at worst (p99)"
    under_way = f"about {n['reads_under_way']:.0f} at a time, at most {n['most_reads_under_way']:.0f}"
    of_each = n["read_bytes"] / max(median / 1000, 1e-9)
    if median >= _FAR_MS and of_each < _LATENCY_BOUND:
        return Verdict(
            "storage latency",
            f"{head}; storage latency: {reads}, {under_way}, while the compute threads were idle {idle:.0f} % of the time",
            'Pack small files into shards, say shuffle="pool" so that runs are read at once, give more memory_budget '
            "for reading ahead, or stage the data nearer",
            n,
        )
    return Verdict(
        "storage bandwidth",
        f"{head}; storage bandwidth: {rate:.0f} MB/s came in all, {reads}, {under_way}, while the compute threads "
        f"were idle {idle:.0f} % of the time",
        "Stage the data nearer, store it smaller, or let fewer jobs share the storage",
        n,
    )


def verdict(stats: dict[str, Any]) -> Verdict:
    """The bottleneck: the training step, a Python function, the decoder or the storage."""
    consumer = stats["consumer"]
    total = consumer["wait_s"] + consumer["step_s"]
    if consumer["batches"] < 2 or total <= 0:
        return Verdict("unknown", "too few batches yet for a verdict", "", {})
    numbers = _numbers(stats, total)
    share = 100 * numbers["waited_share"]
    if share < 5:
        return Verdict(
            "model", f"the training step: it waited for data {share:.1f} % of the time; the loader keeps up", "", numbers
        )
    head = f"the training step waited for data {share:.0f} % of the time"
    if found := _python(stats, head, numbers):
        return found
    if numbers["decode_busy_share"] > 0.8:
        return Verdict(
            "decoder",
            f"{head}; the decoder: {stats['compute_threads']} compute threads were busy "
            f"{100 * numbers['decode_busy_share']:.0f} % of the time, {numbers['decode_ms']:.2f} ms a sample",
            "Give it more cores, store smaller pictures, or decode fewer pixels",
            numbers,
        )
    return _storage(head, numbers)
