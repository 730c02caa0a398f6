"""A Gymnasium environment: the agent sets the window of a TCP flow in the virtual clock, once in an interval.

In: a lab, the interval, the length of an episode, the congestion controls of rivals. Out: observations and rewards of
simulated time; a seed gives the same episodes again, to the bit. Gymnasium is an optional package.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ewan.extras.gym.session import Episodes, Prepared, Session
from ewan.generator import congestion
from ewan.labs import descriptions
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_SECOND, NS_PER_US, Duration, UnitError
from ewan.labs.congestion.external import EventRecord, FlowEvent, WindowAnswer
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.runtime.base import LabError
from ewan.labs.spec.fields import Topology

Array = NDArray[np.float32]

NAMES = ("throughput", "rtt", "min_rtt", "cwnd", "in_flight", "loss", "marked")
"""The elements of an observation: Mbit/s of payload in the interval, ms, ms, packets, packets, and the shares of the
interval's packets that were lost and that had a congestion mark."""
USUAL = {"rtt": "20ms", "rate": "12M"}
"""The settings of templates, where others are not given."""
LEAST_CWND, MOST_CWND = 2.0, 2.0**20
MOST = (*[MOST_CWND] * 5, 1.0, 1.0)
MOST_SEED = 1 << 31
LONGEST_NS = 3600 * NS_PER_SECOND
EPISODES = 64
"""Episodes in one kernel, which is 0.1 s that the others need not wait."""


AHEAD = 8
"""The next kernel boots while so many episodes of the present one are left."""


