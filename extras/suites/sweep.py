"""Several values of the poster's parameters as one scenario with a sweep. Pure.

In: the scenarios of all combinations, as plain data, each with its parameters. Out: one scenario. A value that differs
between them becomes a parameter: under the poster's word where one has these values (`${k}`), else under a name of its
own. All have the same nodes, those of the largest combination, of which fewer send: a step that a combination does not
have has no members."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from ewan.extras.suites.document import ScenarioDraft
from ewan.extras.suites.parameters import RANGES
from ewan.generator.scenario.data import ScenarioMapping, ScenarioValue
from ewan.labs.base.codec import replace
from ewan.labs.spec import DescriptionError

Values = tuple[str, ...]
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)")
MOST = 1000
"""Combinations."""


def several(given: Mapping[str, str]) -> dict[str, list[str]]:
    """Words with more than one value, each with its values; DescriptionError for an empty one or one that is twice."""
    found = {}
    for word in (each.word for each in RANGES if "," in given.get(each.word, "")):
        values = [value.strip() for value in given[word].split(",")]
        if "" in values:
            raise DescriptionError(f'{word} "{given[word]}": write values with commas between, like {word}=1,2')
        if twice := next((value for value in values if values.count(value) > 1), None):
            raise DescriptionError(f'{word} "{given[word]}": {twice} is there twice: write each value once')
        if word == "RTT" and any(value.lower() == "mix" for value in values):
            raise DescriptionError(f'RTT "{given[word]}": Mix gives each pair an RTT of its own: write only Mix')
        found[word] = values
    return found


def combinations(given: Mapping[str, str], swept: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """Every value with every other; DescriptionError for more than MOST."""
    count = 1
    for values in swept.values():
        count *= len(values)
    if count > MOST:
        raise DescriptionError(f"{' '.join(swept)}: {count} combinations: write at most {MOST}")
    for chosen in itertools.product(*swept.values()):
        yield {**given, **dict(zip(swept, chosen, strict=True))}


def words(swept: Mapping[str, Sequence[str]]) -> str:
    """The swept parameters, for the scenario's description."""
    return (
        "Parameters with several values: "
        + "; ".join(f"{word} = {', '.join(values)}" for word, values in swept.items())
        + "."
    )


class _Names:
    """Parameters by the values that they have in the combinations."""

    def __init__(self, known: Mapping[str, Values], taken: Sequence[str]) -> None:
        self.values = dict(known)
        self._taken = {*taken, *known}

    def reference(self, texts: Values, path: tuple[str, ...]) -> str:
        """The text that stands for these values: a parameter, or words with parameters for their numbers."""
        if (name := self._of(texts)) is not None:
            return f"${{{name}}}"
        parts = [_NUMBER.split(text) for text in texts]
        if len({len(part) for part in parts}) == 1:
            pieces = [self._piece(column) for column in zip(*parts, strict=True)]
            if all(piece is not None for piece in pieces):
                return "".join(str(piece) for piece in pieces)
        name = self._new(path)
        self.values[name] = texts
        return f"${{{name}}}"

    def _piece(self, column: Values) -> str | None:
        if len(set(column)) == 1:
            return column[0]
        name = self._of(column)
        return None if name is None else f"${{{name}}}"

    def _of(self, texts: Values) -> str | None:
        return next((name for name, values in self.values.items() if values == texts), None)

    def _new(self, path: tuple[str, ...]) -> str:
        words = [re.sub("[^a-z0-9]+", "_", part.lower()).strip("_") for part in path]
        for length in range(min(2, len(words)), len(words) + 1):
            name = "_".join(words[-length:])
            if re.fullmatch("[a-z][a-z0-9_]*", name) and name not in self._taken:
                self._taken.add(name)
                return name
        number = next(number for number in itertools.count(2) if f"{words[-1]}_{number}" not in self._taken)
        self._taken.add(f"{words[-1]}_{number}")
        return f"{words[-1]}_{number}"


