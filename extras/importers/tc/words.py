"""A line of tc in parts: the words before the kind, the size table, and the rest; handles and addresses. See tc(8)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ewan.extras.importers.findings import Findings
from ewan.extras.importers.script import ScriptCommand

_HANDLE = re.compile(r"(?:0x)?([0-9a-fA-F]{0,4}):(?:0x)?([0-9a-fA-F]{0,4})")
_SHORT = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){0,2}/[0-9]{1,2}")
"""A network of which the zeros at the end are left out."""
_VALUED = ("handle", "parent", "dev", "classid")
_VALUED_OPTIONS = ("-batch", "-netns", "-cf", "-conf")
_OPTIONS = (
    "-statistics", "-stats", "-details", "-raw", "-pretty", "-graph", "-Version", "-iec", "-help", "-force", "-batch",
    "-netns", "-Numeric", "-nm", "-names", "-cf", "-conf", "-color", "-timestamp", "-tshort", "-json", "-oneline",
    "-brief",
)  # fmt: skip
_OF_FILTERS = ("protocol", "prio", "pref", "chain")
_ALIKE = {"preference": "pref", "priority": "pref"}


class Handle(NamedTuple):
    """`10:1` in its two hexadecimal parts; a qdisc's own has the second one 0."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major:x}:{self.minor:x}" if self.minor else f"{self.major:x}:"


INGRESS = Handle(0xFFFF, 0)
EGRESS = Handle(0xFFFF, 0xFFF3)
"""The parent of filters of a clsact for packets that leave."""
INGRESS_KINDS = ("ingress", "clsact")


@dataclass(slots=True)
class OptionWords:
    """`rest` begins with the kind."""

    head: dict[str, str] = field(default_factory=dict)
    stab: list[str] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)


def options_of(words: Sequence[str]) -> list[tuple[str, str]]:
    """The options before `qdisc`, `class` or `filter`, each in its full length, with its value or ""."""
    found: list[tuple[str, str]] = []
    left = list(words)
    while left and left[0].startswith("-"):
        option = left.pop(0)
        full = next((each for each in _VALUED_OPTIONS if len(option) > 1 and each.startswith(option)), option)
        found.append((full, left.pop(0) if full in _VALUED_OPTIONS and left else ""))
    return found


def known_options(command: ScriptCommand, findings: Findings) -> dict[str, str]:
    """The options with their values; ImportingError for one that tc has not, since such a line did nothing."""
    found = dict(options_of(command.words))
    for option, value in found.items():
        key, sign, _ = option.partition("=")
        if len(key) < 2 or (sign and key[:2] != "-c") or not any(each.startswith(key) for each in _OPTIONS):
            message = f'tc has no option "{option}", so it refuses this line: leave the option out'
            raise findings.error(command.line, command.text, message)
        if option == "-batch" and not value:
            message = 'names no file, so tc refuses it: write "-batch -" for what comes behind'
            raise findings.error(command.line, command.text, message)
    return found


def without_options(words: Sequence[str]) -> list[str]:
    """The words behind the options."""
    return list(words[sum(1 + bool(value) for _, value in options_of(words)) :])


def in_words(words: list[str], of_filter: bool, command: ScriptCommand, findings: Findings) -> OptionWords:
    """The words behind the verb; ImportingError where a value is missing or a word comes twice.

    `ingress` is a direction of filters, and else a kind."""
    found = OptionWords(rest=list(words))
    while found.rest:
        key = _ALIKE.get(found.rest[0], found.rest[0])
        if found.rest[:2] == ["parent", "root"]:
            found.head["root"] = ""
            found.rest = found.rest[2:]
        elif key in _VALUED or (of_filter and key in _OF_FILTERS):
            if len(found.rest) < 2:
                raise findings.error(command.line, command.text, f"{key} has no value: write one")
            if key in found.head:
                raise findings.error(command.line, command.text, f"{key} is there twice, so tc refuses it")
            found.head[key] = found.rest[1]
            found.rest = found.rest[2:]
        elif key == "estimator":
            found.rest = found.rest[3:]
        elif key == "root" or (of_filter and key in ("ingress", "egress")):
            found.head[key] = ""
            found.rest = found.rest[1:]
        elif key == "stab":
            found.rest = found.rest[1:]
            while len(found.rest) > 1 and found.rest[0] in ("overhead", "mpu", "linklayer", "mtu", "tsize"):
                found.stab += found.rest[:2]
                found.rest = found.rest[2:]
        else:
            break
    return found


def handle_of(text: str, like: str, command: ScriptCommand, findings: Findings) -> Handle:
    """`1:10`; of `10`, where `like`, an example, is a qdisc's own, `10:`, and `:10` where it is without a colon."""
    if ":" not in text:
        text = f"{text}:" if like.endswith(":") else text if ":" in like else f":{text}"
    match = _HANDLE.fullmatch(text)
    if match is None:
        raise findings.error(command.line, command.text, f'"{text}" is no handle: write one like "{like}"')
    return Handle(int(match[1] or "0", 16), int(match[2] or "0", 16))


def address_of(text: str) -> str | None:
    """An address, or a network with its length; "" for all; None for other text. `10/8` is 10.0.0.0/8."""
    if _SHORT.fullmatch(text):
        address, _, length = text.partition("/")
        text = f"{address}{'.0' * (3 - address.count('.'))}/{length}"
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
    if network.prefixlen == 0:
        return ""
    return str(network.network_address) if network.prefixlen == network.max_prefixlen else str(network)


def is_ipv6(address: str) -> bool:
    """Return whether an address or network is of IPv6."""
    return ":" in address


def covers(wider: str | None, narrower: str | None) -> bool:
    """Return whether all packets to `narrower` are packets to `wider`; None is every destination."""
    if wider is None or narrower is None:
        return wider is None
    a, b = ipaddress.ip_network(wider), ipaddress.ip_network(narrower)
    return a.version == b.version and b.subnet_of(a)  # type: ignore[arg-type]  # of the same version
