"""The cross-entropy method finds the parameters with the best reward, and the same ones again."""

from __future__ import annotations

import numpy as np
import pytest

from ewan.extras.gym import aimd
from ewan.extras.gym.aimd import Aimd, TrialResult

GOAL = Aimd(4.0, 0.8, 0.25)


def trials(controllers: list[Aimd], seed: int) -> list[TrialResult]:
    """Rewards that are the larger the nearer to a goal."""
    distances = [np.abs(np.log(np.array(each) / np.array(GOAL))).sum() for each in controllers]
    return [TrialResult(-float(distance), 0, 0, 0) for distance in distances]


def test_the_best_parameters_are_found() -> None:
    *_, last = aimd.generations(trials, 12, 1)
    assert last.number == 12 and last.centre == pytest.approx(GOAL, rel=0.25)
    assert [*aimd.generations(trials, 12, 1)][-1] == last
