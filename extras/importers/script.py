"""A shell script as data: its simple commands with their lines. Nothing of it is run.

Comes in: text. Goes out: commands as words, in order, each with the lines that it takes. Each line that is not blank
and no comment belongs to one: what only the shell reads (an assignment, a loop's head) is a command without a name.
Quotes, comments, continued lines and here-documents are the shell's; so are variables that the script itself sets to
plain text. A word whose value only running would show (`$1`, `$(…)`, an unset variable, one that a loop, `read`, `let`
or a function sets) is marked as unknown, a command inside of `if`, a loop or a function, or behind `||` or a test and
`&&`, as conditional: it is for the reader to refuse them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ewan.labs.base.reading import one_line

MOST_WORDS = 200
LONGEST_WORD = 400
MOST_COMMANDS = 20_000
DEEPEST = 50

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_CHANGE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[^]]*\]\+?=|\+=).*", re.DOTALL)
"""An assignment whose outcome is not the text behind it."""
_NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\+?=.*)?", re.DOTALL)
_COMPUTED = re.compile(
    r"([A-Za-z_][A-Za-z0-9_]*)\s*(?:(?:<<|>>|[-+*/%&|^])?=(?!=)|\+\+|--)|(?:\+\+|--)\s*([A-Za-z_][A-Za-z0-9_]*)"
)
"""A variable that an arithmetic expression sets."""
_PASTED = re.compile(
    r"^(?P<before>[ \t]*)(?:(?P<fence>```)|(?:\[?[\w.-]+@[\w.-]+[ :][^\s$#]*\]?[$#]|\$) )", re.MULTILINE
)
"""A fence of Markdown or a prompt, which stand before commands that were copied from a page or a terminal."""
_OPENING = frozenset(("if", "for", "while", "until", "case", "select", "{", "("))
_CLOSING = frozenset(("fi", "done", "esac", "}", ")"))
_BETWEEN = frozenset(("then", "do", "else", "elif", "in", "!"))
_BEFORE = frozenset(("sudo", "exec", "command", "export", "local", "readonly"))
_SETTERS = frozenset(("read", "unset", "declare", "typeset", "mapfile", "readarray", "getopts"))
"""Commands that set variables which they name."""
_SET_ANY = frozenset(("source", ".", "eval"))
"""Commands that set variables which they do not name."""
_ENDS = frozenset(";&|\n()")
_SUCCEED = frozenset((
    "tc", "qdisc", "class", "filter", "ip", "ipfw", "dnctl", "cnistnet", "iptables", "ip6tables", "modprobe", "kldload",
    "echo", "printf", "sleep", "sysctl", "ifconfig", "ethtool", "cd", "set", "true", ":",
))  # fmt: skip
"""Commands of which a script means that they succeed: what is behind them and `&&` runs."""
_SUDO_VALUED = ("-u", "-g", "-h", "-p", "-D", "-R", "-T", "-U", "-C", "-r", "-t")
_NOWHERE = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "")
UNKNOWN = "\0"
"""Stands in a word for what only running the script would show."""


@dataclass(frozen=True, slots=True)
class Command:
    """`name` without its directory, `words` behind it; `line` counts from 1; `text` is for people.

    `name` is empty where only the shell reads the line. `number` tells commands of a script apart, `last_line` is that
    of its last word or here-document, and `writes` is the file to which what it prints goes.
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

    @property
    def unknown(self) -> bool:
        """Whether a word's value only running the script would show."""
        return UNKNOWN in self.name or any(UNKNOWN in word for word in self.words)


