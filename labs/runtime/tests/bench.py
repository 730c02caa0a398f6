"""A machine of a test's own: a network namespace in which veths stand for cards, so that no real card is touched.

A veth differs from a card in one thing that matters here: where its namespace ends it is gone, and a card goes to the
kernel's first namespace.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from ewan.labs.runtime.tests.lab import BINARY

_CHANGES_BY_ITSELF = {"stats", "stats64", "operstate", "flags", "link_netnsid", "dynamic", "promiscuity"}
"""Of what `ip -d -j address` tells of an interface; flags that somebody sets are looked at one by one."""
_SET_BY_HAND = {"UP", "PROMISC", "ALLMULTI"}
_FOR_EVER = 1 << 31
"""Seconds; an address that has less is not as old when it is looked at again."""


class Bench:
    """The namespace `name`; commands run in it, and see the machine's files."""

    def __init__(self, name: str, state: Path) -> None:
        self.name, self.state = name, state

    def run(
        self, *command: str, environment: Mapping[str, str] | None = None, text: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """A command in the namespace; `ip netns exec` would hide from the machine what it mounts."""
        inside = ["nsenter", f"--net=/run/netns/{self.name}", "--", *command]
        environment = {**os.environ, "EWAN_STATE": str(self.state), **(environment or {})}
        return subprocess.run(inside, input=text, capture_output=True, env=environment, timeout=60)

    def out(self, *command: str) -> str:
        """What a command of the namespace prints; it succeeds."""
        result = self.run(*command)
        assert result.returncode == 0, f"{' '.join(command)}: {result.stderr.decode()}"
        return result.stdout.decode()

    def ip(self, words: str) -> str:
        return self.out("ip", *words.split())

    def node(self, *words: str, fault: int | None = None, text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """ewan-node; `fault`: killed before this step (emulator/system/src/fault.rs)."""
        return self.run(
            str(BINARY), *words, environment={} if fault is None else {"EWAN_FAULT_AFTER": str(fault)}, text=text
        )

    def cable(self, a: str, b: str) -> None:
        """Two cards that a cable joins."""
        self.ip(f"link add {a} type veth peer name {b}")

    def card(self, name: str) -> dict[str, Any]:
        """All that somebody could have set at a card, and its number."""
        (shown,) = orjson.loads(self.ip(f"-d -j address show dev {name}"))
        flags = sorted(set(shown["flags"]) & _SET_BY_HAND)
        addresses = [
            {key: value for key, value in each.items() if key[-4:] != "time" or value > _FOR_EVER}
            for each in shown.pop("addr_info")
            if each.pop("tentative", True)
        ]
        found = {key: value for key, value in shown.items() if key not in _CHANGES_BY_ITSELF}
        found |= {"flags": flags, "addresses": sorted(addresses, key=lambda each: each["local"])}
        for family in ("-4", "-6"):
            routes = orjson.loads(self.ip(f"{family} -j route show table all dev {name}") or "[]")
            kept = [route for route in routes if route.get("table") != "local"]  # there when an address is
            found[f"routes {family}"] = sorted(kept, key=lambda route: (route["dst"], route.get("metric", 0)))
            found[f"neighbours {family}"] = self.ip(f"{family} neighbour show nud permanent dev {name}").splitlines()
        found["features"] = self.out("ethtool", "-k", name).splitlines()
        return found

    def setting(self, name: str, key: str, value: str | None = None) -> str:
        """A sysctl of a card below net/, written if a value is given."""
        file = f"/proc/sys/net/{key.format(name)}"
        if value is not None:
            self.out("sh", "-c", f"echo {value} >{file}")
        return self.out("cat", file).strip()


@contextmanager
def bench(name: str, state: Path) -> Iterator[Bench]:
    """The namespace, until the end; what is in it goes with it."""
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        machine = Bench(name, state)
        machine.ip("link set lo up")
        yield machine
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)
