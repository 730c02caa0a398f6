"""Cards that stand on others, like a VLAN on its parent: a packet that leaves the upper one leaves the lower one too.

Comes in: commands, and cards with what was put on them. Refused: two that a packet leaves one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from ewan.extras.importers.findings import Findings
from ewan.extras.importers.script import ScriptCommand
from ewan.extras.importers.tc.tree import TcDevice


def refuse(cards: Mapping[str, TcDevice], others: Sequence[ScriptCommand], findings: Findings) -> None:
    """ImportingError where tc shapes the packets that leave both of two such cards."""
    shaped = {name: card for name, card in cards.items() if card.root is not None}
    for upper, lower in (*_by_name(shaped), *_made(others)):
        if upper in shaped and lower in shaped:
            root = shaped[upper].root
            command = root.command if root is not None else others[0]
            why = f"packets that leave {upper} leave {lower} too, so they meet both: import only one of them"
            raise findings.error(command.line, command.text, why)


def _by_name(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """`eth0.100` is a VLAN of `eth0`."""
    for name in names:
        lower, dot, number = name.rpartition(".")
        if dot and number.isdecimal():
            yield name, lower


def _made(commands: Iterable[ScriptCommand]) -> Iterator[tuple[str, str]]:
    """`ip link add link LOWER name UPPER type vlan`, `ip link set LOWER master UPPER`; only in the same namespace."""
    for command in commands:
        words = [word for word in command.words if not word.startswith("-")]
        if command.name != "ip" or words[:1] not in (["link"], ["l"], ["li"]) or len(words) < 4:
            continue
        found = dict(pairwise(words[1:]))
        place = "" if command.namespace is None else f"{command.namespace}/"
        if words[1] == "add" and "link" in found:
            plain = words[2] if words[2] not in ("link", "name", "dev") else ""
            yield f"{place}{found.get('name') or plain or found.get('dev', '')}", f"{place}{found['link']}"
        elif words[1] == "set" and "master" in found:
            yield f"{place}{found['master']}", f"{place}{found.get('dev') or words[2]}"
