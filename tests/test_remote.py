# SPDX-License-Identifier: Apache-2.0
"""Data on servers: what errors say, that no secret leaves, what faults do, how many requests it takes."""

from __future__ import annotations

import copy
import itertools
import logging
import os
import pathlib
import pickle
import random
import time
from collections.abc import Iterator
from typing import Any

import headrace as hr
import pytest
import servers
import support
from headrace.errors import Forbidden, NotFound, Unsupported
from support import write_tar

COUNT = 40
QUICK: dict[str, Any] = {"backoff": 0.002, "stall_retry": 0.3}


def write_shards(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    numbers = iter(range(COUNT))
    for shard in range(2):
        members = [(f"{n:03d}.cls", str(n).encode()) for n in itertools.islice(numbers, COUNT // 2)]
        padded = [m for n, m in enumerate(members) for m in (m, (f"{m[0][:3]}.bin", bytes([n]) * 3000))]
        write_tar(folder / f"{shard}.tar", padded)


def labels(loader: hr.Loader) -> list[int]:
    out = []
    for batch in loader.epoch(0):
        for label, data in zip(batch["label"], batch["data"]):
            assert bytes(data) == bytes([int(label) % 20]) * 3000
            out.append(int(label))
    return out


FIELDS = {"label": hr.scalar("cls"), "data": hr.bytes("bin")}
OPTIONS: dict[str, Any] = {"batch_size": 5, "fields": FIELDS, "shuffle": True, "seed": 1, "output": "numpy", "threads": 1}


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.S3]:
    with servers.versitygw(tmp_path_factory.mktemp("s3")) as server:
        write_shards(server.folder / "d")
        yield server


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Web]:
    with servers.nginx(tmp_path_factory.mktemp("web")) as server:
        write_shards(server.folder / "d")
        write_shards(server.folder / "private")
        yield server


@pytest.fixture
def odd(tmp_path: pathlib.Path) -> Iterator[servers.Odd]:
    write_shards(tmp_path / "www/d")
    with servers.odd_server(tmp_path / "www") as server:
        yield server


@pytest.fixture(autouse=True)
def alone(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))


# -- errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "storage", "kind", "words"),
    [
        ("s3://nobucket/x.tar", {}, NotFound, "no bucket 'nobucket'"),
        ("s3://bucket/d/none.tar", {}, NotFound, "there is no such object"),
        ("s3://bucket/none-*.tar", {}, NotFound, "nothing matches"),
        ("s3://bucket/d/0.tar", {"secret_key": "canary-wrong"}, Forbidden, "secret key is wrong"),
        ("s3://bucket/d/0.tar", {"access_key": None, "secret_key": None, "anonymous": True}, Forbidden, "not public"),
        ("s3://bucket/d/0.tar", {"region": "eu-north-1"}, Forbidden, "region='us-east-1'"),
        ("s3://bucket/d/0.tar", {"access_key": None, "secret_key": None}, Forbidden, "no credentials were found"),
        ("s3://bucket/d/0.tar", {"endpoint": "http://gateway.example"}, Forbidden, "allow_plain_http=True"),
        ("s3://bucket/d/0.tar", {"profile": "none", "access_key": None, "secret_key": None}, hr.UsageError, "no profile 'none'"),
        ("gopher://bucket/d/0.tar", {}, Unsupported, "does not read gopher://"),
    ],
)  # fmt: skip
def test_errors_of_s3_name_the_url_and_what_to_do(s3: servers.S3, url: str, storage: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind) as raised:
        hr.open(url, storage=s3.storage(**storage))
    text = str(raised.value)
    assert words in text, text
    assert url.split("*")[0] in text or "profile" in words, text
    assert not any(canary in text for canary in (*servers.CANARIES, "canary-wrong"))


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (403, "AccessDenied", "refuses (403 AccessDenied)"),
        (400, "ExpiredToken", "the credentials have expired"),
        (403, "RequestTimeTooSkewed", "the clock of this machine is wrong"),
        (301, "PermanentRedirect", "another region"),
    ],
)
def test_what_s3_refuses_is_said_with_the_url(odd: servers.Odd, status: int, code: str, words: str) -> None:
    """Answers that versitygw gives to nobody: a HEAD has no body, so the code comes of a second request."""

    def answer(handler: Any, number: int) -> bool:
        region = {"x_amz_bucket_region": "eu-west-1"} if status == 301 else {}
        handler.body(status, f"<Error><Code>{code}</Code></Error>".encode(), **region)
        return True

    odd.answer = answer
    storage = hr.storage(
        endpoint=odd.url()[:-1],
        region="us-east-1",
        access_key=servers.KEY,
        secret_key=servers.SECRET,
        session_token="canary-token",
    )
    with pytest.raises(Forbidden) as raised:
        hr.open("s3://bucket/d/0.tar", storage=storage)
    text = str(raised.value)
    assert words in text and "s3://bucket/d/0.tar" in text, text
    assert not any(canary in text for canary in servers.CANARIES)


