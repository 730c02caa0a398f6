"""The ACK filter of a direction's queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ewan.labs.link.context import LinkContext
from ewan.labs.link.disciplines import KINDS
from ewan.labs.link.queue import Queue

if TYPE_CHECKING:
    from ewan.labs.link.settings import DirectionSettings


def compile_acks(way: DirectionSettings, at: LinkContext, queue: Queue) -> bool:
    """Return whether the direction filters acknowledgements; DescriptionError for a queue that cannot."""
    filters = way.written.acks == "filter"
    if why := refusal(filters, queue):
        raise at.error(way, "acks", why, "filter")
    return filters


def refusal(filters: bool, queue: Queue) -> str:
    """Why this queue cannot filter ACKs, and what to write; empty if it can or is not to."""
    if not filters or queue.discipline.one_list:
        return ""
    *others, last = (word for word, kind in KINDS.items() if kind.plan.one_list)
    write = f'write "acks: keep", or {", ".join(others)} or {last}'
    return f"{queue.discipline.words} has several queues, and only one is filtered: {write}"
