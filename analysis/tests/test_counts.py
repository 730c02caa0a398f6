"""The words of a caption about the number of values of each group, instead of only the largest number."""

from __future__ import annotations

import pytest

from ewan.analysis.figures.counts import PointCount, in_words


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([("bbr", "bbr, 1BDP", 3), ("cubic", "cubic, 1BDP", 3)], "n = 3"),
        ([("bbr", "bbr, 1BDP", 3), ("cubic", "a", 4), ("cubic", "b", 4)], "n = 4 (3 for bbr)"),
        ([("bbr", "bbr, 1BDP", 3), ("bbr", "bbr, 2BDP", 4), ("cubic", "a", 4)], "n = 4 (3 for bbr, 1BDP)"),
        ([("", "1BDP", 3), ("", "2BDP", 4), ("", "4BDP", 4)], "n = 4 (3 for 1BDP)"),
        ([("", "", 3), ("", "", 4), ("", "", 4)], "n from 3 to 4"),
        ([("a", str(number), number + 1) for number in range(8)], "n from 1 to 8"),
    ],
)
def test_each_group_has_its_own_number(counts: list[tuple[str, str, int]], words: str) -> None:
    assert in_words([PointCount(*each) for each in counts]) == words
