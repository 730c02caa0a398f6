"""The ACK filter of a direction's queue."""

from __future__ import annotations

from ewan.labs.compile.settings import Settings
from ewan.labs.compile.stages.context import LinkContext, Obstacle
from ewan.labs.stages import Direction, Queue
from ewan.labs.stages.queue import discipline_words, has_one_list


def compile_acks(way: Settings, at: LinkContext, queue: Queue) -> bool:
    """Whether it filters; DescriptionError for a queue that cannot."""
    filters = way.written.acks == "filter"
    if why := refusal(filters, queue):
        raise at.error(way, "acks", why, "filter")
    return filters


def refusal(filters: bool, queue: Queue) -> str:
    """Why this queue cannot filter ACKs, and what to write; empty if it can or is not to."""
    if not filters or has_one_list(queue.discipline):
        return ""
    write = 'write "acks: keep", or drop-tail, red, codel, pie or step'
    return f"{discipline_words(queue.discipline)} has several queues, and only one is filtered: {write}"


def obstacle(direction: Direction) -> Obstacle | None:
    """The kernel's queueing disciplines filter no ACKs but for CAKE."""
    return ("acks", 'the kernel\'s queues filter none: write "acks: keep"') if direction.ack_filter else None
