"""Counts of a virtual kernel's entries into programs, for system calls and page faults (wall.json).

In: nothing. Out: numbers for actions that happen once, at intervals, or for each packet, request, message and
program."""

from __future__ import annotations

LAB = 3_200
NODE = 265  # 72 of them for what its kernel dropped
THREADS = 288  # the two of a flow
LOOK = 15  # at the links' counters
TICK = 25  # at flows, whatever their number
SAMPLE = 2.3  # of one flow: at its sender, and at its receiver
UDP = 4  # a packet
MEDIA = 25  # a packet: sent, waited for and received
MEDIA_SECOND = 220  # of a media flow: reports and looks
REQUEST = 30
ARRIVAL = 200
MESSAGE = 6
ITERATION = 8  # of a rank
COMMAND = 1_000
IPERF3 = 6_600  # each end: its start
IPERF3_SEGMENT = 10
IPERF3_DATAGRAM = 22
IPERF3_SECOND = 8_200  # of UDP: a timer of 1 ms
DITG = 7_000  # each end: its start
DITG_DATAGRAM = 18
MPI = 40_000  # a rank with its daemon: its start
MPI_ITERATION = 200  # of a rank
MPI_SECOND = 400_000  # of a rank that waits for a message, which polls
MPI_LATE = 1.5
"""The factor by which a rank waits longer than the distance, with what the others' polling and the ticks of 4 ms
add."""
UDT = 7_000  # each end: its start
UDT_SECOND = 12_000  # both ends, while a transfer lasts: its threads' timers of 10 ms
UDT_PACKET = 44  # both ends, reads of the clock included, each of which enters the kernel
QUINN = 1_000  # each end: its start
QUINN_PACKET = 48  # both ends
AIOQUIC = 20_000  # each end: its start
AIOQUIC_PACKET = 45  # both ends
PING = 38
WAIT = 217
"""A program that reads the clock until its time has come, instead of sleeping: the kernel then lets time pass (patch 2
of images/kernel). ITGSend does so for intervals that are no whole number of ms, ping while an answer is late."""
PING_INTERVAL_S = 1.0
