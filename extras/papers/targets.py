"""Targets: experiments of papers that are to be shown again, a file each (`labs/library/papers/NAME.paper.yaml`).

In: such a file. Out: a `PaperTarget`: what the paper found, the experiments that are run, which published numbers count
with which tolerance, the shapes of its curves as sentences, and what is known to differ with the experiment that shows
why. What is wrong is a DescriptionError with its line. Adding a target is adding a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainValidator, ValidationError, WithJsonSchema

from ewan.extras.papers import shapes
from ewan.extras.papers.shapes import Shape
from ewan.generator.scenario.data import ScenarioMapping, ScenarioValue
from ewan.generator.scenario.fields import Parameter, PublishedKeys, Seeds, Text
from ewan.generator.scenario.published import FigureText, Metric
from ewan.labs.base.model import Model
from ewan.labs.base.product import LIBRARY
from ewan.labs.base.source import Places, read_yaml
from ewan.labs.base.units import PPB, Fraction
from ewan.labs.base.wording import nearest
from ewan.labs.record import quantities
from ewan.labs.spec import DescriptionError, names, text_of, translate

ENDING = ".paper.yaml"
FOLDER = LIBRARY / "papers"
PAGE = "docs/results/papers.md"
Scale = Literal["quick", "full"]
SCALES: tuple[Scale, ...] = ("quick", "full")


def _shape(value: object) -> Shape:
    return shapes.parse(str(value))


ShapeText = Annotated[
    Shape, PlainValidator(_shape), WithJsonSchema({"type": "string", "examples": ["goodput grows with streams"]})
]
WithinText = Annotated[Fraction, PlainValidator(Fraction.parse), WithJsonSchema({"type": "string", "examples": ["2%"]})]


class TargetScale(Model):
    """The settings of an experiment's runs at one of the two scales, beside its own."""

    what: ClassVar[str] = "key of a scale"
    scale: str | None = Field(None, description="the scenario's scale; that of the same name, or `paper`, if absent")
    set: dict[str, Parameter] = Field({}, description="parameters of the scenario")
    hstts: dict[str, Parameter] = Field({}, description="words of `ewan suite hstts`")
    seeds: Seeds | None = Field(None, description="how many; the scenario's if absent")


class ExperimentKeys(Model):
    """One of `scenario`, `hstts` and `measured`, and how it is run."""

    what: ClassVar[str] = "key of an experiment"
    scenario: Any = Field(None, description="a scenario's name or path, or its keys")
    hstts: dict[str, Parameter] | None = Field(
        None, description="words of `ewan suite hstts`, like {app: BU, cg: '1.0,2.0'}"
    )
    measured: str | None = Field(None, description="a measurement that no scenario says, by its name")
    set: dict[str, Parameter] = Field({}, description="parameters of the scenario, several values with commas")
    seeds: Seeds | None = Field(None, description="how many; the scenario's if absent")
    beside: tuple[PublishedKeys, ...] = Field((), description="published values, with `hstts`")
    quick: TargetScale = Field(TargetScale(), description="at the quick scale")
    full: TargetScale = Field(TargetScale(), description="at the full scale")

    def size(self, scale: Scale) -> TargetScale:
        """The settings of one scale."""
        return self.quick if scale == "quick" else self.full


class PaperClaim(Model):
    """The common keys of a number and a shape."""

    of: str | None = Field(None, description="the experiment; the first one if absent")
    because: str | None = Field(None, description="why it differs where it does")
    shown_by: str | None = Field(None, description="the experiment that shows that, with what is to blame switched off")


class Number(PaperClaim):
    """Published values that count: those of the first experiment, or of `of`, with this metric."""

    what: ClassVar[str] = "key of a number"
    metric: Metric = Field(description="what it is of")
    source: str | None = Field(None, description="how the value's source begins; any if absent")
    when: dict[str, Parameter] = Field({}, description="at these parameters; all if absent")
    within: WithinText = Field(description="agrees within this, of a share in points; also within our interval")
    why: Text = Field(description="why this tolerance")


class CurveClaim(PaperClaim):
    """A claim about the shape of a curve."""

    what: ClassVar[str] = "key of a shape"
    line: ShapeText = Field(description="as a sentence")
    paper: Text = Field(description="what the paper says or shows")


