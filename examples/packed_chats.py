# SPDX-License-Identifier: Apache-2.0
"""A chat fine-tuning set, packed: several chats in a row, loss on the assistant's answers alone.

    python examples/packed_chats.py

Chats go through the tokenizer's chat template while they are loaded. Attention stays within a chat (``cu_seqlens`` says where
each ends), positions begin anew with each, so that a packed chat is computed as it would be in a row of its own: the
example compares the two. Other chats share a row in every epoch.
"""

from __future__ import annotations

import json
import pathlib
import random
import sys
import tempfile
from typing import Any

import headrace as hr
import torch
from torch import nn

try:
    import tokenizers
except ImportError:
    print("this example needs tokenizers: pip install tokenizers")
    sys.exit(0)

SEQ, BATCH, EPOCHS = 128, 4, 6
WORDS = ["river", "water", "wheel", "mill", "stone", "bread", "grain", "sack"]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['role'] == 'assistant' %}{% generation %}{{ m['content'] }}<|im_end|>{% endgeneration %}"
    "{% else %}{{ m['content'] }}<|im_end|>{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_chats(folder: pathlib.Path) -> None:
    """``chats.jsonl``, and a folder with a tokenizer and its template, as models come with one."""
    draw = random.Random(1)
    lines = []
    for _ in range(200):
        messages = []
        for _ in range(draw.randint(1, 4)):
            asked = draw.choices(WORDS, k=draw.randint(1, 6))
            messages += [
                {"role": "user", "content": " ".join(asked)},
                {"role": "assistant", "content": " ".join(reversed(asked))},
            ]
        lines.append(json.dumps({"messages": messages}) + "\n")
    (folder / "chats.jsonl").write_text("".join(lines))
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<pad>", "<|im_start|>", "<|im_end|>"]
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=300, special_tokens=special, show_progress=False)
    bpe.train_from_iterator(lines, trainer)
    (folder / "tokenizer").mkdir()
    bpe.save(str(folder / "tokenizer" / "tokenizer.json"))
    (folder / "tokenizer" / "chat_template.jinja").write_text(TEMPLATE)


class GPT(nn.Module):
    def __init__(self, vocabulary: int = 300, width: int = 64) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(SEQ, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids: torch.Tensor, positions: torch.Tensor, borders: list[torch.Tensor]) -> torch.Tensor:
        hidden = self.blocks(self.token(ids) + self.place(positions), mask=within_chats(ids, borders))
        return self.head(hidden)


def within_chats(ids: torch.Tensor, borders: list[torch.Tensor]) -> torch.Tensor:
    """True where a token must not look: at later ones, and at other chats. With flash-attn, ``cu_seqlens`` is all it needs."""
    length = ids.shape[1]
    of = torch.stack([torch.bucketize(torch.arange(length), b[1:].long(), right=True) for b in borders])
    apart = of[:, :, None] != of[:, None, :]
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    return (apart | later).repeat_interleave(4, dim=0)  # for each of the 4 heads


def loss_of(logits: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Of the tokens that the assistant says, each predicted from the one before it."""
    labels = ids.masked_fill(mask == 0, -100)
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


def main() -> None:
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_chats(folder)
        data = hr.open(str(folder / "chats.jsonl"), {"ids": hr.json("messages").chat(folder / "tokenizer", max_len=SEQ)})
        rows = hr.packed(data, seq_len=SEQ)
        model = GPT()
        optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
        losses, together = [], []
        with hr.Loader(rows, BATCH, seed=1, tail="keep") as loader:
            for _, batches in loader.epochs(EPOCHS):
                shared = set()
                seen = []
                for batch in batches:
                    logits = model(batch["ids"], batch["positions"], batch["cu_seqlens"])
                    loss = loss_of(logits, batch["ids"], batch["ids_loss_mask"] * batch["loss_mask"])
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.item())
                    seen += batch.indices.tolist()
                    for a, b in zip(batch.groups[:-1], batch.groups[1:]):
                        shared.add(frozenset(batch.indices[a:b].tolist()))
                assert sorted(seen) == list(range(len(data)))  # every chat once
                together.append(shared)
        assert losses[-1] < 0.7 * losses[0], (losses[0], losses[-1])
        assert len(together[0] & together[1]) < len(together[0]) // 4  # other chats share a row
        check_packed_as_alone(model, data, rows)
        print(
            f"{rows}; loss {losses[0]:.2f} to {losses[-1]:.2f}; every chat exactly once an epoch, and computed as it would be alone"
        )


def check_packed_as_alone(model: GPT, data: hr.Dataset, rows: Any) -> None:
    model.eval()
    with torch.no_grad(), hr.Loader(rows, 1, shuffle=False) as loader:
        batch = next(iter(loader))
        packed = model(batch["ids"], batch["positions"], batch["cu_seqlens"])[0]
        ends = batch["cu_seqlens"][0].tolist()
        for n, i in enumerate(batch.indices.tolist()):
            ids = torch.as_tensor(data[i]["ids"])[None]
            whole = [torch.tensor([0, ids.shape[1]], dtype=torch.int32)]
            alone = model(ids, torch.arange(ids.shape[1])[None], whole)[0]
            assert torch.equal(batch["ids"][0, ends[n] : ends[n + 1]], ids[0])
            assert torch.allclose(packed[ends[n] : ends[n + 1]], alone, atol=1e-4)


if __name__ == "__main__":
    main()
