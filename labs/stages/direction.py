"""One direction of an emulated link: all its stages."""

from __future__ import annotations

from dataclasses import dataclass

from labs.stages.delay import Delay
from labs.stages.loss import Loss
from labs.stages.queue import Queue


@dataclass(frozen=True, slots=True)
class Framing:
    """What a packet's length counts: max(bytes of the IP packet + overhead, minimum)."""

    overhead_bytes: int
    minimum_bytes: int


@dataclass(frozen=True, slots=True)
class Direction:
    """Impair → queue → rate → delay line (emulator/src/config.rs); probabilities in parts per billion."""

    framing: Framing
    rate_bps: int
    loss: Loss
    corrupt_ppb: int
    duplicate_ppb: int
    queue: Queue
    delay: Delay
    reorder: bool
    seed: int
    store_packets: int
    store_bytes: int
