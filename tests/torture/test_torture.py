"""The quick count of every torture."""

from __future__ import annotations

import pytest

from tests.torture import harness

MARKS = {
    "live": pytest.mark.live,
    "torture": pytest.mark.torture,
    "untimed": pytest.mark.untimed,
    "virtual": pytest.mark.virtual,
}
TORTURES = {name: torture for name, torture in harness.tortures().items() if torture.QUICK}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS[torture.TIER]) for name, torture in TORTURES.items()])
def test_nothing_fails(name: str) -> None:
    torture = TORTURES[name]
    tally = harness.run(torture, iter(range(torture.QUICK)))
    print(f"{name}: {tally.tried} tried, {tally.failed} failed")
    assert tally.tried == torture.QUICK
    assert not tally.failures, "\n".join(f"seed {seed}: {error}" for seed, error in tally.failures.items())