class ScriptError(ValueError):
    """A line, and what is wrong with it."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class _Word:
    """`plain`: it has no quotes, so that what a variable holds is split into words."""

    text: str
    plain: bool


_END = _Word("", plain=True)
"""Behind the last command of a `( … )`; expands to no word."""


def commands(text: str) -> list[Command]:
    """The script's commands; ScriptError where it is no text of a shell, or beyond the limits."""
    found: list[Command] = []
    variables = _Variables()
    groups: list[str] = []
    uncertain = False
    for of in _statements(text):
        variables.set_by_shell(of.words)
        words = _without_groups(of.words, groups)
        variables.scope(groups)
        if len(groups) > DEEPEST:
            raise ScriptError(of.line, f"has more than {DEEPEST} groups in each other: is it a script?")
        uncertain = _is_uncertain(of.operator, uncertain, found)
        expanded = [piece for word in words for piece in _expanded(word, variables.values, of.line)]
        conditional = uncertain or any(group != "(" for group in groups)
        while expanded and (
            expanded[0] in _BEFORE or _ASSIGNMENT.fullmatch(expanded[0]) or _CHANGE.fullmatch(expanded[0])
        ):
            first = expanded.pop(0)
            setting = _ASSIGNMENT.fullmatch(first)
            if change := _CHANGE.fullmatch(first):
                variables.set(change[1], UNKNOWN, groups)
            elif setting is not None and (not expanded or _ASSIGNMENT.fullmatch(expanded[0])):
                variables.set(setting[1], UNKNOWN if conditional else setting[2], groups)
            while first == "sudo" and expanded and expanded[0].startswith("-"):
                option = expanded.pop(0)
                if option in _SUDO_VALUED and expanded:
                    expanded.pop(0)
        variables.set_by(expanded, groups)
        command = _command(of.line, expanded, conditional) if expanded else _of_the_shell(of)
        found.append(replace(command, number=len(found), last_line=of.last_line, writes=of.writes))
        if words and words[-1] is _END:
            groups.pop()
        variables.scope(groups)
        if len(found) > MOST_COMMANDS:
            raise ScriptError(of.line, f"has more than {MOST_COMMANDS} commands: import a part of it")
    return found


class _Variables:
    """The values that are known of the script's variables at one of its statements, and how others become unknown."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self._outside: list[dict[str, str]] = []
        self._functions: set[str] = set()
        self._of_functions: set[str] = set()

    def set(self, name: str, value: str, groups: list[str]) -> None:
        self.values[name] = value
        if "{" in groups:
            self._of_functions.add(name)

    def scope(self, groups: list[str]) -> None:
        """Forgets behind `( … )` what was set in it."""
        while len(self._outside) < groups.count("("):
            self._outside.append(dict(self.values))
        while len(self._outside) > groups.count("("):
            self.values = self._outside.pop()

    def set_by_shell(self, words: list[_Word]) -> None:
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
        elif words[:2] == ["printf", "-v"]:
            found = words[2:3]
        elif name in ("let", "(("):
            found = [one or other for one, other in _COMPUTED.findall(" ".join(words[1:]))]
        for each in found:
            self.set(each, UNKNOWN, groups)


def _is_uncertain(operator: str, before: bool, found: list[Command]) -> bool:
    """Whether only running shows if the next command runs, in a list of `&&` and `||`."""
    if operator not in ("&&", "||"):
        return False
    return before or operator == "||" or not found or found[-1].name not in _SUCCEED


def _of_the_shell(of: _Statement) -> Command:
    return Command(of.line, "", (), one_line(" ".join(word.text for word in of.words), LONGEST_WORD))


def _without_groups(words: list[_Word], groups: list[str]) -> list[_Word]:
    """The words of a simple command, without those that open and close groups, of which `groups` keeps account."""
    if words and words[0].plain and words[0].text == "function":
        if words[-1].text in ("{", "("):
            groups.append(words[-1].text)
        return []
    while words and words[0].plain and words[0].text in _OPENING | _CLOSING | _BETWEEN:
        first = words[0].text
        if first in _OPENING:
            groups.append(first)
        elif first in _CLOSING and groups:
            groups.pop()
        words = [] if first in ("for", "case", "select") else words[1:]
    if words and words[-1].plain and words[-1].text in ("(", ")"):
        label = words[-1].text == ")" and groups and groups[-1] == "case"
        if words[-1].text == "(":
            groups.append("(")
            return words[:-1] if len(words) > 2 else []
        return [] if label else [*words[:-1], *([_END] if groups else [])]
    return words


def _command(line: int, words: list[str], conditional: bool) -> Command:
    shown = one_line(" ".join(words).replace(UNKNOWN, "$…"), LONGEST_WORD)
    namespace = None
    if words[:3] == ["ip", "netns", "exec"] and len(words) > 4:
        namespace, words = words[3], words[4:]
    elif words[0] == "ip" and len(words) > 3 and words[1] in ("-n", "-netns"):
        namespace = words[2]
    name = words[0].rsplit("/", 1)[-1]
    return Command(line, name, tuple(words[1:]), shown, conditional, namespace)


def _expanded(word: _Word, variables: dict[str, str], line: int) -> list[str]:
    def value(match: re.Match[str]) -> str:
        return variables.get(match[1] or match[2], UNKNOWN)

    text = _VARIABLE.sub(value, word.text)
    if "$" in text or "`" in text:
        text = re.sub(r"[$`].*", UNKNOWN, text, flags=re.DOTALL)
    if len(text) > LONGEST_WORD:
        raise ScriptError(line, f"has a word of more than {LONGEST_WORD} characters: is it a script?")
    text = text.replace("\1", "$").replace("\2", "`")
    if not text and word.plain:
        return []
    if word.plain and text != word.text and not _ASSIGNMENT.fullmatch(word.text):
        return text.split()
    return [text]


@dataclass(frozen=True, slots=True)
class _Statement:
    """Words up to a line's end or an operator; `operator` is what stands before them, like `&&`."""

    line: int
    last_line: int
    words: list[_Word]
    operator: str
    writes: str


