"""The text of a shell script as statements: words with their quotes read, and their surroundings. Nothing is run.

Comes in: text. Goes out: statements, each the words of a simple command or a word like `then`, with the operator before
it, the file to which its output goes, its standard input where the script has it (`<<EOF`, `<<< TEXT`), and the texts
of its substitutions (`$(…)`, backquotes, `<(…)`), which are scripts themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MOST_WORDS = 200
LONGEST_WORD = 8000
DEEPEST = 50

VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_PASTED = re.compile(
    r"^(?P<before>[ \t]*)(?:(?P<fence>```)|(?:\[?[\w.-]+@[\w.-]+[ :][^\s$#]*\]?[$#]|\$) )", re.MULTILINE
)
"""A fence of Markdown or a prompt, which stand before commands that were copied from a page or a terminal."""
_COUNTERS = re.compile(
    r"^[ \t]+(?=Sent \d+ bytes|backlog \d+[a-zA-Z]*b \d|rate \d+\w*bit \d+pps|lended: |tokens: |marked \d+ early|"
    r"(?:maxpacket|count|new_flows_len|prob|pkts_in|flows|throttled|direct_packets_stat) [\d.]+)",
    re.MULTILINE,
)
"""Lines of counters that `tc -s` shows below each qdisc or class."""
_FINDS = re.compile(r"\s*(?:which|command\s+-v|type\s+-[pP])\s+([\w./-]+)(?:\s+2>\s*/dev/null)?\s*")
"""A substitution that says where a program is."""
OPENING = frozenset(("if", "for", "while", "until", "case", "select", "{", "("))
CLOSING = frozenset(("fi", "done", "esac", "}", ")"))
BETWEEN = frozenset(("then", "do", "else", "elif", "in", "!"))
_ENDS = frozenset(";&|\n()")
_NOWHERE = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "")
UNKNOWN = "\0"
"""Stands in a word for what only running the script would show."""


class ScriptError(ValueError):
    """An error in a script: its line and its message."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Word:
    """A word. `plain`: it has no quotes, so that the shell splits a variable's value into words."""

    text: str
    plain: bool


@dataclass(slots=True)
class Text:
    """A text within the script, which begins on `line`; a here-document is not read before its line has ended."""

    line: int
    text: str = ""


@dataclass(slots=True)
class Statement:
    """Words up to a line's end or an operator; `operator` is the operator before them, like `&&`."""

    line: int
    last_line: int
    words: list[Word]
    operator: str
    writes: str
    stdin: Text | None
    inner: list[Text]
    background: bool = False


def statements(text: str, line: int = 1, *, whole: bool = True) -> list[Statement]:
    """Redirections are no words. `whole`: the text is a file, and no part of one; `line` is that of its beginning."""
    found: list[Statement] = []
    scan = _Scan(_cleaned(text) if whole else text, line)
    while scan.more():
        line, operator = scan.line, scan.operator
        scan.operator, scan.writes, scan.stdin, scan.inner = "", "", None, []
        words = list(scan.words())
        last_line = scan.line - (scan.text[scan.at - 1] == "\n")
        if len(words) > MOST_WORDS:
            raise ScriptError(line, f"has more than {MOST_WORDS} words: is it a script?")
        if found and operator.startswith("&") and not operator.startswith("&&"):
            found[-1].background = True
        if words or scan.writes:
            found.append(Statement(line, last_line, words, operator, scan.writes, scan.stdin, scan.inner))
        else:
            scan.operator = operator.strip() or scan.operator
    if found and scan.operator == "&":
        found[-1].background = True
    return found


def literal(text: str) -> str:
    """The text behind `\\1` and `\\2`, once no variable is left in it."""
    return text.replace("\1", "$").replace("\2", "`")


def _cleaned(text: str) -> str:
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    text = _PASTED.sub(lambda found: f"{found['before']}{'#' if found['fence'] else ''}", text)
    text = _COUNTERS.sub("#", text)
    return text.replace("\0", "?").replace("\1", "?").replace("\2", "?")