class EwanEnv(gymnasium.Env[Array, Array]):
    """The window of one TCP flow, against none or some rivals over the same bottleneck.

    Action: one number a from -1 to 1, by which the window is multiplied: 2**a. Observation: seven numbers, `NAMES`.
    Reward of an interval: throughput / rate of the bottleneck - delay_weight * (RTT - least RTT) / least RTT
    - loss_weight * share of lost packets. An episode is truncated after `length`; it is never terminated. `info` has
    the kernel's record of the flow (`ewan.labs.congestion.external.EventRecord`) and the window as a float.

    `topology`, and further settings such as rtt="20ms" and rate="12M", are those of `ewan transfer`.
    """

    def __init__(
        self,
        topology: str = "dumbbell",
        *,
        interval: str = "20ms",
        length: str = "10s",
        rivals: Sequence[str] = (),
        delay_weight: float = 0.1,
        loss_weight: float = 1.0,
        context: Context | None = None,
        **settings: str,
    ) -> None:
        self._context = Context.of(os.environ) if context is None else context
        self._topology, self._settings = topology, {**(USUAL if topology in Topology.words() else {}), **settings}
        self._interval_ns = _time("interval", interval)
        self._episodes = Episodes(EPISODES, _time("length", length), tuple(rivals))
        if not 100_000 <= self._interval_ns <= self._episodes.length_ns:
            raise LabError(f'interval "{interval}": write a time from "0.1ms" to the length of an episode, {length}')
        congestion.refuse(rivals, virtual=True)
        self._weights = delay_weight, loss_weight
        plan = self._plan(1)
        if not plan.pairs:
            raise LabError(f"lab {plan.lab} has no pair of hosts: write them as pairs in its description")
        self._bottleneck = plan.pairs[0].bottleneck_bps * NS_PER_US / NS_PER_SECOND
        self._prepared = Prepared.of(self._context)
        self._session: Session | None = None
        self._next: Session | None = None
        self._left = 0
        """Episodes of the session that have not begun."""
        self._record: EventRecord | None = None
        self._cwnd = 0.0
        self._rtt_ns = 0
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.observation_space = gymnasium.spaces.Box(
            np.zeros(len(NAMES), np.float32), np.array(MOST, np.float32), dtype=np.float32
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begins an episode: with a seed in a new kernel, else in the present one if episodes are left in it."""
        super().reset(seed=seed)
        if self._session is not None and seed is None and self._left:
            self._leave()
        else:
            following = self._next if seed is None else None
            self._next = None if following is not None else self._next
            self.close()
            self._session, self._left = following or self._started(), EPISODES
        self._left -= 1
        if seed is None and self._next is None and self._left < AHEAD:
            self._next = self._started()
        assert self._session is not None
        record = self._session.receive()
        self._record, self._cwnd, self._rtt_ns = record, float(record.cwnd_packets), record.srtt_ns
        return self._observation(record, record), self._info(record)

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Multiplies the window by 2**action, and waits for an interval of simulated time."""
        before = self._record
        if before is None or self._session is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        wish = float(np.asarray(action).reshape(-1)[0])
        if not -1.0 <= wish <= 1.0:
            raise gymnasium.error.InvalidAction(f"action {wish}: write a number from -1 to 1")
        self._cwnd = min(max(self._cwnd * 2.0**wish, LEAST_CWND), MOST_CWND)
        self._answer(before, round(self._cwnd))
        record = self._session.receive()
        self._record = None if record.ends else record
        self._rtt_ns = record.rtt_ns or self._rtt_ns
        observation = self._observation(before, record)
        return observation, self.reward(observation), False, record.ends, self._info(record)

    def reward(self, observation: Array) -> float:
        """The reward of the interval that ends with this observation."""
        throughput, rtt, min_rtt, *_, loss, _ = map(float, observation)
        delay = (rtt - min_rtt) / min_rtt if min_rtt else 0.0
        delay_weight, loss_weight = self._weights
        return throughput / self._bottleneck - delay_weight * max(delay, 0.0) - loss_weight * loss

    def close(self) -> None:
        """Ends the kernels."""
        for session in (self._session, self._next):
            if session is not None:
                session.end()
        self._session = self._next = self._record = None
        self._left = 0

    def _started(self) -> Session:
        seed = int(self.np_random.integers(1, MOST_SEED))
        return Session(self._prepared, self._plan(seed), self._episodes).of(self)

    def _plan(self, seed: int) -> Plan:
        settings = {**self._settings, "seed": str(seed)}
        return descriptions.trusted_plan_of(self._context, self._topology, settings, virtual=True)

    def _answer(self, record: EventRecord, cwnd: int) -> None:
        assert self._session is not None
        answer = WindowAnswer(cwnd, interval_ns=self._interval_ns, ask=FlowEvent.INTERVAL)
        self._session.answer(record.flow, answer)

    def _leave(self) -> None:
        """Goes on to the end of the episode with a small window."""
        assert self._session is not None
        while self._record is not None:
            answer = WindowAnswer(int(LEAST_CWND), interval_ns=LONGEST_NS, ask=FlowEvent.INTERVAL)
            self._session.answer(self._record.flow, answer)
            record = self._session.receive()
            self._record = None if record.ends else record

    def _observation(self, before: EventRecord, record: EventRecord) -> Array:
        elapsed_ns = record.time_ns - before.time_ns
        delivered = record.delivered_packets - before.delivered_packets
        lost = record.lost_packets - before.lost_packets
        marked = record.marked_packets - before.marked_packets
        sent = max(delivered + lost, 1)
        values = (
            delivered * record.mss_bytes * BITS_PER_BYTE * NS_PER_US / elapsed_ns if elapsed_ns else 0.0,
            self._rtt_ns / NS_PER_MS,
            record.min_rtt_ns / NS_PER_MS,
            record.cwnd_packets,
            record.in_flight_packets,
            lost / sent,
            marked / max(delivered, 1),
        )
        return np.clip(np.array(values, np.float32), np.float32(0), np.array(MOST, np.float32))

    def _info(self, record: EventRecord) -> dict[str, Any]:
        return {"record": record, "cwnd": self._cwnd}


def _time(name: str, text: str) -> int:
    try:
        return Duration.parse(text, LONGEST_NS).ns
    except UnitError as error:
        raise LabError(f'{name} "{text}": {error}') from None


gymnasium.register("Ewan-v0", entry_point=EwanEnv)
