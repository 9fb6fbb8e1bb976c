# SPDX-License-Identifier: Apache-2.0
"""Texts to tokens, by each of those who do it: `python -m peers.text JOB`. Prints seconds, tokens and a sum of them."""

from __future__ import annotations

import json
import os
import pathlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

END = "<|endoftext|>"


def lines(job: dict[str, Any]) -> Iterator[str]:
    for path in sorted(pathlib.Path(job["corpus"]).glob("*.jsonl")):
        with open(path, encoding="utf-8") as f:
            for line in f:
                yield json.loads(line)["text"]


def files(job: dict[str, Any]) -> list[str]:
    return sorted(str(p) for p in pathlib.Path(job["corpus"]).glob("*.jsonl"))


def told(seconds: float, tokens: int, total: int, before: float = 0.0) -> dict[str, Any]:
    """``before``: seconds of making what it starts from out of the files."""
    return {"seconds": seconds, "before": before, "tokens": tokens, "sum": total}


def encode_batch(job: dict[str, Any], method: str = "encode_batch") -> dict[str, Any]:
    import tokenizers

    made = tokenizers.Tokenizer.from_file(job["tokenizer"])
    texts = list(lines(job))
    call = getattr(made, method)
    call(texts[:64])
    begin = time.perf_counter()
    found = call(texts)
    took = time.perf_counter() - begin
    end = made.token_to_id(END)
    return told(took, sum(len(e.ids) + 1 for e in found), sum(sum(e.ids) + end for e in found))


def headrace(job: dict[str, Any]) -> dict[str, Any]:
    import headrace as hr

    begin = time.perf_counter()
    found = hr.tokenize(job["corpus"] + "/*.jsonl", job["out"], tokenizer=job["tokenizer"])
    took = time.perf_counter() - begin
    total = sum(int(np.fromfile(p, np.uint16).sum(dtype=np.int64)) for p in pathlib.Path(job["out"]).glob("*.bin"))
    return told(took, found["tokens"], total)


def datasets_map(job: dict[str, Any], processes: int | None) -> dict[str, Any]:
    if processes is not None:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import datasets
    import tokenizers

    datasets.disable_progress_bars()
    made = tokenizers.Tokenizer.from_file(job["tokenizer"])
    end = made.token_to_id(END)
    begin = time.perf_counter()
    data = datasets.load_dataset("json", data_files=files(job), split="train", cache_dir=job["out"])
    before = time.perf_counter() - begin

    def encode(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        return {"ids": [[*e.ids, end] for e in made.encode_batch_fast(batch["text"])]}

    begin = time.perf_counter()
    done = data.map(encode, batched=True, batch_size=1000, remove_columns=data.column_names, num_proc=processes)
    took = time.perf_counter() - begin
    values = [chunk.values.to_numpy() for chunk in done.data.column("ids").chunks]
    return told(took, sum(map(len, values)), sum(int(v.sum(dtype=np.int64)) for v in values), before)


def datatrove(job: dict[str, Any]) -> dict[str, Any]:
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.tokens import DocumentTokenizer

    out = job["out"]
    pipeline = [
        JsonlReader(job["corpus"], glob_pattern="*.jsonl"),
        DocumentTokenizer(
            output_folder=out + "/tokens",
            local_working_dir=out + "/work",
            tokenizer_name_or_path=job["tokenizer"],
            eos_token=END,
            shuffle_documents=False,
        ),
    ]
    begin = time.perf_counter()
    LocalPipelineExecutor(pipeline=pipeline, tasks=job["cores"], workers=job["cores"], logging_dir=out + "/logs").run()
    took = time.perf_counter() - begin
    values = [np.fromfile(p, np.uint16) for p in pathlib.Path(out, "tokens").glob("*.ds")]
    return told(took, sum(map(len, values)), sum(int(v.sum(dtype=np.int64)) for v in values))


CONTENDERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "encode_batch": encode_batch,
    "encode_batch_fast": lambda job: encode_batch(job, "encode_batch_fast"),
    "headrace": headrace,
    "datasets, threads": lambda job: datasets_map(job, None),
    "datasets, processes": lambda job: datasets_map(job, job["cores"]),
    "datatrove": datatrove,
}


if __name__ == "__main__":
    job = json.loads(sys.argv[1])
    print(json.dumps(CONTENDERS[job["contender"]](job)))
