"""The look of figures, and the files that they become.

In: matplotlib figures and the numbers in them. Out: SVG with letters as outlines (the same everywhere, the same for the
same numbers), PDF with its fonts embedded, PNG, and CSV. A style has the size of a page, of a paper's column or of a
slide. Colours are Okabe and Ito's (2008), which colour-blind readers can tell apart; every series has a dash pattern, a
marker or a hatch of its own besides, for print without colour."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from csv import writer
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from ewan.labs.base import optional

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT, PAPER = "#1b1b1b", "#d9d9d9", "#fefefe"
"""Text and axes, grid, background: colours of their own, so that a page can put its own in their place."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
Dash = Literal["-"] | tuple[float, tuple[float, ...]]
DASHES: tuple[Dash, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.2, 1.2)),
    (0, (5, 1.5, 1.2, 1.5)),
    (0, (8, 2)),
    (0, (3, 1, 1, 1)),
)
MARKERS = ("o", "s", "^", "D", "v", "P")
HATCHES = ("", "///", "..", "\\\\\\", "xx", "---")
MOST_LINES = 6
MOST_PANELS = 6

Cell = str | int | float | bool | None
Row = Mapping[str, Cell]
"""A row of a figure's CSV by its columns."""
Setting = str | float | bool
"""Settings of matplotlib."""

_COORDINATES, _LONG = re.compile(r' (?:d|x|y)="[^"]*"'), re.compile(r"(\d\.\d{2})\d+")
_LINE = re.compile(r" d=\"M [-\d. MLz\n]{400,}\"")
"""A path of straight pieces, in absolute coordinates."""
_PIECE = re.compile(r"M ([-\d. L\n]+)(z?)")

_HASHSALT: dict[str, Setting] = {"svg.hashsalt": "ewan"}
"""Otherwise element names differ from run to run."""
PAGE_RC: dict[str, Setting] = _HASHSALT | {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
}
"""Settings of small pictures in a page, whose letters are the page's."""

RC: dict[str, Setting] = _HASHSALT | {
    "svg.fonttype": "path",
    "pdf.fonttype": 42,  # TrueType: text that can be searched and edited
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.titlelocation": "left",
    "axes.titley": 1.0,  # nothing stands above a panel that a title would have to make room for
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "lines.linewidth": 1.1,
    "hatch.linewidth": 0.6,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "hatch.color"), INK
    ),
}


@dataclass(frozen=True)
class Style:
    """Sizes in inches and points. `columns`: panels side by side, `height`: of a panel, of that of a page."""

    name: str
    width: float
    font: float
    columns: int
    height: float
    line: float
    usual: str
    """The kind of file that such a figure usually is."""
    tallest: float = math.inf
    """The largest height for which a page has room, with the caption."""

    def across(self, panels: int, height: float) -> int:
        """The number of panels of one height (inches on a page) side by side: more than `columns` where a page would
        not hold them, down to the least width in which ticks can be read."""
        columns = self.columns
        while self._inches(panels, columns, height) > self.tallest and self.width > 0.235 * self.font * (columns + 1):
            columns += 1
        return min(columns, panels)

    def size(self, panels: int, columns: int, height: float) -> tuple[float, float]:
        """The width and height of a sheet; panels are lower where a page would not hold it."""
        return self.width, min(self._inches(panels, columns, height), self.tallest)

    def _inches(self, panels: int, columns: int, height: float) -> float:
        """The height of a sheet in inches, with room below for the legend."""
        return self.height * (height * math.ceil(panels / columns) + 0.35)

    @property
    def rc(self) -> dict[str, Setting]:
        """Settings of matplotlib."""
        small = self.font - 0.5 * self.font / 8
        sizes = dict.fromkeys(("font.size", "axes.titlesize", "axes.labelsize"), self.font)
        sizes |= dict.fromkeys(("legend.fontsize", "xtick.labelsize", "ytick.labelsize"), small)
        return RC | sizes | {"lines.linewidth": self.line, "axes.linewidth": 0.64 * self.line}


PAGE = Style("page", 6.9, 8, 2, 1.0, 1.1, "svg")
"""The text's width on A4 with 17 mm of margin."""
STYLES: dict[str, Style] = {
    style.name: style
    for style in (
        PAGE,
        Style("paper-1col", 3.5, 7, 1, 0.95, 1.0, "pdf", 8.5),
        Style("paper-2col", 7.16, 7.5, 3, 0.95, 1.0, "pdf", 8.5),
        Style("slide", 10.0, 14, 2, 1.9, 2.0, "png", 7.5),
    )
}
"""By name: a page of a report, a column of a paper and both (IEEE, ACM), a slide of 4:3 or 16:9."""

