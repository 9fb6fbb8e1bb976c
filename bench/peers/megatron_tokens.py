# SPDX-License-Identifier: Apache-2.0
"""Megatron-Core's GPTDataset under torch's DataLoader without workers: `megatron_tokens.py PREFIX CACHE SECONDS`, prints rows/s.

A row is 2,048 tokens and as many labels, int64, with a loss mask and positions, which it makes once; no attention mask.
"""

from __future__ import annotations

import sys
import time
import types

import numpy as np
import torch
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.utils import Split

ROWS, SEQ = 64, 2048


def main(prefix: str, cache: str, seconds: float) -> None:
    torch.set_num_threads(1)
    tokenizer = types.SimpleNamespace(eod=0, pad=-1, vocab_size=50_000, unique_identifiers={"tokens": "numbers"})
    config = GPTDatasetConfig(
        random_seed=1,
        sequence_length=SEQ,
        split="1,0,0",
        path_to_cache=cache,
        tokenizer=tokenizer,
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
    )
    files = GPTDataset.build_low_level_dataset(prefix, config)
    documents = np.arange(len(files.sequence_lengths), dtype=np.int32)
    data = GPTDataset(files, prefix, documents, None, Split.train, config)
    count, begin = 0, 0.0
    while True:
        for n, batch in enumerate(torch.utils.data.DataLoader(data, ROWS, drop_last=True)):
            if begin == 0.0 and n == 8:
                begin, count = time.perf_counter(), 0
            count += len(batch["tokens"])
            if begin and (took := time.perf_counter() - begin) > seconds:
                print(count / took)
                return


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
