"""The outcomes of tests as XML in the format of JUnit, which services for continuous integration read.

In: outcomes. Out: the text of a file (https://github.com/testmoapp/junitxml describes the format)."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

from ewan.extras.testing.running import Outcome
from ewan.labs.base.units import NS_PER_SECOND


def document(file: Path, outcomes: Sequence[Outcome]) -> bytes:
    """One suite, named like the file of the tests, with a case for each outcome."""
    failed, errors = sum(bool(each.failures) for each in outcomes), sum(each.error is not None for each in outcomes)
    suite = ElementTree.Element(
        "testsuite",
        name=file.name,
        tests=str(len(outcomes)),
        failures=str(failed),
        errors=str(errors),
        time=f"{sum(each.wall_ns for each in outcomes) / NS_PER_SECOND:.3f}",
    )
    for each in outcomes:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=file.stem,
            name=each.case.name,
            file=str(file),
            time=f"{each.wall_ns / NS_PER_SECOND:.3f}",
        )
        if each.error is not None:
            ElementTree.SubElement(case, "error", message=each.error).text = f"records: {each.directory}"
        elif each.failures:
            failure = ElementTree.SubElement(case, "failure", message=each.failures[0])
            failure.text = "\n".join([*each.failures, f"records: {each.directory}"])
    ElementTree.indent(suite)
    text: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return text + b"\n"
