# SPDX-License-Identifier: Apache-2.0
"""Real servers on loopback for the tests: versitygw (S3), nginx (HTTP, HTTPS), toxiproxy; and one of our own that answers oddly."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import http.server
import itertools
import json
import os
import pathlib
import select
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import headrace as hr
import pytest

TOOLS = pathlib.Path(__file__).parent.parent / "build/tools/bin"
KEY, SECRET = "canary-access-0F7C", "canary-secret-91BE"
CANARIES = (KEY, SECRET, "canary-token", "canary-password")


def program(name: str) -> str:
    """Where ``./dev setup`` has put it, or the system has it."""
    found = TOOLS / name
    place = str(found) if found.exists() else shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if place is None:
        pytest.skip(f"NOT TESTED AGAINST A REAL SERVER: {name} is not installed; run ./dev setup")
    return place


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def wait_for_port(port: int, process: subprocess.Popen[bytes], seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        time.sleep(0.02)
    raise RuntimeError(f"{process.args!r} does not answer")


@contextlib.contextmanager
def running(command: list[str], port: int, **options: Any) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    try:
        wait_for_port(port, process)
        yield
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@dataclass(frozen=True)
class S3:
    """`folder` is the bucket ``bucket``: what lies in it is an object."""

    port: int
    folder: pathlib.Path

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def storage(self, **more: Any) -> hr.Storage:
        given: dict[str, Any] = {"endpoint": self.endpoint, "region": "us-east-1", "access_key": KEY, "secret_key": SECRET}
        given |= more
        return hr.storage(**{k: v for k, v in given.items() if v is not None})


@contextlib.contextmanager
def versitygw(root: pathlib.Path, uploads: bool = False) -> Iterator[S3]:
    """`uploads`: it keeps what it needs to know of objects that are sent in parts."""
    port = free_port()
    bucket = root / "gateway/bucket"
    bucket.mkdir(parents=True)
    (root / "sidecar").mkdir()
    kept = ["--sidecar", str(root / "sidecar")] if uploads else ["--nometa"]
    environment = {**os.environ, "ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
    command = [program("versitygw"), "--port", f"127.0.0.1:{port}", "--quiet", "--keep-alive", "posix", *kept]
    with running([*command, str(root / "gateway")], port, env=environment, cwd=root):
        yield S3(port, bucket)


@dataclass(frozen=True)
class Web:
    """`folder` is what it serves. `log` has a line for each request."""

    port: int
    tls_port: int
    folder: pathlib.Path
    certificate: pathlib.Path
    log: pathlib.Path

    def url(self, path: str = "", tls: bool = False, host: str = "127.0.0.1") -> str:
        return f"https://{host}:{self.tls_port}/{path}" if tls else f"http://{host}:{self.port}/{path}"

    def requests(self) -> list[str]:
        return self.log.read_text().splitlines()


@contextlib.contextmanager
def nginx(root: pathlib.Path) -> Iterator[Web]:
    port, tls_port = free_port(), free_port()
    folder = root / "www"
    folder.mkdir(parents=True)
    certificate, key = root / "server.crt", root / "server.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=headrace-test",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    config = root / "nginx.conf"
    config.write_text(f"""
