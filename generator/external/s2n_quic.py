"""s2n-quic, a library of QUIC in Rust: `ewan-s2n-quic` (generator/quic/s2n) at both ends. See quic.py."""

from __future__ import annotations

from ewan.generator.external import quic
from ewan.labs.base.product import RELEASE
from ewan.labs.base.units import NS_PER_MS

PROGRAM = str(RELEASE / "ewan-s2n-quic")
"""The path where generator/quic/build.sh puts the program."""
LEAD_NS = 100 * NS_PER_MS

TOOL = quic.tool(
    "s2n-quic",
    PROGRAM,
    LEAD_NS,
    "`quic` by s2n-quic 1 with rustls (`make quic` builds the program): cubic or bbr, datagrams as large as its probes "
    "of the path find. It has neither HTTP/3 nor qlog here, and does not tell what arrived beyond a gap.",
)
