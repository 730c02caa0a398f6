"""A queue discipline and its target in one text."""

from __future__ import annotations

import pytest

from labs.spec import DescriptionError, parse

LAB = 'topology: dumbbell\nwan: {{queue: "{}"}}\n'


@pytest.mark.parametrize("kind", ["codel", "pie", "fq-codel", "dualpi2"])
def test_a_target_may_follow(kind: str) -> None:
    queue = parse(LAB.format(f"{kind}  7ms"), "q.lab.yaml").description.wan.queue
    assert queue is not None and queue.kind == kind and str(queue.model.target) == "7ms"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("drop-tail 5ms", 'codel, pie, fq-codel, dualpi2 have a target: write "codel 5ms"'),
        ("codel 5", 'write a duration as "5ms"'),
        ("codel 5ms 6ms", 'write a duration as "5ms"'),
    ],
)
def test_what_has_no_target_is_refused(text: str, why: str) -> None:
    with pytest.raises(DescriptionError) as refused:
        parse(LAB.format(text), "q.lab.yaml")
    assert str(refused.value) == f'q.lab.yaml:2: wan.queue "{text}": {why}'
