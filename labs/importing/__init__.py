"""Scripts of other emulators as lab descriptions: tc (netem, tbf, htb), Dummynet, NIST Net. Pure.

Comes in: a script's text, which is data: nothing of it is run. Goes out: the text of a description, with the line of
the script that each value comes from. What cannot be said is refused with its line;
`lenient` leaves it out with a comment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, get_args

from labs.importing import dummynet, legs, nistnet, tc, writing
from labs.importing.findings import Findings, ImportingError
from labs.importing.legs import Leg
from labs.importing.script import Command, ScriptError, commands
from labs.reading import one_line
from labs.spec import DescriptionError, Spec, parse
from labs.units import Rate

Format = Literal["tc", "dummynet", "nistnet"]
FORMATS: tuple[Format, ...] = get_args(Format)
LINE_RATE = Rate.parse("1Gbit/s")
_TITLES = {"tc": "tc", "dummynet": "Dummynet's pipes", "nistnet": "NIST Net's commands"}
_READERS: dict[Format, tuple[Callable[[Sequence[Command], Rate, Findings], list[Leg]], tuple[str, str]]] = {
    "tc": (tc.legs, tc.FRAMING),
    "dummynet": (dummynet.legs, dummynet.FRAMING),
    "nistnet": (nistnet.legs, nistnet.FRAMING),
}
_SILENT = frozenset((
    "echo", "printf", "set", "true", "false", "exit", "return", "[", "[[", "test", ":", "cd", "shift", "trap", "which",
    "modprobe", "kldload", "insmod", "id",
))  # fmt: skip
"""Commands that say nothing of a network."""
_PAUSES = ("sleep", "usleep", "wait", "read")


def describe(
    text: str, file: str, form: Format | None = None, *, lenient: bool = False, line_rate: Rate = LINE_RATE
) -> tuple[str, Spec]:
    """The description's text, and what it says; ImportingError in one line.

    `form`: what the script is of, found by its commands if None. `line_rate`: of a direction whose script has no rate.
    """
    findings = Findings(file, lenient)
    try:
        every = commands(text)
    except ScriptError as error:
        raise ImportingError(f"{file}:{error.line}: {error}") from None
    of = {each: [command for command in every if _of(command) == each] for each in FORMATS}
    form = form or _detected(of, file)
    mine = _usable(of[form], every, findings)
    for command in every:
        if _of(command) != form and command.name not in (*_SILENT, *_PAUSES):
            findings.note(command.line, f"not imported: {command.text}")
    reader, framing = _READERS[form]
    found = reader(mine, line_rate, findings)
    if not found:
        raise ImportingError(
            f"{file}: has no path of {_TITLES[form]} in it: write its commands, like {_EXAMPLES[form]}"
        )
    for leg in found:
        leg.way.settings = legs.completed(leg.way, framing, line_rate).settings
    layout = legs.layout(found, findings)
    untold = legs.completed(legs.Way(), framing, line_rate)
    notes = sorted(set(findings.notes), key=lambda note: note[0])
    head = (
        f"Imported from {one_line(Path(file).name)} ({_TITLES[form]}) by ewan import. Lines are lines of that file.",
    )
    made = writing.text(layout, head, notes, untold)
    try:
        return made, parse(made, Path(_name(file)))
    except DescriptionError as error:
        raise ImportingError(f"{file}: a description cannot say this: {error}") from None


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


def _of(command: Command) -> Format | None:
    if command.name == "tc" or (command.name in ("qdisc", "class", "filter") and "dev" in command.words):
        return "tc"
    if command.name in dummynet.TOOLS or dummynet.is_command([command.name, *command.words]):
        return "dummynet"
    return "nistnet" if command.name in nistnet.TOOLS else None


def _detected(of: dict[Format, list[Command]], file: str) -> Format:
    found = [form for form, commands in of.items() if commands]
    if len(found) == 1:
        return found[0]
    if not found:
        raise ImportingError(f"{file}: has no command of tc, ipfw or cnistnet: write a script of one of them")
    tools = " and ".join(_TITLES[form] for form in found)
    raise ImportingError(f"{file}: has {tools} in it: say which with --format {found[0]} or --format {found[1]}")


def _usable(mine: list[Command], every: Sequence[Command], findings: Findings) -> list[Command]:
    """Commands that surely run, in one state of the network."""
    usable: list[Command] = []
    pauses = [command.line for command in every if command.name in _PAUSES and not command.conditional]
    for command in mine:
        words = command.words if command.name != "tc" or command.words[:1] else ()
        reads = any(word in ("show", "list", "ls", "-s", "-V") for word in words[:3])
        first = min((line for line in pauses), default=None)
        if reads:
            continue
        if command.unknown:
            why = "has a word that only running the script would show: write the value"
            raise findings.error(command.line, command.text, why)
        if command.conditional:
            why = (
                "is inside of if, case, a loop or a function, and nothing of the script runs: write the commands alone"
            )
            raise findings.error(command.line, command.text, why)
        if usable and first is not None and command.line > first > usable[0].line:
            ends = any(word.startswith("del") or word in ("flush", "-d", "-r") for word in words[:4])
            if not ends:
                why = f"comes after the pause of line {first}: a description has one state, and this is an event"
                findings.cannot(command.line, command.text, why)
            continue
        usable.append(_unprefixed(command))
    return usable


def _unprefixed(command: Command) -> Command:
    """A line of a batch file, as if `tc` stood before it."""
    if command.name not in ("qdisc", "class", "filter"):
        return command
    return Command(
        command.line, "tc", (command.name, *command.words), command.text, command.conditional, command.namespace
    )
