# SPDX-License-Identifier: Apache-2.0
"""Where data lie and who may read them: ``hr.open("s3://bucket/train-*.tar", storage=hr.storage(region="eu-west-1"))``."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading  # here: imported first by a thread of the engine it would take that one for the main thread
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

from . import _core
from .checks import checked_bool, one_of, whole
from .errors import UsageError
from .messages import warn
from .other_stores import open_reader

T = TypeVar("T")
R = TypeVar("R")

#: What leaves no message, no pickle and no state.
_SECRETS = ("access_key", "secret_key", "session_token", "token", "user", "password", "headers")


class Storage:
    """What ``hr.storage(...)`` gives. Its secrets are in no text of it, and do not go into pickles."""

    __slots__ = ("_secrets", "_settings")

    def __init__(self, settings: Mapping[str, Any], secrets: Mapping[str, Any]) -> None:
        self._settings, self._secrets = dict(settings), dict(secrets)

    def __repr__(self) -> str:
        shown = [f"{name}={value!r}" for name, value in self._settings.items()]
        return f"hr.storage({', '.join(shown + [f'{name}=...' for name in self._secrets])})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Who unpickles it finds credentials where programs find them: the environment, a profile, botocore.
        return Storage, (self._settings, {})

    def __copy__(self) -> Storage:
        return self

    def __deepcopy__(self, memo: Any) -> Storage:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and (self._settings, self._secrets) == (other._settings, other._secrets)

    def __hash__(self) -> int:
        return hash(tuple(self._settings))

    def options(self) -> dict[str, Any]:
        options = {**self._settings, **self._secrets}
        if not options.get("anonymous") and "access_key" not in options:
            profile = options.get("profile")
            options["refresh"] = lambda: _from_botocore(profile)
        return options


def storage(
    *,
    endpoint: str | None = None,
    region: str | None = None,
    profile: str | None = None,
    access_key: str | None = None,
    secret_key: str | None = None,
    session_token: str | None = None,
    anonymous: bool = False,
    requester_pays: bool = False,
    addressing: Literal["auto", "path", "virtual"] = "auto",
    token: str | None = None,
    user: str | None = None,
    password: str | None = None,
    headers: Mapping[str, str] | None = None,
    ca_file: str | os.PathLike[str] | None = None,
    allow_plain_http: bool = False,
    allow_link_local: bool = False,
    connections: int | None = None,
    retries: int = 8,
    backoff: float = 0.1,
    connect_timeout: float = 10,
    stall_retry: float = 20,
    stall_warning: float = 60,
    stall_error: float = 300,
    hedge: bool = True,
) -> Storage:
    """Says where data lie and who may read them; for ``hr.open(..., storage=...)`` and ``hr.Loader(..., storage=...)``.

    Without it, credentials, region and endpoint come from the environment (AWS_ACCESS_KEY_ID, AWS_REGION,
    AWS_ENDPOINT_URL_S3, …), from ~/.aws, or from botocore where it is installed (roles, SSO, web identity).

    endpoint: of a store that speaks like S3: ``"https://host:9000"``.
    region, profile: as in Amazon's tools.
    access_key, secret_key, session_token: credentials; for ``gs://`` an HMAC key.
    anonymous: public data, asked for without a signature. requester_pays: you pay for the transfer.
    addressing: "path" (host/bucket/key) or "virtual" (bucket.host/key).
    token; user, password; headers: what web servers and ``hf://`` ask for. Not sent to other servers on a redirect.
    ca_file: certificates to trust in place of the system's.
    allow_plain_http: credentials may go over http:// to other machines. allow_link_local: 169.254.* may be asked.
    connections: the most requests at a time; found out while reading unless given.
    retries, backoff: how often what failed in passing is asked for again, and seconds before the first time.
    connect_timeout, stall_retry: seconds after which one try is given up for another.
    stall_warning, stall_error: seconds without a byte after which a request is reported, and has failed.
    hedge: ask a second time for what takes longer than nearly all others did.
    """
    if (access_key is None) != (secret_key is None):
        raise UsageError("access_key and secret_key come together")
    if anonymous and access_key is not None:
        raise UsageError("anonymous=True and credentials: one of the two")
    if (user is None) != (password is None):
        raise UsageError("user and password come together")
    one_of(addressing, "addressing", ("auto", "path", "virtual"))
    texts = {
        "endpoint": endpoint,
        "region": region,
        "profile": profile,
        "ca_file": None if ca_file is None else os.fspath(ca_file),
    }
    secrets: dict[str, Any] = {
        "access_key": access_key, "secret_key": secret_key, "session_token": session_token,
        "token": token, "user": user, "password": password,
    }  # fmt: skip
    for name, value in {**texts, **secrets}.items():
        if value is not None and (not isinstance(value, str) or not value or any(c in value for c in "\r\n\0")):
            raise UsageError(f"{name} is a text of one line")
    if ca_file is not None and not os.path.isfile(ca_file):
        raise UsageError(f"ca_file: there is no file {os.fspath(ca_file)!r}")
    if headers is not None:
        if not isinstance(headers, Mapping) or any(
            not isinstance(v, str) or not v or any(c in v for c in "\r\n\0") for pair in headers.items() for v in pair
        ):
            raise UsageError("headers is a dict of texts: {'X-Api-Key': '...'}")
        secrets["headers"] = [(k, v) for k, v in headers.items()]
    flags = {
        "anonymous": anonymous, "requester_pays": requester_pays,
        "allow_plain_http": allow_plain_http, "allow_link_local": allow_link_local,
    }  # fmt: skip
    settings: dict[str, Any] = {name: value for name, value in texts.items() if value is not None}
    settings |= {name: True for name, value in flags.items() if checked_bool(value, name)}
    if addressing != "auto":
        settings["addressing"] = addressing
    if connections is not None:
        settings["connections"] = whole(connections, "connections", 1, 4096)
    if whole(retries, "retries", 0, 1000) != 8:
        settings["retries"] = retries
    if not checked_bool(hedge, "hedge"):
        settings["hedge"] = False
    usual = {"backoff": 0.1, "connect_timeout": 10, "stall_retry": 20, "stall_warning": 60, "stall_error": 300}
    given = {
        "backoff": backoff, "connect_timeout": connect_timeout, "stall_retry": stall_retry,
        "stall_warning": stall_warning, "stall_error": stall_error,
    }  # fmt: skip
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e6:
            raise UsageError(f"{name} is a number of seconds above 0, not {value!r}")
        if value != usual[name]:
            settings[name] = float(value)
    return Storage(settings, {name: value for name, value in secrets.items() if value is not None})


_USUAL = Storage({}, {})
_core.set_other_stores(open_reader)


def is_remote(source: Any) -> bool:
    """Whether a URL, or the first of a list, is of another machine."""
    if isinstance(source, (list, tuple)) and source:
        source = source[0]
    return isinstance(source, str) and "://" in source and not source.startswith("file://")


@contextlib.contextmanager
def using(given: Storage | None, *sources: Any, once: bool = False) -> Iterator[None]:
    """What is opened inside, by this thread, is opened with this storage; ``once``: servers are asked nothing twice."""
    if given is not None and not isinstance(given, Storage):
        raise UsageError(f"storage is what hr.storage(...) gives, not {type(given).__name__}")
    scope = _core.StorageScope((given or _USUAL).options(), once)
    if any(is_remote(source) for source in sources):
        _listen()
    scope.enter()
    try:
        yield
    finally:
        scope.exit()


def each_at_once(work: Callable[[T], R], items: Sequence[T], most: int) -> list[R]:
    """``work`` of each, in their order: of servers each is some round trips. What its threads open is opened as by this one."""
    if len(items) < 2 or most < 2:
        return [work(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor  # not for those who open one file

    scope = _core.StorageScope.current()

    def in_thread(item: T) -> R:
        same = scope.again()
        same.enter()
        try:
            return work(item)
        finally:
            same.exit()

    with ThreadPoolExecutor(min(most, len(items)), thread_name_prefix="hr-look") as pool:
        try:
            return list(pool.map(in_thread, items))
        except BaseException:  # Ctrl-C, which threads do not hear of, or one that failed: nobody wants the others
            scope.give_up()
            raise


# -- credentials by botocore -----------------------------------------------------------------------

_sessions: dict[str | None, Any] = {}


def _from_botocore(profile: str | None) -> dict[str, Any] | None:
    """By botocore's chain: roles, SSO, web identity, containers; None where it is not installed, or finds nothing."""
    try:
        import botocore.session  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        return None
    if profile not in _sessions:
        _sessions[profile] = botocore.session.Session(profile=profile).get_credentials()
    credentials = _sessions[profile]
    if credentials is None:
        del _sessions[profile]
        return None
    now = credentials.get_frozen_credentials()
    expires = getattr(credentials, "_expiry_time", None)
    return {
        "access_key": now.access_key,
        "secret_key": now.secret_key,
        "session_token": now.token,
        "expires": int(expires.timestamp()) if expires is not None else 0,
    }


# -- what the engine says while it runs ------------------------------------------------------------

_WAIT_MS = 60_000
_listening = 0  # the process that has a thread for it
_ending = threading.Event()


def _listen() -> None:
    global _listening
    if _listening != os.getpid():
        _listening = os.getpid()
        thread = threading.Thread(target=_pass_on, name="headrace-notices", daemon=True)
        thread.start()
        atexit.register(_end, thread)


def _pass_on() -> None:
    while not _ending.is_set():
        text = _core.next_notice(_WAIT_MS)
        if text is not None:
            rank = os.environ.get("RANK")
            warn(text if rank is None else f"rank {rank}: {text}")


def _end(thread: threading.Thread) -> None:
    """A thread that comes back from C++ while Python ends would end the process with an abort."""
    _ending.set()
    _core.end_notices()
    thread.join(5)
