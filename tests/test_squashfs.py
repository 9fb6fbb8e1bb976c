# SPDX-License-Identifier: Apache-2.0
"""SquashFS images made by mksquashfs: the same samples as the folder they were made from."""

from __future__ import annotations

import os
import pathlib
import random
import shutil
import struct
import subprocess

import headrace as hr
import pytest
from headrace import inspection
from support import COUNT, Data, crop, digest, good_samples

PACKINGS = ("gzip", "lz4", "zstd", "xz")
MKSQUASHFS = shutil.which("mksquashfs")
pytestmark = pytest.mark.skipif(MKSQUASHFS is None, reason="mksquashfs is not installed: apt-get install squashfs-tools")


def make_image(folder: pathlib.Path, image: pathlib.Path, *options: str) -> pathlib.Path:
    assert MKSQUASHFS is not None
    command = [MKSQUASHFS, str(folder), str(image), "-noappend", "-no-progress", "-quiet", *options]
    subprocess.run(command, check=True, capture_output=True)
    return image


def samples(source: str | os.PathLike[str]) -> list[tuple[str, dict[str, object]]]:
    ds = hr.open(source)
    return [(ds.key(i), dict(ds[i])) for i in range(len(ds))]


def classes(source: str | os.PathLike[str]) -> object:
    return inspection.look([str(source)], root=None, index=None, number=0, samples=1)["classes"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Files of all sizes around the block's, that pack well and do not, with holes, linked, nested."""
    root = tmp_path_factory.mktemp("tree") / "root"
    rng = random.Random(3)
    block = 4096
    for number, size in enumerate((0, 1, 100, block - 1, block, block + 1, 3 * block, 5 * block + 77, 40 * block + 1)):
        for kind, name in (("bin", "noise"), ("txt", "words")):
            data = rng.randbytes(size) if kind == "bin" else b"the same again and again. " * (size // 26) + b"x" * (size % 26)
            path = root / name / f"folder{number % 3}" / f"s{number:03d}.{kind}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.with_suffix(".JSON").write_text(f'{{"n": {number}}}')
    with (root / "noise/hole.bin").open("wb") as out:
        out.write(b"begin")
        out.seek(10 * block + 5)
        out.write(b"middle")
        out.truncate(20 * block + 9)
    os.link(root / "noise/hole.bin", root / "words/linked.bin")
    (root / "empty").mkdir()
    (root / "noise/.hidden.bin").write_bytes(b"no")
    for i in range(600):  # a listing over several blocks
        path = root / f"many/{i:05d}.bin"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"%d" % i * (i % 40))
    return root


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("options", [(), ("-always-use-fragments",), ("-no-fragments",), ("-noI", "-noD", "-noF")])
def test_an_image_is_what_its_folder_is(
    tree: pathlib.Path, tmp_path: pathlib.Path, packing: str, options: tuple[str, ...]
) -> None:
    image = make_image(tree, tmp_path / "x.sqfs", "-comp", packing, "-b", "4096", *options)
    want = samples(tree)
    assert len(want) == 620
    assert samples(image) == want
    assert classes(image) == classes(tree) == ["empty", "many", "noise", "words"]


@pytest.mark.parametrize("block", ["131072", "1048576"])
def test_large_blocks_and_random_access(tree: pathlib.Path, tmp_path: pathlib.Path, block: str) -> None:
    image = make_image(tree, tmp_path / "x.sqfs", "-comp", "zstd", "-b", block, "-always-use-fragments")
    want, ds = samples(tree), hr.open(image)
    for i in random.Random(1).choices(range(len(ds)), k=700):
        assert (ds.key(i), dict(ds[i])) == want[i]


@pytest.mark.parametrize("packing", PACKINGS)
def test_batches_are_those_of_the_folder(data: Data, tmp_path: pathlib.Path, packing: str) -> None:
    image = make_image(data.folder, tmp_path / "x.sqfs", "-comp", packing)
    fields = {"image": crop(), "label": hr.scalar("cls"), "jpg": hr.bytes("jpg"), "key": hr.key()}
    digests = set()
    for source in (data.folder, image):
        with hr.Loader(source, 8, fields, shuffle="global", seed=3, output="numpy") as loader:
            digests.add(digest(loader.epoch(1)))
    assert len(digests) == 1
    with hr.Loader(image, 8, fields, shuffle=True, tail="keep", output="numpy") as loader:
        assert sorted(int(i) for b in loader.epoch(0) for i in b.indices[b.valid]) == list(range(COUNT))


def test_a_part_is_a_folder_in_it(data: Data, tmp_path: pathlib.Path) -> None:
    root = tmp_path / "root"
    shutil.copytree(data.folder, root / "split/train", ignore=shutil.ignore_patterns("index*"))
    shutil.copytree(data.folder, root / "split/val", ignore=shutil.ignore_patterns("index*", "class0"))
    image = make_image(root, tmp_path / "x.sqfs")
    assert samples(f"{image}#split/val") == samples(root / "split/val")
    assert samples(f"{image}#split/train") == samples(root / "split/train")
    with pytest.raises(hr.UsageError, match="splits train, val"):
        hr.open(f"{image}#split")
    assert samples(f"{image}#split/train/class0")[0][0] == "img0000"
    with pytest.raises(hr.Error, match="no folder 'split/test'; there is: train val"):
        hr.open(f"{image}#split/test")


def test_links_and_devices_are_left_out_and_told_of(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    root = tmp_path / "root"
    (root / "c").mkdir(parents=True)
    (root / "c/a.bin").write_bytes(b"a")
    (root / "c/b.bin").symlink_to("a.bin")
    os.mkfifo(root / "c/pipe.bin")
    image = make_image(root, tmp_path / "x.sqfs")
    ds = hr.open(image)
    assert "2 links and devices are no samples, the first 'c/b.bin'" in caplog.text
    assert [ds.key(i) for i in range(len(ds))] == ["c/a"]


def test_what_it_is_is_told_by_its_bytes_and_it_packs_into_others(tree: pathlib.Path, tmp_path: pathlib.Path) -> None:
    image = make_image(tree / "words", tmp_path / "no_suffix")
    hr.pack(image, tmp_path / "out", shards=2, keep_order=True)
    without_label = [(k, {n: v for n, v in s.items() if n != "cls"}) for k, s in samples(image)]
    packed = [(k, {n: v for n, v in s.items() if n != "cls"}) for k, s in samples(tmp_path / "out")]
    assert packed == without_label


def test_other_versions_and_lzo_are_refused_by_name(tree: pathlib.Path, tmp_path: pathlib.Path) -> None:
    image = make_image(tree, tmp_path / "x.sqfs")
    whole = image.read_bytes()
    for place, value, text in (
        (20, 3, "packed with lzo"),
        (20, 2, "packed with lzma"),
        (20, 9, "no way of packing"),
        (28, 3, "3.0"),
    ):
        image.write_bytes(whole[:place] + struct.pack("<H", value) + whole[place + 2 :])
        with pytest.raises(hr.Error, match=text):
            hr.open(image)


def test_a_gibibyte_of_holes_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "root").mkdir()
    with (tmp_path / "root/a.bin").open("wb") as out:
        out.truncate((1 << 30) + 1)
    image = make_image(tmp_path / "root", tmp_path / "x.sqfs", "-b", "1M")
    with pytest.raises(hr.Error, match=r"a\.bin: the file has more than 1 GiB of holes"):
        hr.open(image)


@pytest.mark.parametrize("packing", PACKINGS)
def test_damage_gives_errors_and_never_a_crash(tmp_path: pathlib.Path, packing: str) -> None:
    root = tmp_path / "root"
    rng = random.Random(5)
    for i in range(30):
        (root / f"c{i % 3}").mkdir(parents=True, exist_ok=True)
        (root / f"c{i % 3}/{i}.bin").write_bytes(rng.randbytes(i * 40) + b"0" * (i * 400))
    image = make_image(root, tmp_path / "x.sqfs", "-comp", packing, "-b", "4096", "-nopad")
    whole = image.read_bytes()
    assert good_samples(image) == 30
    for cut in rng.sample(range(len(whole)), 150):
        image.write_bytes(whole[:cut])
        assert good_samples(image) == 0, cut
    tables = struct.unpack_from("<Q", whole, 64)[0]
    places = [*range(96), *rng.sample(range(tables, len(whole)), 150), *rng.sample(range(96, tables), 50)]
    for at in places:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.randrange(8)
        image.write_bytes(damaged)
        assert good_samples(image) <= 30
