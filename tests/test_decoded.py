# SPDX-License-Identifier: Apache-2.0
"""``hr.open(..., in_memory="decoded")``: pixels in place of pictures, one copy for all processes of a node."""

from __future__ import annotations

import io
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import headrace as hr
import numpy as np
import pytest
from headrace import decoded
from PIL import Image
from support import Data, write_tar

SHM = pathlib.Path("/dev/shm")
# They count all that headrace has there, of other processes too.
pytestmark = [pytest.mark.alone, pytest.mark.skipif(not os.access(SHM, os.W_OK), reason="no /dev/shm here")]
FIELDS = {"image": hr.image("jpg").resize(40).center_crop(32), "label": hr.scalar("cls"), "key": hr.key()}


def ours() -> set[str]:
    return {p.name for p in SHM.glob(f"headrace-decoded-{os.geteuid()}-*")}


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    decoded._held.clear()
    assert ours() == set()


def test_samples_are_the_same(data: Data) -> None:
    plain, held = hr.open(data.tar, FIELDS), hr.open(data.tar, FIELDS, in_memory="decoded")
    assert len(ours()) == 2  # the folder and its lock
    assert len(plain) == len(held)
    for one, other in zip(plain, held, strict=True):
        np.testing.assert_array_equal(one["image"], other["image"])
        assert (one["label"], one["key"]) == (other["label"], other["key"])


def test_image_is_a_picture_of_any_extension(tmp_path: pathlib.Path) -> None:
    for i, name in enumerate(("a/0.jpg", "a/1.png", "b/0.png", "b/1.jpeg")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (8 + i, 8), (60 * i, 0, 0)).save(tmp_path / name)
    fields = {"x": hr.image("image").resize((8, 8)), "y": hr.scalar("cls")}
    plain, held = hr.open(tmp_path, fields), hr.open(tmp_path, in_memory="decoded")
    for one, other in zip(plain, hr.Loader(held, 1, fields, shuffle=False, output="numpy"), strict=True):
        np.testing.assert_array_equal(one["x"], other["x"][0])


def test_random_steps_draw_the_same(data: Data) -> None:
    fields = {"image": hr.image("jpg").random_resized_crop(32).random_flip(), "key": hr.key()}
    loaders = [
        hr.Loader(hr.open(data.tar, fields, in_memory=how), 8, shuffle=False, output="numpy") for how in (False, "decoded")
    ]
    for one, other in zip(*(loader.epoch(3) for loader in loaders), strict=True):
        assert one["key"] == other["key"]
        np.testing.assert_array_equal(one["image"], other["image"])
    for loader in loaders:
        loader.close()


def test_what_exif_says_is_left_to_the_field(tmp_path: pathlib.Path) -> None:
    """A picture on its side stays so unless the field asks otherwise, as without ``in_memory``."""
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (24, 40, 3), dtype=np.uint8))
    exif = Image.Exif()
    exif[0x112] = 6
    out = io.BytesIO()
    picture.save(out, "jpeg", exif=exif)
    url = write_tar(tmp_path / "a.tar", [("0.jpg", out.getvalue()), ("1.jpg", out.getvalue())])
    one, other = (hr.open(url, {"x": hr.image("jpg")}, in_memory=how)[0]["x"] for how in (False, "decoded"))
    assert one.shape == other.shape
    np.testing.assert_array_equal(one, other)


def test_a_loader_resumes_on_pixels_decoded_anew(data: Data) -> None:
    def loader() -> hr.Loader:
        return hr.Loader(hr.open(data.tar, FIELDS, in_memory="decoded"), 8, seed=4, output="numpy")

    with loader() as whole:
        wanted = [batch["key"] for batch in whole.epoch(1)]
    with loader() as first:
        batches = first.epoch(1)
        got = [next(batches)["key"] for _ in range(3)]
        state = first.state_dict()
    decoded._held.clear()
    assert ours() == set()
    with loader() as second:
        second.load_state_dict(state)
        assert got + [batch["key"] for batch in second.epoch(1)] == wanted


SHOW = """
    import headrace as hr, sys
    ds = hr.open(sys.argv[1], {"x": hr.image("jpg").resize(20).center_crop(16)}, in_memory="decoded")
    print(int(ds[5]["x"].sum()), flush=True)
    sys.stdin.readline()
"""


def start(url: str) -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(SHOW), url], **pipes)


def test_processes_share_one_copy_and_the_last_removes_it(data: Data) -> None:
    processes = [start(data.tar) for _ in range(3)]
    sums = {p.stdout.readline() for p in processes if p.stdout}
    assert len(sums) == 1 and len(ours()) == 2
    for p in processes:
        p.communicate("\n", timeout=60)
    assert ours() == set()


def test_what_a_killed_process_leaves_is_used_or_swept(data: Data, tmp_path: pathlib.Path) -> None:
    process = start(data.tar)
    assert process.stdout and process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(ours()) == 2
    other = write_tar(tmp_path / "a.tar", [(f"{i}.jpg", data.samples[i].jpeg) for i in range(4)])
    assert len(hr.open(other, in_memory="decoded")) == 4
    assert len(ours()) == 2  # that of the killed one is gone


def test_a_picture_that_does_not_decode_is_named_and_leaves_nothing(tmp_path: pathlib.Path, data: Data) -> None:
    url = write_tar(tmp_path / "a.tar", [("0.jpg", data.samples[0].jpeg), ("bad.jpg", data.samples[1].jpeg[:300])])
    with pytest.raises(hr.DataError, match="bad"):
        hr.open(url, in_memory="decoded")
    assert ours() == set()


def test_too_much_for_the_memory_is_refused(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoded._core, "usable_memory_bytes", lambda: 1 << 20)
    with pytest.raises(hr.Unsupported, match="half of the memory"):
        hr.open(data.tar, in_memory="decoded")
    assert ours() == set()
