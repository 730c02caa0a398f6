"""quinn, a library of QUIC in Rust: `ewan-quic` (generator/quic) at both ends. See quic.py."""

from __future__ import annotations

from ewan.generator.external import quic

TOOL = quic.tool(
    "quinn",
    "ewan-quic",
    "`quic` by quinn 0.11 with rustls (`make quic` builds the program): cubic, bbr or newreno, datagrams as large as "
    "its probes of the path find (1452 B at most), up to ten of them in one system call (UDP GSO), ECT(0) set, timers "
    "of whole milliseconds. Only its qlog tells what is in flight, and the RTT's deviation. Its BBR reports a pacing "
    "rate, but of each control its pacer sends 1.25 windows a round trip.",
)
