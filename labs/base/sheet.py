"""Tables for a terminal of any width: no word, no number and no quantity with its unit is broken.

In: a title, columns, rows of text (with rich's markup). Out: something that rich prints. Text is wrapped between words;
where that is not enough, columns are folded: each row takes several lines, and so does the head, in the same order. The
first columns, which say what a row is about, stand once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from ewan.labs.base.units import scale

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table
    from rich.text import Text

GAP = 2
"""Spaces between two columns."""
MANY_ROWS = 24
MOST_CUT = 12
"""Columns of which every way to fold them is looked at; more are folded evenly."""
_UNITS = sorted({*scale("rate"), *scale("size"), *scale("time"), "µs", "%", "ppb", "packets"}, key=len, reverse=True)
_NUMBER = r"[±+–−-]?\d[\d.,]*"
_QUANTITY = rf"{_NUMBER}(?: ± {_NUMBER})?(?: (?:{'|'.join(map(re.escape, _UNITS))})(?=[\s,;.)]|$))?(?: ‡)?"
_PIECE = re.compile(rf"(?<!\S)\(?{_QUANTITY}[,;.)]*(?!\S)|\S+")
"""A part of a line that is not broken: a word, or a number with its interval and its unit: "1.5 Gbit/s", "7.61 ± 0.56
ms"."""


@dataclass(frozen=True)
class Sheet:
    """`keys`: how many columns, from the first on, say what a row is about. `caption`: a line below."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    keys: int = 1
    whole: frozenset[str] = frozenset()
    """Columns that are not wrapped at all."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        widths = [self._widths(number, console) for number in range(len(self.columns))]
        lines = folded([least for least, _ in widths], options.max_width, self.keys)
        stacked = [
            (max(widths[line[place]][0] for line in own), max(widths[line[place]][1] for line in own))
            for place in range(max(map(len, lines)))
            if (own := [line for line in lines if place < len(line)])
        ]
        if self.title:
            yield Text(self.title, style="bold")
        yield self._table(lines, fit(stacked, options.max_width), console)
        if self.caption:
            yield Text(self.caption, style="dim italic")

    def _widths(self, number: int, console: Console) -> tuple[int, int]:
        """The narrowest that a column can be without breaking a word or a quantity, and the width of all it holds."""
        from rich.text import Text

        cells = [Text(self.columns[number]), *(console.render_str(row[number], markup=True) for row in self.rows)]
        lines = [line for cell in cells for line in cell.split()]
        natural = max((line.cell_len for line in lines), default=0)
        if self.columns[number] in self.whole:
            return natural, natural
        pieces = [piece for line in lines for piece in _PIECE.findall(line.plain)]
        return max((Text(piece).cell_len for piece in pieces), default=0), natural

    def _table(self, lines: Sequence[Sequence[int]], widths: Sequence[int], console: Console) -> Table:
        from rich.table import Table
        from rich.text import Text

        drawn = Table(box=None, pad_edge=False, show_header=False)
        for width in widths:
            drawn.add_column(width=width, overflow="fold")
        for index, row in enumerate([self.columns, *self.rows]):
            said = [
                any(row[column] for column in line[self.keys if number else 0 :]) for number, line in enumerate(lines)
            ]
            for number, line in enumerate(lines):
                if not any(said[number:]):
                    break
                cells = [Text() if number and place < self.keys else row[column] for place, column in enumerate(line)]
                texts = [
                    wrapped(
                        console.render_str(cell, markup=True) if index and isinstance(cell, str) else Text(str(cell)),
                        width,
                    )
                    for cell, width in zip(cells, widths, strict=False)
                ]
                drawn.add_row(*texts, style=None if index else "dim")
        return drawn


def grid(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], most: int = MANY_ROWS, keys: int = 1
) -> Sheet:
    """A table; of more than `most` rows, the first half of that many and how many more. `keys`: see `Sheet`."""
    shown = rows if len(rows) <= most else rows[: most // 2]
    caption = f"… and {len(rows) - len(shown)} more" if len(shown) < len(rows) else ""
    return Sheet(title, columns, shown, caption, keys)


def folded(least: Sequence[int], width: int, keys: int) -> list[list[int]]:
    """Numbers of the columns on each line of a row, in order: on as few lines as they fit on, the narrowest way.

    A line has the key columns and at least one more. Columns below each other are as wide as the widest of them.
    """
    first = list(range(min(keys, len(least))))
    others = list(range(len(first), len(least)))
    ways = ([others[a:b] for a, b in pairwise(cuts)] for cuts in _cuts(len(others)))
    best, narrowest = [first], None
    for way in ways:
        if narrowest is not None and len(way) > len(best) and narrowest <= width:
            break
        lines = [[*first, *line] for line in way] or [first]
        columns = [
            max(least[line[place]] for line in lines if place < len(line)) for place in range(max(map(len, lines)))
        ]
        taken = sum(columns) + GAP * (len(columns) - 1)
        if narrowest is None or taken < narrowest:
            best, narrowest = lines, taken
    return best


def _cuts(many: int) -> Iterator[tuple[int, ...]]:
    """The ways to cut `many` columns into lines: few lines first, and of those the most even ones first."""
    for count in range(many):
        even = [round(many * (place + 1) / (count + 1)) for place in range(count)]
        inner = combinations(range(1, many), count) if many <= MOST_CUT else [tuple(even)]
        for cuts in sorted(inner, key=lambda cut: sum(abs(a - b) for a, b in zip(cut, even, strict=True))):
            yield (0, *cuts, many)
    if not many:
        yield ()


def wrapped(text: Text, width: int) -> Text:
    """The same with line ends between its pieces; a piece that is wider than a line is left to whoever draws it."""
    from rich.text import Text

    lines: list[Text] = []
    for line in text.split():
        starts = list(_breaks(line.plain, width))
        lines += list(line.divide(starts)) if starts else [line]
    for line in lines:
        line.rstrip()
    return Text("\n").join(lines)


def _breaks(text: str, width: int) -> Iterator[int]:
    """The position at which the second and each further line of a text begins."""
    from rich.cells import cell_len

    begin = 0
    for piece in _PIECE.finditer(text):
        if piece.start() > begin and cell_len(text[begin : piece.end()]) > width:
            begin = piece.start()
            yield begin


def fit(widths: Sequence[tuple[int, int]], width: int) -> list[int]:
    """A width for each column, of (narrowest, natural): what is too much is taken from the widest that can give it.

    Columns that are too wide even so are narrowed below their words, the widest first.
    """
    found = [natural for _, natural in widths]
    excess = sum(found) + GAP * (len(found) - 1) - width
    for floors in ([least for least, _ in widths], [1] * len(found)):
        while excess > 0:
            giving = [number for number, floor in enumerate(floors) if found[number] > floor]
            if not giving:
                break
            found[max(giving, key=lambda number: found[number])] -= 1
            excess -= 1
    return found
