"""RED (Floyd and Jacobson 1993), gentle."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from ewan.labs.base.units import Fraction, Size
from ewan.labs.base.values import Count, FractionText, SizeText
from ewan.labs.link.disciplines.kind import Discipline, DisciplineKeys, Kind, QueueRequest

KERNEL_BITS = 32  # of max_bytes and the weight together (red_check_params in include/net/red.h)


class RedKeys(DisciplineKeys):
    """Floyd and Jacobson 1993, gentle."""

    min: SizeText | None = Field(None, description="no drop below this average; a sixth of the limit if absent")
    max: SizeText | None = Field(None, description="`max_p` at this average; half of the limit if absent")
    max_p: FractionText = Field(Fraction.parse("10%"), description="10 % if absent")
    weight: Annotated[int, Count(0, 20)] = Field(9, description="the average moves by 2^-weight a packet; 9 if absent")
    ecn: bool = Field(False, description="mark instead of dropping where the packet allows it")


class Red(Discipline, tag="red", kw_only=True):
    """Floyd and Jacobson 1993, gentle; the average moves by 2^-weight_log2 a packet."""

    one_list: ClassVar[bool] = True
    of_kernel: ClassVar[bool] = True
    ecn: bool
    max_bytes: int
    max_p_ppb: int
    min_bytes: int
    weight_log2: int

    def kernel_lacks(self) -> str:
        """The kernel's average has 32 bits."""
        if self.max_bytes.bit_length() + self.weight_log2 < KERNEL_BITS:
            return ""
        most = (1 << (KERNEL_BITS - 1 - self.weight_log2)) - 1
        return f'RED with weight {self.weight_log2} takes at most "max: {most}B": write that'


def compile_red(keys: RedKeys, asked: QueueRequest) -> Red:
    """DescriptionError for thresholds that are not between a packet and the buffer."""
    packet, room = asked.packet, asked.room.bytes
    least = keys.min.bytes if keys.min else room // 6
    most = keys.max.bytes if keys.max else room // 2
    if not packet <= least < most <= room:
        message = (
            f"RED needs a packet of {Size(packet)} ≤ min {Size(least)} < max {Size(most)} "
            f"≤ buffer {Size(room)}: write a larger buffer, or min and max"
        )
        raise asked.error(message, "red")
    return Red(min_bytes=least, max_bytes=most, max_p_ppb=keys.max_p.ppb, weight_log2=keys.weight, ecn=keys.ecn)


KINDS = {"red": Kind(1, "RED (Floyd and Jacobson 1993)", RedKeys, Red, compile_red)}
