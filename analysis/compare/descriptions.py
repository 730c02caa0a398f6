"""Differences between two experiments' descriptions, and between the circumstances in which they ran. Pure but for
files read.

In: two experiments. Out: rows of words, one for each value that differs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ewan.analysis import circumstances
from ewan.analysis.load import ExperimentResults, RunResults
from ewan.labs.base.codec import JsonValue
from ewan.labs.base.units.shown import NONE, written
from ewan.labs.record.tables import unit

SCENARIO = "scenario.yaml"
PLAN = "plan.json"
EACH_TIME = ("started", "ended", "command", "runs")
"""Facts that differ between any two experiments, or that parameters tell."""
NOT_OF_THE_LAB = ("seed", "mac", "lab", "spinners", "host_cpus", "pairs")
"""Keys of a plan that say nothing of what a lab does (drawn, numbered, of this machine), or that follow from others."""


class DescriptionDifference(NamedTuple):
    """A difference: its subject, and its value in each of the two."""

    what: str
    first: str
    second: str


def of_circumstances(first: ExperimentResults, second: ExperimentResults) -> list[DescriptionDifference]:
    """Clock, versions, machine, verification."""
    return _differing(_circumstances(first), _circumstances(second))


def _circumstances(experiment: ExperimentResults) -> dict[str, str]:
    document = experiment.document
    facts = {name: word for name, word in circumstances.facts(experiment).items() if name not in EACH_TIME}
    verified = [run.verified for run in document.runs]
    said = "no" if any(each is False for each in verified) else "yes" if all(verified) else "not of all runs"
    own = {"status": document.status, "runtime": document.runtime, "labs verified": said}
    return {**own, **facts, **circumstances.host(document.host)}


def of_parameters(first: ExperimentResults, second: ExperimentResults) -> list[DescriptionDifference]:
    """Names with their values."""
    seeds = [{"seeds": ", ".join(map(str, sorted({run.seed for run in each.runs})))} for each in (first, second)]
    return _differing(
        dict(circumstances.parameters(first)) | seeds[0], dict(circumstances.parameters(second)) | seeds[1]
    )


def of_texts(first: ExperimentResults, second: ExperimentResults) -> list[str]:
    """Lines of a unified diff of the two scenarios, without the names of the files; empty where they are the same."""
    return list(difflib.unified_diff(_text(first), _text(second), lineterm="", n=2))[2:]


def _text(experiment: ExperimentResults) -> list[str]:
    path = experiment.directory / SCENARIO
    return path.read_text(errors="replace").splitlines() if path.exists() else []


def of_labs(first: RunResults, second: RunResults) -> list[DescriptionDifference]:
    """The differences between the plans of two runs, by the path of the value; LoadError where a plan is damaged.

    Values that differ in the same way at several places share one row."""
    plans = [dict(_leaves(run.json(PLAN), "")) for run in (first, second)]
    alike: dict[tuple[str, str, str], list[str]] = {}
    for what, one, two in _differing(*plans):
        alike.setdefault((what.rpartition(" ")[2], one, two), []).append(what)
    return [
        DescriptionDifference(places[0] + (f" and {len(places) - 1} more" if len(places) > 1 else ""), one, two)
        for (_, one, two), places in alike.items()
    ]


def _leaves(value: JsonValue, path: str) -> Iterator[tuple[str, str]]:
    """Values with their paths; of a list by the elements' names, where they have any."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in NOT_OF_THE_LAB and (key != "name" or not path):
                yield from _leaves(inner, f"{path} {key}".strip())
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            named = inner.get("name") if isinstance(inner, dict) else None
            yield from _leaves(inner, f"{path} {named or index + 1}")
    elif isinstance(value, int | float) and not isinstance(value, bool) and (of := unit(path.rpartition(" ")[2])):
        yield path, written(value, of)
    else:
        yield path, str(value)


def _differing(first: Mapping[str, str], second: Mapping[str, str]) -> list[DescriptionDifference]:
    names = dict.fromkeys([*first, *second])
    rows = [DescriptionDifference(name, first.get(name, NONE), second.get(name, NONE)) for name in names]
    return [row for row in rows if row.first != row.second]


def shortened(rows: Sequence[DescriptionDifference], most: int) -> tuple[list[DescriptionDifference], int]:
    """The first rows, and how many have no place."""
    return list(rows[:most]), max(len(rows) - most, 0)