@dataclass(frozen=True, slots=True)
class _Document:
    """A here-document that begins with the next line; `begun` is the line that names it."""

    begun: int
    end: str
    tabs: bool
    quoted: bool
    stdin: Text = field(compare=False)


class _Scan:
    """A place in the text. A `$` or a backquote that stands for itself becomes \\1 or \\2 until words are whole."""

    def __init__(self, text: str, line: int, depth: int = 0) -> None:
        self.text = text
        self.at = 0
        self.line = line
        self.depth = depth
        self.documents: list[_Document] = []
        self.operator = ""
        self.writes = ""
        self.stdin: Text | None = None
        self.inner: list[Text] = []

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
                self._read_document(document)
            self.documents = []
        return letter

    def _read_document(self, document: _Document) -> None:
        document.stdin.line = self.line
        lines: list[str] = []
        while self.at < len(self.text):
            stop = self.text.find("\n", self.at)
            stop = len(self.text) if stop < 0 else stop
            line = self.text[self.at : stop]
            line = line.lstrip("\t") if document.tabs else line
            self.at, self.line = min(stop + 1, len(self.text)), self.line + 1
            if line == document.end:
                text = "\n".join(lines)
                if document.quoted:
                    document.stdin.text = "".join(map(_literal, text))
                else:
                    within = _Scan(text, document.stdin.line, self.depth + 1)
                    document.stdin.text = within.expandable()
                    self.inner += within.inner
                return
            lines.append(line)
        message = f'has a text that goes on to a line "{document.end}", and there is none: write it'
        raise ScriptError(document.begun, message)

    def expandable(self) -> str:
        """All of the text, in which the shell expands only variables and substitutions."""
        letters: list[str] = []
        while self.at < len(self.text):
            letters.append(self._expandable("", self.line))
        return "".join(letters)

    def words(self) -> Iterator[Word]:
        """The words to the end of the statement, which is taken too. Words like `then` end one only where it begins."""
        first: str | None = None
        while self.at < len(self.text):
            letter = self.text[self.at]
            if first is None and self.text.startswith("((", self.at):
                yield Word("((", plain=True)
                yield Word(self._arithmetic(), plain=False)
                return
            if letter in "()":
                self._step()
                yield Word(letter, plain=True)
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
            elif letter in "<>" and self.text.startswith("(", self.at + 1):
                yield self._file_of_commands()
            elif letter in "<>" or (letter == "&" and self.text.startswith("&>", self.at)):
                self._redirection()
            else:
                word = self._word()
                if self.text[self.at : self.at + 1] in ("<", ">") and self.at and word.text.isdecimal():
                    continue
                yield word
                begins = first is None or (first == "function" and word.text == "{")
                first = word.text if first is None else first
                reserved = word.text in OPENING | CLOSING | BETWEEN and word.text not in ("for", "case", "in", "select")
                if begins and reserved and word.plain:
                    return

    def _file_of_commands(self) -> Word:
        """`<(…)`: the name of a file, which only running shows, that commands write or read."""
        self.at += 2
        begun = self.line
        self.inner.append(Text(begun, self._taken_in_pairs("(", begun)))
        return Word(UNKNOWN, plain=False)

    def _redirection(self) -> None:
        if self.text.startswith("<<", self.at) and not self.text.startswith("<<<", self.at):
            self.at += 2
            if tabs := self.text.startswith("-", self.at):
                self.at += 1
            self._skip_blanks()
            begun = self.at
            end = literal(self._word().text)
            quoted = any(letter in "'\"\\" for letter in self.text[begun : self.at])
            self.stdin = Text(self.line)
            self.documents.append(_Document(self.line, end, tabs, quoted, self.stdin))
            return
        sign = ""
        while self.at < len(self.text) and self.text[self.at] in "<>&|":
            sign += self._step()
        self._skip_blanks()
        if self.text[self.at : self.at + 2] in ("<(", ">("):
            self._file_of_commands()
        elif self.at < len(self.text) and self.text[self.at] not in _ENDS:
            line, target = self.line, self._word().text
            if sign == "<<<":
                self.stdin = Text(line, target)
            elif ">" in sign and target not in _NOWHERE and not (sign.endswith("&") and target.isdecimal()):
                self.writes = target

    def _skip_blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self._step()

    def _word(self) -> Word:
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
        return Word("".join(letters), plain)

    def _substitution(self, begun: int) -> str:
        """`$NAME` and `${NAME}` as they are, a program that `$(which NAME)` finds; of all others an unknown word, with
        all that belongs to it taken."""
        if simple := VARIABLE.match(self.text, self.at):
            self.at = simple.end()
            return simple[0]
        first, line, outside = self._step(), self.line, list(self.inner)
        opening = self.text[self.at : self.at + 1]
        if first == "`":
            text = self._taken_until("`", begun)
        elif opening in ("(", "{"):
            self._step()
            text = self._taken_in_pairs(opening, begun)
        else:
            if self.at < len(self.text) and not opening.isspace():
                self._step()
            return UNKNOWN
        if opening == "{" and first == "$":
            return UNKNOWN
        self.inner = outside
        if program := _FINDS.fullmatch(text):
            return program[1]
        if not (first == "$" and text.startswith("(")):
            self.inner.append(Text(line, text))
        return UNKNOWN

    def _taken_in_pairs(self, opening: str, begun: int) -> str:
        """The text to the closing bracket, which is taken too; quoted brackets do not count."""
        closing = {"(": ")", "{": "}"}[opening]
        at, depth = self.at, 1
        self.depth += 1
        if self.depth > DEEPEST:
            raise ScriptError(begun, f"has more than {DEEPEST} substitutions in each other: is it a script?")
        while depth:
            if self.at >= len(self.text):
                raise ScriptError(begun, f'has "${opening}" without its end: write {closing}')
            letter = self.text[self.at]
            if letter in "'\"" and opening == "(":
                self._quoted(begun)
                continue
            self._step()
            if letter == "\\" and self.at < len(self.text):
                self._step()
            depth += (letter == opening) - (letter == closing)
        self.depth -= 1
        return self.text[at : self.at - 1]

    def _arithmetic(self) -> str:
        """Takes an expression up to its `))`, and gives the text before them."""
        stop = self.text.find("))", self.at)
        if stop < 0:
            raise ScriptError(self.line, 'has "((" without its end: write ))')
        inside = self.text[self.at + 2 : stop]
        self.at, self.line = stop + 2, self.line + inside.count("\n")
        return inside[:LONGEST_WORD]

    def _taken_until(self, end: str, begun: int) -> str:
        at = self.at
        while self.at < len(self.text):
            if self._step() == end:
                return self.text[at : self.at - 1]
        raise ScriptError(begun, f"has a quote {end} without its end: write it")

    def _quoted(self, begun: int) -> str:
        quote = self._step()
        letters: list[str] = []
        while self.at < len(self.text):
            if self.text[self.at] == quote:
                self._step()
                return "".join(letters)
            letters.append(self._expandable('"', begun) if quote == '"' else _literal(self._step()))
        raise ScriptError(begun, f"has a quote {quote} without its end: write it")

    def _expandable(self, quote: str, begun: int) -> str:
        """A letter or a substitution where blanks and quotes other than `quote` stand for themselves."""
        letter = self.text[self.at]
        if letter in "$`":
            return self._substitution(begun)
        self._step()
        if letter == "\\" and self.text[self.at : self.at + 1] in ("$", "`", "\\", "\n", quote):
            following = self._step() if self.at < len(self.text) else ""
            return "" if following == "\n" else _literal(following)
        return _literal(letter)


def _literal(letter: str) -> str:
    return {"$": "\1", "`": "\2"}.get(letter, letter)
