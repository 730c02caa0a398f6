"""The common base of all queue disciplines. Each is a file beside this one, which is found by its `KINDS`.

Times in ns, sizes in bytes as the link's framing counts them, probabilities in parts per billion, gains in thousandths
of a hertz.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from pydantic import Field

from ewan.labs.base.codec import Variant
from ewan.labs.base.model import Model
from ewan.labs.base.source import DescriptionError
from ewan.labs.base.units import Duration, Size
from ewan.labs.base.values import Count, SizeText
from ewan.labs.link.buffer import Room
from ewan.labs.link.context import LinkContext

if TYPE_CHECKING:
    from ewan.labs.link.settings import DirectionSettings

LEAST_UPDATE = Duration.parse("100us")  # a link evaluates each of them
LEAST_QUANTUM, MOST_QUANTUM = Size.parse("64B"), Size.parse("1MiB")


class Discipline(Variant):
    """A discipline in the plan, which emulator/model/src/queue/disciplines has too.

    `one_list`: all packets wait in one list. `of_kernel`: the kernel has it as well, if `kernel_lacks` finds nothing.
    """

    one_list: ClassVar[bool] = False
    of_kernel: ClassVar[bool] = False

    @property
    def words(self) -> str:
        """The discipline's name as a description writes it."""
        return self.kind.replace("_", "-")

    @property
    def held_at_ns(self) -> int | None:
        """The wait at which it holds the queue, from where on it drops; None of those that hold none."""
        return getattr(self, "target_ns", None)

    def kernel_lacks(self) -> str:
        """The value that the kernel's own discipline cannot have, with the remedy; empty if it has all values."""
        return ""


class DisciplineKeys(Model, defer_build=True):
    """The keys of a discipline. Their validators are made only on first use, because a reader of plans does not need
    them."""


class QueueRequest(NamedTuple):
    """The place for which a discipline is requested: the direction, its link, the largest packet in bytes, and the room
    for packets."""

    way: DirectionSettings
    at: LinkContext
    packet: int
    room: Room

    def error(self, message: str, value: object = None) -> DescriptionError:
        """An error that points to where the queue of the direction is written."""
        return self.at.error(self.way, "queue", message, value)


@dataclass(frozen=True, slots=True)
class Kind:
    """A discipline as a description writes it: a key of `queue`.

    `place`: where the page lists it. `description` is that of the key. `keys`: what may be written below it, whose
    docstring stands above their table; `part`: a group of keys within those. `compile`: the discipline with its
    defaults; DescriptionError for one that cannot work. `example`: keys with which it works, where it needs some.
    """

    place: int
    description: str
    keys: type[DisciplineKeys]
    plan: type[Discipline]
    compile: Callable[[Any, QueueRequest], Discipline]
    part: type[DisciplineKeys] | None = None
    example: Mapping[str, Any] | None = None


class FlowsKeys(DisciplineKeys):
    """Queues for flows, which take turns."""

    flows: Annotated[int, Count(1, 65536)] = Field(
        1024, description="queues; a flow's addresses, protocol and ports choose its queue; 1024 if absent"
    )
    quantum: SizeText | None = Field(
        None, description="bytes of a turn, as `framing` counts them; at least 64B; the largest packet if absent"
    )


def quantum_of(keys: FlowsKeys, asked: QueueRequest) -> int:
    """Bytes of a turn; DescriptionError for too few or too many."""
    quantum = keys.quantum.bytes if keys.quantum else asked.packet
    if not LEAST_QUANTUM.bytes <= quantum <= MOST_QUANTUM.bytes:
        write = f'write "quantum: {asked.packet}B", the largest packet'
        raise asked.error(f"a quantum is {LEAST_QUANTUM} to {MOST_QUANTUM}: {write}")
    return quantum
