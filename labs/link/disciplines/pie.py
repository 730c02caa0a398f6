"""PIE (RFC 8033)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from ewan.labs.base.units import Duration, time_for
from ewan.labs.base.values import DurationText, GainText
from ewan.labs.link.disciplines.kind import LEAST_UPDATE, Discipline, DisciplineKeys, Kind, QueueRequest

TARGET = Duration.parse("15ms")

# Gains in the kernel are sixteenths of a hertz, at most two hertz (net/sched/sch_pie.c).
KERNEL_GAIN_MHZ, KERNEL_MOST_STEPS = 62.5, 32


class PieKeys(DisciplineKeys):
    """RFC 8033."""

    target: DurationText | None = Field(None, description="15ms, or two packets' time on a slow link, if absent")
    update: DurationText = Field(Duration.parse("15ms"), description="at least 100us; 15ms if absent")
    alpha: GainText = Field(125, description="0.125Hz if absent")
    beta: GainText = Field(1250, description="1.25Hz if absent")
    ecn: bool = Field(False, description="mark instead of dropping where the packet allows it")


class Pie(Discipline, tag="pie", kw_only=True):
    """RFC 8033."""

    one_list: ClassVar[bool] = True
    of_kernel: ClassVar[bool] = True
    alpha_mhz: int
    beta_mhz: int
    ecn: bool
    target_ns: int
    update_ns: int

    def kernel_lacks(self) -> str:
        """The kernel's gains go by steps."""
        if _is_step(self.alpha_mhz) and _is_step(self.beta_mhz):
            return ""
        return 'PIE\'s gains are multiples of 0.0625Hz up to 2Hz: write "alpha: 0.125Hz"'


def _is_step(mhz: int) -> bool:
    return mhz % KERNEL_GAIN_MHZ == 0 and mhz <= KERNEL_GAIN_MHZ * KERNEL_MOST_STEPS


def target_of(target: Duration | None, asked: QueueRequest) -> int:
    """As written, in ns; else two packets' time at least."""
    return target.ns if target else max(TARGET.ns, 2 * time_for(asked.packet, asked.way.rate.bps))


def compile_pie(keys: PieKeys, asked: QueueRequest) -> Pie:
    """DescriptionError for no target, and for updates that come too often."""
    target = target_of(keys.target, asked)
    if not target or keys.update.ns < LEAST_UPDATE.ns:
        message = f'PIE needs a target above zero and an update of {LEAST_UPDATE} or more: write "update: 15ms"'
        raise asked.error(message, "pie")
    return Pie(target_ns=target, update_ns=keys.update.ns, alpha_mhz=keys.alpha, beta_mhz=keys.beta, ecn=keys.ecn)


KINDS = {"pie": Kind(3, "PIE (RFC 8033)", PieKeys, Pie, compile_pie)}
