r"""Tables of an experiment for LaTeX, with booktabs and siunitx (version 2 or 3).

In: an experiment with its summary. Out: a file for each group of metrics that holds a `tabular`, for `\input` in a
paper, and tables.tex, a document that shows all of them. Numbers stand in S columns, units in the heads, and half the
width of an interval behind ± with the digits that mean something. Source: the manual of siunitx, "Tabular material".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ewan.analysis import load, metric_tables
from ewan.labs.base.units.shown import NONE, interval_in
from ewan.labs.record.summary import Summary

MOST_COLUMNS = 5
"""Metrics of a table: with as many parameters it is as wide as a page."""
LAST_LATIN = 0x17F
"""The last letter of Latin Extended-A, whose letters the T1 encoding has or composes."""
HEAD_WIDTH = 16
"""Characters of a line of a head."""
_SPECIAL = {
    "\\": r"\textbackslash{}",
    **{each: "\\" + each for each in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "‡": r"\textdaggerdbl{}",
    "±": r"\ensuremath{\pm}",
    "×": r"\ensuremath{\times}",
    "→": r"\ensuremath{\rightarrow}",
    "µ": r"\textmu{}",
    "–": "--",
    "−": r"\ensuremath{-}",
    "\u00a0": "~",
}
_PREFIXES = {
    "": "",
    "k": r"\kilo",
    "M": r"\mega",
    "G": r"\giga",
    "T": r"\tera",
    "m": r"\milli",
    "µ": r"\micro",
    "u": r"\micro",
}
_UNITS = {
    **{f"{short}bit/s": rf"{_PREFIXES[short]}\bit\per\second" for short in ("", "k", "M", "G", "T")},
    **{f"{short}B": rf"{_PREFIXES[short]}\byte" for short in ("", "k", "M", "G")},
    **{f"{short}s": rf"{_PREFIXES[short]}\second" for short in ("", "m", "µ", "u")},
    "ns": r"\nano\second",
    "%": r"\percent",
}
_BEYOND = r"{\textsuperscript{\textdaggerdbl}}"
_AMOUNT = re.compile(r"(-?\d+(?:\.\d+)?) ?([A-Za-zµ%][A-Za-z/]*)?")
_INTERVAL = re.compile(r"(-?\d+(?:\.\d+)?)(?: ± (\d+(?:\.\d+)?))?")


@dataclass(frozen=True, slots=True)
class LatexColumn:
    """`format`: of the column in a `tabular`; cells and head as LaTeX."""

    format: str
    head: str
    cells: Sequence[str]


def write(experiment: load.ExperimentResults, found: Summary) -> dict[str, str]:
    """The text of each file, by its name."""
    files, shown = {}, []
    kind = f"Means with half the width of the {found.confidence:.0%} confidence interval over the seeds"
    lab = experiment.document.title or experiment.document.scenario
    for table in metric_tables.tables(experiment, found):
        for number in range(0, len(table.columns), MOST_COLUMNS):
            part = number // MOST_COLUMNS
            name = re.sub(r"[^a-z]+", "-", table.title.lower()).strip("-") + (f"-{part + 1}" if part else "")
            columns = [*parameters(table), *map(measured, table.columns[number : number + MOST_COLUMNS])]
            beyond = any(column.beyond for column in table.columns[number : number + MOST_COLUMNS])
            about = f"{lab}: {table.title}. {kind}.{' ‡: more than the links carry.' if beyond else ''}"
            files[f"{name}.tex"] = f"% {_one_line(about)}\n% \\usepackage{{booktabs,siunitx}}\n{tabular(columns)}"
            shown.append(
                f"\\begin{{table}}\n\\centering\n\\caption{{{escaped(about)}}}\n\\input{{{name}}}\n\\end{{table}}\n\\clearpage\n"
            )
    body = "\n".join(shown) or "There is no table: the experiment has no results.\n"
    return {**files, "tables.tex": _DOCUMENT.replace("@TABLES@", body)}


_DOCUMENT = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\usepackage{textcomp}
\usepackage[a4paper,landscape,margin=15mm]{geometry}
\usepackage{booktabs,siunitx}
\begin{document}
\footnotesize\centering
@TABLES@\end{document}
"""


