# SPDX-License-Identifier: Apache-2.0
"""Data on servers through a proxy, as the environment names it."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import headrace as hr
import pytest
import servers
from headrace.errors import Forbidden
from support import write_tar

COUNT = 12


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Web]:
    with servers.nginx(tmp_path_factory.mktemp("web")) as server:
        write_tar(server.folder / "x.tar", [(f"{n:03d}.cls", str(n).encode()) for n in range(COUNT)])
        yield server


@pytest.fixture(autouse=True)
def own_environment(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


def labels(url: str, storage: hr.Storage | None = None) -> list[int]:
    loader = hr.Loader(url, 5, {"label": hr.scalar("cls")}, shuffle=False, output="numpy", threads=1, storage=storage)
    with loader:
        return [int(n) for batch in loader.epoch(0) for n in batch["label"]]


def test_http_goes_through_the_proxy_of_the_environment(web: servers.Web, monkeypatch: pytest.MonkeyPatch) -> None:
    with servers.forward_proxy() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url())
        assert labels(web.url("x.tar")) == list(range(COUNT))
        assert any(web.url("x.tar") in request for request in proxy.requests)


def test_https_goes_through_a_tunnel_and_its_certificate_is_checked(web: servers.Web, monkeypatch: pytest.MonkeyPatch) -> None:
    url = web.url("x.tar", tls=True, host="localhost")
    with servers.forward_proxy() as proxy:
        monkeypatch.setenv("https_proxy", proxy.url())
        assert labels(url, hr.storage(ca_file=web.certificate)) == list(range(COUNT))
        assert proxy.requests and all(request == f"CONNECT localhost:{web.tls_port}" for request in proxy.requests)
        with pytest.raises(Forbidden, match="certificate is not accepted"):
            labels(url)


def test_no_proxy_leaves_a_host_out(web: servers.Web, monkeypatch: pytest.MonkeyPatch) -> None:
    with servers.forward_proxy() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url())
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert labels(web.url("x.tar")) == list(range(COUNT))
        assert proxy.requests == []


@pytest.mark.parametrize("tls", [False, True])
def test_a_proxy_that_wants_a_password_is_named_and_no_password_is_shown(
    web: servers.Web, monkeypatch: pytest.MonkeyPatch, tls: bool
) -> None:
    url = web.url("x.tar", tls=tls, host="localhost")
    trusted = hr.storage(ca_file=web.certificate)
    name = "https_proxy" if tls else "http_proxy"
    with servers.forward_proxy(user="me") as proxy:
        for credentials in ("", "me:canary-wrong"):
            monkeypatch.setenv(name, proxy.url(credentials))
            with pytest.raises(Forbidden, match=r"the proxy wants a user and a password.*USER:PASSWORD") as raised:
                labels(url, trusted)
            assert "canary" not in str(raised.value)
        monkeypatch.setenv(name, proxy.url("me:canary-secret"))
        assert labels(url, trusted) == list(range(COUNT))


def test_a_proxy_that_is_not_there_is_named_without_its_password(web: servers.Web, monkeypatch: pytest.MonkeyPatch) -> None:
    port = servers.free_port()
    monkeypatch.setenv("http_proxy", f"http://me:canary-secret@127.0.0.1:{port}")
    with pytest.raises(hr.StorageError, match=f"port {port}") as raised:
        labels(web.url("x.tar"), hr.storage(retries=0))
    assert "canary" not in str(raised.value)
