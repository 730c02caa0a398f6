"""No test skips for want of something, as docs/contribute/testing.md promises. A few have nothing to test on some
machines."""

from __future__ import annotations

import re

from tests.tiers import ROOT, all_files

NOTHING_TO_TEST = {
    "labs/runtime/tests/test_cards.py": "refusals of a kernel without psp, where the kernel has psp",
    "labs/tests/test_flows.py": "what was captured on a machine whose bytes are in the other order",
    "tests/containers/test_runtime.py": "a terminal of Studio, where the product has no Studio",
    "tests/test_switches.py": "slow switches of user space, where the kernel switches",
}
"""By file: what is tested, and where there is none of it."""
SKIP = re.compile(r"mark\.skip|pytest\.skip|importorskip\b\(")


def test_a_test_skips_only_where_there_is_nothing_to_test() -> None:
    assert [file for file in all_files() if SKIP.search((ROOT / file).read_text())] == sorted(NOTHING_TO_TEST)