def tabular(columns: Sequence[LatexColumn]) -> str:
    """A `tabular` with rules of booktabs; the settings of siunitx hold only in its group."""
    rows = zip(*(column.cells for column in columns), strict=True)
    lines = [
        r"\begingroup",
        r"\sisetup{separate-uncertainty=true,table-align-uncertainty=true}",
        rf"\begin{{tabular}}{{@{{}}{' '.join(column.format for column in columns)}@{{}}}}",
        r"\toprule",
        " & ".join(column.head for column in columns) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\endgroup",
    ]
    return "\n".join(lines) + "\n"


def parameters(table: metric_tables.PointTable) -> list[LatexColumn]:
    """Columns of the varied parameters, and of the number of seeds; amounts of one unit are numbers below it."""
    columns = []
    for name, cells in zip(table.parameters, zip(*table.points, strict=True), strict=True):
        amounts = [_AMOUNT.fullmatch(cell) for cell in cells]
        units = {amount[2] or "" for amount in amounts if amount}
        unit = next(iter(units), "")
        if all(amounts) and len(units) == 1 and (unit in _UNITS or not unit):
            columns.append(_numbers([(amount[1], None) for amount in amounts if amount], name, unit))
        else:
            columns.append(LatexColumn("l", head(name, ""), [escaped(cell) for cell in cells]))
    return [*columns, _numbers([(str(seeds), None) for seeds in table.seeds], "seeds", "")]


def measured(column: metric_tables.MetricColumn) -> LatexColumn:
    """A metric's means with their intervals."""
    values: list[tuple[str, str | None] | None] = []
    for each in column.values:
        text = NONE if each is None else interval_in(column.divisor, each.mean, each.low, each.high)
        found = _INTERVAL.fullmatch(text)
        values.append((found[1], found[2]) if found else None)
    return _numbers(values, column.name, column.unit, column.beyond)


def _numbers(
    values: Sequence[tuple[str, str | None] | None], name: str, unit: str, marked: Sequence[bool] = ()
) -> LatexColumn:
    """An S column; of each value its digits, and those of its uncertainty. None: a dash. `marked`: which."""
    cells, whole, places, uncertain = [], 1, 0, 0
    for value in values:
        if value is None:
            cells.append("{--}")
            continue
        number, half = value
        before, _, after = number.lstrip("-").partition(".")
        whole, places = max(whole, len(before)), max(places, len(after))
        digits = (half or "").replace(".", "").lstrip("0")
        uncertain = max(uncertain, len(digits))
        cells.append(f"{number}({digits})" if digits else number)
    sign = "-" if any(cell.startswith("-") for cell in cells) else ""
    form = f"{sign}{whole}.{places}" + (f"({uncertain})" if uncertain else "")
    if marked:
        cells = [f"{cell} {_BEYOND}" if each else cell for cell, each in zip(cells, marked, strict=True)]
        form += f",table-space-text-post={_BEYOND}"
    return LatexColumn(f"S[table-format={form}]", head(name, unit), cells)


def head(name: str, unit: str) -> str:
    """A name in lines of a few words, with its unit; in braces, so that an S column takes it for text."""
    words = [(escaped(word), len(word)) for word in name.split()]
    if unit:
        words.append((rf"(\si{{{_UNITS[unit]}}})" if unit in _UNITS else f"({escaped(unit)})", len(unit) + 2))
    lines: list[str] = []
    room = 0
    for word, length in words:
        if lines and length < room:
            lines[-1] += f" {word}"
            room -= length + 1
        else:
            lines.append(word)
            room = HEAD_WIDTH - length
    text = r" \\ ".join(lines)
    return rf"{{\shortstack{{{text}}}}}" if len(lines) > 1 else f"{{{text}}}"


def escaped(text: str) -> str:
    """Text that LaTeX prints as it is; of a letter that its Latin fonts lack, the number in Unicode."""
    return "".join(
        _SPECIAL.get(each, each if ord(each) <= LAST_LATIN else f"[U+{ord(each):04X}]") for each in _one_line(text)
    )


def _one_line(text: str) -> str:
    return " ".join(text.split(" ")).replace("\n", " ").replace("\r", " ")
