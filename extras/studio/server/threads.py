"""Threads for calls that may block: each part of the interface has a few of its own, so that a slow one delays no
other.

In: the name of a part, a function. Out: what the function returns, awaited. A call that comes while all threads of a
part are busy waits without a thread."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import anyio.to_thread
from anyio import CapacityLimiter

MOST_AT_ONCE = 8
"""Threads of one part at a time."""

_limiters: WeakValueDictionary[Hashable, CapacityLimiter] = WeakValueDictionary()
"""A limiter exists as long as a caller waits for it or holds it."""
Found = TypeVar("Found")


async def run(part: Hashable, function: Callable[..., Found], *words: Any) -> Found:
    """Call a function in a thread of a part; its errors are raised."""
    limiter = _limiters.get(part)
    if limiter is None:
        limiter = _limiters[part] = CapacityLimiter(MOST_AT_ONCE)
    return await anyio.to_thread.run_sync(function, *words, limiter=limiter)
