# SPDX-License-Identifier: Apache-2.0
"""LitData's TokensLoader over one file of tokens: `litdata_tokens.py FILE FOLDER SECONDS`, prints rows/s.

It has no u16, so its chunks hold what its own example writes, int32 from the tokenizer; a block is 2,049 tokens.
"""

from __future__ import annotations

import pathlib
import sys
import time

sys.path = [p for p in sys.path if p != str(pathlib.Path(__file__).resolve().parent)]  # litdata.py there is a contender

import litdata  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

ROWS, BLOCK, PIECE = 64, 2049, 2048 * 512


def _piece(at: tuple[str, int]) -> torch.Tensor:
    name, begin = at
    data = np.memmap(name, np.uint16, "r")[begin : begin + PIECE]
    return torch.from_numpy(data.astype(np.int32))


def main(name: str, folder: str, seconds: float) -> None:
    torch.set_num_threads(1)
    pieces = [(name, at) for at in range(0, pathlib.Path(name).stat().st_size // 2, PIECE)]
    loader = litdata.streaming.item_loader.TokensLoader(block_size=BLOCK)
    if not (pathlib.Path(folder) / "index.json").exists():
        litdata.optimize(_piece, pieces, folder, chunk_size=BLOCK * 4096, num_workers=1, item_loader=loader, verbose=False)
    data = litdata.StreamingDataset(folder, item_loader=loader, shuffle=True, drop_last=True)
    batches = litdata.StreamingDataLoader(data, batch_size=ROWS, num_workers=0, drop_last=True)
    count, begin = 0, 0.0
    while True:
        for n, batch in enumerate(batches):
            batch.long()
            if begin == 0.0 and n == 8:
                begin, count = time.perf_counter(), 0
            count += len(batch)
            if begin and (took := time.perf_counter() - begin) > seconds:
                print(count / took)
                return


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
