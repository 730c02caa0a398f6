"""The values of `nodes:` as types that pydantic reads: images, binds, published ports, commands, environments.

Comes in: a word or a small mapping, as YAML gave it. Goes out: a typed value, or a ValueError that says what to write
instead. Where a bind leads is looked up in the folder that `ewan.labs.spec` puts into the context.
"""

from __future__ import annotations

import ipaddress
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import PlainValidator, ValidationInfo, WithJsonSchema

LONGEST_WORDS = 8192
"""Characters of a command, and of a variable's value."""
MOST_VARIABLES = 256
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_OURS = "EWAN_"
_PART = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_PART}(?:/{_PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?"
    r"(?:@sha256:[0-9a-f]{64})?"
)
_TAKEN = ("/lab", "/proc", "/sys", "/dev", "/etc/hosts", "/usr/local/bin/ewan-node")
"""Targets that a node cannot be without: what is bound there would hide it."""
_PORT = re.compile(
    r"(?:(?P<address>\[[0-9A-Fa-f:.]+\]|[0-9.]+):)?(?P<port>[0-9]{1,5}):(?P<own>[0-9]{1,5})(?:/(?P<kind>tcp|udp))?"
)
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class BindMount:
    """A part of this machine that a node sees; `source` is absolute, without symbolic links."""

    source: str
    target: str
    read_only: bool
    outside: bool


@dataclass(frozen=True, slots=True)
class PortMapping:
    """A port of a node at an address of this machine."""

    address: str
    port: int
    node_port: int
    protocol: Literal["tcp", "udp"]


def _image(value: object) -> str:
    if isinstance(value, str) and len(value) <= 255 and _IMAGE.fullmatch(value):
        return value
    raise ValueError('write the name of an image, like "my/app:1"')


def _command(value: object) -> tuple[str, ...]:
    """Words, as a shell would split them; no shell reads them."""
    try:
        words = [str(word) for word in value] if isinstance(value, (list, tuple)) else shlex.split(_text(value))
    except ValueError as error:
        raise ValueError(f'{str(error)[:1].lower()}{str(error)[1:]}: write a command like "ip route show"') from None
    if not words or not words[0] or len(" ".join(words)) > LONGEST_WORDS or any("\0" in word for word in words):
        raise ValueError(f'write a command of at most {LONGEST_WORDS} characters, like "ip route show"')
    return tuple(words)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("is no text")
    return value


def _environment(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > MOST_VARIABLES:
        raise ValueError(f'write at most {MOST_VARIABLES} variables, like "{{LEVEL: debug}}"')
    found = {}
    for name, written in value.items():
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            raise ValueError(f'"{name}" is no variable: write letters, digits and _, like "LEVEL"')
        if name.startswith(_OURS):
            raise ValueError(f"{name}: names that begin with {_OURS} are ours: write another name")
        if isinstance(written, bool):
            written = str(written).lower()
        if not isinstance(written, (str, int)) or len(str(written)) > LONGEST_WORDS or "\0" in str(written):
            raise ValueError(f"{name}: write its value as text of at most {LONGEST_WORDS} characters")
        found[name] = str(written)
    return found


def _bind(value: object, info: ValidationInfo) -> BindMount:
    parts = value.split(":") if isinstance(value, str) else []
    if len(parts) not in (2, 3) or not all(parts) or (len(parts) == 3 and parts[2] not in ("ro", "rw")):
        raise ValueError('write "SOURCE:TARGET" or "SOURCE:TARGET:ro", like "www:/var/www:ro"')
    source, target = parts[:2]
    if not target.startswith("/") or PurePosixPath(target) == PurePosixPath("/") or ".." in target.split("/"):
        raise ValueError(f'{target}: write where the node sees it as a path from "/", like "/var/www"')
    target = os.path.normpath(target)
    for taken in _TAKEN:
        if target == taken or target.startswith(f"{taken}/") or taken.startswith(f"{target}/"):
            if taken.startswith(f"{target}/") and taken not in ("/etc/hosts", "/usr/local/bin/ewan-node"):
                continue
            raise ValueError(f"{target}: the node needs its own {taken}: write another target")
    folder = (info.context or {}).get("folder")
    if folder is None:
        raise ValueError(f"{source}: only a lab's description names files: leave it out")
    try:
        project = Path(folder).resolve()
        found = (project / source).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        why = getattr(error, "strerror", None) or "cannot be followed"
        raise ValueError(f"{source}: {why}: write a path relative to the description") from None
    text = str(found)
    if any(letter in text for letter in ":$\n") or "{{" in text or not text.isprintable():
        raise ValueError(f'{text}: a path with ":", "$" or "{{{{" cannot be bound: write another')
    return BindMount(text, target, parts[2:] == ["ro"], not found.is_relative_to(project))


def _port(value: object) -> PortMapping:
    match = _PORT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('write "PORT:NODE_PORT" or "ADDRESS:PORT:NODE_PORT", like "127.0.0.1:8080:80"')
    try:
        address = str(ipaddress.ip_address((match["address"] or LOOPBACK).strip("[]")))
    except ValueError:
        raise ValueError(f'{match["address"]} is no address: write one of this machine, like "{LOOPBACK}"') from None
    port, own = int(match["port"]), int(match["own"])
    if not (0 < port < 65536 and 0 < own < 65536):
        raise ValueError('write ports from 1 to 65535, like "8080:80"')
    return PortMapping(address, port, own, "udp" if match["kind"] == "udp" else "tcp")


def _shown(title: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "title": title, "examples": list(examples)})


ImageName = Annotated[str, PlainValidator(_image), _shown("image", "my/app:1")]
Command = Annotated[tuple[str, ...], PlainValidator(_command), _shown("command", "ip route show")]
Environment = Annotated[
    dict[str, str],
    PlainValidator(_environment),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}, "title": "variables"}),
]
BindText = Annotated[BindMount, PlainValidator(_bind), _shown("bind", "www:/var/www:ro")]
PortText = Annotated[PortMapping, PlainValidator(_port), _shown("port", "127.0.0.1:8080:80")]
