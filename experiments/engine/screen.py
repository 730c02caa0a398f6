"""A table of an experiment's points for one screen of a terminal: its layout, and its omissions.

In: values of parameters with a cell for each metric, the width of the terminal. Out: sheets of at most 24 lines with
the title and the outcome. Where they fit, points stand beside each other, a row a metric; else below each other, a
column a metric. Where these are too many, the values of one parameter stand beside each other, or the rows go on in
further columns, as in a newspaper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ewan.labs.base.sheet import GAP, Sheet
from ewan.labs.base.units.shown import NONE

LINES = 20
"""Lines of a screen of 24: the others are for the title, the omissions, a blank line and the outcome."""
MOST_TIMES = 4
"""The most blocks of newspaper columns that stand beside each other."""


@dataclass(frozen=True, slots=True)
class ColumnGroup:
    """A metric at all rows of a table: a column, or one for each value of the parameter that is folded."""

    head: str
    columns: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class ScreenTable:
    """`keys`: names of parameters; `rows`: their values. `folded`: a parameter, and its value for each column."""

    keys: Sequence[str]
    rows: Sequence[Sequence[str]]
    groups: Sequence[ColumnGroup]
    folded: tuple[str, Sequence[str]] = ("", ("",))


@dataclass(frozen=True, slots=True)
class SheetPage:
    """Sheets, and how many points and metrics are on them without a fold; none where they are too narrow."""

    sheets: list[Sheet]
    points: int
    metrics: int


def screen(table: ScreenTable, title: str, width: int, every: bool = False) -> list[Sheet]:
    """The sheets that show most on one screen, all points before all metrics; `every`: all of it on any number."""
    lines = len(table.groups) * (len(table.rows) + LINES) if every else LINES
    page = beside(table, width, lines)
    if page is None:
        pages = [below(table, width, lines)]
        if len(table.rows) > pages[0].points:
            pages += [below(crossed(table, number), width, lines) for number in reversed(range(len(table.keys)))]
            pages += [newspaper(table, times, width, lines) for times in range(2, MOST_TIMES + 1)]
        page = max(pages, key=lambda each: (each.points, each.metrics))
    first, *others = page.sheets
    heading = f"{title}: {first.title}" if first.title else title
    sheets = [_replaced(first, title=heading), *others]
    sheets[-1] = _replaced(sheets[-1], caption=_left_out(table, page))
    return sheets


def _replaced(sheet: Sheet, title: str | None = None, caption: str = "") -> Sheet:
    return Sheet(sheet.title if title is None else title, sheet.columns, sheet.rows, caption, sheet.keys)


def _left_out(table: ScreenTable, page: SheetPage) -> str:
    """The number of points and metrics that the page leaves out, and where they are."""
    points, metrics = len(table.rows) - page.points, len(table.groups) - page.metrics
    counts = [(points, "point"), (metrics, "metric")]
    words = " and ".join(f"{number} {what}{'s' if number > 1 else ''}" for number, what in counts if number > 0)
    return f"… {words} more: --all shows all, and so does the report" if words else ""


def beside(table: ScreenTable, width: int, lines: int) -> SheetPage | None:
    """Points beside each other, a row a metric; None where they do not fit."""
    heads = [" ".join(table.keys), *(" ".join(values) or "value" for values in table.rows)]
    rows = [[group.head, *group.columns[0]] for group in table.groups]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    if _wide(widths) > width or len(rows) >= lines:
        return None
    return SheetPage([Sheet("", heads, rows)], len(table.rows), len(rows))


def below(table: ScreenTable, width: int, lines: int) -> SheetPage:
    """Points below each other, as many metrics beside them as fit, and further metrics below those."""
    sheets: list[Sheet] = []
    shown, metrics = 0, 0
    for part in _parts(table, width):
        sheet, heads = _sheet(table, part)
        too_wide = len(table.folded[1]) > 1 and _wide(_widths(sheet)) > width
        if too_wide or (sheets and heads + shown > lines):
            break
        shown = shown or max(min(len(table.rows), lines - heads), 1)
        lines -= heads + shown
        sheets.append(Sheet(sheet.title, sheet.columns, sheet.rows[:shown], keys=sheet.keys))
        metrics += len(part)
    return SheetPage(sheets, shown * len(table.folded[1]), metrics)


def crossed(table: ScreenTable, number: int) -> ScreenTable:
    """The values of the parameter of that number beside each other."""
    values = list(dict.fromkeys(row[number] for row in table.rows))
    at = {tuple(row): place for place, row in enumerate(table.rows)}
    rows = list(dict.fromkeys((*row[:number], *row[number + 1 :]) for row in table.rows))

    def column(cells: Sequence[str], value: str) -> list[str]:
        places = [at.get((*row[:number], value, *row[number:])) for row in rows]
        return [NONE if place is None else cells[place] for place in places]

    groups = [ColumnGroup(group.head, [column(group.columns[0], value) for value in values]) for group in table.groups]
    keys = [*table.keys[:number], *table.keys[number + 1 :]]
    return ScreenTable(keys, rows, groups, (table.keys[number], values))


def newspaper(table: ScreenTable, times: int, width: int, lines: int) -> SheetPage:
    """Points below each other in so many columns, with as many metrics as fit."""
    for metrics in range(len(table.groups), 0, -1):
        sheet, heads = _sheet(table, table.groups[:metrics])
        widths = _widths(sheet)
        if times * _wide(widths) + GAP * (times - 1) > width:
            continue
        height = max(min(-(-len(table.rows) // times), lines - heads), 1)
        cells = [*sheet.rows, *[[""] * len(widths)] * (height * times)]
        rows = [[cell for column in range(times) for cell in cells[column * height + at]] for at in range(height)]
        shown = min(height * times, len(table.rows))
        return SheetPage([Sheet("", [*sheet.columns] * times, rows, keys=0)], shown, metrics)
    return SheetPage([], 0, 0)


def _parts(table: ScreenTable, width: int) -> Iterator[list[ColumnGroup]]:
    """The metrics in parts, each as many as fit beside the parameters, in order; at least one."""
    part: list[ColumnGroup] = []
    for group in table.groups:
        if part and _wide(_widths(_sheet(table, [*part, group])[0])) > width:
            yield part
            part = []
        part.append(group)
    yield part


def _sheet(table: ScreenTable, groups: Sequence[ColumnGroup]) -> tuple[Sheet, int]:
    """A row a row of the table, and how many lines its heads take at most.

    A single metric at several values of a parameter is named above them.
    """
    name, values = table.folded
    alone = name and len(groups) == 1
    heads = [value if alone else f"{group.head} {value}".rstrip() for group in groups for value in values]
    cells = [column for group in groups for column in group.columns]
    rows = [[*row, *(column[place] for column in cells)] for place, row in enumerate(table.rows)]
    title = f"{groups[0].head} by {name}" if alone else ""
    sheet = Sheet(title, [*table.keys, *heads], rows, keys=len(table.keys))
    tallest = max(_height(head, wide) for head, wide in zip(sheet.columns, _widths(sheet), strict=True))
    return sheet, tallest + bool(title)


def _widths(sheet: Sheet) -> list[int]:
    """The width of each column: that of its longest cell, or of the longest word of its head."""
    words = [max(map(len, head.split())) for head in sheet.columns]
    return [max(word, *map(len, cells)) for word, cells in zip(words, zip(*sheet.rows, strict=True), strict=True)]


def _wide(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _height(head: str, width: int) -> int:
    """Lines of a head that is wrapped between its words."""
    lines, used = 1, 0
    for word in head.split():
        if used and used + 1 + len(word) > width:
            lines, used = lines + 1, 0
        used += len(word) + (1 if used else 0)
    return lines
