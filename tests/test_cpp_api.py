# SPDX-License-Identifier: Apache-2.0
"""The C++ face: installed, found by find_package, used by a program of its own, in step with Python."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
from typing import Any

import headrace as hr
import numpy as np
import pytest
import support
from headrace.photos import make_photo

pytestmark = pytest.mark.unsanitized  # builds a program of its own; the C++ tests run under the sanitizers anyway
ROOT = pathlib.Path(__file__).resolve().parent.parent


def call(*command: Any) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """examples/cpp, built against an installed copy."""
    if not (ROOT / "build/release/libheadrace.so").exists():
        pytest.skip("./dev setup builds the C++ library")
    folder = tmp_path_factory.mktemp("cpp")
    call("cmake", "--install", ROOT / "build/release", "--component", "cpp", "--prefix", folder / "prefix")
    call("cmake", "-S", ROOT / "examples/cpp", "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={folder / 'prefix'}", "-G", "Ninja")
    call("cmake", "--build", folder / "build")
    return folder / "build"


@pytest.fixture(scope="module")
def program(programs: pathlib.Path) -> pathlib.Path:
    return programs / "ranks"


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    root = tmp_path_factory.mktemp("photos")
    for i in range(101):
        (root / f"c{i % 3}").mkdir(exist_ok=True)
        (root / f"c{i % 3}" / f"{i:03d}.jpg").write_bytes(make_photo(i, (80, 60)))
    hr.pack(root, root.parent / "shards", shards=4)
    return root.parent / "shards"


@pytest.mark.parametrize(("before", "after"), [(2, 3), (1, 4), (4, 1)])
def test_ranks_of_the_example_see_every_sample_once(program: pathlib.Path, shards: pathlib.Path, before: int, after: int) -> None:
    out = call(program, shards, before, after)
    fields = " ".join(f"{name} ({kind})" for name, kind in hr.open(shards).schema)
    assert f"101 samples; fields: {fields}\n" in out and "jpg (jpeg)" in fields
    assert out.rstrip().endswith(f"{after} ranks took the rest: 101 samples, 0 of them not exactly once")


def test_python_goes_on_where_cpp_stopped(program: pathlib.Path, shards: pathlib.Path) -> None:
    out = call(program, shards, 2, 2)
    state = json.loads(re.search(r"state: (\{.*\})", out)[1])  # type: ignore[index]
    taken = int(re.search(r"took (\d+) samples", out)[1])  # type: ignore[index]
    assert (
        int(re.search(r"first sample of rank 0 is (\d+)", out)[1])
        == next(  # type: ignore[index]
            iter(hr.Loader(shards, 12, {"k": hr.key()}, seed=7, tail="keep", rank=0, world_size=2, output="numpy"))
        ).indices[0]
    )
    with hr.Loader(shards, 8, {"k": hr.key()}, seed=7, tail="keep", output="numpy") as loader:
        fresh = loader.state_dict()
        assert {k: v for k, v in state.items() if k != "g"} == {k: v for k, v in fresh.items() if k != "g"}
        loader.load_state_dict(state)
        rest = [int(i) for batch in loader.epoch(0) for i in batch.indices]
    assert len(set(rest)) == len(rest) == 101 - taken


def fnv(values: np.ndarray) -> str:
    """FNV-1a of the bytes, as examples/cpp/blend.cc prints it."""
    out = 14695981039346656037
    for byte in np.ascontiguousarray(values).tobytes():
        out = (out ^ byte) * 1099511628211 % 2**64
    return f"{out:016x}"


def cropped(picture: Any) -> Any:
    return picture.random_resized_crop(32).random_flip()


def test_blends_joints_and_changed_weights_are_those_of_python(programs: pathlib.Path, shards: pathlib.Path) -> None:
    """Orders, draws, pixels and the state at the end, through the example of a blend."""
    out = call(programs / "blend", shards, shards)
    fields = {
        **hr.joint(image=cropped(hr.image("jpg")), mask=cropped(hr.mask("jpg", mode="L"))),
        "label": hr.scalar("cls"),
    }
    lines = []
    blend = hr.blend({"a": (shards, 3.0), "b": (shards, 1.0)}, epoch_samples=60)
    with hr.Loader(blend, 10, fields, seed=7, tail="keep", output="numpy", threads=2) as loader:
        for epoch, batches in loader.epochs(2):
            for step, batch in enumerate(batches):
                drawn = " ".join(f"{s}/{i}" for s, i in zip(batch.sources, batch.indices))
                lines.append(f"epoch {epoch}: image {fnv(batch['image'])}, mask {fnv(batch['mask'])}: {drawn}")
                if epoch == 0 and step == 1:
                    loader.set_weights({"a": 1, "b": 1}, at_step=4)
        state = loader.state_dict()
    assert [line for line in out.splitlines() if line.startswith("epoch")] == lines and len(lines) == 12
    assert json.loads(re.search(r"state: (\{.*\})", out)[1]) == state  # type: ignore[index]
    first = re.search(r"the first sample is (\S+)", out)[1]  # type: ignore[index]
    assert lines[0].split(": ")[-1].split()[0] == first
    # Steps that were planned anew may have been decoded before: at most all 8 of 12 from the fourth on.
    decoded = int(re.search(r"(\d+) samples decoded by 2 threads", out)[1])  # type: ignore[index]
    assert 120 <= decoded <= 200 and "0 replaced" in out


def test_mixed_batches_are_those_of_python(programs: pathlib.Path, shards: pathlib.Path) -> None:
    out = call(programs / "blend", shards, shards)
    fields = {"image": cropped(hr.image("jpg")).cast("f32"), "label": hr.scalar("cls")}
    mix = [hr.mixup(classes=3), hr.cutmix(classes=3)]
    with hr.Loader(shards, 10, fields, seed=7, output="numpy", mix=mix) as loader:
        batch = next(iter(loader))
    assert f"mixed: image {fnv(batch['image'])}, label {fnv(batch['label'])}, f32[10, 3]" in out


def write_tar(path: pathlib.Path, samples: list[dict[str, bytes]]) -> pathlib.Path:
    return support.write_tar(
        path, [(f"{i:04d}.{name}", data) for i, sample in enumerate(samples) for name, data in sample.items()]
    )


def test_missing_values_functions_and_fields_per_source_are_those_of_python(
    programs: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    a = write_tar(tmp_path / "a.tar", [{"id": b"x", **({"cls": b"%d" % i, "txt": b"t" * i} if i % 3 else {})} for i in range(8)])
    b = write_tar(tmp_path / "b.tar", [{"lab": b"%d" % (50 + i)} for i in range(5)])
    out = call(programs / "fields", a, b, tmp_path / "packed").splitlines()
    fields: dict[str, hr.Field] = {
        "n": hr.scalar("cls", default=-1),
        "maybe": hr.scalar("cls", optional=True),
        "twice": hr.scalar("cls", default=5).map(lambda v: np.float32(2 * v)),
        "text": hr.bytes("txt", default=b"none").padded(45),
    }
    lines = []
    with hr.Loader(a, 4, fields, shuffle=False, output="numpy") as loader:
        for batch in loader.epoch(0):
            rows = zip(batch["n"], batch["maybe"], batch["maybe_valid"], batch["twice"], batch["text"][0])
            lines += [f"{n} {m} {int(v)} {t:g} {bytes(x).decode()}" for n, m, v, t, x in rows]
    other = {"n": hr.scalar("lab")}
    blend = hr.blend({"a": (a, 1), "b": (hr.open(b, other), 1)}, epoch_samples=64)
    with hr.Loader(blend, 16, {"n": hr.scalar("cls", default=-1)}, seed=3, output="numpy") as loader:
        lines += ["blend " + " ".join(f"{s}/{n}" for s, n in zip(x.sources, x["n"])) for x in loader.epoch(0)]
    assert out[: len(lines)] == lines and out[len(lines)] == "packed 5 samples in 2 shards"
    assert out[-1].removeprefix("verdict: ") in ("model", "decoder", "storage latency", "storage bandwidth")
    hr.pack(b, tmp_path / "ours", shards=2, keep_order=True)
    for shard in sorted((tmp_path / "ours").glob("*.tar")):
        assert (tmp_path / "packed" / shard.name).read_bytes() == shard.read_bytes()


def test_errors_of_the_example_name_the_remedy(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = subprocess.run([program, tmp_path / "none-{0..3}.tar"], capture_output=True, text=True)
    assert done.returncode == 1 and "none-0.tar" in done.stderr


def test_rows_of_tokens_are_those_of_python(programs: pathlib.Path, tmp_path: pathlib.Path) -> None:
    from test_token_windows import documents_of, write_megatron

    write_megatron(tmp_path / "a", documents_of(1))
    fields = {"tokens": hr.tokens(seq_len=8), "positions": hr.array("positions")}
    with hr.Loader(str(tmp_path / "a.bin"), 4, fields, seed=3, tail="keep", output="numpy") as loader:
        rows = [row for b in loader.epoch(0) for row in zip(b.indices, b["tokens"], b["positions"])]
    assert call(programs / "tokens", tmp_path / "a.bin", 8).splitlines() == [f"{i} {t.sum()} {p[-1]}" for i, t, p in rows]
    np.arange(100, dtype=np.uint16).tofile(tmp_path / "plain.bin")
    out = call(programs / "tokens", tmp_path / "plain.bin", 8, "u16").splitlines()
    assert sorted(out) == sorted(f"{i} {sum(range(8 * i, 8 * i + 9))}" for i in range(12))
