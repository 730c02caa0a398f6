"""A shell script as data: its simple commands with their lines. Nothing of it is run.

Comes in: text. Goes out: commands as words, in order, each with the lines that it takes. Each line that is not blank
and no comment belongs to one: what only the shell reads (an assignment, a loop's head) is a command without a name.
Quotes, comments, continued lines and here-documents are the shell's; so are variables that the script itself sets to
plain text. Commands in `$(…)`, behind `sudo` or `ssh HOST`, and those of a text that the script gives to a shell or to
`tc -batch -` are commands as all others, with the place where they run. A word whose value only running would show
(`$1`, `$(…)`, an unset variable, one that a loop, `read`, `let` or a function sets) is marked as unknown, a command
inside of `if`, a loop or a function, or behind `||` or a test and `&&`, as conditional: it is for the reader to refuse
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count, takewhile

from ewan.extras.importers.groups import END, shells_of, without_groups
from ewan.extras.importers.launch import Launch, launched
from ewan.extras.importers.scan import (
    DEEPEST,
    LONGEST_WORD,
    UNKNOWN,
    VARIABLE,
    ScriptError,
    Statement,
    Text,
    Word,
    literal,
    statements,
)
from ewan.labs.base.reading import one_line

MOST_COMMANDS = 20_000
LONGEST_SHOWN = 400

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_CHANGE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[^]]*\]\+?=|\+=).*", re.DOTALL)
"""An assignment whose outcome is not the text behind it."""
_NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\+?=.*)?", re.DOTALL)
_COMPUTED = re.compile(
    r"([A-Za-z_][A-Za-z0-9_]*)\s*(?:(?:<<|>>|[-+*/%&|^])?=(?!=)|\+\+|--)|(?:\+\+|--)\s*([A-Za-z_][A-Za-z0-9_]*)"
)
"""A variable that an arithmetic expression sets."""
_DECLARING = frozenset(("export", "local", "readonly"))
_OF_SHELL = frozenset(("command", "builtin", "time", "exec", *_DECLARING))
"""Commands of the shell itself that run others in it."""
_PLAIN = re.compile(r"-?[A-Za-z0-9_]+")
_SETTERS = frozenset(("read", "unset", "declare", "typeset", "mapfile", "readarray", "getopts"))
"""Commands that set variables which they name."""
_SET_ANY = frozenset(("source", ".", "eval"))
"""Commands that set variables which they do not name."""
_SUCCEED = frozenset((
    "tc", "qdisc", "class", "filter", "ip", "ipfw", "dnctl", "cnistnet", "iptables", "ip6tables", "modprobe", "kldload",
    "echo", "printf", "sleep", "sysctl", "ifconfig", "ethtool", "cd", "set", "true", ":",
))  # fmt: skip
"""Commands of which a script means that they succeed: what is behind them and `&&` runs."""
_TOOLS = frozenset(("tc", "ip", "iptables", "ip6tables", "ipfw", "dnctl", "cnistnet"))
_ALWAYS = ("(", "if", "{}")
"""Groups whose commands run in any case: the condition of an `if`, up to its `then`, and braces around no function."""
_PERHAPS = "?"
"""A group of which only running shows if it runs."""


@dataclass(frozen=True, slots=True)
class ScriptCommand:
    """`name` without its directory, `words` behind it; `line` counts from 1; `text` is for people.

    `name` is empty where only the shell reads the line. `namespace` is where it runs, None for the script's own
    machine. `number` tells commands of a script apart, `last_line` is that of its last word or here-document, and
    `writes` is the file to which what it prints goes. The script does not wait for a command in the `background`; what
    a `substituted` one prints is a word of another command. `shells` are those that run it, from the script's own first
    child on.
    """

    line: int
    name: str
    words: tuple[str, ...]
    text: str
    conditional: bool = False
    namespace: str | None = None
    number: int = 0
    last_line: int = 0
    writes: str = ""
    background: bool = False
    substituted: bool = False
    shells: tuple[int, ...] = ()

    @property
    def unknown(self) -> bool:
        """Return whether the value of a word is known only when the script runs."""
        return any(UNKNOWN in word for word in (self.name, self.namespace or "", *self.words))


def commands(text: str) -> list[ScriptCommand]:
    """The script's commands; ScriptError where it is no text of a shell, or beyond the limits."""
    found: list[ScriptCommand] = []
    _Reader(found, _Around(), _Variables()).read(statements(text))
    return found