def test_redirects_to_link_local_addresses_and_plain_http_are_refused(odd: servers.Odd) -> None:
    def answer(handler: Any, number: int) -> bool:
        handler.body(302, b"", Location="http://169.254.169.254/latest/meta-data")
        return True

    odd.answer = answer
    with pytest.raises(Forbidden, match="link-local"):
        hr.open(odd.url("d/0.tar"))
    with pytest.raises(Forbidden, match="allow_plain_http=True"):
        hr.open("http://far.example/0.tar", storage=hr.storage(token="canary-token"))


def test_errors_of_web_servers(web: servers.Web, tmp_path: pathlib.Path) -> None:
    with pytest.raises(NotFound, match="no such file"):
        hr.open(web.url("d/none.tar"))
    with pytest.raises(Forbidden, match=r"refuses \(401\).*token="):
        hr.open(web.url("private/0.tar"))
    assert len(hr.open(web.url("private/0.tar"), storage=hr.storage(token="canary-token"))) == COUNT // 2
    with pytest.raises(Forbidden, match=r"certificate is not accepted.*ca_file"):
        hr.open(web.url("d/0.tar", tls=True, host="localhost"))
    trusted = hr.storage(ca_file=web.certificate)
    assert len(hr.open(web.url("d/0.tar", tls=True, host="localhost"), storage=trusted)) == COUNT // 2
    with pytest.raises(Forbidden, match="certificate is not accepted"):  # of another host
        hr.open(web.url("d/0.tar", tls=True, host="127.0.0.1"), storage=trusted)
    with pytest.raises(hr.UsageError) as raised:
        hr.open("https://me:canary-password@localhost/x.tar")
    assert "canary" not in str(raised.value)
    with pytest.raises(Forbidden, match="allow_link_local"):
        hr.open("http://169.254.169.254/latest/x.tar")


def test_a_port_that_speaks_the_other_protocol_is_named(web: servers.Web) -> None:
    quick = hr.storage(retries=0, ca_file=str(web.certificate))
    with pytest.raises(hr.StorageError, match=r"http://127.0.0.1:.*/d/0.tar: the port speaks https: write https://"):
        hr.open(web.url("d/0.tar", tls=True).replace("https", "http"), storage=quick)
    with pytest.raises(hr.StorageError, match=r"https://127.0.0.1:.*/d/0.tar: the port speaks no TLS"):
        hr.open(web.url("d/0.tar").replace("http", "https"), storage=quick)
    with pytest.raises(Forbidden, match="ask for it by a name that the certificate has"):
        hr.open(web.url("d/0.tar", tls=True), storage=quick)


def test_a_redirect_that_leads_nowhere_is_said(odd: servers.Odd) -> None:
    odd.answer = lambda handler, number: handler.body(302, b"", Location="ftp://127.0.0.1/x.tar") or True
    with pytest.raises(NotFound, match=r"redirects \(302\) to nowhere"):
        hr.open(odd.url("d/0.tar"))


def test_an_expired_signature_is_said(odd: servers.Odd) -> None:
    odd.answer = lambda handler, number: handler.body(403, b"") or True
    with pytest.raises(Forbidden, match="signature in the URL may have expired"):
        hr.open(odd.url("d/0.tar?X-Amz-Signature=canary-token"))


def test_a_whole_bucket_is_a_folder(s3: servers.S3) -> None:
    write_shards(s3.folder.parent / "whole")
    for url in ("s3://whole", "s3://whole/", "s3://whole/*.tar"):
        assert len(hr.open(url, storage=s3.storage())) == COUNT


