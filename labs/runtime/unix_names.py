"""Whose the names are that are bound in the abstract namespace of Unix sockets, as the kernel knows it (sock_diag(7)).

In: nothing. Out: the user of each name; None where this kernel does not tell. A name itself may say anything.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

_SOCK_DIAG = 4
"""NETLINK_SOCK_DIAG."""
_DIAG_BY_FAMILY, _REQUEST_DUMP = 20, 0x301
_ERROR, _DONE = 2, 3
_SHOW_NAME, _SHOW_UID = 0x01, 0x40
_NAME, _UID = 0, 7
"""UNIX_DIAG_NAME and UNIX_DIAG_UID of linux/unix_diag.h."""
_HEADER, _MESSAGE, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BBBBIII"), struct.Struct("=HH")
_EVERY = 0xFFFFFFFF
_ANSWER_BYTES = 1 << 17
_ANSWERS_S = 5.0


def owners() -> dict[str, int] | None:
    """The user of each name, without the NUL before it."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as asked:
            asked.settimeout(_ANSWERS_S)
            body = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, _EVERY, 0, _SHOW_NAME | _SHOW_UID, _EVERY, _EVERY)
            asked.send(_HEADER.pack(_HEADER.size + len(body), _DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0) + body)
            return _answers(asked)
    except (OSError, struct.error):
        return None


def _answers(asked: socket.socket) -> dict[str, int] | None:
    found: dict[str, int] = {}
    while True:
        answer = asked.recv(_ANSWER_BYTES)
        at = 0
        while at + _HEADER.size <= len(answer):
            length, kind, *_ = _HEADER.unpack_from(answer, at)
            if kind == _DONE:
                return found
            if kind == _ERROR or length < _HEADER.size:
                return None
            said = dict(_attributes(answer[at + _HEADER.size + _MESSAGE.size : at + length]))
            name = said.get(_NAME, b"")
            if name.startswith(b"\0"):
                if _UID not in said:  # a kernel before 5.3
                    return None
                found[name[1:].decode(errors="replace")] = int.from_bytes(said[_UID], "little")
            at += length + -length % 4


def _attributes(text: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(text):
        length, kind = _ATTRIBUTE.unpack_from(text, at)
        if length < _ATTRIBUTE.size:
            return
        yield kind, text[at + _ATTRIBUTE.size : at + length]
        at += length + -length % 4