def _statements(text: str) -> Iterator[_Statement]:
    """Redirections are no words; `writes` is the file to which one leads."""
    scan = _Scan(text)
    while scan.more():
        line, operator, scan.operator, scan.writes = scan.line, scan.operator, "", ""
        words = list(scan.words())
        last_line = scan.line - (scan.text[scan.at - 1] == "\n")
        if len(words) > MOST_WORDS:
            raise ScriptError(line, f"has more than {MOST_WORDS} words: is it a script?")
        if words or scan.writes:
            yield _Statement(line, last_line, words, operator, scan.writes)
        else:
            scan.operator = operator


class _Scan:
    """A place in the text. A `$` or a backquote that stands for itself becomes \\1 or \\2 until words are whole."""

    def __init__(self, text: str) -> None:
        text = text.removeprefix("\ufeff").replace("\r\n", "\n")
        text = _PASTED.sub(lambda found: f"{found['before']}{'#' if found['fence'] else ''}", text)
        self.text = text.replace("\0", "?").replace("\1", "?").replace("\2", "?")
        self.at = 0
        self.line = 1
        self.documents: list[tuple[int, str, bool]] = []
        """Here-documents that begin with the next line: the line that names each, its end, whether tabs precede it."""
        self.operator = ""
        self.writes = ""

    def more(self) -> bool:
        """Skips to the next statement's first letter."""
        while self.at < len(self.text) and (self.text[self.at].isspace() or self.text[self.at] in ";&|"):
            self.operator += self._step().strip()
        return self.at < len(self.text)

    def _step(self) -> str:
        letter = self.text[self.at]
        self.at += 1
        if letter == "\n":
            self.line += 1
            for document in self.documents:
                self._skip_document(*document)
            self.documents = []
        return letter

    def _skip_document(self, begun: int, end: str, tabs: bool) -> None:
        while self.at < len(self.text):
            stop = self.text.find("\n", self.at)
            stop = len(self.text) if stop < 0 else stop
            line = self.text[self.at : stop]
            self.at, self.line = min(stop + 1, len(self.text)), self.line + 1
            if (line.lstrip("\t") if tabs else line) == end:
                return
        raise ScriptError(begun, f'has a text that goes on to a line "{end}", and there is none: write it')

    def words(self) -> Iterator[_Word]:
        """To the end of the statement, which is taken too. Words like `then` end one only where it begins."""
        first: str | None = None
        while self.at < len(self.text):
            letter = self.text[self.at]
            if first is None and self.text.startswith("((", self.at):
                yield _Word("((", plain=True)
                yield _Word(self._arithmetic(), plain=False)
                return
            if letter in "()":
                self._step()
                yield _Word(letter, plain=True)
                return
            if letter in _ENDS:
                self.operator = self._step()
                return
            if letter == "\\" and self.text[self.at + 1 : self.at + 2] == "\n":
                self._step(), self._step()
            elif letter.isspace():
                self._step()
            elif letter == "#":
                stop = self.text.find("\n", self.at)
                self.at = len(self.text) if stop < 0 else stop
            elif letter in "<>":
                self._redirection()
            else:
                word = self._word()
                if self.text[self.at : self.at + 1] in ("<", ">") and self.at and word.text.isdecimal():
                    continue
                yield word
                begins = first is None or (first == "function" and word.text == "{")
                first = word.text if first is None else first
                reserved = word.text in _OPENING | _CLOSING | _BETWEEN and word.text not in (
                    "for",
                    "case",
                    "in",
                    "select",
                )
                if begins and reserved and word.plain:
                    return

    def _redirection(self) -> None:
        if self.text.startswith("<<", self.at) and not self.text.startswith("<<<", self.at):
            self.at += 2
            if tabs := self.text.startswith("-", self.at):
                self.at += 1
            while self.at < len(self.text) and self.text[self.at] in " \t":
                self._step()
            end = self._word().text.replace("\1", "$").replace("\2", "`")
            self.documents.append((self.line, end, tabs))
            return
        sign = ""
        while self.at < len(self.text) and self.text[self.at] in "<>&|":
            sign += self._step()
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self._step()
        if self.at < len(self.text) and self.text[self.at] not in _ENDS:
            target = self._word().text
            if ">" in sign and target not in _NOWHERE and not (sign.endswith("&") and target.isdecimal()):
                self.writes = target

    def _word(self) -> _Word:
        begun, letters, plain = self.line, [], True
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter.isspace() or letter in _ENDS or letter in "<>":
                break
            if letter in "'\"":
                plain = False
                letters.append(self._quoted(begun))
            elif letter == "\\":
                self._step()
                if self.at < len(self.text) and (next_letter := self._step()) != "\n":
                    letters.append(_literal(next_letter))
            elif letter in "$`":
                letters.append(self._substitution(begun))
            else:
                letters.append(self._step())
            if len(letters) > LONGEST_WORD:
                raise ScriptError(begun, f"has a word of more than {LONGEST_WORD} characters: is it a script?")
        return _Word("".join(letters), plain)

    def _substitution(self, begun: int) -> str:
        """`$NAME` and `${NAME}` as they are; of all others an unknown word, with all that belongs to it taken."""
        simple = _VARIABLE.match(self.text, self.at)
        if simple:
            self.at = simple.end()
            return simple[0]
        first = self._step()
        pairs = {"(": ")", "{": "}"}
        if first == "`":
            self._take_until("`", begun)
        elif self.text[self.at : self.at + 1] in pairs:
            opening = self._step()
            depth = 1
            while depth:
                if self.at >= len(self.text):
                    raise ScriptError(begun, f'has "${opening}" without its end: write {pairs[opening]}')
                letter = self._step()
                depth += (letter == opening) - (letter == pairs[opening])
        elif self.at < len(self.text) and not self.text[self.at].isspace():
            self._step()
        return UNKNOWN

    def _arithmetic(self) -> str:
        """Takes an expression up to its `))`, and gives the text before them."""
        stop = self.text.find("))", self.at)
        if stop < 0:
            raise ScriptError(self.line, 'has "((" without its end: write ))')
        inside = self.text[self.at + 2 : stop]
        self.at, self.line = stop + 2, self.line + inside.count("\n")
        return inside[:LONGEST_WORD]

    def _take_until(self, end: str, begun: int) -> None:
        while self.at < len(self.text):
            if self._step() == end:
                return
        raise ScriptError(begun, f"has a quote {end} without its end: write it")

    def _quoted(self, begun: int) -> str:
        quote = self._step()
        letters: list[str] = []
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter == quote:
                self._step()
                return "".join(letters)
            if quote == '"' and letter in "$`":
                letters.append(self._substitution(begun))
            elif quote == '"' and letter == "\\":
                self._step()
                if self.at < len(self.text) and (next_letter := self._step()) != "\n":
                    letters.append(_literal(next_letter))
            else:
                letters.append(_literal(self._step()))
        raise ScriptError(begun, f"has a quote {quote} without its end: write it")


def _literal(letter: str) -> str:
    return {"$": "\1", "`": "\2"}.get(letter, letter)
