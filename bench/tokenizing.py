# SPDX-License-Identifier: Apache-2.0
"""From JSON lines to files of tokens: hr.tokenize beside the tokenizer's own encode_batch, Hugging Face's datasets.map and datatrove.

    ./dev bench --tokenize [--megabytes 32] [--rounds 3]

A corpus of made-up words whose frequencies fall as Zipf says, cut into 8 files of JSON lines; a byte-level BPE of 32,000
tokens, trained on it here. Everyone has all cores and gives the same tokens, which is checked. "encode_batch" has the
texts as Python strings in memory, is called once with all of them, and writes nothing: the limit. headrace reads the files and
writes Megatron's. datasets.map has batches of 1,000, in one process with the tokenizer's threads and in as many processes
as cores; it starts from an Arrow file, so it is timed alone and with load_dataset, which makes that of the files. datatrove as its
pipeline runs. Rounds are interleaved; the table
shows medians, every contender in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Any

import environments
import numpy as np

LETTERS = np.array(list("aaabcdeeeefghiijklmnooprsstuvwyz"))
FILES = 8


def words(count: int, rng: np.random.Generator) -> list[str]:
    return ["".join(rng.choice(LETTERS, n)) for n in rng.integers(2, 10, count)]


def documents(characters: int) -> list[str]:
    """Of 200 to 20,000 characters, mostly short."""
    rng = np.random.default_rng(7)
    known = np.array(words(60_000, rng), object)
    share = 1.0 / np.arange(1, len(known) + 1)
    share /= share.sum()
    out: list[str] = []
    total = 0
    while total < characters:
        size = int(min(4000, 40 + rng.exponential(400)))
        text = known[rng.choice(len(known), size, p=share)]
        stops = rng.random(size)
        text = text + np.where(stops < 0.06, ". ", np.where(stops < 0.14, ", ", " ")).astype(object)
        out.append("".join(text).strip().capitalize())
        total += len(out[-1])
    return out


def prepare(folder: pathlib.Path, megabytes: float) -> dict[str, Any]:
    import tokenizers

    texts = documents(int(megabytes * 1e6))
    corpus = folder / "corpus"
    corpus.mkdir()
    for n in range(FILES):
        part = texts[len(texts) * n // FILES : len(texts) * (n + 1) // FILES]
        lines = "".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in enumerate(part))
        (corpus / f"part-{n}.jsonl").write_text(lines)
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=32_000, special_tokens=["<|endoftext|>"], show_progress=False)
    made.train_from_iterator(texts[:: max(1, len(texts) // 3000)], trainer)
    made.save(str(folder / "tokenizer.json"))
    return {
        "folder": str(folder),
        "corpus": str(corpus),
        "tokenizer": str(folder / "tokenizer.json"),
        "characters": sum(map(len, texts)),
        "documents": len(texts),
        "cores": len(os.sched_getaffinity(0)),
    }


def run(script: str, contender: str, job: dict[str, Any], number: int) -> dict[str, Any]:
    given = {**job, "contender": contender, "out": os.path.join(job["folder"], f"{contender.replace(' ', '-')}-{number}")}
    command = [str(environments.interpreter(script)), "-m", "peers.text", json.dumps(given)]
    env = {**os.environ, "HF_HOME": job["folder"] + "/hf", "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    env.pop("TOKENIZERS_PARALLELISM", None)
    done = subprocess.run(command, capture_output=True, text=True, cwd=environments.ROOT / "bench", env=env)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise RuntimeError(f"{contender}: {lines[-1] if lines else 'no message'}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("--megabytes", type=float, default=32)
    about.add_argument("--rounds", type=int, default=3)
    about.add_argument("--only", default="", help="contenders by their first letters, with commas between")
    about.add_argument("--json", default="build/results/tokenize.json")
    given = about.parse_args()
    contenders = {
        "encode_batch": "",
        "encode_batch_fast": "",
        "headrace": "",
        "datasets, threads": "text",
        "datasets, processes": "text",
        "datatrove": "text",
    }
    if given.only:
        wanted = tuple(given.only.split(","))
        contenders = {name: script for name, script in contenders.items() if name.startswith(wanted)}
    try:
        if "text" in contenders.values():
            environments.make("text")
    except environments.NotInstalled as why:
        print(f"the peers cannot be had here: {why}")
        contenders = {name: script for name, script in contenders.items() if not script}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in contenders}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        job = prepare(pathlib.Path(folder), given.megabytes)
        for n in range(given.rounds):
            for name, script in contenders.items():
                try:
                    found[name].append(run(script or "none", name, job, n))
                except RuntimeError as why:
                    print(why)
    show(found, job)
    pathlib.Path(given.json).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(given.json).write_text(json.dumps({"job": job, "found": found}, indent=1) + "\n")


def show(found: dict[str, list[dict[str, Any]]], job: dict[str, Any]) -> None:
    sums = {(r["tokens"], r["sum"]) for rounds in found.values() for r in rounds}
    if len(sums) > 1:
        sys.exit(f"the contenders do not give the same tokens: {sums}")
    rates = {name: statistics.median(r["tokens"] / r["seconds"] for r in rounds) for name, rounds in found.items() if rounds}
    for name, rounds in found.items():
        if any(r["before"] for r in rounds):
            rates[name + ", from the files"] = statistics.median(r["tokens"] / (r["seconds"] + r["before"]) for r in rounds)
    ours = rates.get("headrace")
    mega = job["characters"] / 1e6
    print(f"{job['documents']:,} documents, {mega:.1f} MB, {next(iter(sums))[0]:,} tokens, {job['cores']} cores")
    print("| | tokens/s | headrace over it |\n|---|---|---|")
    for name, rate in rates.items():
        print(f"| {name} | {rate:,.0f} | {ours / rate:.2f}x |" if ours else f"| {name} | {rate:,.0f} | |")


if __name__ == "__main__":
    sys.exit(main())
