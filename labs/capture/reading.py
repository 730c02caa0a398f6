"""A pcapng stream that grows, as lines of packets.

In: what `ewan-node capture` writes to a pipe. Out: a line for each packet, as it comes; python-pcapng takes the blocks
apart. Ends with the stream, also where that was cut off.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from pcapng import FileScanner, blocks
from pcapng.exceptions import PcapngException

from ewan.labs.capture import lines

_WAYS = {"inbound": "in", "outbound": "out"}


def shown(stream: IO[bytes]) -> Iterator[str]:
    """A line for each packet of the stream."""
    names: list[str] = []
    try:
        for block in FileScanner(_CountedStream(stream)):
            if isinstance(block, blocks.InterfaceDescription):
                names.append(block.options["if_name"])
            elif isinstance(block, blocks.EnhancedPacket):
                time_ns = (block.timestamp_high << 32) + block.timestamp_low
                way = _WAYS.get(block.options["epb_flags"].inout, "")
                yield lines.line(block.packet_data, block.packet_len, time_ns, names[block.interface_id], way)
    except PcapngException:
        return


class _CountedStream:
    """A stream that says where it is, as python-pcapng asks; a pipe cannot."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._at = 0

    def read(self, size: int) -> bytes:
        """The next bytes, fewer only at the end."""
        found = self._stream.read(size)
        self._at += len(found)
        return found

    def tell(self) -> int:
        """The number of bytes that were read."""
        return self._at
