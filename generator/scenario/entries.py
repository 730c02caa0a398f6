"""Counts of a virtual kernel's entries into programs, for system calls and page faults (wall.json).

In: nothing. Out: numbers for actions that happen once, at intervals, or for each packet, request, message and
program; of programs that compute for long, how long (ns of CPU time, on the machine of calibration/host/virtual.py)."""

from __future__ import annotations

LAB = 1_140
NODE = 94  # 26 of them for what its kernel dropped
THREADS = 122  # the two of a flow
LOOK = 7  # at the links' counters
TICK = 12  # at flows, whatever their number
SAMPLE = 1.1  # of one flow: at its sender, and at its receiver
UDP = 2  # a packet
MEDIA = 12  # a packet: sent, waited for and received
MEDIA_SECOND = 110  # of a media flow: reports and looks
REQUEST = 15
ARRIVAL = 85
MESSAGE = 3
ITERATION = 4  # of a rank
COMMAND = 360
IPERF3 = 2_400  # each end: its start
IPERF3_SEGMENT = 5
IPERF3_DATAGRAM = 11
IPERF3_SECOND = 4_100  # of UDP: a timer of 1 ms
DITG = 2_500  # each end: its start
DITG_DATAGRAM = 9
MPI = 14_000  # a rank with its daemon: its start
MPI_ITERATION = 100  # of a rank
MPI_SECOND = 200_000  # of a rank that waits for a message, which polls
MPI_LATE = 1.5
"""The factor by which a rank waits longer than the distance, with what the others' polling and the ticks of 4 ms
add."""
UDT = 2_500  # each end: its start
UDT_SECOND = 6_000  # both ends, while a transfer lasts: its threads' timers of 10 ms
UDT_PACKET = 22  # both ends, reads of the clock included, each of which enters the kernel
QUINN = 360  # each end: its start
QUINN_PACKET = 24  # both ends
QUINN_PACKET_NS = 7_300  # both ends compute so long
QUINN_OBJECT = 80  # over HTTP/3
S2N_PACKET = 20  # both ends
S2N_PACKET_NS = 2_700
QUIC_GO = 2_100  # each end: its start
QUIC_GO_PACKET = 22  # both ends
QUIC_GO_SWITCHES = 19  # a packet, both ends: threads of Go wait for each other
QUIC_GO_PACKET_NS = 8_000
AIOQUIC = 12_300  # each end: its start
AIOQUIC_NS = 310_000_000  # each end: Python reads the modules
AIOQUIC_PACKET = 22  # both ends
AIOQUIC_PACKET_NS = 214_000
AIOQUIC_OBJECT_NS = 450_000
PING = 19
WAIT = 108
"""A program that reads the clock until its time has come, instead of sleeping: the kernel then lets time pass (patch 2
of images/kernel). ITGSend does so for intervals that are no whole number of ms, ping while an answer is late."""
PING_INTERVAL_S = 1.0
