"""s2n-quic, a library of QUIC in Rust: `ewan-s2n-quic` (generator/quic/s2n) at both ends. See quic.py."""

from __future__ import annotations

from ewan.generator.external import quic

TOOL = quic.tool(
    "s2n-quic",
    "ewan-s2n-quic",
    "`quic` by s2n-quic 1 with rustls (`make quic` builds the program): cubic or bbr, datagrams as large as its probes "
    "of the path find. It has neither HTTP/3 nor qlog here, and does not tell what arrived beyond a gap.",
)