def test_bad_arguments_of_storage() -> None:
    for bad in ({"access_key": "a"}, {"user": "a"}, {"addressing": "x"}, {"retries": -1}, {"stall_error": 0}, {"token": "a\nb"},
                {"headers": {"a": 1}}, {"anonymous": True, "access_key": "a", "secret_key": "b"}, {"connections": 0}):  # fmt: skip
        with pytest.raises(hr.UsageError):
            hr.storage(**bad)  # type: ignore[arg-type]
    with pytest.raises(hr.UsageError, match=r"there is no file '/none\.pem'"):
        hr.storage(ca_file="/none.pem")
    with pytest.raises(hr.UsageError, match=r"give 's3://bucket/x\.tar' as a text"):
        hr.open(pathlib.Path("s3://bucket/x.tar"))
    with pytest.raises(hr.UsageError, match=r"hr\.storage"):
        hr.open("s3://bucket/x", storage={"region": "x"})  # type: ignore[arg-type]


# -- secrets -----------------------------------------------------------------------------------------


def test_no_secret_in_repr_pickle_state_log_trace_or_file(
    s3: servers.S3, caplog: pytest.LogCaptureFixture, tmp_path: pathlib.Path
) -> None:
    caplog.set_level(logging.DEBUG)
    storage = s3.storage(session_token=None, token="canary-token", user="me", password="canary-password")
    data = hr.open("s3://bucket/d/*.tar", FIELDS, storage=storage)
    loader = hr.Loader("s3://bucket/d/*.tar", storage=storage, **OPTIONS)
    with hr.trace(tmp_path / "trace.json"):
        assert sorted(labels(loader)) == list(range(COUNT))
    hr.build_index("s3://bucket/d/*.tar", str(tmp_path / "index"), storage=storage)
    hr.stage("s3://bucket/d/*.tar", tmp_path / "stage", storage=storage)
    cached = hr.Loader("s3://bucket/d/*.tar", storage=storage, cache=hr.cache(tmp_path / "kept", keep_free=0), **OPTIONS)
    assert sorted(labels(cached)) == list(range(COUNT))
    cached.close()
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) >= 5
    texts = [
        repr(storage),
        str(storage),
        repr(data),
        repr(loader),
        repr(loader.state_dict()),
        repr(loader.verdict()),
        caplog.text,
    ]
    dumped = [pickle.dumps(storage), pickle.dumps(data), pickle.dumps(loader.state_dict())]
    dumped += [str(path).encode() + path.read_bytes() for path in written]
    for canary in servers.CANARIES:
        assert not any(canary in text for text in texts)
        assert not any(canary.encode() in text for text in dumped)
    assert copy.deepcopy(storage) == storage
    assert pickle.loads(pickle.dumps(storage)) != storage


def test_a_pickled_data_set_finds_credentials_where_programs_do(s3: servers.S3, monkeypatch: pytest.MonkeyPatch) -> None:
    dumped = pickle.dumps(hr.open("s3://bucket/d/0.tar", storage=s3.storage()))
    with pytest.raises(Forbidden, match="no credentials"):
        pickle.loads(dumped)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", servers.KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", servers.SECRET)
    assert len(pickle.loads(dumped)) == COUNT // 2