def merged(
    drafts: Sequence[ScenarioDraft],
    known: Mapping[str, Sequence[str | int]],
    congestion: Sequence[str],
    axes: Sequence[str],
) -> ScenarioDraft:
    """One scenario for all of them; `known`: parameters with their values, one for each combination; `axes`: those that
    metrics are drawn against."""
    first = drafts[0]
    own = first.parameters
    vectors = {name: tuple(str(value) for value in values) for name, values in known.items()}
    names = _Names(vectors, list(own))
    every = [step for draft in drafts for step in draft.steps]
    lab = _merged_groups([draft.lab for draft in drafts], ("lab",), names)
    defaults = _merged_groups([draft.defaults for draft in drafts], ("defaults",), names)
    steps = [
        _merged_groups(column, ("steps", str(column[0]["name"])), names)
        for column in zip(*(_with_all(draft.steps, every) for draft in drafts), strict=True)
    ]
    said = str((lab, defaults, steps))
    used = {name for name in names.values if name not in known or f"${{{name}}}" in said}
    shown = [name for name in names.values if name in used or len(set(names.values[name])) > 1]
    varied = {name: tuple(str(draft.parameters[name]) for draft in drafts) for name in own}
    varied = {name: values for name, values in varied.items() if len(set(values)) > 1}
    points = [
        {**{name: names.values[name][at] for name in shown}, **{name: values[at] for name, values in varied.items()}}
        for at in range(len(drafts))
    ]
    groups = first.sweep if isinstance(first.sweep, list) else [first.sweep]
    return replace(
        first,
        lab=lab,
        parameters={"congestion": own["congestion"], **points[0], **own},
        sweep=[{**point, **group, "congestion": congestion} for point in points for group in groups],
        defaults=defaults,
        longest=max((draft.longest for draft in drafts), key=lambda text: int(text.rstrip("s"))),
        steps=steps,
        figures=tuple(_figures(first.metrics, axes)),
    )


def _figures(metrics: Sequence[str], swept: Sequence[str]) -> list[str]:
    """The first metrics against the first swept parameter; a second parameter has panels."""
    facets = f", facets {swept[1]}" if len(swept) > 1 else ""
    return [f"{metric} by {swept[0]}, lines congestion{facets}" for metric in metrics[:4]]


def _with_all(own: Sequence[ScenarioMapping], every: Sequence[ScenarioMapping]) -> list[ScenarioMapping]:
    """All steps of all combinations in their order, each once; those of others have no members."""
    mine = {step["name"]: step for step in own}
    steps: dict[ScenarioValue, ScenarioMapping] = {}
    for step in every:
        steps.setdefault(step["name"], mine.get(step["name"]) or _of_nobody(step))
    return list(steps.values())


def _of_nobody(step: ScenarioMapping) -> ScenarioMapping:
    return {key: _nobody(str(value)) if key in ("from", "to") else value for key, value in step.items()}


def _nobody(pattern: str) -> str:
    """`left11` as `left[11+0]`."""
    found = re.match(r"([a-z]+)\[?([0-9]+)", pattern)
    assert found is not None, pattern
    return f"{found[1]}[{found[2]}+0]"


def _merged_groups(groups: Sequence[ScenarioMapping], path: tuple[str, ...], names: _Names) -> ScenarioMapping:
    """A key that one of them has is in all."""
    filled = [
        {
            key: next(each[key] for each in (group, *groups) if key in each)
            for key in dict.fromkeys(itertools.chain(*groups))
        }
        for group in groups
    ]
    return {key: _merged_values([group[key] for group in filled], (*path, key), names) for key in filled[0]}


def _merged_values(values: Sequence[ScenarioValue], path: tuple[str, ...], names: _Names) -> ScenarioValue:
    if all(value == values[0] for value in values):
        return values[0]
    if len(groups := [value for value in values if isinstance(value, Mapping)]) == len(values):
        return _merged_groups(groups, path, names)
    lists = [value for value in values if isinstance(value, list)]
    if len(lists) == len(values) and len({len(each) for each in lists}) == 1:
        columns = enumerate(zip(*lists, strict=True))
        return [_merged_values(column, (*path, str(at)), names) for at, column in columns]
    return names.reference(tuple(str(value) for value in values), path)
