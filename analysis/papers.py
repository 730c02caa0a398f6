"""The page of `ewan paper`: what papers found beside what was measured, each target with its picture.

In: what `ewan paper` keeps, results/papers/NAME.json: outcomes of targets, with the experiments that they are of.
Out: NAME.html beside it, with everything in it; `pictures/TARGET.svg` and `.csv`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ewan.analysis import load, summary
from ewan.analysis.figures import asked
from ewan.analysis.figures.style import Drawing
from ewan.analysis.report import environment, inline
from ewan.labs.base import documents, writing
from ewan.labs.record import figures

PICTURES = "pictures"


def write(ledger: Path) -> Path:
    """The path of the page; OSError where it cannot be written. What cannot be drawn is said on the page."""
    book = documents.read_object(ledger)
    place = ledger.parent / PICTURES
    place.mkdir(exist_ok=True)
    targets = [_target(outcome, ledger.parent, place) for outcome in book["outcomes"]]
    page = ledger.with_suffix(".html")
    text = (
        environment().get_template("papers.html.j2").render(scale=book["scale"], commit=book["commit"], targets=targets)
    )
    writing.write(page, text)
    return page


def _target(outcome: Mapping[str, Any], folder: Path, place: Path) -> dict[str, Any]:
    told = dict(outcome)
    told["reports"] = {
        name: os.path.relpath(Path(directory).resolve() / "report.html", folder.resolve())
        for name, directory in outcome["experiments"].items()
        if directory is not None and (Path(directory) / "report.html").exists()
    }
    drawn = _drawn(outcome)
    if isinstance(drawn, Drawing):
        for kind, content in (("svg", drawn.svg), ("csv", drawn.csv)):
            writing.write(place / f"{outcome['name']}.{kind}", content)
        drawn_here = {"svg": Markup(inline(drawn.svg, outcome["name"])), "caption": drawn.caption, "title": drawn.title}
        return {**told, "drawn": drawn_here}
    return {**told, "undrawn": drawn}


def _drawn(outcome: Mapping[str, Any]) -> Drawing | str | None:
    """The target's picture, of its first experiment; why it is not drawn; None where the target names none."""
    asked_for = outcome["picture"]
    directory = next(iter(outcome["experiments"].values()), None)
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
        (drawing,) = asked.draw(experiment, found, [spec])
    except (load.LoadError, OSError) as error:
        return str(error)
    return drawing