daemon off; master_process off; pid {root}/nginx.pid; error_log {root}/error.log; events {{ worker_connections 1024; }}
http {{
  log_format plain '$request_method $uri $http_range $status'; access_log {root}/access.log plain;
  client_body_temp_path {root}/t1; proxy_temp_path {root}/t2; fastcgi_temp_path {root}/t3;
  uwsgi_temp_path {root}/t4; scgi_temp_path {root}/t5; keepalive_requests 100000; sendfile on;
  server {{
    listen 127.0.0.1:{port}; listen 127.0.0.1:{tls_port} ssl;
    ssl_certificate {certificate}; ssl_certificate_key {key};
    root {folder}; autoindex on; absolute_redirect off;
    location /private/ {{ if ($http_authorization != "Bearer canary-token") {{ return 401; }} }}
  }}
}}
""")
    with running([program("nginx"), "-c", str(config), "-p", str(root)], port):
        yield Web(port, tls_port, folder, certificate, root / "access.log")


@dataclass(frozen=True)
class Proxy:
    """toxiproxy before a server. ``with proxy.toxic("latency", latency=50): …``"""

    api: int
    port: int

    def _call(self, method: str, path: str, body: Any = None) -> None:
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(f"http://127.0.0.1:{self.api}{path}", data, method=method)
        with urllib.request.urlopen(asked, timeout=10):
            pass

    @contextlib.contextmanager
    def toxic(self, kind: str, toxicity: float = 1.0, **attributes: int) -> Iterator[None]:
        body = {"name": "t", "type": kind, "stream": "downstream", "toxicity": toxicity, "attributes": attributes}
        self._call("POST", "/proxies/p/toxics", body)
        try:
            yield
        finally:
            self._call("DELETE", "/proxies/p/toxics/t")


@contextlib.contextmanager
def toxiproxy(upstream_port: int) -> Iterator[Proxy]:
    api, port = free_port(), free_port()
    with running([program("toxiproxy"), "-host", "127.0.0.1", "-port", str(api)], api):
        proxy = Proxy(api, port)
        listen, upstream = f"127.0.0.1:{port}", f"127.0.0.1:{upstream_port}"
        proxy._call("POST", "/proxies", {"name": "p", "listen": listen, "upstream": upstream})
        yield proxy


@contextlib.contextmanager
def between(upstream_port: int, bytes_per_second: int = 0, busy_every: int = 0) -> Iterator[int]:
    """A port before a server. All its connections together get so many bytes a second; every so many-th request is answered 503."""
    port = free_port()
    link, count = _Link(bytes_per_second), itertools.count(1)

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back: asyncio.Task[None] | None = None
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            from_server, to_server = await asyncio.open_connection("127.0.0.1", upstream_port, limit=1 << 20)
            back = asyncio.create_task(link.copy(from_server, writer))
            while head := await reader.readuntil(b"\r\n\r\n"):
                if busy_every and next(count) % busy_every == 0:
                    writer.write(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n")
                    continue
                to_server.write(head)
                for line in head.lower().split(b"\r\n"):
                    if line.startswith(b"content-length:"):
                        to_server.write(await reader.readexactly(int(line.split(b":")[1])))
                await to_server.drain()
            to_server.close()
        if back is not None:
            back.cancel()
        writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(connection, "127.0.0.1", port, limit=1 << 20, backlog=512)
        started.set()
        async with server:
            await server.serve_forever()

    started = threading.Event()
    loop = asyncio.new_event_loop()
    task = loop.create_task(serve())

    def run() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    started.wait(10)
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(10)


class _Link:
    """A wire that all connections share."""

    def __init__(self, bytes_per_second: int) -> None:
        self._rate, self._free = bytes_per_second, 0.0

    async def copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(1 << 17):
            if self._rate:
                now = time.monotonic()
                self._free = max(now - 0.005, self._free) + len(piece) / self._rate
                if self._free > now:
                    await asyncio.sleep(self._free - now)
            writer.write(piece)
            await writer.drain()
        writer.close()


# -- answers that no good server gives ---------------------------------------------------------------


@dataclass
class Odd:
    """A web server of files in a folder; ``answer(handler, number)`` may answer in its place, and then gives True."""

    folder: pathlib.Path
    answer: Callable[[Any, int], bool] = lambda handler, number: False
    requests: list[str] = field(default_factory=list)
    port: int = 0

    def url(self, path: str = "") -> str:
        return f"http://127.0.0.1:{self.port}/{path}"


@contextlib.contextmanager
def odd_server(folder: pathlib.Path) -> Iterator[Odd]:
    odd = Odd(folder)
    ending = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        odd_server, ended = odd, ending

        def log_message(self, *args: Any) -> None:
            pass

        def body(self, status: int, data: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **{k.replace("_", "-"): v for k, v in headers.items()}}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def do_GET(self) -> None:
            number = len(odd.requests)
            odd.requests.append(f"{self.command} {self.path} {self.headers.get('Range', '')}")
            with contextlib.suppress(OSError):
                if not odd.answer(self, number):
                    self.good()

        do_HEAD = do_GET

        def good(self, tag: str = "one", cut: int = 0) -> None:
            path = folder / self.path.lstrip("/").split("?")[0]
            if not path.is_file():
                return self.body(404, b"")
            data = path.read_bytes()
            asked = self.headers.get("Range")
            if not asked:
                return self.body(200, data, ETag=f'"{tag}"')
            first, last = (int(n) for n in asked.removeprefix("bytes=").split("-"))
            if first >= len(data):
                return self.body(416, b"", Content_Range=f"bytes */{len(data)}")
            last = min(last, len(data) - 1)
            part = data[first : last + 1]
            self.send_response(206)
            self.send_header("ETag", f'"{tag}"')
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            self.wfile.write(part[: len(part) - cut] if cut else part)
            if cut:
                self.close_connection = True

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    odd.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield odd
    finally:
        ending.set()
        server.shutdown()
        server.server_close()


# -- a proxy, as those who sit behind a firewall have one ----------------------------------------------


@dataclass
class Forward:
    """A forward proxy: whole URLs of http, CONNECT for https. With `user` it wants ``user:canary-secret``."""

    user: str = ""
    requests: list[str] = field(default_factory=list)
    port: int = 0

    def url(self, credentials: str = "") -> str:
        return f"http://{credentials}{'@' if credentials else ''}127.0.0.1:{self.port}"


@contextlib.contextmanager
def forward_proxy(user: str = "") -> Iterator[Forward]:
    proxy = Forward(user)
    wanted = "Basic " + base64.b64encode(f"{user}:canary-secret".encode()).decode()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            pass

        def refused(self) -> bool:
            proxy.requests.append(f"{self.command} {self.path}")
            if not user or self.headers.get("Proxy-Authorization") == wanted:
                return False
            self.send_response(407)
            self.send_header("Proxy-Authenticate", 'Basic realm="proxy"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return True

        def do_GET(self) -> None:
            if self.refused():
                return
            target = urllib.parse.urlsplit(self.path)
            upstream = http.client.HTTPConnection(target.hostname or "", target.port or 80)
            passed_on = {k: v for k, v in self.headers.items() if not k.lower().startswith("proxy-")}
            upstream.request(self.command, target.path, headers=passed_on)
            answer = upstream.getresponse()
            data = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "content-length", "date", "server"):
                    self.send_header(name, value)
            self.send_header("Content-Length", answer.headers.get("Content-Length") or str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            upstream.close()

        do_HEAD = do_GET

        def do_CONNECT(self) -> None:
            if self.refused():
                return
            self.close_connection = True
            host, _, port = self.path.rpartition(":")
            with socket.create_connection((host, int(port))) as upstream, contextlib.suppress(OSError):
                self.send_response(200)
                self.end_headers()
                while True:
                    for ready in select.select([self.connection, upstream], [], [])[0]:
                        data = ready.recv(65536)
                        if not data:
                            return
                        (upstream if ready is self.connection else self.connection).sendall(data)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