FileKind = Literal["svg", "pdf", "png"]
FILE_KINDS: tuple[FileKind, ...] = get_args(FileKind)


@dataclass(frozen=True)
class Drawing:
    """A figure: `name` for its files, `title` and `caption` for the page, SVG, and CSV of what is drawn and more.

    `files`: the same as other kinds of files, where they were asked for.
    """

    name: str
    title: str
    caption: str
    svg: str
    csv: str
    files: Mapping[str, bytes] = field(default_factory=dict)

    def __repr__(self) -> str:
        """A notebook keeps the title and the caption as text beside the picture, without the data."""
        return f"{self.title}: {self.caption}" if self.caption else self.title

    def _repr_svg_(self) -> str:
        """The SVG that a notebook shows."""
        return self.svg


def missing() -> str:
    """The reason why no figure can be drawn here, in a line; empty where figures can be drawn."""
    return optional.missing("matplotlib", "figures need", "report")


@contextmanager
def sheet(
    panels: int,
    height: float,
    most_columns: int = 2,
    *,
    sharex: bool = True,
    sharey: bool = True,
    look: Style = PAGE,
) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure of the style's width with panels of one height (inches on a page); files are made inside."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    columns = min(panels, most_columns)
    rows = math.ceil(panels / columns)
    with matplotlib.rc_context(look.rc):  # type: ignore[arg-type]
        figure = Figure(figsize=look.size(panels, columns, height), dpi=72, layout="constrained")
        FigureCanvasSVG(figure)
        grid = figure.subplots(rows, columns, sharex=sharex, sharey=sharey, squeeze=False)
        axes = list(grid.flat)
        for spare in axes[panels:]:
            spare.remove()
        for spine in (spine for axis in axes[:panels] for spine in axis.spines.values()):
            spine.set_in_layout(False)
        if panels % columns and sharex:
            for axis in axes[panels - columns : panels]:
                axis.tick_params(labelbottom=True)
        yield figure, axes[:panels]


def outer_labels(axes: Sequence[Axes], x: str, y: str, most_columns: int = 2) -> None:
    """Axis labels on the panels at the left and those with nothing below, in as many lines as it takes."""
    import matplotlib

    columns = min(len(axes), most_columns)
    figure, letters = axes[0].figure, 1 / (0.0078 * matplotlib.rcParams["font.size"])
    rows = math.ceil(len(axes) / columns)
    width, height = figure.get_figwidth() / columns, (figure.get_figheight() - 0.6) / rows  # type: ignore[union-attr]
    x, y = (textwrap.fill(words, max(int(length * letters * 0.85), 16)) for words, length in ((x, width), (y, height)))
    for number, axis in enumerate(axes):
        if number % columns == 0:
            axis.set_ylabel(y)
        else:
            axis.yaxis.set_label_coords(0, 0)
        if number + columns >= len(axes):
            axis.set_xlabel(x)
        else:
            axis.xaxis.set_label_coords(0, 0)


def title(axis: Axes, words: str, columns: int) -> None:
    """Above a panel, in as many lines as it takes."""
    import matplotlib

    letters = 102 * axis.figure.get_figwidth() / matplotlib.rcParams["font.size"]  # type: ignore[union-attr]
    axis.set_title(
        "\n".join(textwrap.wrap(words, int(letters / columns), replace_whitespace=False, drop_whitespace=True))
    )


def legend(figure: Figure, axes: Iterable[Axes]) -> None:
    """One for all panels, below them; each name once, in as few rows as hold them; a single line needs none."""
    found: dict[str, Artist] = {}
    for axis in axes:
        handles, labels = axis.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            found.setdefault(label, handle)
    if len(found) > 1:
        import matplotlib

        width, letter = figure.get_figwidth(), 0.0085 * matplotlib.rcParams["font.size"]
        widths = [8 * letter + letter * len(label) for label in found]
        rows = 1 if sum(widths) < width else math.ceil(len(found) * max(widths) / width)
        columns = math.ceil(len(found) / rows)
        figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=columns)


def least_span(axis: Axes, share: float = 0.01) -> None:
    """Lets an axis span at least `share` of its middle value, so that tiny differences do not fill the panel."""
    low, high = axis.get_ylim()
    middle = (low + high) / 2
    if high - low < share * abs(middle):
        axis.set_ylim(middle - share * abs(middle) / 2, middle + share * abs(middle) / 2)


Label = tuple[float, float, str]
"""Words for a point: where it is, in the panel's units."""


