"""The example of learning: a controller of three parameters learns when to open and when to close the window.

In: an environment's settings, a seed. Out: the learning curve, and the parameters that were learned. The controller
adds `a` packets in a round trip, and multiplies the window by `b`, at most once in a round trip, when packets were lost
or marked, or when packets wait longer than `d` times the least RTT. The method is the cross-entropy method (Rubinstein
1999): parameters are drawn from a normal distribution, which moves to the best of them. Each trial is an episode in a
kernel of its own: the same seed learns the same, on however many CPUs.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ewan.extras.gym.environment import EwanEnv
from ewan.labs.base.units import NS_PER_MS

Vector = NDArray[np.float64]

BEGIN = np.array([0.0, 0.0, 0.0])
SPREAD = np.array([2.0, 1.5, 2.0])
LEAST_SPREAD = 0.3
"""So much is always tried on either side: else the first lucky draws decide (Szita and Lőrincz 2006)."""
TRIALS = 24
BEST = 6
LEAST, MOST = np.array([-6.0, -5.0, -6.0]), np.array([6.0, 5.0, 6.0])


class Aimd(NamedTuple):
    """`a`: packets in a round trip; `b`: factor, below 1; `d`: waiting time in least RTTs, infinite: losses only."""

    a: float
    b: float
    d: float

    @classmethod
    def of(cls, point: Vector) -> Aimd:
        """The parameters at a point of the space in which they are drawn: all real numbers."""
        a, b, d = np.clip(point, LEAST, MOST)
        return cls(float(2.0**a), float(1 / (1 + np.exp(-b))), float(2.0**d))

    @property
    def words(self) -> str:
        """The parameters in a line."""
        return f"a {self.a:6.2f}  b {self.b:5.3f}  d {self.d:6.3f}"


RENO = Aimd(1.0, 0.5, float("inf"))


class TrialResult(NamedTuple):
    """Means over the steps of an episode; `rtt`: in ms; `loss`: in packets."""

    reward: float
    throughput: float
    rtt: float
    loss: float


Trials = Callable[[list[Aimd], int], list[TrialResult]]
"""An episode of each controller, under the conditions of a seed."""


class Generation(NamedTuple):
    """The best and the mean reward of a generation's trials, and the centre of the next generation."""

    number: int
    best: float
    mean: float
    centre: Aimd


def play(env: EwanEnv, controller: Aimd, seed: int) -> TrialResult:
    """An episode with this controller."""
    observation, info = env.reset(seed=seed)
    rewards, seen = [], []
    cut_ns = begin_ns = info["record"].time_ns
    ended = False
    while not ended:
        _, rtt, min_rtt, *_, loss, marked = map(float, observation)
        record, cwnd = info["record"], info["cwnd"]
        elapsed_ns = record.time_ns - begin_ns
        begin_ns = record.time_ns
        waits = (rtt - min_rtt) / min_rtt if min_rtt else 0.0
        if (loss or marked or waits > controller.d) and record.time_ns - cut_ns >= rtt * NS_PER_MS:
            wanted, cut_ns = cwnd * controller.b, record.time_ns
        else:
            wanted = cwnd + controller.a * elapsed_ns / (rtt * NS_PER_MS) if rtt else cwnd
        action = np.clip(np.log2([max(wanted, 1e-3) / cwnd]), -1, 1).astype(np.float32)
        observation, reward, _, ended, info = env.step(action)
        rewards.append(reward)
        seen.append(observation)
    means = np.mean(seen, axis=0)
    return TrialResult(float(np.mean(rewards)), float(means[0]), float(means[1]), float(means[5]))


_env: EwanEnv | None = None


def _begin(settings: Mapping[str, str]) -> None:
    global _env
    _env = EwanEnv(**settings)  # type: ignore[arg-type]


def _play(controller: Aimd, seed: int) -> TrialResult:
    assert _env is not None
    return play(_env, controller, seed)


class Trainer:
    """Environments in processes of their own, as many as `workers`."""

    def __init__(self, settings: Mapping[str, str], workers: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(settings,))

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def trials(self, controllers: list[Aimd], seed: int) -> list[TrialResult]:
        """An episode of each, under the same conditions."""
        # Ctrl-C is for the first process: the others inherit that they do not hear of it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            results = self._pool.map(_play, controllers, [seed] * len(controllers))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return list(results)


def generations(trials: Trials, number: int, seed: int) -> Iterator[Generation]:
    """Learns for so many generations."""
    random = np.random.default_rng(seed)
    centre, spread = BEGIN.copy(), SPREAD.copy()
    for generation in range(number):
        points = np.clip(random.normal(centre, spread, (TRIALS, len(centre))), LEAST, MOST)
        played = trials([Aimd.of(point) for point in points], int(random.integers(1 << 31)))
        rewards = np.array([each.reward for each in played])
        best = points[np.argsort(-rewards, kind="stable")[:BEST]]
        centre, spread = best.mean(axis=0), np.maximum(best.std(axis=0), LEAST_SPREAD)
        yield Generation(generation + 1, float(rewards.max()), float(rewards.mean()), Aimd.of(centre))
