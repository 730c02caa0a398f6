"""Commands of NIST Net (`cnistnet -a SOURCE TARGET --delay … --drop … --bandwidth …`) as ways between ends.

Delays are milliseconds, drop and duplication percentages, a bandwidth bytes a second of IP packets. NIST Net keeps
packets without a limit, unless `--drd` says one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ewan.extras.importers.directions import ImportedDirection, ImportedSettings
from ewan.extras.importers.findings import CommandOutcome, Findings
from ewan.extras.importers.script import ScriptCommand
from ewan.labs.base.units import Buffer, Duration, Rate
from ewan.labs.base.units.tools import nistnet_bandwidth, nistnet_delay, nistnet_percent

FRAMING = ("ip", "NIST Net counts IP packets, without what is around them")
TOOLS = ("cnistnet",)
UNLIMITED = Buffer("ns", Duration.LONGEST)
_ANY = "any"
_ON_OFF = ("-u", "--up", "-d", "--down", "-F", "--flush", "-s", "-S", "-R", "-G", "-D", "-U", "-h", "-n", "--read")
_ENDS = ("-d", "--down", "-F", "--flush")


@dataclass(slots=True)
class _Entry:
    command: ScriptCommand
    findings: Findings
    left: list[str]
    way: ImportedSettings
    word: str = ""

    def numbers(self, most: int) -> list[str]:
        """Values up to the next option, with `/` as white space."""
        found: list[str] = []
        while self.left and not self.left[0].startswith("--"):
            found += [part for part in self.left.pop(0).split("/") if part]
        if not 1 <= len(found) <= most:
            many = "no value" if not found else f"{len(found)} values"
            raise self.findings.error(
                self.command.line, self.command.text, f"{self.word} has {many}: write it as cnistnet does"
            )
        return found

    @property
    def where(self) -> str:
        return f"line {self.command.line}"


def legs(commands: Iterable[ScriptCommand], line_rate: Rate, findings: Findings) -> list[ImportedDirection]:
    """All directions of a script; ImportingError for a setting that no lab has."""
    found: dict[tuple[str, str], ImportedDirection] = {}
    of: dict[tuple[str, str], ScriptCommand] = {}
    for command in commands:
        words = list(command.words)
        while words and words[0] in _ON_OFF:
            if words.pop(0) in _ENDS and found:
                findings.warn(command, f"{command.text} ends it: the lab is what was there before")
        if not words:
            findings.settle(command, CommandOutcome.NOTHING)
            continue
        verb = words.pop(0)
        if verb in ("-r", "--remove") and len(words) > 1:
            _undo((_end(words[0], command, findings), _end(words[1], command, findings)), found, of, findings)
            findings.settle(command, CommandOutcome.LAB)
        elif verb in ("-a", "--add"):
            leg = _entry(words, command, line_rate, findings)
            _undo((leg.source, leg.target), found, of, findings)
            found[leg.source, leg.target], of[leg.source, leg.target] = leg, command
            findings.settle(command, CommandOutcome.LAB)
        else:
            raise findings.error(
                command.line, command.text, 'is no command of cnistnet that can be imported: write "-a"'
            )
    return list(found.values())


def _undo(
    ends: tuple[str, str],
    found: dict[tuple[str, str], ImportedDirection],
    of: dict[tuple[str, str], ScriptCommand],
    findings: Findings,
) -> None:
    if found.pop(ends, None) is not None:
        findings.settle(of.pop(ends), CommandOutcome.UNDONE)


def _end(text: str, command: ScriptCommand, findings: Findings) -> str:
    """An address, without port and protocol."""
    address, _, rest = text.partition(":")
    if rest:
        findings.cannot(command, text, "takes only packets of a port or protocol", "take it for all")
    return _ANY if address in ("0.0.0.0", "0") else address


def _entry(words: list[str], command: ScriptCommand, line_rate: Rate, findings: Findings) -> ImportedDirection:
    if len(words) < 2 or words[0].startswith("-") or words[1].startswith("-"):
        raise findings.error(command.line, command.text, "has no two ends: write -a SOURCE TARGET")
    source, target = (_end(word, command, findings) for word in words[:2])
    left = words[2:]
    if left[:2] == ["add", "new"]:
        left = left[2:]
    elif left and not left[0].startswith("-"):
        findings.cannot(command, left[0], "takes only packets of one class of service", "take it for all")
        left = left[1:]
    if (source, target) == (_ANY, _ANY):
        why = "takes both directions"
        findings.cannot(command, command.text, why, "take it as the way there")
        source, target = "here", "there"
    entry = _Entry(command, findings, left, ImportedSettings())
    entry.way.put("framing", *FRAMING)
    entry.way.put("rate", line_rate, "there is no limit: the card's")
    entry.way.put("buffer", UNLIMITED, "NIST Net keeps all packets")
    while entry.left:
        entry.word = entry.left.pop(0)
        reader = _READERS.get(entry.word)
        if reader is None:
            raise findings.error(command.line, entry.word, "is no option of cnistnet that can be read here")
        reader(entry)
    return ImportedDirection(command.line, source, target, f"{source} to {target}", entry.way)


def _delay(entry: _Entry) -> None:
    mean, *spread = entry.numbers(3)
    entry.way.put("delay", entry.findings.read(entry.command, "--delay", nistnet_delay, mean), entry.where)
    if not spread:
        return
    sigma = entry.findings.read(entry.command, "--delay", nistnet_delay, spread[0])
    if not sigma.ns:
        return
    why = "spreads delays by a table in NIST Net's kernel module, which no description has"
    what = f"--delay {mean} {' '.join(spread)}"
    entry.findings.cannot(entry.command, what, why, "take a normal spread with that deviation, without correlation")
    entry.way.put("jitter", sigma, f"{entry.where}: standard deviation")
    entry.way.put("distribution", "normal", "not NIST Net's own")
    entry.way.put("reorder", "true", "NIST Net lets packets overtake")


def _share(key: str) -> Callable[[_Entry], None]:
    def read(entry: _Entry) -> None:
        text, *correlation = entry.numbers(2)
        share = entry.findings.read(entry.command, entry.word, nistnet_percent, text)
        if share.ppb:
            entry.way.put(key, share, entry.where)
        if correlation and correlation[0].strip("0."):
            why = "correlates packets, which has no word in a description"
            entry.findings.cannot(entry.command, f"{entry.word} {text}/{correlation[0]}", why)

    return read


def _bandwidth(entry: _Entry) -> None:
    (text,) = entry.numbers(1)
    rate = entry.findings.read(entry.command, "--bandwidth", nistnet_bandwidth, text)
    if rate is not None:
        entry.way.put("rate", rate, f"{entry.where}: {text} bytes a second")


def _drd(entry: _Entry) -> None:
    values = entry.numbers(3)
    if any(value.strip("0") for value in values):
        why = "drops by NIST Net's own rule (Derivative Random Drop), which has no word in a description"
        entry.findings.cannot(entry.command, f"--drd {' '.join(values)}", why)


_READERS: dict[str, Callable[[_Entry], None]] = {
    "--delay": _delay,
    "--drop": _share("loss"),
    "--dup": _share("duplicate"),
    "--bandwidth": _bandwidth,
    "--drd": _drd,
}
