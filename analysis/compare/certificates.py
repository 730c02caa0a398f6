"""Differences between the measured behaviour of the labs of two runs. Pure.

In: two certificates. Out: rows of words. A configured value, a verdict and a tolerance differ or not; measured values
differ where they are further apart than the expanded uncertainties of both together."""

from __future__ import annotations

from ewan.analysis.compare.descriptions import DescriptionDifference
from ewan.labs.base.units.shown import ARROWS, NONE, written
from ewan.labs.record import Certificate, Row

DIGITS = 6


def of_certificates(first: Certificate | None, second: Certificate | None) -> list[DescriptionDifference]:
    """A row for each quantity that differs between the two; a single row where a lab has no certificate."""
    if first is None or second is None:
        sides = ["none" if each is None else _verdict(each) for each in (first, second)]
        return [] if first is second else [DescriptionDifference("certificate", *sides)]
    one, two = ({(row.link, row.direction, row.quantity): row for row in each.rows} for each in (first, second))
    policies = [DescriptionDifference("policy", first.policy, second.policy)] if first.policy != second.policy else []
    verdicts = [_verdict(each) for each in (first, second)]
    return [
        *([DescriptionDifference("verdict", verdicts[0], verdicts[1])] if verdicts[0] != verdicts[1] else []),
        *policies,
        *(
            DescriptionDifference(
                f"{key[0]} {ARROWS.get(key[1], key[1])} {key[2]}", _words(one.get(key)), _words(two.get(key))
            )
            for key in dict.fromkeys([*one, *two])
            if _differ(one.get(key), two.get(key))
        ),
    ]


def _verdict(found: Certificate) -> str:
    return "verified" if found.passed else "NOT verified"


def _differ(first: Row | None, second: Row | None) -> bool:
    if first is None or second is None:
        return True
    decided = [(row.unit, row.configured, row.tolerance, row.verdict) for row in (first, second)]
    if decided[0] != decided[1] or (first.measured is None) != (second.measured is None):
        return True
    if first.measured is None or second.measured is None:
        return False
    apart = sum(row.uncertainty.expanded for row in (first, second) if row.uncertainty is not None)
    return abs(first.measured - second.measured) > apart


def _words(row: Row | None) -> str:
    """`9.99Mbit/s of 10Mbit/s ± 10kbit/s, ok`."""
    if row is None:
        return NONE
    words = written(row.measured, row.unit, DIGITS)
    if row.configured is not None:
        words += f" of {written(row.configured, row.unit, DIGITS)}"
    if row.tolerance is not None:
        words += f" ± {written(row.tolerance, row.unit, 2)}"
    return f"{words}, {row.verdict}"