@dataclass(frozen=True, slots=True)
class _Around:
    """The surroundings of all commands of a text: where they run, whether that is certain, their standard input.

    `batch`: it is lines of tc. `last_line`: the line where the text ends if its lines are not the script's. `shells`:
    those that run it, with numbers that `next_shell` gives."""

    place: str | None = None
    conditional: bool = False
    stdin: Text | None = None
    batch: bool = False
    substituted: bool = False
    depth: int = 0
    last_line: int | None = None
    background: bool = False
    shells: tuple[int, ...] = ()
    next_shell: Iterator[int] = field(default_factory=count)


class _Reader:
    """A reader of one text: the script, or one within it."""

    def __init__(
        self, found: list[ScriptCommand], around: _Around, variables: _Variables, groups: tuple[str, ...] = ()
    ) -> None:
        self.found, self.around, self.variables = found, around, variables
        self.groups = list(groups)
        self.uncertain = False
        self.function = False
        """True where the statement before was the `)` of a function's head."""
        self.printed: list[tuple[int, Text | None]] = []
        """By statement: how many groups it is in, and what it prints, None where that is not known."""

    def read(self, of: list[Statement]) -> None:
        outer = self.around
        for each, ran in zip(of, shells_of(of, outer.next_shell), strict=True):
            shells = (*outer.shells, *ran.shells)
            background = outer.background or ran.background
            self.around = replace(outer, shells=shells, background=background)
            self._statement(each)
        self.around = outer
        self.variables.leave(outer.shells)

    def _statement(self, of: Statement) -> None:
        outside = len(self.groups)
        self.variables.leave(self.around.shells)
        self.variables.set_by_shell(of.words)
        self.variables.enter(self.around.shells)
        words = without_groups(of.words, self.groups)
        self.uncertain = _is_uncertain(of.operator, self.uncertain, self.found)
        if len(self.groups) > outside and self.groups[-1] in ("(", "{", "if"):
            if self.uncertain:
                self.groups[-1] = _PERHAPS
            elif of.words[0].text == "{" and not self.function:
                self.groups[-1] = "{}"
        self.function = [word.text for word in of.words] == [")"]
        perhaps = self.around.conditional or self.uncertain
        around = replace(self.around, conditional=perhaps or not _certain(self.groups[:outside]), substituted=True)
        for inner in of.inner:
            self._within(of, inner, self._child(around), self.variables.copy())
        around = replace(self.around, conditional=perhaps or not _certain(self.groups))
        stdin = self._stdin(of)
        expanded = [piece for word in words for piece in _expanded(word, self.variables.values, of.line)]
        self._command(of, expanded, stdin, around)
        if words and words[-1] is END:
            self.groups.pop()
        if len(self.found) > MOST_COMMANDS:
            raise ScriptError(of.line, f"has more than {MOST_COMMANDS} commands: import a part of it")

    def _command(self, of: Statement, words: list[str], stdin: Text | None, around: _Around) -> None:
        """The command that the words run, or those of the text that they give to a shell."""
        shown = one_line(" ".join(words).replace(UNKNOWN, "$…"), LONGEST_SHOWN)
        left = ["tc", *words] if around.batch else words
        launch: Launch | None = None
        program = False
        fixed = left[1:] if left[:1] == ["readonly"] else []
        while left:
            if _ASSIGNMENT.fullmatch(left[0]) or _CHANGE.fullmatch(left[0]):
                self._assign(left[0], alone=len(left) == 1 or bool(_ASSIGNMENT.fullmatch(left[1])), around=around)
                left = left[1:]
            elif left[0] in _DECLARING and all(_PLAIN.fullmatch(word) for word in left[1:]):
                break
            elif self.variables.is_function(left[0]):
                if left[0] in _TOOLS:
                    why = f'"{left[0]}" is a function of the script here, and nothing of the script runs'
                    raise ScriptError(of.line, f"{why}: write the commands that it gives")
                break
            elif (launch := launched(left)) is not None:
                program |= left[0] not in _OF_SHELL
                places = [place for place in (around.place, launch.place) if place is not None]
                around = replace(around, place="/".join(places) or None)
                if launch.words is None:
                    break
                left = launch.words
            else:
                break
        self.variables.fix(fixed)
        text = None if launch is None or launch.words is not None else stdin
        if launch is not None and launch.text is not None:
            text = _text_of(of, launch.text)
        if text is None or launch is None or not launch.here or UNKNOWN in text.text:
            self.variables.set_by(left, self.groups)
        if left:
            self.printed.append((len(self.groups), _printed(of, left, stdin) if _certain(self.groups) else None))
        if not left or (text is not None and launch is not None):
            self._add(of, ScriptCommand(of.line, "", (), shown or _shown(of)))
        else:
            if of.operator.startswith("|") and launch is not None and launch.words is None:
                shown = f"{self.found[-1].text} | {shown}"
            name = left[0].rsplit("/", 1)[-1]
            shells = (next(around.next_shell),) if program else ()
            command = ScriptCommand(
                of.line, name, tuple(left[1:]), shown, around.conditional, around.place, shells=shells
            )
            self._add(of, command)
        if text is not None and launch is not None:
            around = replace(around, stdin=stdin if launch.text is not None else None, batch=launch.batch)
            self._within(
                of,
                text,
                around if launch.here else self._child(around),
                self.variables if launch.here else _Variables(),
            )

    def _child(self, around: _Around) -> _Around:
        """The surroundings for commands of another shell."""
        return replace(around, shells=(*around.shells, next(around.next_shell)))

    def _add(self, of: Statement, command: ScriptCommand) -> None:
        last = self.around.last_line or of.last_line
        self.found.append(
            replace(
                command, line=min(of.line, last), last_line=min(of.last_line, last), number=len(self.found),
                writes=of.writes, background=self.around.background, substituted=self.around.substituted,
                shells=(*self.around.shells, *command.shells),
            )
        )  # fmt: skip

    def _within(self, of: Statement, text: Text, around: _Around, variables: _Variables) -> None:
        """The commands of a text within the script."""
        if around.depth > DEEPEST:
            raise ScriptError(of.line, f"has more than {DEEPEST} scripts in each other: is it a script?")
        last_line = min(of.last_line, self.around.last_line or of.last_line)
        around = replace(around, depth=around.depth + 1, last_line=last_line)
        groups = tuple(self.groups) if variables is self.variables else ()
        _Reader(self.found, around, variables, groups).read(statements(text.text, text.line, whole=False))

    def _assign(self, word: str, *, alone: bool, around: _Around) -> None:
        """Records an assignment. `alone`: it is for the shell, and not for a command behind it."""
        if change := _CHANGE.fullmatch(word):
            self.variables.set(change[1], UNKNOWN, self.groups)
        elif alone and (setting := _ASSIGNMENT.fullmatch(word)):
            self.variables.set(setting[1], UNKNOWN if around.conditional else setting[2], self.groups)

    def _stdin(self, of: Statement) -> Text | None:
        """The standard input of the statement, where the script has it."""
        if of.stdin is not None:
            return Text(of.stdin.line, _value(of.stdin.text, self.variables.values))
        if not of.operator.startswith("|") or of.operator.startswith("||"):
            return self.around.stdin
        depth = len(self.groups)
        texts = [text for _, text in takewhile(lambda each: each[0] > depth, reversed(self.printed))][::-1]
        texts = texts or [text for _, text in self.printed[-1:]]
        known = [text for text in texts if text is not None]
        if not known or len(known) < len(texts):
            return None
        return Text(known[0].line, "\n".join(text.text for text in known))


