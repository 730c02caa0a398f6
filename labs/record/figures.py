"""A figure as a person asks for it: `goodput by buffer, lines congestion, facets loss`.

In: a line, of a scenario or of the command line, or the same as keys. Out: a `FigureSpec`, and its line again. What is
wrong is named by its clause, with what to write. Scenarios check figures by it, the analysis draws them;
docs/how-to/experiments/figures.md has the grammar.

    QUANTITY by PARAM            a metric against a parameter; `by PARAM and PARAM`: a heat map
    QUANTITY against QUANTITY    two metrics, a point for each point of the parameters
    SERIES [of WHO] over time    and `shares over time`, stacked
    cdf|ccdf of SAMPLES          and `box of SAMPLES by PARAM`
    timeline                     steps and events of a run
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, get_args

from ewan.labs.base.units import NS_PER_DAY, Duration, UnitError
from ewan.labs.base.wording import nearest
from ewan.labs.record import quantities
from ewan.labs.record.metrics import AMBIGUOUS, METRICS, metric_named
from ewan.labs.record.quantities import Quantity, Selection
from ewan.labs.record.scenario_requests import FigureRequest, Parameter
from ewan.labs.record.series import SAMPLES, SERIES, Samples, Series, Whose, series_named

Kind = Literal["metric", "map", "phase", "time", "flow chart", "cdf", "ccdf", "box", "timeline"]
Scale = Literal["linear", "log", "bdp", "categories"]
SCALES: tuple[Scale, ...] = get_args(Scale)
Values = Literal["linear", "log"]
VALUES: tuple[Values, ...] = get_args(Values)
Points = Literal["mean", "all", "box"]
POINTS: tuple[Points, ...] = get_args(Points)

SHORT = {
    "goodput": "aggregate goodput",
    "completion time": "mean completion time",
    "response time": "mean response time",
    "iteration time": "mean iteration time",
    "queueing delay": "mean queueing delay",
    "jitter": "udp jitter",
}
"""The full names of short names of metrics in a figure."""

Word = TypeVar("Word", bound=str)
_LONGEST_NS = NS_PER_DAY
_LONGEST_NAME = 100
_EXAMPLE = "goodput by buffer, lines congestion"
_HEADS = 'write "METRIC by PARAMETER", "METRIC against METRIC", "SERIES over time", "cdf of SAMPLES" or "timeline"'


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """The content of a figure and its form. `what` is a quantity, a series or samples by its full name; `of`: the
    flows, in words."""

    kind: Kind
    what: str = ""
    of: str = ""
    against: str = ""
    by: tuple[str, ...] = ()
    lines: tuple[str, ...] | None = None
    """Parameters; None: what else varies."""
    facets: tuple[str, ...] = ()
    scale: Scale | None = None
    values: Values | None = None
    """The metric's axis; None: logarithmic where losses span decades."""
    points: Points = "mean"
    relative_to: str | None = None
    """A value of a parameter with which others are compared; the parameter is in `relative_of`, if it is given."""
    relative_of: str | None = None
    harm: bool = False
    """True if the figure shows the loss of others relative to that value; otherwise they are divided by it."""
    bars: bool = False
    where: tuple[tuple[str, str], ...] = ()
    run: int | None = None
    flows: str | None = None
    from_ns: int | None = None
    to_ns: int | None = None
    band: bool = False
    title: str = ""
    name: str = ""

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The metrics that it is made of."""
        if self.kind not in ("metric", "map", "phase"):
            return ()
        return tuple(quantities.parse(words) for words in (self.what, self.against) if words)

    @property
    def selections(self) -> tuple[Selection, ...]:
        """Whose, of all that it is made of and that is of flows."""
        chosen = [quantity.selection for quantity in self.quantities]
        entry = self._entry
        if self.of and entry is not None and entry.whose in ("flow", "command"):
            chosen.append(quantities.selection(self.what, self.of))
        return tuple(each for each in chosen if each is not None)

    @property
    def _entry(self) -> Series | Samples | None:
        return SAMPLES.get(self.what) if self.kind in ("cdf", "ccdf", "box") else series_named(self.what)

    @property
    def of_tables(self) -> bool:
        """Return whether the figure needs the tables of all runs, not their metrics or one run."""
        return self.kind in ("time", "flow chart", "cdf", "ccdf", "box") and self.run is None

    @property
    def captured(self) -> bool:
        """Return whether the figure shows packets that the scenario captures."""
        of_packets = self._entry is not None and self._entry.table == "packets"
        return of_packets or any(each.metric.captured for each in self.quantities)

    @property
    def parameters(self) -> dict[str, str]:
        """Each parameter that it names, with the clause that does."""
        clauses = {"by": self.by, "lines": self.lines or (), "facets": self.facets}
        clauses |= {"where": tuple(name for name, _ in self.where)}
        clauses |= {self.held: (self.relative_of,) if self.relative_of else ()}
        return {name: clause for clause, names in clauses.items() for name in names}

    @property
    def held(self) -> str:
        """The clause that says what others are held against."""
        return "harm against" if self.harm else "relative to"

    @property
    def file(self) -> str:
        """The name of its files."""
        words = self.name or re.sub(r"[^a-z0-9.]+", "-", replace(self, title="").line.lower()).strip("-.")
        return words if len(words) <= _LONGEST_NAME else words[:_LONGEST_NAME].rpartition("-")[0]

    @property
    def head(self) -> str:
        """The subject of the figure, without clauses."""
        whose = f" of {self.of}" if self.of else ""
        match self.kind:
            case "metric" | "map":
                return f"{self.what} by {' and '.join(self.by)}"
            case "phase":
                return f"{self.what} against {self.against}"
            case "time":
                return f"{self.what}{whose} over time"
            case "flow chart":
                return f"shares{whose} over time"
            case "cdf" | "ccdf":
                return f"{self.kind} of {self.what}{whose}"
            case "box":
                return f"box of {self.what}{whose} by {self.by[0]}"
            case "timeline":
                return "timeline"

    @property
    def line(self) -> str:
        """The figure in one line, which `parse` reads."""
        parts = [self.head]
        if self.lines is not None:
            parts.append(f"lines {' and '.join(self.lines)}" if self.lines else "lines none")
        if self.facets:
            parts.append(f"facets {' and '.join(self.facets)}")
        parts += [f"scale {self.scale}"] * (self.scale is not None)
        parts += [f"values {self.values}"] * (self.values is not None)
        parts += [f"points {self.points}"] * (self.points != "mean")
        if self.relative_to is not None:
            parts.append(f"{self.held} {self.relative_to}" + (f" of {self.relative_of}" if self.relative_of else ""))
        parts += ["bars"] * self.bars
        parts += [f"where {name}={value}" for name, value in self.where]
        parts += [f"run {self.run}"] * (self.run is not None)
        parts += [f"flows {self.flows}"] * (self.flows is not None)
        parts += [f"from {Duration(self.from_ns)}"] if self.from_ns is not None else []
        parts += [f"to {Duration(self.to_ns)}"] if self.to_ns is not None else []
        parts += ["band"] * self.band
        parts += [f"title {self.title}"] * bool(self.title)
        return ", ".join(parts)


def parse(text: str, name: str = "") -> FigureSpec:
    """The figure that a line asks for; ValueError that names the clause and says what to write."""
    words, title, rest = str(text).partition(", title ")
    head, *clauses = [" ".join(part.split()) for part in words.split(",")]
    if title and not rest.strip():
        raise ValueError('"title": is empty: write the text')
    figure = replace(_head(head), name=name)
    seen: set[str] = set()
    for clause in [*clauses, *([f"title {rest.strip()}"] if title else [])]:
        keyword = next((word for word in _CLAUSES if clause == word or clause.startswith(f"{word} ")), None)
        if keyword is None:
            first = clause.split(" ")[0] if clause else ""
            raise ValueError(f'"{clause}": unknown clause, {nearest(first, _CLAUSES)}')
        if keyword in seen and keyword != "where":
            raise ValueError(f'"{clause}": there is another "{keyword}" before: write one')
        seen.add(keyword)
        kinds, read = _CLAUSES[keyword]
        if figure.kind not in kinds:
            raise ValueError(f'"{clause}": a figure "{figure.head}" has no {keyword}: leave it out')
        try:
            figure = read(figure, clause[len(keyword) :].strip())
        except ValueError as error:
            raise ValueError(f'"{clause}": {error}') from None
    if figure.from_ns is not None and figure.to_ns is not None and figure.to_ns <= figure.from_ns:
        raise ValueError(f'"to {Duration(figure.to_ns)}": is not after "from": write a later time')
    if figure.bars and figure.values == "log":
        raise ValueError('"values log": bars begin at zero: leave "bars" or "values" out')
    if figure.bars and figure.points != "mean":
        raise ValueError(f'"points {figure.points}": bars show means: leave "bars" or "points" out')
    return figure


Clause = Parameter | bool | float | None | list[Parameter | float] | dict[str, Parameter | float]
"""The values of a figure that is a mapping: words, true or false, several parameters, their values."""


def from_keys(keys: Mapping[str, Clause]) -> FigureSpec:
    """The same as a mapping: `draw` has the line, or its first part; the other keys are `name` and the clauses.

    A clause without words is true or false, several parameters are a list, and `where` is a mapping.
    """
    known = ("draw", "name", *_CLAUSES)
    for key in keys:
        if key not in known:
            raise ValueError(f'unknown key of a figure "{key}", {nearest(str(key), known)}')
    drawn = keys.get("draw")
    if not isinstance(drawn, str):
        raise ValueError(f'a figure has no "draw": write "draw: {_EXAMPLE}"')
    name = keys.get("name", "")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,59}|", name):
        raise ValueError(f'name "{name}": write small letters, digits and "-", like "goodput-by-buffer"')
    parts = [drawn]
    for clause in (clause for clause in _CLAUSES if clause in keys):
        value = keys[clause]
        if clause == "where" and isinstance(value, Mapping):
            parts += [f"where {parameter}={each}" for parameter, each in value.items()]
        elif isinstance(value, bool):
            parts += [clause] * value
        else:
            parts.append(f"{clause} " + (" and ".join(map(str, value)) if isinstance(value, list) else str(value)))
    return parse(", ".join(parts), name)


def asked(figure: FigureSpec) -> FigureRequest:
    """As experiment.json has it; `parse` of its line and its name gives the figure again."""
    return FigureRequest(figure.line, figure.name)


def check(figure: FigureSpec, parameters: Mapping[str, Collection[Parameter]]) -> None:
    """ValueError for a parameter, or a value of one, that is not among `parameters`, which have their values."""
    # Of `each step`, the steps are values of a parameter of that name.
    members = {str(each.kind) for each in figure.selections if each.name is None and figure.quantities}
    for name, clause in figure.parameters.items():
        if name not in parameters and name not in members:
            instead = nearest(name, parameters) if parameters else "vary one in the scenario first"
            raise ValueError(f'"{clause} {name}": there is no such parameter, {instead}')
    for name, value in figure.where:
        values = list(dict.fromkeys(str(each) for each in parameters.get(name, ())))
        if value not in values and name not in members:
            raise ValueError(f'"where {name}={value}": no run has this value, {nearest(value, values)}')
    if figure.relative_to is not None:
        wanted = [figure.relative_of] if figure.relative_of else list(parameters)
        known = {str(value): name for name in wanted for value in parameters.get(name, ())}
        if figure.relative_to not in known and not members:
            instead = nearest(figure.relative_to, known) if known else "leave it out"
            raise ValueError(f'"{figure.held} {figure.relative_to}": no run has this value, {instead}')


def quantity(text: str) -> Quantity:
    """A metric and whose, by its full or its short name; ValueError for another."""
    name, of, who = text.rpartition(" of ")
    if text in SHORT:
        return quantities.parse(SHORT[text])
    if name in SHORT:
        return quantities.parse(f"{SHORT[name]}{of}{who}")
    if not ({text, name} & {*METRICS, *AMBIGUOUS} or metric_named(text) or metric_named(name)):
        raise ValueError(f"unknown metric, {nearest(name or text, [*SHORT, *METRICS], parts=True)}")
    return quantities.parse(text)


def _head(text: str) -> FigureSpec:
    if text == "timeline":
        return FigureSpec("timeline")
    try:
        if text.endswith(" over time"):
            return _over_time(text.removesuffix(" over time"))
        first, _, rest = text.partition(" ")
        if first in ("cdf", "ccdf", "box"):
            return _distribution(first, rest)
        left, against, right = text.partition(" against ")
        if against:
            return FigureSpec("phase", what=str(quantity(left)), against=str(quantity(right)))
        left, by, right = text.rpartition(" by ")
        if not by:
            raise ValueError(f"is no figure, {_HEADS}")
        along = _names(right)
        if len(along) > 2:
            raise ValueError('write one parameter after "by", or two for a heat map')
        return FigureSpec("metric" if len(along) == 1 else "map", what=str(quantity(left)), by=along)
    except ValueError as error:
        raise ValueError(f'"{text}": {error}') from None


def _over_time(text: str) -> FigureSpec:
    name, _, who = text.partition(" of ")
    if name == "shares":
        return FigureSpec("flow chart", what="share", of=_whose(name, who, "flow"))
    if (entry := series_named(name)) is None:
        raise ValueError(f"there is no such series, {nearest(name, ['shares', *SERIES])}")
    return FigureSpec("time", what=name, of=_whose(name, who, entry.whose))


def _distribution(kind: str, text: str) -> FigureSpec:
    of, _, rest = text.partition(" ")
    left, _, right = rest.rpartition(" by ") if kind == "box" else (rest, "", "")
    if of != "of" or not rest or (kind == "box" and not left):
        example = "box of completion time by buffer" if kind == "box" else f"{kind} of completion time"
        raise ValueError(f'write "{example}"')
    name, _, who = left.partition(" of ")
    if name not in SAMPLES:
        raise ValueError(f"there are no such samples, {nearest(name, SAMPLES)}")
    along = _names(right) if kind == "box" else ()
    if len(along) > 1:
        raise ValueError('write one parameter after "by"')
    whose = _whose(name, who, SAMPLES[name].whose)
    return FigureSpec("box" if kind == "box" else "cdf" if kind == "cdf" else "ccdf", what=name, of=whose, by=along)


def _whose(name: str, who: str, whose: Whose) -> str:
    if not who:
        return ""
    if whose == "run":
        raise ValueError(f'is of the run: write "{name}"')
    if whose != "link":
        return str(quantities.selection(name, who))
    return who


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name for name in re.split(r" and |, | ", text) if name)
    wrong = next((name for name in names if not re.fullmatch(r"[a-z][a-z0-9_]*", name)), None)
    if not names or wrong is not None:
        raise ValueError('write the name of a parameter, or two with "and" between')
    return names


def _lines(figure: FigureSpec, text: str) -> FigureSpec:
    return replace(figure, lines=() if text == "none" else _names(text))


def _facets(figure: FigureSpec, text: str) -> FigureSpec:
    names = _names(text)
    if len(names) > 2:
        raise ValueError("write one parameter, or two: rows and columns")
    return replace(figure, facets=names)


def _scale(figure: FigureSpec, text: str) -> FigureSpec:
    return replace(figure, scale=_one(text, SCALES))


def _values(figure: FigureSpec, text: str) -> FigureSpec:
    return replace(figure, values=_one(text, VALUES))


def _points(figure: FigureSpec, text: str) -> FigureSpec:
    return replace(figure, points=_one(text, POINTS))


def _one(text: str, known: Sequence[Word]) -> Word:
    for each in known:
        if each == text:
            return each
    raise ValueError(f"there is no such choice, {nearest(text, known)}")


def _relative(figure: FigureSpec, text: str) -> FigureSpec:
    value, _, name = text.rpartition(" of ") if " of " in text else (text, "", "")
    if not value:
        raise ValueError('write the value that others are held against, like "reno", or "reno of congestion"')
    return replace(figure, relative_to=value, relative_of=name or None)


def _harm(figure: FigureSpec, text: str) -> FigureSpec:
    (of,) = figure.quantities
    if of.metric.better is None:
        raise ValueError(f"{of.metric.name} is neither better nor worse: write another metric")
    return replace(_relative(figure, text), harm=True)


def _where(figure: FigureSpec, text: str) -> FigureSpec:
    pairs = tuple(_pair(part) for part in text.split(" and "))
    return replace(figure, where=(*figure.where, *pairs))


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise ValueError('write a parameter and its value, like "where buffer=1BDP"')
    return name, value


def _run(figure: FigureSpec, text: str) -> FigureSpec:
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) == 0:
        raise ValueError('write the number of a run, like "run 12"')
    return replace(figure, run=int(text))


def _flows(figure: FigureSpec, text: str) -> FigureSpec:
    if not text:
        raise ValueError('write "all", "ends" (the first and the last), or the name of a flow')
    return replace(figure, flows=text)


def _moment(text: str) -> int:
    try:
        return Duration.parse(text, _LONGEST_NS).ns
    except UnitError as error:
        raise ValueError(str(error)) from None


def _alone(text: str) -> bool:
    if text:
        raise ValueError("takes nothing behind it: leave out what follows")
    return True


_ALL: tuple[Kind, ...] = get_args(Kind)
_GROUPED: tuple[Kind, ...] = ("metric", "phase", "time", "cdf", "ccdf", "box")
_TIMED: tuple[Kind, ...] = ("time", "flow chart", "timeline")
_CLAUSES: dict[str, tuple[tuple[Kind, ...], Callable[[FigureSpec, str], FigureSpec]]] = {
    "lines": (_GROUPED, _lines),
    "facets": ((*_GROUPED, "map", "flow chart"), _facets),
    "scale": (("metric", "map", "box"), _scale),
    "values": (("metric",), _values),
    "points": (("metric",), _points),
    "relative to": (("metric",), _relative),
    "harm against": (("map",), _harm),
    "bars": (("metric",), lambda figure, text: replace(figure, bars=_alone(text))),
    "where": (_ALL, _where),
    "run": ((*_TIMED, "cdf", "ccdf"), _run),
    "flows": (("time", "flow chart"), _flows),
    "from": (_TIMED, lambda figure, text: replace(figure, from_ns=_moment(text))),
    "to": (_TIMED, lambda figure, text: replace(figure, to_ns=_moment(text))),
    "band": (("time",), lambda figure, text: replace(figure, band=_alone(text))),
    "title": (_ALL, lambda figure, text: replace(figure, title=text)),
}
"""By its first words: the kinds of figures that have it, and what it changes."""
