"""The page of `ewan suite papers`: results of papers beside measured ones, each target with its picture.

In: the file that `ewan suite papers` keeps, results/papers/NAME.json: outcomes of targets, with their experiments. Out:
NAME.html beside it, with everything in it; `pictures/TARGET.svg` and `.csv`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from ewan.analysis import load, summary
from ewan.analysis.figures import custom
from ewan.analysis.figures.style import Drawing
from ewan.analysis.report import environment, inline
from ewan.labs.base import documents, writing
from ewan.labs.base.codec import Struct
from ewan.labs.record import figures

PICTURES = "pictures"


class PaperFinding(Struct, forbid_unknown_fields=False):
    """A number or a shape of a target, in words."""

    what: str
    paper: str
    here: str
    verdict: str
    why: str


class Target(Struct, forbid_unknown_fields=False):
    """The result of a target. `experiments`: where each of its experiments is, by name; None: nowhere."""

    name: str
    title: str
    paper: str
    rows: tuple[PaperFinding, ...]
    verdict: str
    about: str
    scaled: str
    picture: str | dict[str, figures.Clause] | None
    experiments: dict[str, str | None]


class Book(Struct, forbid_unknown_fields=False):
    """The content of the page."""

    scale: str
    commit: str | None
    outcomes: tuple[Target, ...]


class Picture(NamedTuple):
    """A target on the page: its picture, or why it is not `drawn`, and the reports of its experiments by name."""

    target: Target
    reports: dict[str, str]
    drawn: Drawing | None
    svg: Markup
    undrawn: str | None


def write(ledger: Path) -> Path:
    """Write the page and return its path; OSError where it cannot be written. The page names the figures that cannot be
    drawn."""
    book = documents.read(Book, ledger)
    place = ledger.parent / PICTURES
    place.mkdir(exist_ok=True)
    targets = [_target(outcome, ledger.parent, place) for outcome in book.outcomes]
    page = ledger.with_suffix(".html")
    text = environment().get_template("papers.html.j2").render(scale=book.scale, commit=book.commit, targets=targets)
    writing.write(page, text)
    return page


def _target(outcome: Target, folder: Path, place: Path) -> Picture:
    reports = {
        name: os.path.relpath(Path(directory).resolve() / "report.html", folder.resolve())
        for name, directory in outcome.experiments.items()
        if directory is not None and (Path(directory) / "report.html").exists()
    }
    drawn = _drawn(outcome)
    if isinstance(drawn, Drawing):
        for kind, content in (("svg", drawn.svg), ("csv", drawn.csv)):
            writing.write(place / f"{outcome.name}.{kind}", content)
        return Picture(outcome, reports, drawn, Markup(inline(drawn.svg, outcome.name)), None)
    return Picture(outcome, reports, None, Markup(), drawn)


def _drawn(outcome: Target) -> Drawing | str | None:
    """The target's picture, of its first experiment; why it is not drawn; None where the target names none."""
    asked_for = outcome.picture
    directory = next(iter(outcome.experiments.values()), None)
    if asked_for is None:
        return None
    if directory is None:
        return "nothing was measured"
    spec = figures.parse(asked_for) if isinstance(asked_for, str) else figures.from_keys(asked_for)
    try:
        experiment = load.experiment(Path(directory))
        found = summary.found(Path(directory))
        if any(str(each) not in point.metrics for each in spec.quantities for point in found.points if point.runs):
            found = summary.of(experiment, spec.quantities)
        (drawing,) = custom.draw(experiment, found, [spec])
    except (load.LoadError, OSError) as error:
        return str(error)
    return drawing
