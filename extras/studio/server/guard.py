"""Access control: requests need the token of this start, a page of this server, and a name of this machine.

In: requests and WebSockets. Out: the same, or a refusal. A page of another site that a browser shows beside ours can
send requests here, but neither reads our cookie (SameSite) nor hides its Origin; a name of its own that it makes point
to this machine (DNS rebinding) is in the Host header. What comes in is bounded in size and number.

Cookies are those of all ports of a host: another server on this machine may see ours. So the cookie opens only the page
and files of results. All else needs the page's key, which the page keeps in its origin's own store, or the token, which
scripts bring. Key and cookie are made of the token, and neither reveals it. A code opens the page once in place of the
token: all users of a machine can read programs' arguments, a browser's too."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, unquote_plus

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY_BYTES = 4 << 20
"""The size of a request: a description is at most about that large."""
MOST_SOCKETS = 64
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",  # CodeMirror and xterm.js make style sheets at run time
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "frame-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
UNKNOWN = (
    "this studio does not know this browser: open the address with ?token= that ewan studio printed, "
    "then open this link once more"
)
KEY, KEY_HEADER = "key", "x-ewan-key"
"""The parameter and the header that carry the page's key: WebSockets have it in the address, other requests in a
header."""
CODE_S = 60.0
REFUSED_SOCKET = 4403
"""The code with which a WebSocket is closed before it is accepted; a browser sees status 403."""


@dataclass(frozen=True, slots=True)
class Access:
    """`names`: hosts, with the port, under which this server is asked; `view`: nothing may be changed."""

    names: frozenset[str]
    port: int
    view: bool = False
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _codes: dict[str, float] = field(default_factory=dict)
    """Until when each code is good that was not used, on the monotonic clock."""

    @property
    def key(self) -> str:
        """The key that the page's requests carry."""
        return self._made("key")

    @property
    def cookie_value(self) -> str:
        """The cookie's value, which the browser sends to all ports of this host."""
        return self._made("cookie")

    def code(self) -> str:
        """A new one in place of the token, for one use within `CODE_S`."""
        made = secrets.token_urlsafe(24)
        self._codes[made] = time.monotonic() + CODE_S
        return made

    def redeems(self, code: str | None) -> bool:
        """Return whether a code is good; it is void from then on."""
        return code is not None and self._codes.pop(code, 0.0) > time.monotonic()

    def _made(self, what: str) -> str:
        return hmac.new(self.token.encode(), what.encode(), hashlib.sha256).hexdigest()

    @property
    def cookie(self) -> str:
        """The cookie's name, which has the port: a host's cookies are shared by all of its ports."""
        return f"ewan-studio-{self.port}"

    def knows(self, token: str | None) -> bool:
        """Return whether a token is ours, in a time that reveals nothing about it."""
        return _same(token, self.token)


def _same(given: str | None, ours: str) -> bool:
    return given is not None and hmac.compare_digest(given.encode(errors="replace"), ours.encode())


def names_of(host: str, port: int) -> frozenset[str]:
    """The names under which clients address a server; those of loopback stand for each other."""
    loopback = ("127.0.0.1", "localhost", "[::1]")
    shown = f"[{host}]" if ":" in host else host
    return frozenset(f"{name}:{port}" for name in {shown, *(loopback if shown in loopback else ())})


class Guard:
    """Wraps an application: lets in only permitted requests."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access
        self._sockets = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one connection of ASGI."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    answer.setdefault(name, value)
            await send(message)

        async def refuse(status: HTTPStatus, why: str) -> None:
            await PlainTextResponse(f"{why}\n", status)(scope, receive, guarded)

        if not _is_printable(scope):
            return await refuse(HTTPStatus.BAD_REQUEST, "an address has no control characters")
        opening = scope["path"] == "/" and scope["method"] == "GET"
        if (why := self._strange(headers, "origin" in headers, opening)) is not None:
            return await refuse(HTTPStatus.FORBIDDEN, why)
        if opening and (self._access.knows(_asked(scope, "token")) or self._access.redeems(_asked(scope, "code"))):
            # What follows # in the address, a browser keeps. The page takes the key out of it.
            response = RedirectResponse(f"/?{KEY}={self._access.key}", HTTPStatus.SEE_OTHER)
            response.set_cookie(self._access.cookie, self._access.cookie_value, httponly=True, samesite="strict")
            return await response(scope, receive, guarded)
        if not self._known(scope, headers):
            return await refuse(HTTPStatus.UNAUTHORIZED, UNKNOWN)
        if self._access.view and scope["method"] not in ("GET", "HEAD") and scope["path"] not in READING:
            return await refuse(HTTPStatus.FORBIDDEN, "this studio was started with --view: nothing can be changed")
        if int(headers.get("content-length", "0") or 0) > MOST_BODY_BYTES:
            return await refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MOST_BODY_BYTES} bytes")
        size = 0

        async def bounded() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > MOST_BODY_BYTES:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MOST_BODY_BYTES} bytes")
            return message

        await self._app(scope, bounded, guarded)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        # A browser always says the Origin of a WebSocket; a script, which knows the token, need not.
        strange = self._strange(headers, "origin" in headers or self._bearer(headers) is None, False)
        full = self._sockets >= MOST_SOCKETS
        if strange is not None or not self._known(scope, headers) or full or not _is_printable(scope):
            await receive()
            await send({"type": "websocket.close", "code": REFUSED_SOCKET, "reason": "refused"})
            return
        with self._counted():
            await self._app(scope, receive, send)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._sockets += 1
        try:
            yield
        finally:
            self._sockets -= 1

    def _strange(self, headers: Mapping[str, str], with_origin: bool, opening: bool) -> str | None:
        """The reason why a request is not of this server's page; None: it is. `with_origin`: the Origin must be there,
        and ours. `opening`: it asks for the page itself, which a link may lead to."""
        names: Collection[str] = self._access.names
        if headers.get("host") not in names:
            return "this server is not asked under that name"
        if with_origin and headers.get("origin") not in {f"http://{name}" for name in names}:
            return "requests of other pages are not answered"
        # Browsers say it of each request, also of those without an Origin: of links, pictures, downloads.
        if not opening and headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return "requests of other pages are not answered"
        return None

    def _known(self, scope: Scope, headers: Mapping[str, str]) -> bool:
        if (token := self._bearer(headers)) is not None:
            return self._access.knows(token)
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._access.cookie)
        except CookieError:
            return False
        if not _same(None if found is None else found.value, self._access.cookie_value):
            return False
        shown = scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and not scope["path"].startswith("/api/")
        return shown or _same(headers.get(KEY_HEADER) or _asked(scope, KEY), self._access.key)

    def _bearer(self, headers: Mapping[str, str]) -> str | None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return token if scheme.lower() == "bearer" else None


def _asked(scope: Scope, name: str) -> str | None:
    """A word of the address, after ?."""
    found: list[str] = parse_qs(scope["query_string"].decode("latin-1")).get(name, [])
    return found[0] if found else None


def _is_printable(scope: Scope) -> bool:
    """Return whether the words of an address can be names: of files, labs and nodes, and words of a process."""
    said: str = scope["path"] + unquote_plus(scope["query_string"].decode("latin-1"))
    return said.isprintable()


READING = frozenset({"/api/describe", "/api/paths", "/api/scenario/describe", "/api/figure", "/api/verdict"})
"""Requests with a body that change nothing."""
