"""The environment keeps Gymnasium's rules, a seed gives the same episode again, and Reno's rule plays in it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from ewan.extras.gym import aimd
from ewan.extras.gym.environment import NAMES, EwanEnv
from ewan.labs.runtime.base import LabError

pytestmark = pytest.mark.virtual
UP = np.array([0.1], np.float32)
STILL = np.array([0.0], np.float32)


@pytest.fixture(scope="module")
def env() -> Iterator[EwanEnv]:
    env = EwanEnv(length="1s")
    yield env
    env.close()


def episode(env: EwanEnv, action: np.ndarray[Any, np.dtype[np.float32]]) -> list[list[float]]:
    steps: list[list[float]] = []
    while not steps or not steps[-1][-1]:
        observation, reward, terminated, truncated, _ = env.step(action)
        assert not terminated
        steps.append([*map(float, observation), float(reward), truncated])
    return steps


def test_gymnasium_finds_no_fault() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not having a spec.*")
        check_env(EwanEnv(length="1s"))


def test_a_seed_gives_the_same_episodes_again(env: EwanEnv) -> None:
    runs = []
    for _ in range(2):
        first, _ = env.reset(seed=5)
        begun = [list(first), env.step(UP)[0].tolist()]
        second, _ = env.reset()  # leaves the first episode, in the same kernel
        runs.append([*begun, list(second), episode(env, UP)])
    assert runs[0] == runs[1]


def test_a_window_that_fills_the_path_fills_the_queue(env: EwanEnv) -> None:
    env.reset(seed=1)
    steps = episode(env, UP)
    last = dict(zip(NAMES, steps[-1], strict=False))
    assert len(steps) == 49  # of 20 ms; the handshake takes one round trip
    filling = [step for step in steps if step[3] > 30 and step[5] == 0]
    throughput, rtt, min_rtt = np.median(np.array(filling), axis=0)[:3]
    assert 11.4 < throughput < 12 and rtt > 30 and 20 < min_rtt < 22.5
    assert last["cwnd"] > 100 and any(step[5] > 0 for step in steps)  # the queue has overflowed


def test_a_window_that_stays_is_not_limited_by_the_path(env: EwanEnv) -> None:
    env.reset(seed=1)
    steps = episode(env, STILL)
    throughput, _, min_rtt, cwnd, *_, reward, _ = np.median(np.array(steps), axis=0)
    assert cwnd == 10
    assert throughput == pytest.approx(10 * 1448 * 8e-3 / min_rtt, rel=0.3)
    assert reward == pytest.approx(throughput / 12, abs=0.1)


def test_more_episodes_than_a_kernel_has() -> None:
    env = EwanEnv(length="0.1s")
    env.reset(seed=1)
    for _ in range(140):
        env.reset()
    assert len(episode(env, STILL)) == 4
    env.close()


@pytest.mark.parametrize("wrong", [np.nan, 1.1, -np.inf])
def test_an_action_outside_of_its_space_is_refused(env: EwanEnv, wrong: float) -> None:
    env.reset()
    with pytest.raises(gymnasium.error.InvalidAction, match="write a number from -1 to 1"):
        env.step(np.array([wrong], np.float32))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"interval": "10"}, 'interval "10"'),
        ({"interval": "1us"}, 'interval "1us": write a time from "0.1ms"'),
        ({"rate": "fast"}, "fast"),
        ({"rivals": ["best"]}, "best"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises((LabError, ValueError), match=why):
        EwanEnv(**settings)


def test_a_closed_environment_wants_a_reset(env: EwanEnv) -> None:
    env.close()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(UP)


def test_a_better_rule_has_a_better_reward(env: EwanEnv) -> None:
    careful = aimd.play(env, aimd.Aimd(0.7, 0.7, 0.5), 3)
    wild = aimd.play(env, aimd.Aimd(60.0, 0.9, 60.0), 3)
    assert careful.reward > wild.reward and careful.loss < wild.loss
    assert careful == aimd.play(env, aimd.Aimd(0.7, 0.7, 0.5), 3)
