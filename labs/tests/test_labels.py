"""Names, tags and notes of experiments: what is taken, and what is refused in one line."""

from __future__ import annotations

import pytest

from ewan.labs.record.labels import changed, labels, tags_of


def test_tags_are_added_once_and_taken_away() -> None:
    assert changed(["draft"], ["+satellite", "+draft", "-draft", "+b-2"]) == ["satellite", "b-2"]
    assert tags_of(["b", "a", "b"]) == ["b", "a"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["satellite"], r"write \+satellite to add"),
        (["-satellite"], "its tags are: draft"),
        (["+two words"], "write letters, digits"),
        (["++"], "write letters, digits"),
        (["+" + "x" * 41], "at most 40"),
        ([f"+{number}" for number in range(33)], "at most 32"),
    ],
)
def test_what_is_no_change_is_refused(changes: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        changed(["draft"], changes)


def test_only_what_is_given_is_a_key() -> None:
    assert labels(None, [], None) == {} == labels(" ", [], "\n")
    assert labels(" Figure  3 ", ["a"], "one\ntwo\n") == {"name": "Figure 3", "tags": ["a"], "note": "one\ntwo"}
    for wrong in (("x" * 81, None), ("a\x1b[31m", None), (None, "x" * 4001), (None, "\x07")):
        with pytest.raises(ValueError, match="printable characters"):
            labels(wrong[0], [], wrong[1])
