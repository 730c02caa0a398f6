"""Machines that are plugged into a lab's cards: who is there, and how far from the router.

In: the plan of a lab that is up. Out: rows without a verdict. Nothing of ours runs in such a machine, so no pair of it
is measured, and the rows say so.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import orjson

from ewan.labs import cards
from ewan.labs.base.units import NS_PER_MS
from ewan.labs.plan import Card, Plan
from ewan.labs.record import Row, Verdict

QUANTITY = "RTT from router"
NO_PROBES = "nothing of ours is in what is plugged in: no pair of it is measured"
PROBES = 5
INTERVAL_S = 0.02
LONGEST_S = 3
_FASTEST = re.compile(r"= ([0-9.]+)/")
_ABSENT = ("FAILED", "INCOMPLETE", "PERMANENT")


def rows(plan: Plan) -> tuple[Row, ...]:
    """For each machine that a router knows on such a card the least RTT of a few; one row where it knows none."""
    return tuple(row for card in cards.external(plan) for row in _of_card(plan, card))


def _of_card(plan: Plan, card: Card) -> Iterator[Row]:
    namespace, interface = f"ewan-{plan.lab}-{card.end.node}", card.end.interface
    found = []
    for address in _neighbours(namespace, interface):
        rtt_ns = _rtt_ns(namespace, interface, address)
        if rtt_ns is not None:
            found.append(_row(f"{card.end.node} to {address}", rtt_ns, f"at card {card.name}; {NO_PROBES}"))
    yield from found or [_row(f"{card.end.node}:{interface}", None, f"card {card.name}: no machine answers")]


def _row(place: str, rtt_ns: float | None, note: str) -> Row:
    verdict: Verdict = "shown" if rtt_ns is not None else "not measured"
    return Row(place, "", QUANTITY, "ns", None, rtt_ns, None, None, verdict, note)


def _neighbours(namespace: str, interface: str) -> list[str]:
    """The global addresses that the router has had to do with, IPv4 first."""
    asked = ["ip", "-n", namespace, "-j", "neighbour", "show", "dev", interface]
    told = _said(asked)
    entries = orjson.loads(told) if told.strip() else []
    known = {entry["dst"] for entry in entries if "lladdr" in entry and not set(entry["state"]) & set(_ABSENT)}
    return sorted((each for each in known if not each.startswith("fe80:")), key=lambda each: (":" in each, each))


def _rtt_ns(namespace: str, interface: str, address: str) -> float | None:
    ping = [
        "ping",
        "-n",
        "-q",
        "-c",
        str(PROBES),
        "-i",
        str(INTERVAL_S),
        "-w",
        str(LONGEST_S),
        "-I",
        interface,
        address,
    ]
    found = _FASTEST.search(_said(["nsenter", f"--net=/run/netns/{namespace}", *ping]))
    return None if found is None else float(found[1]) * NS_PER_MS


def _said(command: list[str]) -> str:
    """The standard output of a command; empty if the program is absent, fails or takes too long."""
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * LONGEST_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout
