"""Documents that each machine leaves of a run, and those of the whole run: links.json, as `ewan-node` has it.

In and out: documents, by `ewan.labs.base.codec`; traffic.json is `ewan.generator.traffic_request.TrafficResult`,
commands.json is `ewan.labs.record.commands.CommandsDocument`.
"""

from __future__ import annotations

from msgspec import Raw

from ewan.labs.base.codec import Document
from ewan.labs.runtime.answers import LastCounters


class LinksDocument(Document, tag="ewan-links/1"):
    """The content of links.json: the counters of the links, and the spinners; `down`: links without a carrier. The data
    of a link are passed on unchanged."""

    links: tuple[Raw, ...]
    spinners: tuple[LastCounters, ...]
    down: tuple[Raw, ...] = ()