def beside_points(axis: Axes, labels: Sequence[Label], font: float) -> None:
    """Words beside points, where they cover neither points nor each other; those without such a place are left out.

    The panel must be whole: limits, and all that takes room around it."""
    from matplotlib.transforms import Bbox

    figure = axis.get_figure(root=True)
    assert figure is not None
    settle(figure)
    at = axis.transData.transform([(x, y) for x, y, _ in labels])
    point = figure.dpi / 72
    taken = [Bbox.from_extents(x - 3 * point, y - 3 * point, x + 3 * point, y + 3 * point) for x, y in at]
    room = axis.get_window_extent()
    for (x, y, words), own in zip(labels, at, strict=True):
        width, height = 0.6 * font * len(words) * point, 1.1 * font * point
        for aside, above in _ASIDE:
            left = own[0] + aside * 4 * point - width * (1 - aside) / 2
            low = own[1] + above * 4 * point - height * (1 - above) / 2
            box = Bbox.from_bounds(left, low, width, height)
            if room.x0 <= box.x0 and box.x1 <= room.x1 and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                axis.annotate(words, (x, y), xytext=(4 * aside, 4 * above), textcoords="offset points",
                              fontsize=font, ha=_ACROSS[aside], va=_UP[above])  # fmt: skip
                break


_ACROSS: Mapping[int, Literal["left", "center", "right"]] = {1: "left", 0: "center", -1: "right"}
_UP: Mapping[int, Literal["bottom", "center", "top"]] = {1: "bottom", 0: "center", -1: "top"}
_ASIDE = ((1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
"""Places of words beside a point, in the order in which they are tried: 1 is right or above."""


def settle(figure: Figure) -> None:
    """Fixes the places of all panels: later drawing does not compute them again."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        # Not "none", which leaves an engine that makes savefig draw everything twice.
        figure.set_layout_engine(None)


def svg(figure: Figure) -> str:
    """The figure as text; the same data give the same bytes."""
    settle(figure)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return short(text.getvalue())


def drawn(
    figure: Figure, name: str, title: str, caption: str, rows: Sequence[Row], kinds: Iterable[str] = ()
) -> Drawing:
    """The figure with its data, as SVG and as the files that are asked for; called within its `sheet`."""
    settle(figure)
    files = {kind: rendered(figure, kind, caption) for kind in kinds if kind != "svg"}
    return Drawing(name, title, caption, svg(figure), csv(rows), files)


def rendered(figure: Figure, kind: str, caption: str = "") -> bytes:
    """A PDF with fonts embedded, or a PNG of 200 dots an inch; the same data give the same bytes."""
    content = io.BytesIO()
    dates = {"CreationDate": None, "Creator": None, "Producer": None, "Subject": caption}
    metadata = dates if kind == "pdf" else {"Software": None, "Description": caption}
    figure.savefig(content, format=kind, dpi=200, metadata=metadata)
    return content.getvalue()


def csv(rows: Sequence[Row]) -> str:
    """Columns in the order in which they first come; numbers with nine digits."""
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    table = writer(text, lineterminator="\n")
    table.writerow(names)
    table.writerows([_cell(row.get(name)) for name in names] for row in rows)
    return text.getvalue()


def _cell(value: Cell) -> Cell:
    return f"{value:.9g}" if isinstance(value, float) else value


def short(svg: str) -> str:
    """SVG as matplotlib writes it in fewer letters: six decimals of each coordinate would be half of the file, and a
    hundredth of a point is fine enough. Long lines are steps from each point to the next (the commands M and l of SVG
    1.1, section 8.3), a third as long."""
    return _COORDINATES.sub(lambda found: _LONG.sub(r"\1", found[0]), _LINE.sub(_relative, svg))


def _relative(found: re.Match[str]) -> str:
    """Steps between rounded points, so that errors do not add up."""
    pieces = []
    for written, closed in _PIECE.findall(found[0]):
        points = np.rint(np.array(written.replace("L", " ").split(), dtype=np.float64) * 100).astype(int)
        begin, steps = points[:2], points[2:] - points[:-2]
        line = f"l{''.join(map(_word, steps.tolist()))}" if len(steps) else ""
        pieces.append(f"M{''.join(map(_word, begin.tolist()))}{line}{closed}")
    return f' d="{"".join(pieces)}"'


@cache
def _word(hundredths: int) -> str:
    """A number behind another one, with its separator."""
    text = f"{hundredths / 100:.2f}".rstrip("0").rstrip(".")
    sign, text = ("-", text[1:]) if hundredths < 0 else (" ", text)
    return sign + (text[1:] if text.startswith("0.") else text)
