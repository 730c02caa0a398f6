"""Rules of iptables that lead packets to classes: `-j CLASSIFY --set-class`, and `-j MARK` for filters of kind `fw`.

Comes in: commands of iptables and ip6tables. Goes out: rules, each for one destination or all; rules of the same kind
never take the same packets, so that their order has no effect. See iptables-extensions(8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ewan.extras.importers.findings import CommandOutcome, Findings
from ewan.extras.importers.script import ScriptCommand
from ewan.extras.importers.tc.words import Handle, address_of, covers, handle_of, is_ipv6

TOOLS = ("iptables", "ip6tables")
_VALUED = {"-t": "table", "--table": "table", "-A": "chain", "--append": "chain", "-o": "device",
           "--out-interface": "device", "-d": "to", "--dst": "to", "--destination": "to", "-j": "target",
           "--jump": "target", "--set-class": "class", "--set-mark": "mark", "--set-xmark": "mark"}  # fmt: skip
_CHAINS = ("OUTPUT", "FORWARD", "POSTROUTING")
_FLUSH = ("-F", "--flush")
_DELETE = ("-D", "--delete")
_WHOLE_MARK = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class MarkRule:
    """`to`: None for all packets. One of `flow` and `mark`. `device` is with its namespace, as a card's name."""

    command: ScriptCommand
    device: str | None
    to: str | None
    flow: Handle | None = None
    mark: int | None = None
    table: str = "filter"
    chain: str = ""

    @property
    def place(self) -> tuple[str, str | None, str]:
        """The tool, the namespace and the table."""
        return self.command.name, self.command.namespace, self.table


def is_rule(command: ScriptCommand) -> bool:
    """Return whether a command leads packets to classes, or may take such rules away."""
    return command.name in TOOLS and bool({"CLASSIFY", "MARK", *_FLUSH, *_DELETE} & {*command.words})


def rules(commands: Sequence[ScriptCommand], findings: Findings) -> list[MarkRule]:
    """All rules of a script; ImportingError for a command that is no rule, or where the order of rules would decide."""
    found: list[MarkRule] = []
    for command in commands:
        if {*_FLUSH, *_DELETE} & {*command.words}:
            _take_away(command, found, findings)
            continue
        rule = _rule(command, findings)
        if rule is None:
            continue
        for before in found:
            same = (before.mark is None) == (rule.mark is None) and before.device in (None, rule.device)
            same &= before.command.namespace == rule.command.namespace
            if same and (covers(before.to, rule.to) or covers(rule.to, before.to)):
                message = f"takes packets of line {before.command.line} too: write one rule for each destination"
                raise findings.error(command.line, command.text, message)
        found.append(rule)
    return found


def marks_with(mark: int, of: Sequence[MarkRule]) -> list[MarkRule]:
    """The rules that give this mark."""
    return [rule for rule in of if rule.mark == mark]


def mark_of(text: str, command: ScriptCommand, findings: Findings) -> int:
    """`5`, `0x5`, and `0x5/0xffffffff`, which is the same."""
    value, _, mask = text.partition("/")
    try:
        if int(mask or str(_WHOLE_MARK), 0) == _WHOLE_MARK:
            return int(value, 0)
    except ValueError:
        pass
    raise findings.error(command.line, command.text, f'"{text}" is a part of a mark or none: write one like "5"')


def _take_away(command: ScriptCommand, found: list[MarkRule], findings: Findings) -> None:
    """`-F`, and `-D` with the words of the rule; a command that takes no rule of ours away is not about the lab."""
    verb = next(word for word in command.words if word in (*_FLUSH, *_DELETE))
    words = [word for word in command.words if word not in ("-w", "--wait")]
    table = next((value for key, value in pairwise(words) if key in ("-t", "--table")), "filter")
    chain = next((value for key, value in pairwise(words) if key == verb and not value.startswith("-")), None)
    place = (command.name, command.namespace, table)
    mine = [rule for rule in found if rule.place == place and chain in (None, rule.chain)]
    if verb in _DELETE and mine:
        added = ["-A" if word == verb else word for word in words]
        mine = [rule for rule in mine if [*rule.command.words] == added][:1]
        if not mine:
            raise findings.error(command.line, command.text, "takes away a rule of several: write those that stay")
    for rule in mine:
        findings.settle(rule.command, CommandOutcome.UNDONE)
        findings.settle(command, CommandOutcome.LAB)
        found.remove(rule)


def _rule(command: ScriptCommand, findings: Findings) -> MarkRule | None:
    line, text = command.line, command.text
    given: dict[str, str] = {}
    left = [word for word in command.words if word not in ("-w", "--wait")]
    if any(word in ("-R", "--replace", "-I", "--insert") for word in left):
        raise findings.error(line, text, 'puts a rule before others: write those that stay, with "-A"')
    while left:
        if left[:3] == ["-m", "comment", "--comment"]:
            left = left[4:]
            continue
        key = _VALUED.get(left.pop(0))
        if key is None or not left:
            findings.cannot(command, text, "chooses packets by something else than one destination")
            return None
        given[key] = left.pop(0)
    if given.get("chain") not in _CHAINS:
        findings.cannot(command, text, f"is in none of the chains {', '.join(_CHAINS)}")
        return None
    to = address_of(given["to"]) if "to" in given else ""
    if to and is_ipv6(to) != (command.name == "ip6tables"):
        raise findings.error(line, text, f"{to} is no address of {command.name}, which refuses it: write another one")
    if not to and command.name == "ip6tables":
        findings.cannot(command, text, "takes only packets of IPv6, and those of IPv4 go elsewhere")
        return None
    device = given.get("device")
    if to is None or (device or "").endswith("+"):
        raise findings.error(line, text, 'names no address or device: write one like "10.0.0.2" and "eth0"')
    if device is not None and command.namespace is not None:
        device = f"{command.namespace}/{device}"
    table, chain = given.get("table", "filter"), given["chain"]
    if given.get("target") == "CLASSIFY" and "class" in given:
        return MarkRule(
            command,
            device,
            to or None,
            flow=handle_of(given["class"], "1:10", command, findings),
            table=table,
            chain=chain,
        )
    if given.get("target") == "MARK" and "mark" in given:
        if given.get("table") != "mangle":
            raise findings.error(
                line, text, 'MARK is in the table mangle only, so iptables refuses it: write "-t mangle"'
            )
        return MarkRule(
            command, device, to or None, mark=mark_of(given["mark"], command, findings), table=table, chain=chain
        )
    raise findings.error(line, text, 'says no class or mark: write "--set-class 1:10" or "--set-mark 5"')