def _certain(groups: list[str]) -> bool:
    """Return whether a command in these groups runs in any case."""
    return all(group in _ALWAYS for group in groups)


def _text_of(of: Statement, text: str) -> Text:
    """A text that stands in a statement's words, of which the last one is the likeliest."""
    return Text(max(of.line, of.last_line - text.count("\n")), text)


def _printed(of: Statement, words: list[str], stdin: Text | None) -> Text | None:
    """The text that `echo`, `printf` or `cat` prints."""
    name, *rest = words or [""]
    if name == "cat" and rest in ([], ["-"]):
        return stdin
    while name == "echo" and rest and re.fullmatch("-[neE]+", rest[0]):
        rest.pop(0)
    if name == "echo":
        return _text_of(of, " ".join(rest).replace("\\n", "\n"))
    if name == "printf" and rest and rest[0].replace("\\n", "") in ("%s", "%b"):
        return _text_of(of, "\n".join(rest[1:]).replace("\\n", "\n"))
    if name == "printf" and rest and "%" not in rest[0]:
        return _text_of(of, rest[0].replace("\\n", "\n"))
    return None


class _Variables:
    """The values that are known of the script's variables at one of its statements, and how others become unknown."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self._outside: list[tuple[int, dict[str, str]]] = []
        """For each shell below the script's own: its number, and the values that stay when it ends."""
        self._fixed: set[str] = set()
        self._functions: set[str] = set()
        self._of_functions: set[str] = set()

    def copy(self) -> _Variables:
        """A copy for a shell that cannot set the variables of this one."""
        other = _Variables()
        other._fixed = set(self._fixed)
        other.values, other._functions, other._of_functions = dict(self.values), self._functions, self._of_functions
        return other

    def set(self, name: str, value: str, groups: list[str]) -> None:
        self.values[name] = UNKNOWN if name in self._fixed else value
        if "{" in groups:
            self._of_functions.add(name)

    def is_function(self, name: str) -> bool:
        """Return whether the script has made a function of that name."""
        return name in self._functions

    def fix(self, words: list[str]) -> None:
        """Marks variables after `readonly`: their later values are unknown."""
        self._fixed |= {named[1] for word in words if (named := _NAMED.fullmatch(word))}

    def leave(self, shells: tuple[int, ...]) -> None:
        """Forgets variables that were set in shells that have ended."""
        while self._outside and self._outside[-1][0] not in shells:
            self.values = self._outside.pop()[1]

    def enter(self, shells: tuple[int, ...]) -> None:
        """Keeps the values to restore when a shell that begins here has ended."""
        known = {shell for shell, _ in self._outside}
        self._outside += [(shell, dict(self.values)) for shell in shells if shell not in known]

    def set_by_shell(self, words: list[Word]) -> None:
        """Heads of loops, arrays (`X=(1 2)`), and the names of functions (`f() {`, `function f {`)."""
        texts = [word.text for word in words]
        if texts[:1] == ["function"] and len(texts) > 1:
            self._functions.add(texts[1])
        elif len(texts) == 2 and texts[1] == "(" and (setting := _ASSIGNMENT.fullmatch(texts[0])):
            self.values[setting[1]] = UNKNOWN
        elif len(texts) == 2 and texts[1] == "(":
            self._functions.add(texts[0])
        elif len(texts) > 1 and texts[0] in ("for", "select"):
            self.values[texts[1]] = UNKNOWN

    def set_by(self, words: list[str], groups: list[str]) -> None:
        """Makes the variables unknown that a command sets."""
        name = words[0] if words else ""
        if name in _SET_ANY:
            self.values = dict.fromkeys(self.values, UNKNOWN)
        elif name in self._functions:
            self.values |= dict.fromkeys(self._of_functions, UNKNOWN)
        found = list[str]()
        if name in _SETTERS:
            found = [named[1] for word in words[1:] if (named := _NAMED.fullmatch(word))]
            if name in ("declare", "typeset") and any(re.fullmatch("-[a-zA-Z]*r[a-zA-Z]*", word) for word in words):
                self.fix(words[1:])
        elif words[:2] == ["printf", "-v"]:
            found = words[2:3]
        elif name in ("let", "(("):
            found = [one or other for one, other in _COMPUTED.findall(" ".join(words[1:]))]
        for each in found:
            self.set(each, UNKNOWN, groups)


def _is_uncertain(operator: str, before: bool, found: list[ScriptCommand]) -> bool:
    """Return whether only running shows if the next command runs, in a list of `&&` and `||`."""
    if operator in ("|", "|&"):
        return before
    if operator not in ("&&", "||"):
        return False
    return before or operator == "||" or not found or found[-1].name not in _SUCCEED


def _shown(of: Statement) -> str:
    return one_line(" ".join(word.text for word in of.words), LONGEST_SHOWN)


def _value(text: str, variables: dict[str, str]) -> str:
    """The text with the values of its variables."""
    text = VARIABLE.sub(lambda match: variables.get(match[1] or match[2], UNKNOWN), text)
    return literal(re.sub(r"[$`]\S*", UNKNOWN, text))


def _expanded(word: Word, variables: dict[str, str], line: int) -> list[str]:
    text = _value(word.text, variables)
    if len(text) > LONGEST_WORD:
        raise ScriptError(line, f"has a word of more than {LONGEST_WORD} characters: is it a script?")
    if not text and word.plain:
        return []
    if word.plain and text != literal(word.text) and not _ASSIGNMENT.fullmatch(word.text):
        return text.split()
    return [text]
