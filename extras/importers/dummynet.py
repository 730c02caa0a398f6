"""Pipes of Dummynet and the rules that fill them, as ways between ends.

A pipe is a queue, then a rate, then a delay, as a link of ours is. It counts the bytes of IP packets. Units: K is 1000
for a bandwidth and 1024 for a queue, a delay is whole milliseconds, `plr` a probability. See ipfw(8) and
sbin/ipfw/dummynet.c of FreeBSD.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction as Exact

from ewan.extras.importers.directions import DeviceTraffic, ImportedDirection, ImportedSettings, Setting, of_devices
from ewan.extras.importers.findings import CommandOutcome, Findings
from ewan.extras.importers.script import ScriptCommand
from ewan.labs.base.units import Buffer, Rate, Size, UnitError
from ewan.labs.base.units.tools import (
    dummynet_bytes,
    dummynet_delay,
    dummynet_queue,
    dummynet_rate,
    dummynet_time,
    probability,
)

FRAMING = ("ip", "Dummynet counts IP packets, without what is around them")
SLOTS = 50
TOOLS = ("ipfw", "dnctl", "ipfw3")
_ANY_PROTOCOL = ("ip", "all", "ip4", "ipv4", "any")
_INTERFACE = ("via", "recv", "xmit")
_PASSING = ("allow", "accept", "pass", "permit", "count", "check-state")


@dataclass(frozen=True, slots=True)
class PipeRule:
    """The packets that go to a pipe. `inward`: None where the rule has no direction."""

    command: ScriptCommand
    pipe: str
    source: str
    target: str
    inward: bool | None
    device: str | None


def is_command(words: Sequence[str]) -> bool:
    """Return whether a line of a file that `ipfw FILE` reads is one of its commands, without `ipfw` before it."""
    return (words[:1] == ["pipe"] and "config" in words) or (words[:1] == ["add"] and "pipe" in words)


def legs(commands: Iterable[ScriptCommand], line_rate: Rate, findings: Findings) -> list[ImportedDirection]:
    """All directions of a script; ImportingError for a setting that no lab has."""
    pipes: dict[str, tuple[ScriptCommand, list[str]]] = {}
    rules: list[PipeRule] = []
    for command in commands:
        words = _without_options(command)
        if not words or words[0] in ("show", "list", "zero", "resetlog"):
            findings.settle(command, CommandOutcome.NOTHING)
        elif "flush" in words[:2]:
            gone = [rule.command for rule in rules if words[0] in ("flush", "pipe")]
            gone += [each for each, _ in pipes.values()]
            _undo(command, gone, findings)
            pipes, rules = {}, [] if words[0] in ("flush", "pipe") else rules
        elif words[0] == "delete" or words[1:2] == ["delete"] or words[2:3] == ["delete"]:
            if pipes or rules:
                raise findings.error(command.line, command.text, "takes something away: write what stays")
            findings.settle(command, CommandOutcome.NOTHING)
        elif words[0] == "pipe":
            _pipe(words, command, pipes, findings)
        elif words[0] == "add":
            rules += _rules(words[1:], command, findings)
        elif words[0] in ("queue", "sched") and "config" in words:
            why = "divides a pipe among flows by weights of its own, which has no word in a description"
            findings.cannot(command, command.text, why)
    return _made(pipes, rules, line_rate, findings)


def _undo(command: ScriptCommand, gone: Iterable[ScriptCommand], findings: Findings) -> None:
    findings.settle(command, CommandOutcome.NOTHING)
    for each in gone:
        findings.settle(each, CommandOutcome.UNDONE)


def _without_options(command: ScriptCommand) -> list[str]:
    words = list(command.words) if command.name in TOOLS else [command.name, *command.words]
    while words and words[0].startswith("-"):
        words.pop(0)
    return words


def _pipe(
    words: list[str], command: ScriptCommand, pipes: dict[str, tuple[ScriptCommand, list[str]]], findings: Findings
) -> None:
    if any(word in ("show", "list") for word in words[1:3]):
        findings.settle(command, CommandOutcome.NOTHING)
        return
    if len(words) < 3 or words[2] != "config" or not words[1].isascii() or not words[1].isdecimal():
        raise findings.error(command.line, command.text, 'is no pipe: write "pipe 1 config …"')
    if words[1] in pipes:
        findings.settle(pipes[words[1]][0], CommandOutcome.UNDONE)
    pipes[words[1]] = (command, words[3:])  # a second config begins anew, as ipfw's own


def _rules(words: list[str], command: ScriptCommand, findings: Findings) -> list[PipeRule]:
    """The rules of `add [N] [set N] [prob P] pipe N PROTOCOL from SOURCE to TARGET [in|out] [via IF]`; none of another
    kind."""
    line, text = command.line, command.text
    left = list(words)
    if left and left[0].isdecimal():
        left.pop(0)
    while left[:1] in (["set"], ["prob"]) and len(left) > 1:
        if left[0] == "prob":
            findings.cannot(command, text, "takes only a share of the packets, which has no word in a description")
        left = left[2:]
    action = left.pop(0) if left else ""
    if action in _PASSING:
        return []
    if action != "pipe":
        findings.cannot(command, text, f'"{action}" is the firewall\'s: a description passes all packets')
        return []
    number = left.pop(0) if left else ""
    while left[:1] in (["log"], ["tag"], ["logamount"]):
        left = left[1:] if left[0] == "log" else left[2:]
    protocol = left.pop(0) if left else ""
    if protocol not in _ANY_PROTOCOL:
        findings.cannot(command, text, f"takes packets of {protocol or 'no protocol'} alone", "take it for all")
    ends = []
    for word in ("from", "to"):
        if left[:1] != [word] or len(left) < 2:
            raise findings.error(line, text, f'has no "{word}": write "from ADDRESS to ADDRESS"')
        if left[1] in ("not", "{", "(") or "," in left[1]:
            raise findings.error(line, text, "chooses packets by more than two ends: write one address for each")
        ends.append(left[1])
        left = left[2:]
        if left and (left[0][0].isdecimal() or left[0] in ("dst-port", "src-port")):
            taken = 2 if left[0].endswith("port") else 1
            findings.cannot(command, text, "takes only packets of some ports", "take it for all")
            left = left[taken:]
    return [_rule(left, number, ends, command, findings)]


def _rule(left: list[str], number: str, ends: list[str], command: ScriptCommand, findings: Findings) -> PipeRule:
    inward, device = None, None
    while left:
        word = left.pop(0)
        if word in ("in", "out"):
            inward = word == "in"
        elif word in _INTERFACE and left:
            device = left.pop(0)
            inward = {"recv": True, "xmit": False}.get(word, inward)
        elif word == "//":
            break
        else:
            findings.cannot(command, command.text, f'"{word}" chooses packets in a way that no link does')
            break
    source, target = (("any" if end in ("0.0.0.0/0", "::/0") else end) for end in ends)
    return PipeRule(command, number, source, target, inward, device)


def _made(
    pipes: dict[str, tuple[ScriptCommand, list[str]]], rules: list[PipeRule], line_rate: Rate, findings: Findings
) -> list[ImportedDirection]:
    ways = {number: (command, _way(command, words, line_rate, findings)) for number, (command, words) in pipes.items()}
    for rule in rules:
        if rule.pipe not in ways:
            raise findings.error(rule.command.line, rule.command.text, f"pipe {rule.pipe} has no config: write one")
    if not rules:
        return _without_rules(ways, findings)
    for number, (command, _) in ways.items():
        if all(rule.pipe != number for rule in rules):
            findings.warn(command, f"no rule sends packets to pipe {number}: {command.text}")
    used: dict[str, PipeRule] = {}
    plain: list[ImportedDirection] = []
    of_cards: list[DeviceTraffic] = []
    for rule in rules:
        line, what = rule.command.line, f"pipe {rule.pipe}, {rule.source} to {rule.target}"
        way = ways[rule.pipe][1]
        findings.settle(rule.command, CommandOutcome.LAB)
        findings.settle(ways[rule.pipe][0], CommandOutcome.LAB)
        before = used.setdefault(rule.pipe, rule)
        if before is not rule:
            why = f"line {before.command.line} sends other packets to the same pipe, and both share its rate"
            findings.cannot(rule.command, rule.command.text, why, "give each a pipe of its own")
        if (rule.source, rule.target) != ("any", "any"):
            if rule.inward is None:
                findings.note(
                    rule.command,
                    f"pipe {rule.pipe}: says neither in nor out: a router passes a packet twice; once here",
                )
            plain.append(ImportedDirection(line, rule.source, rule.target, what, way))
        elif rule.inward is None:
            why = f"takes both directions into pipe {rule.pipe}, and on a router each packet twice"
            findings.cannot(rule.command, rule.command.text, why, "give each direction a pipe of its own")
            of_cards += [DeviceTraffic(line, rule.device or "the card", outward, way) for outward in (True, False)]
        else:
            of_cards.append(DeviceTraffic(line, rule.device or "the card", not rule.inward, way))
    if plain and of_cards:
        rule = rules[-1]
        message = "some rules name ends and others only a direction: import one kind of them"
        raise findings.error(rule.command.line, rule.command.text, message)
    return plain or of_devices(of_cards, findings)


def _without_rules(
    ways: dict[str, tuple[ScriptCommand, ImportedSettings]], findings: Findings
) -> list[ImportedDirection]:
    """One pipe for the way there, a second one for the way back."""
    if not ways:
        return []
    if len(ways) > 2:
        command = list(ways.values())[2][0]
        raise findings.error(
            command.line, command.text, 'which packets go there? Write the rules too: "ipfw add pipe …"'
        )
    legs = []
    for (number, (command, way)), ends in zip(ways.items(), (("left", "right"), ("right", "left")), strict=False):
        findings.note(
            command, f"no rule says which packets go to pipe {number}: it is the way from {' to '.join(ends)}"
        )
        findings.settle(command, CommandOutcome.LAB)
        legs.append(ImportedDirection(command.line, *ends, f"pipe {number}", way))
    return legs


@dataclass(slots=True)
class _Pipe:
    command: ScriptCommand
    findings: Findings
    left: list[str]
    way: ImportedSettings
    held: Buffer
    word: str = ""

    def take(self) -> str:
        if not self.left:
            raise self.findings.error(self.command.line, self.command.text, f"{self.word} has no value: write it")
        return self.left.pop(0)

    @property
    def where(self) -> str:
        return f"line {self.command.line}"


def _way(command: ScriptCommand, words: Sequence[str], line_rate: Rate, findings: Findings) -> ImportedSettings:
    way = ImportedSettings()
    way.put("framing", *FRAMING)
    pipe = _Pipe(command, findings, list(words), way, Buffer("packets", SLOTS))
    while pipe.left:
        pipe.word = pipe.left.pop(0)
        reader = _READERS.get(pipe.word)
        if reader is None:
            raise findings.error(command.line, pipe.word, "is no word of a pipe that can be read here")
        reader(pipe)
    if "rate" not in way.settings:
        way.put("rate", line_rate, "the pipe has no limit: the card's")
    given = "" if any(word == "queue" for word in words) else ", ipfw's default"
    way.put("buffer", pipe.held, f"{pipe.where}{given}")
    return way


def _bandwidth(pipe: _Pipe) -> None:
    text = pipe.take()
    if text[:1].isalpha():
        why = f"the card {text} gives the pace, which has no word in a description"
        pipe.findings.cannot(pipe.command, f"bw {text}", why)
        return
    rate = pipe.findings.read(pipe.command, "bw", dummynet_rate, text)
    if rate is not None:
        pipe.way.put("rate", rate, pipe.where)


def _delay(pipe: _Pipe) -> None:
    pipe.way.put("delay", pipe.findings.read(pipe.command, "delay", dummynet_delay, pipe.take()), pipe.where)
    if pipe.left[:1] == ["ms"]:
        pipe.left.pop(0)


def _queue(pipe: _Pipe) -> None:
    text = pipe.take()
    if pipe.left[:1] and pipe.left[0].lower() in ("kbytes", "kbyte", "kb", "bytes"):
        raise pipe.findings.error(
            pipe.command.line, f"queue {text} {pipe.left[0]}", f'write "{text}{pipe.left[0]}" in one'
        )
    held = pipe.findings.read(pipe.command, "queue", dummynet_queue, text)
    pipe.held = Buffer("bytes", held.bytes) if isinstance(held, Size) else Buffer("packets", held)


def _loss(pipe: _Pipe) -> None:
    text = pipe.take()
    parts = text.split(",")
    if len(parts) == 1:
        share = pipe.findings.read(pipe.command, "plr", probability, text)
        if share.ppb:
            pipe.way.put("loss", share, f"{pipe.where}: plr {text}")
        return
    if len(parts) != 4:
        raise pipe.findings.error(pipe.command.line, f"plr {text}", 'write one probability, or four: "K,p,H,r"')
    good, to_bad, bad, to_good = (pipe.findings.read(pipe.command, "plr", probability, part) for part in parts)
    words: dict[str, Setting] = {
        "to_bad": str(to_bad), "to_good": str(to_good), "loss_bad": str(bad), "loss_good": str(good),
    }  # fmt: skip
    pipe.way.put("loss", {"gilbert-elliott": words}, f"{pipe.where}: plr K,p,H,r")


def _burst(pipe: _Pipe) -> None:
    size = pipe.findings.read(pipe.command, "burst", dummynet_bytes, pipe.take())
    if size.bytes:
        pipe.way.put("burst", size, f"{pipe.where}: so much passes at once after a pause")


def _red(pipe: _Pipe) -> None:
    text = pipe.take()
    kind, parts = pipe.word, text.split("/")
    if len(parts) != 4:
        raise pipe.findings.error(pipe.command.line, f"{kind} {text}", 'write "w_q/min_th/max_th/max_p"')
    ecn = pipe.left[:1] == ["ecn"]
    pipe.left = pipe.left[1:] if ecn else pipe.left
    if pipe.held.unit != "bytes":
        why = "has thresholds in packets, and a description's are bytes"
        pipe.findings.cannot(pipe.command, f"{kind} {text}", why, "take a drop-tail queue")
        return
    weight = _weight(pipe, parts[0])
    least, most = (pipe.findings.read(pipe.command, kind, dummynet_bytes, part) for part in parts[1:3])
    if kind == "red":
        pipe.findings.note(pipe.command, "red: a description's RED is gentle above max, as Dummynet's gred")
    words: dict[str, Setting] = {
        "min": str(least), "max": str(most), "weight": str(weight), "ecn": "true" if ecn else "false",
        "max_p": str(pipe.findings.read(pipe.command, kind, probability, parts[3])),
    }  # fmt: skip
    pipe.way.put("queue", {"red": words}, pipe.where)


def _weight(pipe: _Pipe, text: str) -> int:
    """The n of w_q = 2^-n."""
    try:
        exact = Exact(text) if len(text) < 24 and text.replace(".", "", 1).isdecimal() else Exact(0)
    except ValueError:
        exact = Exact(0)
    for number in range(21):
        if exact and abs(exact * 2**number - 1) < Exact(1, 50):
            return number
    raise pipe.findings.error(pipe.command.line, f"w_q {text}", 'is no power of a half: write one, like "0.002" (2^-9)')


def _aqm(pipe: _Pipe) -> None:
    """All behind the word belongs to it."""
    kind = pipe.word
    times = {"target": "5ms", "interval": "100ms"} if kind == "codel" else {"target": "15ms", "tupdate": "15ms"}
    words: dict[str, Setting] = {}
    ecn = False
    while pipe.left:
        word = pipe.left.pop(0)
        if word in ("ecn", "noecn"):
            ecn = word == "ecn"
        elif word in times and pipe.left:
            times[word] = str(pipe.findings.read(pipe.command, word, dummynet_time, pipe.left.pop(0)))
        elif kind == "pie" and word in ("alpha", "beta") and pipe.left:
            words[word] = f"{_gain(pipe, word, pipe.left.pop(0))}Hz"
        else:
            pipe.findings.cannot(pipe.command, f"{kind} {word}", "has no word in a description")
            if pipe.left and pipe.left[0][:1].isdecimal():
                pipe.left.pop(0)
    words |= {{"tupdate": "update"}.get(key, key): value for key, value in times.items()}
    words["ecn"] = "true" if ecn else "false"
    pipe.way.put("queue", {kind: words}, pipe.where)


def _gain(pipe: _Pipe, word: str, text: str) -> str:
    def parse(value: str) -> str:
        if len(value) > 8 or not value.replace(".", "", 1).isdecimal() or not value.isascii():
            raise UnitError('write a number from 0 to 7, like "0.125"')
        return value

    return pipe.findings.read(pipe.command, word, parse, text)


def _without_meaning(pipe: _Pipe) -> None:
    pipe.take()


def _flag(pipe: _Pipe) -> None:
    """Accepts a flag that describes every link anyway."""


def _mask(pipe: _Pipe) -> None:
    words = [pipe.word]
    while pipe.left and (pipe.left[0] in ("all", "dst-ip", "src-ip", "dst-port", "src-port", "proto", "flow-id",
                                          "dst-ip6", "src-ip6") or pipe.left[0].startswith(("0x", "/"))):  # fmt: skip
        words.append(pipe.left.pop(0))
        if words[-1] != "all" and pipe.left and not words[-1].startswith(("0x", "/")):
            words.append(pipe.left.pop(0))
    why = "makes a pipe for each flow, which has no word in a description"
    pipe.findings.cannot(pipe.command, " ".join(words), why, "take one pipe for all")


def _profile(pipe: _Pipe) -> None:
    name = pipe.take()
    why = "is a file of the time that each packet takes besides, which has no word in a description"
    pipe.findings.cannot(pipe.command, f"profile {name}", why)


_READERS: dict[str, Callable[[_Pipe], None]] = {
    "bw": _bandwidth, "bandwidth": _bandwidth, "delay": _delay, "queue": _queue, "plr": _loss, "burst": _burst,
    "red": _red, "gred": _red, "codel": _aqm, "pie": _aqm, "mask": _mask, "profile": _profile,
    "buckets": _without_meaning, "noerror": _flag, "droptail": _flag,
}  # fmt: skip
