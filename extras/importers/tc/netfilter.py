"""Rules of iptables that lead packets to classes: `-j CLASSIFY --set-class`, and `-j MARK` for filters of kind `fw`.

Comes in: commands of iptables and ip6tables. Goes out: rules, each for one destination or all; rules of the same kind
never take the same packets, so that their order says nothing. See iptables-extensions(8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ewan.extras.importers.findings import Findings
from ewan.extras.importers.script import Command
from ewan.extras.importers.tc.words import Handle, address_of, covers, handle_of

TOOLS = ("iptables", "ip6tables")
_VALUED = {"-t": "table", "--table": "table", "-A": "chain", "--append": "chain", "-o": "device",
           "--out-interface": "device", "-d": "to", "--dst": "to", "--destination": "to", "-j": "target",
           "--jump": "target", "--set-class": "class", "--set-mark": "mark", "--set-xmark": "mark"}  # fmt: skip
_CHAINS = ("OUTPUT", "FORWARD", "POSTROUTING")
_WHOLE_MARK = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class Rule:
    """`to`: None for all packets. One of `flow` and `mark`. `device` is with its namespace, as a card's name."""

    command: Command
    device: str | None
    to: str | None
    flow: Handle | None = None
    mark: int | None = None


def is_rule(command: Command) -> bool:
    """Whether a command leads packets to classes, or takes such rules away."""
    return command.name in TOOLS and any(word in ("CLASSIFY", "MARK") for word in command.words)


def rules(commands: Sequence[Command], findings: Findings) -> list[Rule]:
    """All of a script; ImportingError for what is no rule, or where the order of rules would decide."""
    found: list[Rule] = []
    for command in commands:
        rule = _rule(command, findings)
        if rule is None:
            continue
        for before in found:
            same = (before.mark is None) == (rule.mark is None) and before.device in (None, rule.device)
            if same and (covers(before.to, rule.to) or covers(rule.to, before.to)):
                message = f"takes packets of line {before.command.line} too: write one rule for each destination"
                raise findings.error(command.line, command.text, message)
        found.append(rule)
    return found


def marks_with(mark: int, of: Sequence[Rule]) -> list[Rule]:
    """The rules that give this mark."""
    return [rule for rule in of if rule.mark == mark]


def mark_of(text: str, command: Command, findings: Findings) -> int:
    """`5`, `0x5`, and `0x5/0xffffffff`, which is the same."""
    value, _, mask = text.partition("/")
    try:
        if int(mask or str(_WHOLE_MARK), 0) == _WHOLE_MARK:
            return int(value, 0)
    except ValueError:
        pass
    raise findings.error(command.line, command.text, f'"{text}" is a part of a mark or none: write one like "5"')


def _rule(command: Command, findings: Findings) -> Rule | None:
    line, text = command.line, command.text
    given: dict[str, str] = {}
    left = [word for word in command.words if word not in ("-w", "--wait")]
    if any(word in ("-D", "--delete", "-F", "--flush", "-R", "-I", "--insert") for word in left):
        raise findings.error(line, text, 'puts a rule before others or takes it away: write those that stay, with "-A"')
    while left:
        key = _VALUED.get(left.pop(0))
        if key is None or not left:
            findings.cannot(command, text, "chooses packets by something else than one destination")
            return None
        given[key] = left.pop(0)
    if given.get("chain") not in _CHAINS:
        findings.cannot(command, text, f"is in none of the chains {', '.join(_CHAINS)}")
        return None
    to = address_of(given["to"]) if "to" in given else ""
    device = given.get("device")
    if to is None or (device or "").endswith("+"):
        raise findings.error(line, text, 'names no address or device: write one like "10.0.0.2" and "eth0"')
    if device is not None and command.namespace is not None:
        device = f"{command.namespace}/{device}"
    if given.get("target") == "CLASSIFY" and "class" in given:
        return Rule(command, device, to or None, flow=handle_of(given["class"], "1:10", command, findings))
    if given.get("target") == "MARK" and "mark" in given:
        if given.get("table") != "mangle":
            raise findings.error(
                line, text, 'MARK is in the table mangle only, so iptables refuses it: write "-t mangle"'
            )
        return Rule(command, device, to or None, mark=mark_of(given["mark"], command, findings))
    raise findings.error(line, text, 'says no class or mark: write "--set-class 1:10" or "--set-mark 5"')
