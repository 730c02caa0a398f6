"""Scripts of other emulators as lab descriptions: tc (netem, tbf, htb), Dummynet, NIST Net. Pure.

Comes in: a script's text, which is data: nothing of it is run. Goes out: the text of a description, with the line of
the script that each value comes from. A command without an equivalent is refused with its line; `lenient` leaves it out
with a comment. The fate of each command is recorded: a command that no reader has settled is named in a warning, so
that no line of a script is forgotten."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from ewan.extras.importers import description_text, directions, dummynet, nistnet, programs, tc
from ewan.extras.importers.directions import ImportedDirection
from ewan.extras.importers.findings import CommandOutcome, Findings, ImportingError
from ewan.extras.importers.scan import UNKNOWN, ScriptError
from ewan.extras.importers.script import ScriptCommand, commands
from ewan.extras.importers.tc import listing as shown
from ewan.extras.importers.tc import netfilter
from ewan.extras.importers.tc.words import options_of, without_options
from ewan.labs.base.reading import one_line
from ewan.labs.base.units import Rate
from ewan.labs.spec import DescriptionError, Spec, parse

Format = Literal["tc", "dummynet", "nistnet"]
FORMATS: tuple[Format, ...] = get_args(Format)
LINE_RATE = Rate.parse("1Gbit/s")
_TITLES = {"tc": "tc", "dummynet": "Dummynet's pipes", "nistnet": "NIST Net's commands"}
_READERS: dict[
    Format, tuple[Callable[[Sequence[ScriptCommand], Rate, Findings], list[ImportedDirection]], tuple[str, str]]
] = {
    "tc": (tc.legs, tc.FRAMING),
    "dummynet": (dummynet.legs, dummynet.FRAMING),
    "nistnet": (nistnet.legs, nistnet.FRAMING),
}


@dataclass(frozen=True, slots=True)
class ImportedLab:
    """A lab from a script. `text` is the description, `spec` its value, `warnings` the parts of the script that are not
    in it, each in one line.

    `fates` are those of the script's commands, which together have all its lines that are not blank and no comment."""

    text: str
    spec: Spec
    warnings: tuple[str, ...]
    fates: tuple[tuple[ScriptCommand, frozenset[CommandOutcome]], ...]


def describe(
    text: str, file: str, form: Format | None = None, *, lenient: bool = False, line_rate: Rate = LINE_RATE
) -> tuple[str, Spec]:
    """The description's text and its value; see `imported`."""
    made = imported(text, file, form, lenient=lenient, line_rate=line_rate)
    return made.text, made.spec


def imported(
    text: str, file: str, form: Format | None = None, *, lenient: bool = False, line_rate: Rate = LINE_RATE
) -> ImportedLab:
    """A script as a description; ImportingError in one line.

    `form`: what the script is of, found by its commands if None. `line_rate`: of a direction whose script has no rate.
    """
    findings = Findings(file, lenient)
    try:
        every = commands(text)
    except ScriptError as error:
        raise ImportingError(f"{file}:{error.line}: {error}") from None
    of = {each: [command for command in every if _of(command) == each] for each in FORMATS}
    form = form or _detected(of, every, file)
    mine = [command for command in every if _of(command) == form or (form == "tc" and netfilter.is_rule(command))]
    numbers = {command.number for command in mine}
    others = [command for command in every if command.number not in numbers]
    for command in programs.are_silent(others):
        findings.settle(command, CommandOutcome.NOTHING)
    reader, framing = _READERS[form]
    usable = _usable(mine, others, findings)
    found = tc.legs(usable, line_rate, findings, others) if form == "tc" else reader(usable, line_rate, findings)
    if not found:
        last = next((each for each in reversed(mine) if not _shows(each)), mine[-1])
        why = f"shapes nothing, nor does any line before it, so the script has no path of {_TITLES[form]} in it"
        raise findings.error(last.line, last.text, f"{why}: write its commands, like {_EXAMPLES[form]}")
    for leg in found:
        leg.way.settings = directions.completed(leg.way, framing, line_rate).settings
    layout = directions.layout(found, findings)
    untold = directions.completed(directions.ImportedSettings(), framing, line_rate)
    findings.name_the_rest(every)
    notes = findings.shown()
    head = (
        f"Imported from {one_line(Path(file).name)} ({_TITLES[form]}) by ewan lab import. "
        "Lines are lines of that file.",
    )
    made = description_text.text(layout, head, [(note.line, note.text) for note in notes], untold)
    try:
        spec = parse(made, Path(_name(file)))
    except DescriptionError as error:
        raise ImportingError(f"{file}: a description cannot say this: {error}") from None
    warnings = tuple(f"{file}:{note.line}: {note.text}" for note in notes if note.warns)
    return ImportedLab(made, spec, warnings, tuple((each, frozenset(findings.fates[each.number])) for each in every))


