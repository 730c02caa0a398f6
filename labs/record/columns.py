"""The columns of a run's tables: the type and the meaning of each; its unit is the last part of its name.

In: nothing. Out: `COLUMNS`, by table. labs/record/tables.py writes and reads tables of these columns;
docs/reference/metrics.md lists them. Times are nanoseconds from T0, the common start of all flows of a run; sizes are
payload bytes unless a column says otherwise; bytes of links are counted as the link's framing counts them. A value that
is not known is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

_WORD, _WHOLE, _REAL, _TRUTH = pl.String(), pl.Int64(), pl.Float64(), pl.Boolean()


class Column(NamedTuple):
    """`meaning`: one line for a reader of the table."""

    kind: pl.DataType
    meaning: str


class Table(NamedTuple):
    """`meaning`: what a row of it is. `more`: columns behind the others, of which a run has some or none; `prefix`:
    what the names of these begin with, and of columns that no list has."""

    meaning: str
    columns: dict[str, Column]
    more: Mapping[str, Column] = MappingProxyType({})
    prefix: str = ""


_FLOW = {
    "flow": Column(_WHOLE, "the flow's number in the run"),
    "part": Column(
        _WHOLE,
        "one of the flow's connections or members (a file of many that arrive, a direction of a bidirectional "
        "transfer, a rank of a message-passing group), else 0",
    ),
}

_INTERVAL = {
    "time_ns": Column(_WHOLE, "the interval's end"),
    "interval_ns": Column(_WHOLE, "its length"),
}

_COMMAND = {
    "step": Column(_WORD, "the scenario's step"),
    "node": Column(_WORD, "the node that its program ran in"),
    "command": Column(_WHOLE, "the command's number in the run, by which its files in commands/ are named"),
}

COLUMNS: dict[str, Table] = {
    "flows": Table(
        "a flow, or a part of one",
        {
            **_FLOW,
            "name": Column(_WORD, "the flow's name"),
            "step": Column(_WORD, "the scenario's step that it belongs to"),
            "role": Column(_WORD, "load, reverse, background or cross: what metrics count it as"),
            "transfer": Column(_WHOLE, "parallel streams of one transfer share this number"),
            "kind": Column(_WORD, "bulk, arrivals, requests, messages, udp, quic, media or program (of a command)"),
            "generator": Column(
                _WORD,
                "ewan, iperf3, ditg, udt, openmpi, quinn, aioquic, s2n-quic; run: a command, counted at a link",
            ),
            "source": Column(_WORD, "the sending node"),
            "sink": Column(_WORD, "the receiving node; null for members of a group"),
            "congestion": Column(_WORD, "the congestion control"),
            "scheduled_ns": Column(_WHOLE, "its scheduled start"),
            "started_ns": Column(_WHOLE, "its first system call; its lateness is started − scheduled"),
            "connected_ns": Column(_WHOLE, "when its connection was there"),
            "ended_ns": Column(_WHOLE, "when it ended"),
            "completion_ns": Column(
                _WHOLE, "from its scheduled start to the last of its bytes; null: it did not receive all"
            ),
            "volume_bytes": Column(_WHOLE, "what it was to send; null: as much as fits in its time"),
            "received_bytes": Column(_WHOLE, "what its receiver got"),
            "goodput_bps": Column(_REAL, "what was received, per time from its scheduled start to its end"),
            "segment_bytes": Column(
                _WHOLE, "the sender's maximum segment size; QUIC: the largest payload of its UDP datagrams"
            ),
            "min_rtt_ns": Column(_WHOLE, "the least RTT that the sender measured"),
            "retransmitted_segments": Column(
                _WHOLE, "retransmitted segments; QUIC: packets that the sender took for lost, whose data it sent again"
            ),
            "copied_segments": Column(
                _WHOLE,
                "came more than once, as the receiver reported (DSACK, RFC 2883); QUIC: arrived, though taken for "
                "lost, by the qlog of both ends; null: not reported",
            ),
            "timeouts": Column(
                _WHOLE,
                "number of the sender's retransmission timeouts, SYNs included; null: not reported (before Linux 6.7)",
            ),
            "sent_packets": Column(_WHOLE, "UDP: packets sent; QUIC: UDP datagrams that the sender sent"),
            "received_packets": Column(_WHOLE, "UDP: packets received; QUIC: UDP datagrams that the receiver received"),
            "lost_packets": Column(_WHOLE, "UDP: packets that did not arrive; QUIC: sent − received datagrams"),
            "reordered_packets": Column(_WHOLE, "UDP: packets that came after later ones"),
            "duplicate_packets": Column(_WHOLE, "UDP: packets that came more than once"),
            "delay_min_ns": Column(_WHOLE, "UDP: the least one-way delay"),
            "delay_p50_ns": Column(_WHOLE, "UDP: one-way delay that half of the packets did not exceed"),
            "delay_p95_ns": Column(_WHOLE, "UDP: one-way delay that 95 % of the packets did not exceed"),
            "delay_p99_ns": Column(_WHOLE, "UDP: one-way delay that 99 % of the packets did not exceed"),
            "delay_max_ns": Column(_WHOLE, "UDP: the largest one-way delay"),
            "jitter_ns": Column(_REAL, "UDP: interarrival jitter (RFC 3550, section 6.4.1)"),
            "error": Column(_WORD, "why it went no further"),
        },
    ),
    "series": Table(
        "TCP_INFO of a sender at one moment, or what a library of QUIC tells of it",
        {
            **_FLOW,
            "time_ns": Column(_WHOLE, "when it was read"),
            "acked_bytes": Column(_WHOLE, "acknowledged so far"),
            "delivered_segments": Column(_WHOLE, "acknowledged so far, cumulatively or selectively"),
            "cwnd_segments": Column(_WHOLE, "congestion window; QUIC: in datagrams of the largest size"),
            "ssthresh_segments": Column(_WHOLE, "slow-start threshold"),
            "in_flight_segments": Column(_WHOLE, "sent, and neither acknowledged nor taken for lost (RFC 6675's pipe)"),
            "srtt_ns": Column(_WHOLE, "smoothed RTT (RFC 6298)"),
            "rttvar_ns": Column(_WHOLE, "mean deviation of the RTT (RFC 6298)"),
            "retransmitted_segments": Column(
                _WHOLE, "retransmitted so far; QUIC: packets that were taken for lost so far"
            ),
            "lost_segments": Column(_WHOLE, "taken for lost now"),
            "delivery_rate_bps": Column(_WHOLE, "the kernel's last estimate; 0 before the first"),
            "pacing_rate_bps": Column(_WHOLE, "at which it may send at most, headers included; null: not paced"),
        },
        {
            "cc.bw_bps": Column(
                _WHOLE, "bbr, bbr3: the bottleneck's bandwidth as estimated, payload; 0 before the first"
            ),
            "cc.min_rtt_ns": Column(
                _WHOLE,
                "the least RTT that the control knows (vegas, yeah: of the last round trip); null before the first",
            ),
            "cc.pacing_gain": Column(_REAL, "bbr, bbr3: the pacing rate is so many times the bandwidth"),
            "cc.cwnd_gain": Column(_REAL, "bbr, bbr3: the window is so many times the BDP"),
            "cc.mode": Column(
                _WORD, "bbr, bbr3: STARTUP, DRAIN, PROBE_BW or PROBE_RTT, as its gains say, which each mode has its own"
            ),
            "cc.enabled": Column(
                _WHOLE, "vegas, yeah, dctcp, prague: 1: it controls the window; 0: it does as Reno does"
            ),
            "cc.rtt_samples": Column(_WHOLE, "vegas, yeah: samples of the RTT in this round trip"),
            "cc.base_rtt_ns": Column(_WHOLE, "vegas, yeah: the least RTT so far; null before the first"),
            "cc.rtt_ns": Column(_WHOLE, "illinois: the mean RTT of this round trip; nv, westwood: the last RTT"),
            "cc.ce_state": Column(_WHOLE, "dctcp, prague: 1: the last segment received was marked (ECN)"),
            "cc.alpha": Column(_REAL, "dctcp, prague: the smoothed share of bytes that were marked (RFC 8257)"),
            "cc.marked_bytes": Column(_WHOLE, "dctcp, prague: acknowledged as marked in this round trip"),
            "cc.acked_bytes": Column(_WHOLE, "dctcp, prague: acknowledged in this round trip"),
        },
        "cc.",
    ),
    "goodput": Table(
        "what a receiver got in a bin of time",
        {
            **_FLOW,
            "time_ns": Column(_WHOLE, "the bin's end"),
            "bin_ns": Column(_WHOLE, "the bin's width"),
            "delivered_bytes": Column(
                _WHOLE,
                "in order, so that a program could have it: in the bin in which a loss is made good, much that arrived "
                "long before",
            ),
            "arrived_bytes": Column(
                _WHOLE,
                "bytes that arrived over the wire. TCP: data segments, those out of order and copies too, times the "
                "mean payload of those that were sent; null: its generator does not tell. UDP: without copies, as "
                "delivered",
            ),
        },
    ),
    "subflows": Table(
        "one path of a flow over several (MPTCP, RFC 8684) at one moment; `series` has their sums, and the RTTs of "
        "the path with the least",
        {
            **_FLOW,
            "subflow": Column(_WHOLE, "the path's number, from 1 on in the order in which they were made"),
            "from": Column(_WORD, "the sender's address"),
            "to": Column(_WORD, "the receiver's address"),
            "time_ns": Column(_WHOLE, "when it was read"),
            "acked_bytes": Column(_WHOLE, "acknowledged so far, repetitions of what another path lost included"),
            "delivered_segments": Column(_WHOLE, "acknowledged so far, cumulatively or selectively"),
            "cwnd_segments": Column(_WHOLE, "congestion window"),
            "ssthresh_segments": Column(_WHOLE, "slow-start threshold"),
            "in_flight_segments": Column(_WHOLE, "sent, and neither acknowledged nor taken for lost (RFC 6675's pipe)"),
            "srtt_ns": Column(_WHOLE, "smoothed RTT (RFC 6298)"),
            "min_rtt_ns": Column(_WHOLE, "the least RTT that the sender measured"),
            "retransmitted_segments": Column(_WHOLE, "retransmitted so far"),
            "lost_segments": Column(_WHOLE, "taken for lost now"),
            "delivery_rate_bps": Column(_WHOLE, "the kernel's last estimate; 0 before the first"),
        },
    ),
    "exchanges": Table(
        "a request with its response, or an iteration of a message-passing rank",
        {
            **_FLOW,
            "number": Column(_WHOLE, "its number in the flow"),
            "start_ns": Column(_WHOLE, "when it began"),
            "duration_ns": Column(_WHOLE, "how long it took"),
            "sent_bytes": Column(_WHOLE, "payload sent"),
            "received_bytes": Column(_WHOLE, "payload received"),
        },
    ),
    "media": Table(
        "what the rate control of a media source knew at one moment",
        {
            **_FLOW,
            "time_ns": Column(_WHOLE, "when it was looked at"),
            "target_bps": Column(_WHOLE, "the rate that it wants of the encoder"),
            "encoder_bps": Column(_WHOLE, "the rate that the encoder has, which follows after a while"),
            "window_bytes": Column(_WHOLE, "the most that may be in flight; null: the control has no window"),
            "in_flight_bytes": Column(_WHOLE, "sent after the last packet that is known to have come"),
            "queued_bytes": Column(_WHOLE, "waiting at the sender"),
            "srtt_ns": Column(_WHOLE, "smoothed RTT, without the time that reports waited for; null: none yet"),
            "queue_delay_ns": Column(
                _WHOLE,
                "one-way delay of the last packet reported, above the least one; null: the control does not ask",
            ),
        },
    ),
    "frames": Table(
        "a frame of a media flow",
        {
            **_FLOW,
            "number": Column(_WHOLE, "its number in the flow"),
            "key": Column(_TRUTH, "a key frame, which needs none before it"),
            "size_bytes": Column(_WHOLE, "as the encoder made it, without headers"),
            "captured_ns": Column(_WHOLE, "when it was captured"),
            "sent_ns": Column(_WHOLE, "when its last packet left; null: it was not sent whole"),
            "completed_ns": Column(_WHOLE, "when the last of its packets came; null: one was lost"),
            "shown_ns": Column(
                _WHOLE, "when it was complete and all that it needs were shown; null: it was lost, or needs a lost one"
            ),
        },
    ),
    "pings": Table(
        "an echo request of a ping that a step runs, or a further reply to it",
        {
            **_COMMAND,
            "target": Column(_WORD, "whom it was sent to, as ping says it"),
            "number": Column(_WHOLE, "its sequence number; after 65535 it goes on"),
            "time_ns": Column(_WHOLE, "when it was sent; null: not known"),
            "timed": Column(
                _WORD,
                "how that is known: stamp (`ping -D`: the reply's time of day less the RTT) or count (one interval for "
                "each request since the last one with a stamp, or since the command's start; without stamps the mean "
                "interval, where ping says how long it sent)",
            ),
            "rtt_ns": Column(
                _WHOLE,
                "as ping prints it, rounded: iputils to 1 us below 1 ms, 10 us below 10 ms, 0.1 ms below 100 ms, else "
                "1 ms; null: no answer, or ping printed no time",
            ),
            "size_bytes": Column(_WHOLE, "what it carries after the ICMP header"),
            "ttl": Column(_WHOLE, "time to live of the reply"),
            "answered": Column(_TRUTH, "a reply came"),
            "duplicate": Column(_TRUTH, "a further reply to a request that has a row"),
        },
    ),
    "hops": Table(
        "a probe of a traceroute, tcptraceroute, tracepath or mtr that a step runs, or several to one hop",
        {
            **_COMMAND,
            "target": Column(_WORD, "whose way it is, as the program says it"),
            "ttl": Column(_WHOLE, "time to live of the probe: the hop's number"),
            "host": Column(_WORD, "the host that answered, as it is printed; null: no answer, or it is not printed"),
            "address": Column(_WORD, "address of the host that answered; null: no answer, or only a name is printed"),
            "probe": Column(_WHOLE, "its number of those to this hop; null: the row is several of mtr's"),
            "sent_packets": Column(_WHOLE, "1, or how many mtr sent"),
            "received_packets": Column(_WHOLE, "how many of them were answered"),
            "rtt_ns": Column(_WHOLE, "as printed, of several the mean; null: no answer"),
            "rtt_min_ns": Column(_WHOLE, "the least of several"),
            "rtt_max_ns": Column(_WHOLE, "the largest of several"),
        },
    ),
    "intervals": Table(
        "an interval of one stream, as `iperf3 -J` that a step runs reports it",
        {
            **_COMMAND,
            "target": Column(_WORD, "the other end"),
            "stream": Column(_WHOLE, "the stream's number in the test, from 1"),
            "direction": Column(_WORD, "sent or received, by this node"),
            "time_ns": Column(
                _WHOLE,
                "the interval's end, counted from the command's start: the test begins some round trips later; null: "
                "something ran before in the same command",
            ),
            "interval_ns": Column(_WHOLE, "its length"),
            "omitted": Column(_TRUTH, "iperf3 leaves it out of its sums (-O)"),
            "transferred_bytes": Column(_WHOLE, "written, or read in order"),
            "retransmitted_segments": Column(_WHOLE, "in the interval; null: not reported"),
            "cwnd_bytes": Column(_WHOLE, "congestion window at its end; null: not reported"),
            "srtt_ns": Column(_WHOLE, "smoothed RTT at its end; null: not reported"),
            "rttvar_ns": Column(_WHOLE, "mean deviation of the RTT at its end; null: not reported"),
            "packets": Column(_WHOLE, "UDP: datagrams"),
            "lost_packets": Column(_WHOLE, "UDP, received: datagrams that did not arrive"),
            "jitter_ns": Column(_REAL, "UDP, received: interarrival jitter (RFC 3550)"),
        },
    ),
    "decoded_flows": Table(
        "a flow in a log of D-ITG, as `ITGDec` that a step runs sums it up",
        {
            **_COMMAND,
            "log": Column(_WORD, "whose it is: sender, which knows no arrivals, or receiver"),
            "flow": Column(_WHOLE, "the flow's number in the log"),
            "source": Column(_WORD, "the sender's address"),
            "source_port": Column(_WHOLE, "its port"),
            "target": Column(_WORD, "the receiver's address"),
            "target_port": Column(_WHOLE, "its port"),
            "duration_ns": Column(_WHOLE, "from the first packet to the last"),
            "packets": Column(_WHOLE, "packets in the log"),
            "lost_packets": Column(_WHOLE, "numbers that are missing between them"),
            "payload_bytes": Column(_WHOLE, "what the packets carry of D-ITG"),
            "delay_min_ns": Column(_WHOLE, "one-way delay, the least, rounded to 1 us; null: the log is a sender's"),
            "delay_mean_ns": Column(_WHOLE, "its mean; of TCP with the wait for what was lost before"),
            "delay_max_ns": Column(_WHOLE, "the largest"),
            "delay_deviation_ns": Column(_WHOLE, "its standard deviation"),
            "jitter_ns": Column(_WHOLE, "the mean change of the delay from packet to packet"),
        },
    ),
    "packets": Table(
        "a packet at an interface of a node that a scenario captures; one that crosses two of them has a row at each",
        {
            "node": Column(_WORD, "where it was captured"),
            "interface": Column(_WORD, "the node's interface"),
            "direction": Column(_WORD, "out: the node sent it, or passed it on; in: it came to the node"),
            "time_ns": Column(
                _WHOLE, "out: when the driver got it, behind the interface's queue; in: when it entered the stack"
            ),
            "source": Column(_WORD, "its source address; null: neither IPv4 nor IPv6"),
            "source_port": Column(_WHOLE, "its source port; null: not TCP nor UDP, or not in what was kept"),
            "destination": Column(_WORD, "its destination address"),
            "destination_port": Column(_WHOLE, "its destination port"),
            "protocol": Column(_WORD, "tcp, udp, icmp, icmpv6, or the number of another one"),
            "ip_id": Column(_WHOLE, "IPv4: its identification, which 16 bits hold"),
            "ecn": Column(_WHOLE, "the two bits of ECN (RFC 3168): 3 is marked"),
            "tcp_seq": Column(_WHOLE, "TCP: its sequence number, as it stands in the packet"),
            "tcp_ack": Column(_WHOLE, "TCP: its acknowledgment number"),
            "tcp_flags": Column(_WHOLE, "TCP: its flags, FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128"),
            "payload_bytes": Column(_WHOLE, "what it carries of TCP or UDP"),
            "payload_digest": Column(
                _WHOLE,
                "tells packets apart: a number that is made of the first 16 bytes behind UDP's header, or behind IP's "
                "of other protocols; null: of TCP, and where these bytes are not in what was kept",
            ),
            "size_bytes": Column(_WHOLE, "the frame from its Ethernet header on, without checksum"),
        },
    ),
    "readings": Table(
        "what was read of the output of one command of a step",
        {
            **_COMMAND,
            "tool": Column(_WORD, "whose output it is"),
            "file": Column(_WORD, "the file in $EWAN_OUT; null: it is what the command printed"),
            "target": Column(_WORD, "whom it measured to; several are separated by commas"),
            "sent_packets": Column(_WHOLE, "ping: requests, as it counts them at its end; ITGDec: in senders' logs"),
            "received_packets": Column(_WHOLE, "ping: requests that were answered; ITGDec: in receivers' logs"),
            "duplicate_packets": Column(_WHOLE, "ping: further replies"),
            "rtt_mean_ns": Column(_REAL, "ping: the mean RTT that it gives at its end"),
            "sent_bytes": Column(_WHOLE, "iperf3: written by senders, over the whole test; ITGDec: in senders' logs"),
            "received_bytes": Column(
                _WHOLE, "iperf3: read by receivers, over the whole test; ITGDec: in receivers' logs"
            ),
            "problem": Column(_WORD, "what could not be read, and why; null: nothing"),
        },
    ),
    "drops": Table(
        "a counter of a host's or router's own kernel that grew during the run; without drops there is no table",
        {
            "node": Column(_WORD, "the node"),
            "counter": Column(
                _WORD,
                "its name, as nstat(8) has it; QdiscDropped, DeviceRxDropped and DeviceTxDropped are of all interfaces",
            ),
            "count": Column(_WHOLE, "by how much it grew: datagrams, packets, fragments, segments or connections"),
        },
    ),
    "links": Table(
        "counters of one direction of an emulated link, from T0 on",
        {
            "link": Column(_WORD, "the link's name"),
            "direction": Column(_WORD, "forward or backward"),
            "time_ns": Column(_WHOLE, "when they were read"),
            "rate_bps": Column(
                _WHOLE,
                "the configured rate; of a link whose rate a trace or an event moves, its mean since the row before",
            ),
            "sent_packets": Column(_WHOLE, "packets sent so far"),
            "sent_bytes": Column(_WHOLE, "bytes sent so far"),
            "dropped_packets": Column(_WHOLE, "dropped so far: the queue was full, or its discipline dropped"),
            "lost_packets": Column(_WHOLE, "lost on purpose so far"),
            "served_packets": Column(_WHOLE, "taken out of the queue so far to be sent"),
            "waited_ns": Column(
                _WHOLE,
                "time that packets waited in the queue so far, summed over packets; null: the link does not count it",
            ),
            "marked_packets": Column(_WHOLE, "marked so far (ECN) by the queue; null: the link does not count it"),
            "in_packets": Column(
                _WHOLE, "came to the link so far, before it loses or copies any; null: the link does not count them"
            ),
            "duplicated_packets": Column(
                _WHOLE, "copies that the link made so far (`duplicate`); null: the link does not count them"
            ),
            "queue_packets": Column(_WHOLE, "waiting now, without the packet in service"),
            "queue_bytes": Column(_WHOLE, "bytes of those"),
        },
    ),
    "link_flows": Table(
        "counters of one flow at one direction of an emulated link, from T0 on, where flows are counted; a row at each "
        "look at which the flow counts more than before",
        {
            "link": Column(_WORD, "the link's name"),
            "direction": Column(_WORD, "forward or backward"),
            "entry": Column(
                _WHOLE, "the flow's number in this table; a flow that had lost its place at the link gets another one"
            ),
            "flow": Column(_WHOLE, "the flow's number in the run; null: it is of none, or it is not known of which"),
            "protocol": Column(
                _WORD, "tcp, udp, the number of another one, or others: all packets whose flow has no place at the link"
            ),
            "source": Column(_WORD, "its source address; null: others"),
            "source_port": Column(_WHOLE, "its source port; null: any, or the protocol has none"),
            "destination": Column(_WORD, "its destination address; null: others"),
            "destination_port": Column(_WHOLE, "its destination port; null: any, or the protocol has none"),
            "time_ns": Column(_WHOLE, "when the counters were read"),
            "first_ns": Column(_WHOLE, "when its first packet came to the link"),
            "last_ns": Column(_WHOLE, "when its last one did, so far"),
            "last_sent_ns": Column(_WHOLE, "when its last one left the link, so far; null: none has"),
            "in_packets": Column(_WHOLE, "came to the link so far, before it loses or copies any"),
            "in_bytes": Column(_WHOLE, "bytes of those, as the link's framing counts them"),
            "duplicated_packets": Column(_WHOLE, "copies that the link made so far"),
            "sent_packets": Column(_WHOLE, "left the link so far"),
            "sent_bytes": Column(_WHOLE, "bytes of those, as the link's framing counts them"),
            "payload_bytes": Column(
                _WHOLE, "what those carried behind the headers of IP and of TCP or UDP, retransmissions too"
            ),
            "lost_packets": Column(_WHOLE, "lost on purpose so far"),
            "blackhole_packets": Column(_WHOLE, "too long for the path so far, and dropped without a word"),
            "policed_packets": Column(_WHOLE, "dropped by the policer so far"),
            "queue_full_packets": Column(_WHOLE, "dropped so far since the queue was full"),
            "aqm_packets": Column(_WHOLE, "dropped so far by the queue's discipline"),
            "ack_filtered_packets": Column(_WHOLE, "pure ACKs so far in whose place a later one came"),
            "store_full_packets": Column(_WHOLE, "dropped so far since the emulator had no memory for them"),
            "cut_packets": Column(_WHOLE, "lost so far as the link went down"),
            "marked_packets": Column(_WHOLE, "marked so far (ECN) by the queue"),
            "served_packets": Column(_WHOLE, "taken out of the queue so far to be sent"),
            "waited_ns": Column(_WHOLE, "time that those waited in the queue, summed over packets"),
        },
    ),
    "link_waits": Table(
        "packets of one flow by the time that they waited in the queue of one direction of a link, so far; a row at "
        "each look at which a class of times has more than before",
        {
            "link": Column(_WORD, "the link's name"),
            "direction": Column(_WORD, "forward or backward"),
            "entry": Column(_WHOLE, "the flow's number in the table link_flows"),
            "time_ns": Column(_WHOLE, "when the counters were read"),
            "most_ns": Column(
                _WHOLE, "the longest time of the class; the shortest is at most 1/16 less, or 1 us less below 16 us"
            ),
            "packets": Column(_WHOLE, "packets that waited so long, so far"),
        },
    ),
    "command_sockets": Table(
        "a socket of TCP or UDP of a command whose flow is that of its own sockets",
        {
            "command": Column(
                _WHOLE, "the command's number in commands.json, from 0; null: it is not known which command had it"
            ),
            "node": Column(_WORD, "the node that it was in"),
            "protocol": Column(_WORD, "tcp or udp"),
            "address": Column(_WORD, "its own address; 0.0.0.0 or ::: any of the node's"),
            "port": Column(_WHOLE, "its own port"),
            "peer": Column(
                _WORD, "the address at the other end; null: any, as of sockets of UDP and of those that listen"
            ),
            "peer_port": Column(_WHOLE, "the port at the other end; null: any"),
            "first_ns": Column(_WHOLE, "when it was first seen, or had ended"),
            "last_ns": Column(_WHOLE, "when it was last seen, or had ended"),
        },
    ),
    "device": Table(
        "a period (of most devices 1 ms) of one direction of a link that is a device outside, as its readout tells it, "
        "from T0 on",
        {
            "link": Column(_WORD, "the link's name"),
            "direction": Column(_WORD, "forward or backward"),
            "time_ns": Column(_WHOLE, "the period's end by our clock"),
            "uncertainty_ns": Column(_WHOLE, "the true end is at most so far from it"),
            "interval_ns": Column(_WHOLE, "its length by the device's clock"),
            "out_bytes": Column(_WHOLE, "what left the device in it, as its framing counts bytes"),
            "restarted": Column(
                _TRUTH, "the device counted anew before it, as after a reset: what left it before that is not known"
            ),
        },
    ),
    "classes": Table(
        "counters of one class of a link's queue, from T0 on; only of queues with classes",
        {
            "link": Column(_WORD, "the link's name"),
            "direction": Column(_WORD, "forward or backward"),
            "class": Column(_WORD, "the class's name; of DualPI2 l4s and classic"),
            "time_ns": Column(_WHOLE, "when they were read"),
            "served_packets": Column(_WHOLE, "taken out of the queue so far to be sent"),
            "waited_ns": Column(_WHOLE, "time that packets waited in the queue so far, summed over packets"),
            "dropped_packets": Column(_WHOLE, "dropped so far: its queue was full, or the discipline dropped"),
            "marked_packets": Column(_WHOLE, "marked so far (ECN)"),
            "queue_packets": Column(_WHOLE, "waiting now, without the packet in service"),
            "queue_bytes": Column(_WHOLE, "bytes of those"),
        },
    ),
    "releases": Table(
        "what one direction of an emulated link did with its packets in an interval of a live run; of links that a "
        "spinner serves",
        {
            "link": Column(_WORD, "the link's name"),
            "direction": Column(_WORD, "forward or backward"),
            "spinner": Column(_WHOLE, "the number of the spinner that serves it"),
            **_INTERVAL,
            "released_packets": Column(_WHOLE, "left the link in it"),
            "bound_ns": Column(_WHOLE, "what leaves later than that after its due time is late"),
            "late_packets": Column(
                _WHOLE,
                "late ones of those; counted in classes of 1/16, and the class that holds the bound counts as late: "
                "none is missed",
            ),
            "lateness_max_ns": Column(_WHOLE, "the largest lateness: the upper end of its class, at most 1/16 more"),
            "overrun_packets": Column(
                _WHOLE,
                "found no room: in the rings before the link, in its memory, in the queue to their receiver",
            ),
            "down": Column(_TRUTH, "the link was taken down on purpose: what found no room then was to be lost"),
            "ended": Column(_TRUTH, "a fault in the program has ended the link"),
        },
    ),
    "spinners": Table(
        "a spinner, which serves links on a CPU of its own, in an interval of a live run",
        {
            "spinner": Column(_WHOLE, "its number in the plan"),
            "cpu": Column(_WHOLE, "its CPU"),
            **_INTERVAL,
            "taken_ns": Column(_WHOLE, "time that its CPU was taken from it, as far as it had come back"),
            "gap_max_ns": Column(_WHOLE, "the longest such time: the upper end of its class, at most 1/16 more"),
            "shared": Column(_TRUTH, "the spinner of another lab was on its CPU"),
        },
    ),
    "machine": Table(
        "this machine in an interval of a live run",
        {
            **_INTERVAL,
            "cpu_ns": Column(_WHOLE, "time of all CPUs together"),
            "stolen_ns": Column(_WHOLE, "of it, what the hypervisor gave to others (steal); in ticks of 10 ms"),
            "stepped_ns": Column(
                _WHOLE, "by how much CLOCK_REALTIME, which stamps packets, was set against CLOCK_MONOTONIC; not slewing"
            ),
            "clocksource": Column(_WORD, "the kernel's clock source at its end; null: the kernel does not tell"),
            "changed": Column(_TRUTH, "it had another one at its beginning"),
        },
    ),
}
