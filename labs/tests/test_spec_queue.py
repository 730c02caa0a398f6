"""A queue discipline and its target in one text."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.labs.base.units import Duration
from ewan.labs.link.disciplines.codel import CodelKeys
from ewan.labs.link.disciplines.dualpi2 import DualPi2Keys
from ewan.labs.link.disciplines.fq_codel import FqCodelKeys
from ewan.labs.link.disciplines.pie import PieKeys
from ewan.labs.link.queue import TARGETED as WORDS
from ewan.labs.spec import DescriptionError, parse

TARGETED = (CodelKeys, DualPi2Keys, FqCodelKeys, PieKeys)
FILE = Path("q.lab.yaml")
LAB = 'topology: dumbbell\nwan: {{queue: "{}"}}\n'


@pytest.mark.parametrize("kind", ["codel", "pie", "fq-codel", "dualpi2"])
def test_a_target_may_follow(kind: str) -> None:
    queue = parse(LAB.format(f"{kind}  7ms"), FILE).description.wan.queue
    assert queue is not None and queue.kind == kind
    assert isinstance(queue.model, TARGETED) and queue.model.target == Duration.parse("7ms")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("drop-tail 5ms", f'{", ".join(WORDS)} have a target: write "codel 5ms"'),
        ("codel 5", 'write a duration as "5ms"'),
        ("codel 5ms 6ms", 'write a duration as "5ms"'),
    ],
)
def test_what_has_no_target_is_refused(text: str, why: str) -> None:
    with pytest.raises(DescriptionError) as refused:
        parse(LAB.format(text), FILE)
    assert str(refused.value) == f'q.lab.yaml:2: wan.queue "{text}": {why}'
