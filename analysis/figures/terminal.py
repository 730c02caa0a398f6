"""A figure over time in characters, for a terminal.

In: the CSV of a drawn figure (`Drawing.csv`), its title, the terminal's width. Out: text. Braille and block characters
tell two lines apart without colours. The figure's SVG has the same unit.
"""

from __future__ import annotations

import csv
import io
import math

from ewan.labs.base.units.shown import fitting

TIME = "time (s)"
MARKERS = ("braille", "hd", "dot", "sd")
LEAST_WIDTH, MOST_WIDTH, HEIGHT = 50, 110, 20


def drawn(text: str, title: str, width: int) -> str:
    """The lines of a figure over time, at most as many as there are markers; "" for another figure or a narrow
    terminal.

    `text`: CSV with the columns `series`, `unit`, `time (s)` and `value`. `width`: in characters.
    """
    rows = list(csv.DictReader(io.StringIO(text)))
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows:
        if TIME not in row or not row["value"]:
            return ""
        times, values = lines.setdefault(row["series"], ([], []))
        times.append(float(row[TIME]))
        values.append(float(row["value"]))
    if not 1 <= len(lines) <= len(MARKERS) or width < LEAST_WIDTH:
        return ""
    unit = rows[0]["unit"]
    per, shown = fitting([max(filter(math.isfinite, values), default=0) for _, values in lines.values()], unit)
    import plotext

    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(min(width, MOST_WIDTH), HEIGHT)
    for (name, (times, values)), marker in zip(lines.items(), MARKERS, strict=False):
        plotext.plot(times, [value / per for value in values], label=name, marker=marker)
    plotext.ylim(lower=0)
    plotext.title(title)
    plotext.xlabel(TIME)
    plotext.ylabel(shown)
    return "\n".join(line.rstrip() for line in plotext.uncolorize(plotext.build()).splitlines())