class TargetDescription(Model):
    """The keys of a target."""

    what: ClassVar[str] = "key of a target"
    number: int = Field(description="its place in the table")
    title: Text = Field(description="one line")
    paper: Text = Field(description="paper, figure or table")
    about: Text = Field(description="what the paper did and found")
    scaled: Text = Field(description="what the quick scale differs in")
    experiments: dict[str, ExperimentKeys] = Field(description="by name; the first one is the paper's")
    numbers: tuple[Number, ...] = Field((), description="published values that count")
    shapes: tuple[CurveClaim, ...] = Field((), description="what the curves show")
    picture: FigureText | None = Field(None, description="the first experiment, drawn as the paper has it")


@dataclass(frozen=True)
class PaperTarget:
    """A target and its name; `places` know the lines of its file."""

    name: str
    file: File
    description: TargetDescription
    picture: ScenarioValue
    beside: Mapping[str, tuple[ScenarioMapping, ...]]
    """Published values as they were written, by experiment."""
    places: Places

    @property
    def first(self) -> str:
        """The experiment to which numbers and shapes belong by default."""
        return next(iter(self.description.experiments))


def read(file: File) -> PaperTarget:
    """Read a target; DescriptionError for a mistake in it."""
    text = text_of(file, f"write the path of a target (*{ENDING})")
    raw, places = read_yaml(text, str(file), "title: …")
    if not isinstance(raw, dict):
        raise places.error((), 'a target consists of keys: write "title:", "experiments:" and so on')
    try:
        description = TargetDescription.model_validate(raw)
    except ValidationError as error:
        raise translate(error, places, TargetDescription, PAGE) from None
    _check(description, places)
    beside = {name: tuple(_plain(each.get("beside") or ())) for name, each in raw["experiments"].items()}
    name = file.name.removesuffix(ENDING)
    return PaperTarget(name, file, description, _plain(raw.get("picture")), beside, places)


def _plain(value: Any) -> Any:
    """The content of a file as JSON data."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _check(description: TargetDescription, places: Places) -> None:
    """Each experiment is of one kind, and every name of one is there."""
    known = description.experiments
    if not known:
        raise places.error(("experiments",), 'is empty: write one, like "main: {scenario: parallel-streams}"')
    for name, each in known.items():
        kinds = [kind for kind in ("scenario", "hstts", "measured") if getattr(each, kind) is not None]
        if len(kinds) != 1:
            raise places.error(("experiments", name), 'write exactly one of "scenario", "hstts" and "measured"')
        if each.beside and each.hstts is None:
            raise places.error(("experiments", name, "beside"), "write it into the scenario: that is where numbers are")
    if not description.numbers and not description.shapes:
        raise places.error((), 'nothing is checked: write "numbers:" or "shapes:"')
    groups: tuple[tuple[str, Sequence[PaperClaim]], ...] = (
        ("numbers", description.numbers),
        ("shapes", description.shapes),
    )
    for key, group in groups:
        for index, entry in enumerate(group):
            for word, other in (("of", entry.of), ("shown_by", entry.shown_by)):
                if other is not None and other not in known:
                    raise places.error((key, index, word), f"there is no such experiment, {nearest(other, known)}")
            if (entry.because is None) != (entry.shown_by is None):
                message = "a reason has an experiment that shows it: write both because and shown_by"
                raise places.error((key, index), message)
    if description.picture is not None and next(iter(known.values())).measured is not None:
        raise places.error(("picture",), "is of runs of a scenario: a measurement has none")
    for index, curve in enumerate(description.shapes):
        if known[curve.of or next(iter(known))].measured is None:
            try:
                quantities.parse(curve.line.metric)
            except ValueError as error:
                raise places.error(("shapes", index, "line"), str(error)) from None


def known() -> dict[str, File]:
    """The file of each target, by name."""
    return {file.name.removesuffix(ENDING): file for file in sorted(FOLDER.glob(f"*{ENDING}"))}


def every() -> list[PaperTarget]:
    """All targets in the order of the table."""
    return sorted((read(file) for file in known().values()), key=lambda target: target.description.number)


def find(word: str) -> PaperTarget:
    """A target by its name or the path of its file; DescriptionError for an unknown one."""
    if names.is_path(word):
        return read(File(word))
    files = known()
    if word not in files:
        raise DescriptionError(f"{word}: there is no such target, {nearest(word, files)}")
    return read(files[word])


def share(within: Fraction) -> float:
    """A tolerance as a number."""
    return within.ppb / PPB
