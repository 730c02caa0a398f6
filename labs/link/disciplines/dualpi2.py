"""DualPI2 (RFC 9332)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from ewan.labs.base.units import NS_PER_US, Duration, Fraction, time_for
from ewan.labs.base.values import Count, DurationText, FractionText, GainText
from ewan.labs.link.disciplines import pie
from ewan.labs.link.disciplines.kind import LEAST_UPDATE, Discipline, DisciplineKeys, Kind, QueueRequest

STEP = Duration.parse("1ms")
PERCENT_PPB = Fraction.parse("1%").ppb


class DualPi2Keys(DisciplineKeys):
    """RFC 9332: packets with ECT(1) or CE wait in the L4S queue, all others in the classic one. It marks where a packet
    allows it."""

    target: DurationText | None = Field(
        None, description="of the classic queue; 15ms, or two packets' time on a slow link, if absent"
    )
    update: DurationText = Field(Duration.parse("16ms"), description="at least 100us; 16ms if absent")
    alpha: GainText = Field(160, description="0.16Hz if absent")
    beta: GainText = Field(3200, description="3.2Hz if absent")
    coupling: Annotated[int, Count(1, 100)] = Field(
        2,
        description="L4S is marked with so many times the probability whose square drops classic packets; 2 if absent",
    )
    step: DurationText | None = Field(
        None, description="an L4S packet that waited so long is marked; 1ms, at least a packet's time, if absent"
    )
    classic: FractionText = Field(
        Fraction.parse("10%"), description="of the rate, for the classic queue while both wait; 10 % if absent"
    )


class DualPi2(Discipline, tag="dualpi2", kw_only=True):
    """RFC 9332; `classic_ppb` is the classic queue's least share of the rate. The kernel has it since 6.17."""

    of_kernel: ClassVar[bool] = True
    alpha_mhz: int
    beta_mhz: int
    classic_ppb: int
    coupling: int
    step_ns: int
    target_ns: int
    update_ns: int

    def kernel_lacks(self) -> str:
        """The kernel's times are in microseconds, and its classic share in per cent."""
        if self.classic_ppb % PERCENT_PPB:
            return 'the kernel\'s DualPI2 takes the classic share in per cent: write "classic: 10%"'
        return "" if self.step_ns >= NS_PER_US else 'DualPI2\'s step is at least 1us: write "step: 1ms"'


def compile_dualpi2(keys: DualPi2Keys, asked: QueueRequest) -> DualPi2:
    """DescriptionError for no target or step, and for updates that come too often."""
    target = pie.target_of(keys.target, asked)
    step_ns = keys.step.ns if keys.step else max(STEP.ns, time_for(asked.packet, asked.way.rate.bps))
    if not target or not step_ns or keys.update.ns < LEAST_UPDATE.ns:
        message = f"DualPI2 needs a target and a step above zero and an update of {LEAST_UPDATE} or more"
        raise asked.error(f'{message}: write "update: 16ms"', "dualpi2")
    return DualPi2(
        target_ns=target,
        update_ns=keys.update.ns,
        alpha_mhz=keys.alpha,
        beta_mhz=keys.beta,
        coupling=keys.coupling,
        step_ns=step_ns,
        classic_ppb=keys.classic.ppb,
    )


ABOUT = "a queue for L4S and one for the rest, coupled (RFC 9332)"
KINDS = {"dualpi2": Kind(8, ABOUT, DualPi2Keys, DualPi2, compile_dualpi2)}
