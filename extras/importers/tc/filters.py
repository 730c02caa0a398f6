"""The packets that a filter of tc takes, their class, and their actions. See tc-u32(8), tc-flower(8).

Comes in: a `TcFilter`. Goes out: its matches, class and actions; a policer with the keys that a description has for
it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ewan.extras.importers.findings import Findings
from ewan.extras.importers.script import ScriptCommand
from ewan.extras.importers.tc.options import ALIKE, OF_BUCKETS, bucket, pairs
from ewan.extras.importers.tc.shapers import FULL_FRAME
from ewan.extras.importers.tc.tree import TcFilter
from ewan.extras.importers.tc.words import Handle, address_of, is_ipv6
from ewan.labs.base.units import Rate, Size
from ewan.labs.base.units.tools import tc_rate

_IPV6 = ("ipv6", "ip6")
_PROTOCOLS = ("all", "ip", *_IPV6)
_EVERY = ("any", "all", "default")
_RESULTS = {"drop": "drop", "shot": "drop", "ok": "ok", "pass": "ok", "pipe": "pipe", "continue": "continue",
            "reclassify": "reclassify"}  # fmt: skip
_ENDS_POLICE = ("flowid", "classid", "match", "action")


@dataclass(slots=True)
class PacketSelection:
    """`matches`: `dst ADDRESS`, `src ADDRESS`; empty for all packets, None for a filter that cannot be read.

    `strange`: the reason why no lab has such a filter, which takes only packets of IPv6, or none at all; "" for
    others."""

    matches: list[str] | None = field(default_factory=list)
    flow: str | None = None
    actions: list[list[str]] = field(default_factory=list)
    strange: str = ""

    @property
    def takes_all(self) -> bool:
        """Return whether it takes every packet."""
        return self.matches == []


@dataclass(frozen=True, slots=True)
class Police:
    """A policer: packets that exceed the bucket are dropped."""

    command: ScriptCommand
    rate: Rate
    burst: Size


def choice(of: TcFilter) -> PacketSelection:
    """The packets that a filter of u32, flower, matchall or fw selects; `matches` is None where another kind or word
    chooses."""
    found = PacketSelection()
    left = list(of.words[1:])
    known = of.kind in ("u32", "flower", "matchall", "fw") and of.protocol in _PROTOCOLS
    while left:
        word = left.pop(0)
        if word in ("flowid", "classid") and left:
            found.flow = left.pop(0)
        elif word == "action" and left:
            found.actions.append([])
            while left and left[0] != "action":
                found.actions[-1].append(left.pop(0))
        elif word == "police":
            found.actions.append(["police"])
            while left and left[0] not in _ENDS_POLICE:
                found.actions[-1].append(left.pop(0))
        elif word == "match" and of.kind == "u32" and left[:3] == ["u32", "0", "0"]:
            left = left[5:] if left[3:4] == ["at"] else left[3:]
        elif word == "match" and of.kind == "u32" and left[:1] in (["ip"], ["ip6"]) and len(left) >= 3:
            if _fits(left[0], left[2]):
                known &= _match(left[1], left[2], found)
            else:
                known = False
            left = left[3:]
        elif of.kind == "flower" and word in ("dst_ip", "src_ip") and left:
            known &= _match(word[:3], left.pop(0), found)
        else:
            known = False
    found.strange = _strange(of, found)
    found.matches = found.matches if known and not found.strange else None
    return found


def _fits(family: str, text: str) -> bool:
    """Return whether a match of u32 has an address of its family."""
    return text in _EVERY or is_ipv6(text) == (family == "ip6")


def _strange(of: TcFilter, found: PacketSelection) -> str:
    families = {is_ipv6(match) for match in found.matches or ()}
    if of.protocol in _IPV6 and False in families:
        return "is of protocol ipv6 and matches an address of IPv4, so it takes no packets of it"
    if of.protocol == "ip" and True in families:
        return "is of protocol ip and matches an address of IPv6, so it takes no packets of it"
    if of.protocol in _IPV6 and not families:
        return "takes only packets of IPv6, and those of IPv4 go elsewhere"
    return ""


def _match(end: str, text: str, found: PacketSelection) -> bool:
    address = "" if text in _EVERY else address_of(text)
    if address and found.matches is not None:
        found.matches.append(f"{end} {address}")
    return end in ("dst", "src") and address is not None


def flow_of(of: TcFilter, text: str | None, findings: Findings) -> Handle | None:
    """The class that a filter names; refused, or None, where there is none."""
    parts = (text or "").split(":")
    if len(parts) != 2 or not all(len(part) <= 4 and _is_hexadecimal(part or "0") for part in parts):
        findings.cannot(of.command, of.command.text, "sends packets to no class")
        return None
    major, minor = (int(part or "0", 16) for part in parts)
    return Handle(major, minor)


def _is_hexadecimal(text: str) -> bool:
    return all(letter in "0123456789abcdefABCDEF" for letter in text)


def redirected(actions: Sequence[Sequence[str]]) -> str | None:
    """The device to which `action mirred egress redirect` sends all packets."""
    if len(actions) == 1 and actions[0][:4] == ["mirred", "egress", "redirect", "dev"] and len(actions[0]) == 5:
        return actions[0][4]
    return None


def police(of: TcFilter, actions: Sequence[Sequence[str]], findings: Findings) -> Police | None:
    """The policer of a filter with one action; None where that is another one. Refused if excess packets are not
    dropped."""
    if len(actions) != 1 or actions[0][:1] != ["police"]:
        return None
    command = of.command
    given = pairs(actions[0][1:], tuple(_RESULTS), command, findings, once=OF_BUCKETS, alike=ALIKE)
    exceed, _, conform = given.pop("conform-exceed", "").partition("/")
    results = [given.pop(key) or key for key in _RESULTS if key in given]
    exceed = exceed or (results[0] if results else "reclassify")
    given.pop("index", None)
    if missing := [key for key in ("rate", "burst") if key not in given]:
        raise findings.error(command.line, command.text, f"police needs {missing[0]}: write it")
    if _RESULTS.get(exceed) != "drop" or _RESULTS.get(conform or "ok", "drop") == "drop":
        findings.cannot(command, command.text, 'drops not what exceeds: a description has "conform-exceed drop" only')
        return None
    for key in [key for key in given if key not in ("rate", "burst", "mtu")]:
        findings.cannot(command, f"{key} {given[key]}", "is of a policer that has no word in a description")
    rate = findings.read(command, "rate", tc_rate, given["rate"])
    burst = findings.read(command, "burst", bucket, given["burst"])
    longest = min([burst, findings.read(command, "mtu", bucket, given["mtu"])] if "mtu" in given else [burst])
    if longest < FULL_FRAME:
        findings.cannot(command, command.text, f"drops all packets longer than {longest}: write {FULL_FRAME} or more")
    return Police(command, rate, burst)
