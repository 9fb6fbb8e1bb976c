# SPDX-License-Identifier: Apache-2.0
"""``Loader(…, as_=…)``: what a batch is delivered as."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import headrace as hr
import numpy as np
import pytest
import torch


def data() -> Any:
    return hr.from_python({"x": np.arange(40.0, dtype=np.float32).reshape(20, 2), "y": np.arange(20)})


def test_tuples_know_what_a_batch_knows() -> None:
    plain = list(hr.Loader(data(), 6, seed=1, tail="pad"))
    loader = hr.Loader(data(), 6, seed=1, tail="pad", as_=("y", "x"))
    assert len(loader) == len(plain)
    for batch, want in zip(loader, plain):
        y, x = batch
        assert isinstance(batch, tuple) and torch.equal(x, want["x"]) and torch.equal(y, want["y"])
        assert (batch.indices == want.indices).all() and (batch.valid == want.valid).all() and batch.state == want.state
        assert batch.state == loader.state_dict()
    assert not batch.valid.all()
    assert type(pickle.loads(pickle.dumps(batch))) is tuple and type(copy.copy(batch)) is tuple
    assert torch.utils._pytree.tree_map(lambda v: v * 2, batch)[0].tolist() == (y * 2).tolist()


def test_a_function_at_the_end() -> None:
    loader = hr.Loader(data(), 5, shuffle=False, as_=lambda b: (b["x"].sum(), b.indices.tolist()))
    assert [v[1] for v in loader] == [list(range(i, i + 5)) for i in range(0, 20, 5)]
    mapped = hr.Loader(data(), 5, shuffle=False, as_=("z",) if False else ("x", "y")).map(lambda b: {**b, "x": b["x"] * 0})
    assert all(x.sum() == 0 for x, _ in mapped)
    stream = hr.Loader(hr.from_python(lambda: iter([(1, 2)] * 8)), 4, as_=("1", "0"))
    assert [(a.tolist(), b.tolist()) for a, b in stream] == [([2] * 4, [1] * 4)] * 2


def test_masks_and_what_is_wrong() -> None:
    ds = hr.from_python([{"a": 1, "b": "x"}, {"a": 2}])
    fields = {"a": hr.scalar("a"), "b": hr.text("b", optional=True)}
    (batch,) = hr.Loader(ds, 2, fields, shuffle=False, as_=("a", "b_valid"))
    assert batch[1].tolist() == [True, False]
    for wrong, words in (
        ("x", "tuple of names"),
        (("x", "nope"), "no field 'nope' in a batch; it has x, y"),
        ((), "tuple"),
        (3, "not 3"),
    ):
        with pytest.raises(hr.UsageError, match=words):
            hr.Loader(data(), 5, as_=wrong)
    with pytest.raises(hr.UsageError, match="left no 'y'"):
        list(hr.Loader(data(), 5, as_=("x", "y")).map(lambda b: {"x": b["x"]}))
    with pytest.raises(hr.UsageError, match="as_=function"):
        hr.Loader(data(), 5, collate_fn=list)


def test_a_training_loop_of_dataloaders_users() -> None:
    model = torch.nn.Linear(2, 1)
    for x, y in hr.Loader(data(), 10, as_=["x", "y"]):
        torch.nn.functional.mse_loss(model(x)[:, 0], y.float()).backward()
    assert model.weight.grad is not None
