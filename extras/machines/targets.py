"""Targets of SSH connections, as people write them; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

FORMS = "HOST, USER@HOST, HOST:PORT, USER@HOST:PORT, [IPv6]:PORT, or a Host of SSH's configuration"
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_ADDRESS_6 = re.compile(r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9_.-]+)?")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\-]*\$?")


@dataclass(frozen=True)
class SshTarget:
    """A target of SSH. `host` may be an alias of SSH's configuration, which then has the values that are None here."""

    user: str | None
    host: str
    port: int | None

    def __str__(self) -> str:
        """The target in the form of `ssh` and `ssh-copy-id`, with the option that names the port."""
        who = self.host if self.user is None else f"{self.user}@{self.host}"
        return who if self.port is None else f"-p {self.port} {who}"


def target(text: str) -> SshTarget:
    """Reads one; ValueError with the forms that there are."""
    user, at, rest = text.rpartition("@")
    if rest.startswith("["):
        host, _, behind = rest[1:].partition("]")
        colon, port = behind[:1], behind[1:]
        known = _ADDRESS_6.fullmatch(host) if "]" in rest and colon in ("", ":") else None
    elif rest.count(":") > 1:
        host, colon, port = rest, "", ""
        known = _ADDRESS_6.fullmatch(host)
    else:
        host, colon, port = rest.partition(":")
        known = _HOST.fullmatch(host)
    number = int(port) if port.isascii() and port.isdigit() else None
    if not known or (at and not _USER.fullmatch(user)) or (colon and not (number and number < 1 << 16)):
        raise ValueError(f'"{text}" is no SSH target: write {FORMS}')
    return SshTarget(user if at else None, host, number)
