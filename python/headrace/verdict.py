# SPDX-License-Identifier: Apache-2.0
"""Why is it slow: from the counters to a sentence."""

from __future__ import annotations

from typing import Any


def verdict(stats: dict[str, Any]) -> str:
    """The bottleneck: the training step, a Python function, the decoder or the storage."""
    consumer = stats["consumer"]
    total = consumer["wait_s"] + consumer["step_s"]
    if consumer["batches"] < 2 or total <= 0:
        return "too few batches yet for a verdict"
    share = consumer["wait_s"] / total
    if share < 0.05:
        return f"the training step: it waited for data {100 * share:.1f} % of the time; the loader keeps up"
    head = f"the training step waited for data {100 * share:.0f} % of the time"
    decode, threads = stats["stages"]["decode"], stats["compute_threads"]
    # Of the time the consumer spent in its epochs: pauses between them are nobody's fault.
    busy = min(1.0, decode["busy_s"] / (threads * total))
    for name, cost in stats["map"].items():
        if cost["busy_s"] + cost["wait_gil_s"] > 0.5 * max(decode["busy_s"], 1e-9):
            return (
                f"{head}; Python: map() on '{name}' and waiting for the GIL took {cost['busy_s'] + cost['wait_gil_s']:.1f} s "
                f"of {decode['busy_s']:.1f} s of computing. Do it in the fields' own steps, or on the batch"
            )
    if busy > 0.8:
        each = 1000 * decode["busy_s"] / max(1, decode["items"])
        return (
            f"{head}; the decoder: {threads} compute threads were busy {100 * busy:.0f} % of the time, {each:.2f} ms a sample. "
            "Give it more cores, store smaller pictures, or decode fewer pixels"
        )
    read = stats["stages"]["read"]
    rate = read["bytes"] / max(read["busy_s"], 1e-9) / 1e6
    return (
        f"{head}; storage: {stats['io_threads']} I/O threads read at {rate:.0f} MB/s each while the compute threads "
        f"were idle {100 * (1 - busy):.0f} % of the time. Stage the data nearer, or pack small files into shards"
    )
