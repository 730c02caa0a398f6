"""Tables for a terminal of any width: no word and no quantity with its unit is broken.

In: a title, columns, rows of text (with rich's markup). Out: something that rich prints. Columns of text are wrapped
between words; where that is not enough, the table is drawn in parts, one below the other, and each repeats the first
columns, which say what a row is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

GAP = 2
"""Spaces between two columns."""
MANY_ROWS = 24
_QUANTITY = re.compile(r"[±+–-]?\d[\d.,]*\s?\S{0,10}")
"""A number and its unit: "1.5 Gbit/s", "±2.1 ms"."""


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
        widths = [self._widths(number, console) for number in range(len(self.columns))]
        parts = list(split([least for least, _ in widths], options.max_width, self.keys))
        for index, part in enumerate(parts):
            fitted = fit([widths[number] for number in part], options.max_width)
            last = index == len(parts) - 1
            yield self._table(part, fitted, self.title if index == 0 else "", self.caption if last else "", options)

    def _widths(self, number: int, console: Console) -> tuple[int, int]:
        """The narrowest that a column can be without breaking a word or a quantity, and the width of all it holds."""
        from rich.text import Text

        cells = [Text(self.columns[number]), *(console.render_str(row[number]) for row in self.rows)]
        lines = [line for cell in cells for line in cell.split()]
        natural = max((line.cell_len for line in lines), default=0)
        if self.columns[number] in self.whole:
            return natural, natural
        least = 0
        for line in lines:
            pieces = [line.plain] if _QUANTITY.fullmatch(line.plain) else line.plain.split()
            least = max([least, *(Text(piece).cell_len for piece in pieces)])
        return least, natural

    def _table(
        self, part: Sequence[int], widths: Sequence[int], title: str, caption: str, options: ConsoleOptions
    ) -> Table:
        from rich.table import Table

        drawn = Table(title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False)
        drawn.header_style = "dim"
        drawn.caption, drawn.caption_justify = caption or None, "left"
        drawn.min_width = min(max(len(title), len(caption)), options.max_width)
        for number, width in zip(part, widths, strict=True):
            drawn.add_column(self.columns[number], width=width, overflow="fold")
        for row in self.rows:
            drawn.add_row(*(row[number] for number in part))
        return drawn


def grid(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], most: int = MANY_ROWS, keys: int = 1
) -> Sheet:
    """A table; of more than `most` rows, the first half of that many and how many more. `keys`: see `Sheet`."""
    shown = rows if len(rows) <= most else rows[: most // 2]
    caption = f"… and {len(rows) - len(shown)} more" if len(shown) < len(rows) else ""
    return Sheet(title, columns, shown, caption, keys)


def split(least: Sequence[int], width: int, keys: int) -> Iterator[list[int]]:
    """Numbers of the columns of each part, in order; a part has the key columns and at least one more."""
    first = list(range(min(keys, len(least))))
    part = list(first)
    for number in range(len(first), len(least)):
        total = sum(least[each] for each in [*part, number]) + GAP * len(part)
        if total > width and len(part) > len(first):
            yield part
            part = list(first)
        part.append(number)
    yield part


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
