# SPDX-License-Identifier: Apache-2.0
"""The benchmark is fair and does not stop for one contender: what it compares, lists and draws."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import chart
import contenders
import environments
import harness
import images
import numpy as np
import pytest
import report
from headrace.photos import make_photo
from photo_set import Data

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    import headrace as hr

    folder = tmp_path_factory.mktemp("bench")
    for i in range(80):
        name = folder / "photos-80" / f"class{i % 2}" / f"{i:03d}.jpg"
        name.parent.mkdir(parents=True, exist_ok=True)
        name.write_bytes(make_photo(i))
    hr.pack(folder / "photos-80", folder / "shards-80", shards=2, keep_order=True)
    return Data(folder / "photos-80", folder / "shards-80", 80)


def test_the_reference_is_torchvisions_resize_and_center_crop(photos):
    from PIL import Image
    from torchvision.transforms import functional as F

    want = harness.reference(photos)
    for i, name in enumerate(sorted(photos.photos.glob("*/*.jpg"))[:4]):
        with Image.open(name) as picture:
            picture = F.center_crop(F.resize(picture.convert("RGB"), 256), 224)
        assert np.array_equal(F.pil_to_tensor(picture).numpy(), want[i])


@pytest.mark.parametrize("name", ["headrace tar", "headrace folder", "DataLoader + pil"])
def test_contenders_give_the_pixels_of_pillow(photos, name):
    (c,) = (c for c in contenders.peers() if c.name == name)
    most, mean = harness.differences(c, photos, harness.reference(photos))
    assert most < 0.01 and mean < 0.001


def test_another_picture_is_seen_as_a_difference(photos):
    (c,) = (c for c in contenders.peers() if c.name == "headrace tar")
    most, _ = harness.differences(c, photos, harness.reference(photos)[::-1])
    assert most > harness.SAME_LEVELS


def test_a_contender_that_fails_is_listed_with_the_reason(photos):
    broken = contenders.Contender("broken", "headrace", (1,), options={})  # its script misses an option
    found = harness.rounds([(broken, 1)], photos, 2, 0.1, lambda what: None, lambda: None)
    row = report.Row(broken, None, {}, found["broken", 1, "u8"].failure)
    assert row.reason == "KeyError: 'source'"
    assert report.peer_table([row])[1][:2] == ("broken", "KeyError: 'source'")


def test_a_peer_that_cannot_be_installed_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "ROOT", tmp_path)
    monkeypatch.setattr(environments, "PEERS", tmp_path)
    (tmp_path / "nobody.txt").write_text("--no-index\nno-such-peer==1.0\n")
    with pytest.raises(environments.NotInstalled, match="no-such-peer"):
        environments.make("nobody")


def test_everything_that_peers_install_is_pinned():
    files = sorted((ROOT / "bench/peers").glob("*.txt"))
    assert {f.stem for f in files} == {c.script for c in contenders.peers()} - {"headrace", "bare_loop", "dataloader"} | {
        "megatron",  # bench/tokens.py
        "s3",  # bench/remote_peers.py
        "text",  # bench/tokenizing.py
    }
    for file in files:
        lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
        assert lines
        assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines), file


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(SystemExit, match=r"no contender dally; there are .*dali"):
        images.chosen(True, "dally")


def _run(rates: dict[str, float]) -> dict:
    rows = []
    for c in contenders.peers():
        pixels = "same" if c.filter == "antialiased" else c.filter
        measured = {mode: harness.Measured([rates.get(c.name, 500.0)], [1.0], [300.0]) for mode in harness.MODES}
        rows.append(report.Row(c, harness.Prepared(2, {}, 1, 0.1, pixels), measured))
    settings = {"batch": 64, "rounds": 3}
    return {"rows": rows, "json": report.as_dict(rows, settings)}


def test_ratios_take_the_best_peer_of_each_kind():
    rows = _run({"headrace tar": 2000, "DALI": 1000, "tf.data, aliased": 1600})["rows"]
    table = {cells[0]: cells[1:] for cells in report.ratios(rows)}
    assert table["headrace tar / best peer, same pixels"] == ("2.00", "2.00")
    assert table["headrace tar / best peer of any kind"] == ("1.25", "1.25")


def test_the_chart_has_every_contender_and_stripes_other_filters():
    run = json.loads(json.dumps(_run({"headrace tar": 2000})["json"]))
    svg = ET.fromstring(chart.draw(run))
    text = " ".join(t.text for t in svg.iter("{http://www.w3.org/2000/svg}text"))
    assert all(e["title"] in text for e in run["contenders"])
    striped = [r for r in svg.iter("{http://www.w3.org/2000/svg}rect") if "stripes" in r.get("fill", "")]
    assert len(striped) == 2 * sum(c.filter != "antialiased" for c in contenders.peers())


def test_sources_are_compared_at_equal_work(capsys):
    import python_sources
    import torch

    python_sources.compare(python_sources.Items(200), 20, 1, (0,))
    python_sources.compare(torch.utils.data.TensorDataset(torch.rand(200, 4, 4), torch.arange(200)), 20, 1, (0,))
    said = capsys.readouterr().out
    assert said.count("DataLoader, 0 workers") == 2 and said.count("load of the machine") == 2


def test_the_stages_for_a_gpu_run_for_a_moment_without_one(tmp_path):
    stages = ["build", "check", "copies", "table"]
    run = [sys.executable, str(ROOT / "bench/gpu/run.py"), "--dry", "--again", *stages]
    environment = os.environ | {"HEADRACE_BENCH_RESULTS": str(tmp_path / "gpu.jsonl")}
    done = subprocess.run(run, capture_output=True, text=True, timeout=170, env=environment)
    assert done.returncode == 0, done.stderr
    assert "failed" not in done.stdout.lower(), done.stdout
    assert "raw f32 rows through a Loader" in done.stdout