def test_credentials_from_environment_profile_and_botocore(
    s3: servers.S3, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text(f"[profile other]\nregion = us-east-1\nendpoint_url = {s3.endpoint}\n")
    (tmp_path / "secrets").write_text(f"[other]\naws_access_key_id = {servers.KEY}\naws_secret_access_key = {servers.SECRET}\n")
    with monkeypatch.context() as m:
        m.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
        m.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "secrets"))
        assert len(hr.open("s3://bucket/d/0.tar", storage=hr.storage(profile="other"))) == COUNT // 2
        m.setenv("AWS_PROFILE", "other")
        assert len(hr.open("s3://bucket/d/0.tar")) == COUNT // 2
    pytest.importorskip("botocore")
    script = tmp_path / "login"  # what only botocore runs
    script.write_text(
        '#!/bin/sh\necho \'{"Version": 1, "AccessKeyId": "' + servers.KEY + '", "SecretAccessKey": "' + servers.SECRET + "\"}'\n"
    )
    script.chmod(0o700)
    (tmp_path / "process").write_text(f"[profile sso]\ncredential_process = {script}\nregion = us-east-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "process"))
    assert len(hr.open("s3://bucket/d/0.tar", storage=hr.storage(profile="sso", endpoint=s3.endpoint))) == COUNT // 2


def test_the_endpoint_may_stand_in_a_section_of_services(
    s3: servers.S3, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    config = tmp_path / "config"
    config.write_text(
        f"[profile lab]\nservices = lab-s3\nregion = us-east-1\naws_access_key_id = {servers.KEY}\n"
        f"aws_secret_access_key = {servers.SECRET}\n"
        f"[services lab-s3]\nsqs =\n  endpoint_url = http://127.0.0.1:1\ns3 =\n  endpoint_url = {s3.endpoint}\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    assert len(hr.open("s3://bucket/d", storage=hr.storage(profile="lab"))) == COUNT


def test_redirects_to_another_server_carry_no_token(odd: servers.Odd, web: servers.Web, tmp_path: pathlib.Path) -> None:
    seen = []

    def redirect(handler: Any, number: int) -> bool:
        seen.append(handler.headers.get("Authorization"))
        handler.body(302, b"", Location=web.url("private" + handler.path.removeprefix("/d")))
        return True

    odd.answer = redirect
    with pytest.raises(Forbidden, match="401"):  # the other wants the token, and does not get it
        hr.open(odd.url("d/0.tar"), storage=hr.storage(token="canary-token"))
    assert seen and set(seen) == {"Bearer canary-token"}


def test_a_list_that_names_another_server_gives_it_no_token(odd: servers.Odd, tmp_path: pathlib.Path) -> None:
    """Secrets go to the servers that the call names, whatever servers the list names."""
    seen = []

    def answer(handler: Any, number: int) -> bool:
        seen.append(handler.headers.get("Authorization"))
        handler.body(200, b"three")
        return True

    storage = hr.storage(token="canary-token")
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("three")
    with servers.odd_server(other) as stranger:
        stranger.answer = answer
        for folder in (odd.folder, tmp_path):
            (folder / "list.txt").write_text(stranger.url("a.txt") + "\n")
        assert hr.open(odd.url("list.txt"), storage=storage)[0]["txt"] == "three"
        assert hr.open(tmp_path / "list.txt", storage=storage)[0]["txt"] == "three"
        assert seen and set(seen) == {None}
        seen.clear()
        assert hr.open(tmp_path / "list.txt", root=stranger.url(), storage=storage)[0]["txt"] == "three"
        assert set(seen) == {"Bearer canary-token"}
        seen.clear()
        hr.stage(odd.url("list.txt"), tmp_path / "copy", storage=storage)
        assert seen and set(seen) == {None}


def test_each_server_of_a_blend_gets_the_token(odd: servers.Odd, tmp_path: pathlib.Path) -> None:
    def answer(handler: Any, number: int) -> bool:
        if handler.headers.get("Authorization") == "Bearer canary-token":
            return False
        handler.body(401, b"")
        return True

    write_shards(tmp_path / "d")
    with servers.odd_server(tmp_path) as other:
        odd.answer = other.answer = answer
        both = hr.blend({odd.url("d/0.tar"): 1, other.url("d/1.tar"): 1})
        loader = hr.Loader(both, storage=hr.storage(token="canary-token"), **OPTIONS)
        assert labels(loader)


def test_signatures_are_those_of_botocore(odd: servers.Odd) -> None:
    """Of what is sent, keys with odd characters, queries, tokens and all, botocore computes the same signature."""
    auth = pytest.importorskip("botocore.auth")
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials as Known

    sent: list[Any] = []

    def answer(handler: Any, number: int) -> bool:
        sent.append((handler.command, handler.path, dict(handler.headers)))
        handler.body(404, b"<Error><Code>NoSuchKey</Code></Error>")
        return True

    odd.answer = answer
    for token in (None, "canary-token"):
        more: dict[str, Any] = {"session_token": token, "requester_pays": token is not None}
        storage = hr.storage(endpoint=odd.url()[:-1], region="eu-west-1", access_key="AK", secret_key="SK", **more)
        for key in ("plain.tar", "a b/ü&=+~'(1).tar", "x%20y.tar"):
            with pytest.raises(NotFound):
                hr.open(f"s3://bucket/{key}", storage=storage)
    assert any("list-type=2" in path for _, path, _ in sent)
    for method, path, headers in sent:
        given = headers["Authorization"]
        signed = given.split("SignedHeaders=")[1].split(",")[0].split(";")
        known = {k: v for k, v in headers.items() if k.lower() in signed and k.lower() != "x-amz-date"}
        asked = AWSRequest(method=method, url=odd.url()[:-1] + path, headers=known)
        signer = auth.S3SigV4Auth(Known("AK", "SK", headers.get("x-amz-security-token")), "s3", "eu-west-1")
        asked.context["timestamp"] = headers["x-amz-date"]
        asked.headers["X-Amz-Date"] = headers["x-amz-date"]
        text = signer.string_to_sign(asked, signer.canonical_request(asked))
        assert given.endswith("Signature=" + signer.signature(text, asked)), (method, path)


# -- versions ----------------------------------------------------------------------------------------


def untagged(handler: Any, data: bytes, **headers: str) -> None:
    """An answer with neither a tag nor, unless `headers` have one, a time."""
    first, _, last = handler.headers.get("Range", "").removeprefix("bytes=").partition("-")
    if not last:
        return handler.body(200, data, **headers)
    end = min(int(last), len(data) - 1)
    handler.body(206, data[int(first) : end + 1], Content_Range=f"bytes {first}-{end}/{len(data)}", **headers)


@pytest.fixture
def two_tars(tmp_path: pathlib.Path) -> list[bytes]:
    """Of one size, cut at other places."""
    sizes = [(100, 2000, 300), (2000, 100, 300)]
    tars = [write_tar(tmp_path / f"{n}.tar", [(f"{i}.bin", bytes([n]) * s) for i, s in enumerate(sizes[n])]) for n in (0, 1)]
    return [tar.read_bytes() for tar in tars]


def values(data: hr.Dataset) -> list[bytes]:
    return [bytes(data[n]["bin"]) for n in range(len(data))]


def test_data_without_a_version_are_indexed_each_time(odd: servers.Odd, two_tars: list[bytes]) -> None:
    for n, tar in enumerate(two_tars):
        odd.answer = lambda handler, number, tar=tar: untagged(handler, tar) or True  # type: ignore[misc]
        assert {v[0] for v in values(hr.open(odd.url("a.tar")))} == {n}


def test_files_that_a_query_names_are_told_apart(odd: servers.Odd, two_tars: list[bytes], tmp_path: pathlib.Path) -> None:
    time_of_both = {"Last_Modified": "Wed, 01 Jan 2025 00:00:00 GMT"}

    def answer(handler: Any, number: int) -> bool:
        if not handler.path.startswith("/get?id=") or handler.path[-1] not in "01":
            return False
        untagged(handler, two_tars[int(handler.path[-1])], **time_of_both)
        return True

    odd.answer = answer
    for cache in (None, tmp_path / "kept"):
        for n in (0, 1):
            assert {v[0] for v in values(hr.open(odd.url(f"get?id={n}"), cache=cache))} == {n}


# -- faults ------------------------------------------------------------------------------------------


def never(handler: Any) -> None:
    handler.ended.wait(20)


def short(handler: Any) -> None:
    handler.good(cut=1)


def reset(handler: Any) -> None:
    handler.connection.close()
    handler.close_connection = True


KINDS = {
    "503": lambda h: h.body(503, b"<Error><Code>SlowDown</Code></Error>"),
    "500": lambda h: h.body(500, b""),
    "429 with Retry-After": lambda h: h.body(429, b"", Retry_After="0"),
    "short body": short,
    "reset": reset,
    "never answers": never,
    "changed": lambda h: h.good(tag="two"),
    "not found": lambda h: h.body(404, b""),
    "another range": lambda h: h.body(206, b"x" * 10, Content_Range="bytes 0-9/99999", ETag='"one"'),
    "redirect in a circle": lambda h: h.body(302, b"", Location=h.path + "?again"),
}


STORES = ("http", "s3", "cache")


def one_fault(odd: servers.Odd, kind: str, position: int, lasting: bool, seed: int, store: str = "http") -> str:
    """Ends with the right samples, or an error with a name."""

    def answer(handler: Any, number: int) -> bool:
        if handler.command != "GET" or "Range" not in handler.headers:
            return False
        answer.count += 1  # type: ignore[attr-defined]
        if answer.count != position and not (lasting and answer.count > position):  # type: ignore[attr-defined]
            return False
        KINDS[kind](handler)
        return True

    answer.count = 0  # type: ignore[attr-defined]
    odd.answer = answer
    quick: dict[str, Any] = {"retries": 2, "stall_error": 1.0 if lasting else 15.0, "backoff": 0.002, "stall_retry": 0.1}
    url, more = odd.url("d/{0,1}.tar"), {}
    if store == "s3":  # the folder d is the bucket
        url, quick = "s3://d/{0,1}.tar", {**quick, "endpoint": odd.url()[:-1], "region": "us-east-1", "anonymous": True}
    if store == "cache":
        more["cache"] = hr.cache(odd.folder.parent / f"kept-{next(ROUNDS)}", keep_free=0)
    begin = time.monotonic()
    try:
        loader = hr.Loader(url, storage=hr.storage(**quick), **{**OPTIONS, "seed": seed}, **more)
        assert sorted(labels(loader)) == list(range(COUNT))
        if store == "cache":  # nothing half-written is ever read: the same once more, from what is kept
            assert sorted(labels(loader)) == list(range(COUNT))
        return "right"
    except (hr.StorageError, hr.DataError) as error:
        text = str(error)
    finally:
        assert time.monotonic() - begin < 50
    assert "/d/" in text, text
    return "error"


PASSING = ("503", "500", "429 with Retry-After", "short body", "reset", "never answers", "another range")


ROUNDS = itertools.count()


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_fault_ends_with_the_right_samples_or_an_error(odd: servers.Odd, kind: str) -> None:
    rounds = 4 if kind == "never answers" else 11
    for position in range(1, rounds + 1):
        store = STORES[position % len(STORES)]
        once = one_fault(odd, kind, position, False, position, store)
        assert once == "right" or kind not in PASSING
    for position in range(1, rounds + 1):
        one_fault(odd, kind, position, True, position, STORES[(position + 1) % len(STORES)])


@pytest.mark.slow  # test_every_fault_ends_with_the_right_samples_or_an_error
@pytest.mark.timeout(1200 * support.SLOWDOWN)
@pytest.mark.parametrize("part", range(5))
def test_two_thousand_faults(odd: servers.Odd, part: int) -> None:
    """In five parts, so that each ends in minutes and says where it stands."""
    random_ = random.Random(5 + part)
    ends = {"right": 0, "error": 0}
    for n in range(400):
        kind = random_.choice([k for k in KINDS if k != "never answers" or n % 10 == 0])
        lasting = random_.random() < 0.3
        end = one_fault(odd, kind, random_.randrange(1, 12), lasting, 400 * part + n, random_.choice(STORES))
        assert end == "right" or lasting or kind not in PASSING
        ends[end] += 1
    assert ends["right"] > 100 and ends["error"] > 20, ends


@pytest.mark.parametrize(
    ("kind", "attributes", "toxicity"),
    [
        ("latency", {"latency": 30, "jitter": 10}, 1.0),
        ("reset_peer", {"timeout": 5}, 0.3),
        ("limit_data", {"bytes": 20000}, 0.5),
        ("slicer", {"average_size": 700, "size_variation": 300, "delay": 10}, 1.0),
        ("slow_close", {"delay": 100}, 1.0),
        ("timeout", {"timeout": 50}, 0.3),
        ("bandwidth", {"rate": 2000}, 1.0),
    ],
)
def test_a_bad_network_changes_no_sample(s3: servers.S3, kind: str, attributes: Any, toxicity: float) -> None:
    with servers.toxiproxy(s3.port) as proxy, proxy.toxic(kind, toxicity, **attributes):
        storage = s3.storage(endpoint=f"http://127.0.0.1:{proxy.port}", retries=30, **QUICK)
        loader = hr.Loader("s3://bucket/d/*.tar", storage=storage, **OPTIONS)
        assert sorted(labels(loader)) == list(range(COUNT))


def test_a_stall_is_reported_by_name(odd: servers.Odd, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    stalled = []

    def answer(handler: Any, number: int) -> bool:
        if "Range" not in handler.headers or stalled:
            return False
        stalled.append(handler.path)
        never(handler)
        return True

    odd.answer = answer
    data = hr.open(odd.url("d/0.tar"), storage=hr.storage(stall_warning=0.1, stall_retry=0.4))
    assert len(data) == COUNT // 2
    until = time.monotonic() + 30
    while "no byte for" not in caplog.text and time.monotonic() < until:
        time.sleep(0.02)
    assert f"rank 3: {odd.url('d/0.tar')} [0 +" in caplog.text


# -- how many requests -------------------------------------------------------------------------------


def test_with_an_index_five_round_trips_lead_to_the_first_batch(web: servers.Web, tmp_path: pathlib.Path) -> None:
    url = web.url("d/{0,1}.tar")
    hr.build_index(url, str(web.folder / "index"))
    before = len(web.requests())
    loader = hr.Loader(url, index=web.url("index"), **{**OPTIONS, "batch_size": 40})
    next(iter(loader.epoch(0)))
    asked = web.requests()[before:]
    # Both shards' sizes at once, manifest, parts, what pack said, both shards' bytes at once: 1 + 1 + 1 + 1 + 1.
    assert len(asked) <= 7, asked


def test_an_index_in_the_cache_is_used_the_next_time(web: servers.Web) -> None:
    hr.open(web.url("d/{0,1}.tar"))
    before = len(web.requests())
    hr.open(web.url("d/{0,1}.tar"))
    assert not any(line.split()[2] != "-" for line in web.requests()[before:] if line.startswith("GET"))


def test_a_tar_without_an_index_is_read_in_large_ranges(web: servers.Web) -> None:
    members = [(f"{n:04d}.bin", bytes(20_000)) for n in range(300)]
    write_tar(web.folder / "d/large.tar", members)
    before = len(web.requests())
    assert len(hr.open(web.url("d/large.tar"))) == 300
    asked = [line for line in web.requests()[before:] if "large.tar" in line and line.startswith("GET")]
    assert len(asked) < 10, asked


def test_a_forked_worker_reads_too(s3: servers.S3) -> None:
    torch = pytest.importorskip("torch")
    data = hr.open("s3://bucket/d/*.tar", {"label": hr.scalar("cls")}, storage=s3.storage())
    assert int(data[0]["label"]) == 0
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=2, multiprocessing_context="fork")
    assert sorted(int(s["label"]) for s in loader) == list(range(COUNT))


def test_stores_are_listed() -> None:
    from headrace import _core

    schemes = {scheme for store in _core.stores() for scheme in store["schemes"]}
    assert {"file", "http", "https", "s3", "gs"} <= schemes


@pytest.mark.parametrize(
    ("revision", "asked"),
    [("v1", "v1"), ("refs/convert/parquet", "refs%2Fconvert%2Fparquet"), ("refs%2Fpr%2F1", "refs%2Fpr%2F1")],
)
def test_data_sets_of_the_hub_are_read_by_their_names(
    odd: servers.Odd, monkeypatch: pytest.MonkeyPatch, revision: str, asked: str
) -> None:
    """A stand-in with the hub's layout: files by /resolve/, folders by /api/…/tree/, pages by Link."""
    import json

    seen = []

    def answer(handler: Any, number: int) -> bool:
        seen.append(handler.headers.get("Authorization"))
        tree, resolve = f"/api/datasets/me/set/tree/{asked}/", f"/datasets/me/set/resolve/{asked}/"
        if handler.path.startswith(tree):
            name, _, cursor = handler.path.removeprefix(tree).partition("?cursor=")
            if name != "d":
                handler.body(404, b"")
                return True
            page = [{"type": "file", "path": f"d/{1 if cursor else 0}.tar", "size": 1}]
            more = {} if cursor else {"Link": f'<{odd.url()[:-1]}{handler.path}?cursor=b%3D>; rel="next"'}
            handler.body(200, json.dumps(page).encode(), **more)
            return True
        if not handler.path.startswith(resolve):
            handler.body(404, b"")
            return True
        handler.path = "/" + handler.path.removeprefix(resolve)
        return False

    odd.answer = answer
    monkeypatch.setenv("HF_ENDPOINT", odd.url()[:-1])
    monkeypatch.setenv("HF_TOKEN", "canary-token")
    for part in ("d/*.tar", "d", "d/{0,1}.tar"):
        loader = hr.Loader(f"hf://datasets/me/set@{revision}/{part}", **OPTIONS)
        assert sorted(labels(loader)) == list(range(COUNT))
    assert set(seen) == {"Bearer canary-token"}
    with pytest.raises(NotFound, match="hub has no such"):
        hr.open(f"hf://datasets/me/set@{revision}/none.tar")


def test_names_on_index_pages_are_those_of_the_files(web: servers.Web) -> None:
    (web.folder / "odd").mkdir()
    names = ["a%41.tar", "aA.tar", "b#c.tar", "d?e.tar", "f g.tar", "100%.tar", "long" * 50 + ".tar"]
    for n, name in enumerate(names):
        write_tar(web.folder / "odd" / name, [("x.cls", b"%d" % n)])
    for url in (web.url("odd"), web.url("odd/*.tar")):
        assert sorted(sample["cls"] for sample in hr.open(url)) == list(range(len(names)))


def test_class_folders_of_a_server_are_listed_once_each(s3: servers.S3) -> None:
    for name in ("ant", "bee", "cat"):
        folder = s3.folder / "classes" / name / "deep"
        folder.mkdir(parents=True)
        for n in range(3):
            (folder / f"{n}.txt").write_text(f"{name} {n}")
    opened = hr.open("s3://bucket/classes", {"t": hr.text("txt"), "c": hr.scalar("cls")}, storage=s3.storage())
    local = hr.open(s3.folder / "classes", {"t": hr.text("txt"), "c": hr.scalar("cls")})
    assert opened.classes == local.classes == ["ant", "bee", "cat"]
    assert [opened[i] for i in range(9)] == [local[i] for i in range(9)]


def test_an_index_lies_in_the_cache_folder_that_is_given(web: servers.Web, tmp_path: pathlib.Path) -> None:
    place = tmp_path / "kept"
    assert len(hr.open(web.url("d/0.tar"), cache=place)) == COUNT // 2
    assert len(list((place / "index").glob("*.hridx"))) == 1
    before = len(web.requests())
    assert len(hr.open(web.url("d/0.tar"), cache=place)) == COUNT // 2
    assert not [r for r in web.requests()[before:] if r.startswith("GET") and ".tar " in r]
    hr.Loader(web.url("d/0.tar"), cache=place, **OPTIONS).epoch(0)
    from headrace import _core

    _core.clear_cache(str(place))
    assert not place.exists()


def test_signatures_in_urls_are_shown_nowhere(odd: servers.Odd, caplog: pytest.LogCaptureFixture, tmp_path: pathlib.Path) -> None:
    caplog.set_level(logging.DEBUG)
    urls = [odd.url(f"d/{n}.tar?X-Amz-Credential=canary-access-0F7C&X-Amz-Signature=canary-token") for n in range(2)]
    data = hr.open(urls, FIELDS)
    loader = hr.Loader(urls, **OPTIONS)
    assert sorted(labels(loader)) == list(range(COUNT))
    assert any("canary-token" in r for r in odd.requests)  # the server needs them
    assert not any(".hridx" in r for r in odd.requests)  # beside a signed file nothing is to be had
    assert hr.stage(urls, tmp_path / "staged")["files"] == 2
    assert sorted(labels(hr.Loader(urls, cache=tmp_path / "kept", **OPTIONS))) == list(range(COUNT))
    texts = [repr(data), repr(loader), repr(loader.state_dict()), repr(loader.verdict()), caplog.text]
    for place in ("www/d", "cache", "kept", "staged"):
        texts += [str(p) + p.read_bytes().decode("latin-1") for p in (tmp_path / place).rglob("*") if p.is_file()]
    texts.append((tmp_path / "staged.hrstage").read_text())
    with pytest.raises(NotFound) as missing:
        hr.open(odd.url("d/9.tar?X-Amz-Signature=canary-token"))
    assert "d/9.tar?..." in str(missing.value)
    odd.answer = lambda handler, number: handler.body(403, b"") or True
    with pytest.raises(hr.Error) as refused:
        hr.open([u.replace("0.tar", "1.tar") for u in urls[:1]], storage=hr.storage(retries=1, backoff=0.01))
    texts += [str(missing.value), repr(missing.value), str(refused.value), repr(refused.value)]
    for canary in servers.CANARIES:
        assert not any(canary in text for text in texts)
    signed_anew = [u.replace("canary-token", "another") for u in urls]
    odd.answer = lambda handler, number: False
    again = hr.Loader(signed_anew, **OPTIONS)
    again.load_state_dict(loader.state_dict())  # the same data set


def test_a_long_indexing_shows_how_far_it_is(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace import index_progress

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    quick = index_progress.IndexProgress()
    quick(1, 16, 100)
    quick.end()
    assert capsys.readouterr().err == ""
    slow = index_progress.IndexProgress()
    slow._start = slow._shown = time.monotonic() - 5
    slow(4, 16, 1000)
    slow.end()
    assert "[=====               ] 4 of 16 shards, 1,000 samples, 5 s" in capsys.readouterr().err