_EXAMPLES = {
    "tc": '"tc qdisc add dev eth0 root netem delay 50ms"',
    "dummynet": '"ipfw pipe 1 config bw 10Mbit/s delay 50"',
    "nistnet": '"cnistnet -a 10.0.0.1 10.0.0.2 --delay 50"',
}


def _name(file: str) -> str:
    """A file's name that a lab can have."""
    stem = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in Path(file).stem.lower())
    stem = stem.strip("-")[:32].strip("-")
    return f"{stem if stem[:1].isalpha() else f'lab-{stem}'.strip('-')}.lab.yaml"


def _of(command: ScriptCommand) -> Format | None:
    if command.name == "tc" or (command.name in _OF_TC and "dev" in command.words):
        return "tc"
    if UNKNOWN in command.name and command.words[:1] and command.words[0] in _OF_TC and "dev" in command.words:
        return "tc"
    if shown.is_shown(command):
        return "tc"
    if command.name in dummynet.TOOLS or dummynet.is_command([command.name, *command.words]):
        return "dummynet"
    return "nistnet" if command.name in nistnet.TOOLS else None


_OF_TC = ("qdisc", "class", "filter")
_TOOL = re.compile(r"\btc (?:-\S+ )*(?:qdisc|class|filter)\b|\bqdisc (?:add|replace)\b|\b(?:ipfw|dnctl|cnistnet) ")


def _runs_a_tool(command: ScriptCommand) -> bool:
    return _TOOL.search(" ".join((command.name, *command.words))) is not None


def _detected(of: dict[Format, list[ScriptCommand]], every: Sequence[ScriptCommand], file: str) -> Format:
    found = [form for form, commands in of.items() if commands]
    if len(found) == 1:
        return found[0]
    if not found:
        if hidden := next((each for each in every if not programs.prints(each) and _runs_a_tool(each)), None):
            why = "is run by a command that is not known here: write only the inner command"
            raise ImportingError(f'{file}:{hidden.line}: "{hidden.text}": {why}')
        raise ImportingError(f"{file}: has no command of tc, ipfw or cnistnet: write a script of one of them")
    tools = " and ".join(_TITLES[form] for form in found)
    raise ImportingError(f"{file}: has {tools} in it: say which with --format {found[0]} or --format {found[1]}")


def _usable(mine: list[ScriptCommand], others: Sequence[ScriptCommand], findings: Findings) -> list[ScriptCommand]:
    """Commands that surely run, in one state of the network."""
    usable: list[ScriptCommand] = []
    ends = [each for each in others if each.name == "exit" and not each.conditional]
    pauses = list(programs.pauses(others))
    card = ""
    for each in mine:
        command = shown.of_card(each, card)
        if _shows(command):
            findings.settle(command, CommandOutcome.NOTHING)
            card = shown.value(command.words, "dev") or ""
        elif end := next((each for each in ends if programs.ends(each, command)), None):
            findings.warn(command, f"is behind the exit of line {end.line} and never runs: {command.text}")
        elif command.unknown:
            why = "has a word that only running the script would show: write the value"
            raise findings.error(command.line, command.text, why)
        elif command.conditional:
            why = "is inside of if, case, a loop or a function, or behind a test, and nothing of the script runs"
            raise findings.error(command.line, command.text, f"{why}: write only the commands")
        elif (pause := programs.before(command, usable, pauses)) is not None:
            where = f"the pause of line {pause.line} ({pause.name})"
            why = f"comes after {where}: a description has one state, and this is an event"
            if programs.takes_away(command):
                findings.warn(command, f"{command.text} {why}, so the lab is what was there before")
            else:
                findings.cannot(command, command.text, why)
        else:
            usable.append(_unprefixed(command))
    return shown.as_commands(usable, findings)


def _shows(command: ScriptCommand) -> bool:
    """Return whether a command only prints settings, and changes nothing."""
    if command.name != "tc":
        return any(word in ("show", "list", "ls", "-s", "-V") for word in command.words[:3])
    words = without_options(command.words)
    options = options_of(command.words)
    if any(option == "-batch" or "=" in option for option, _ in options):
        return False
    return len(words) < 2 or "show".startswith(words[1]) or words[1] in ("list", "lst", "ls")


def _unprefixed(command: ScriptCommand) -> ScriptCommand:
    """A line of a batch file, as if `tc` stood before it."""
    if command.name not in ("qdisc", "class", "filter") or shown.is_shown(command):
        return command
    return replace(command, name="tc", words=(command.name, *command.words))
