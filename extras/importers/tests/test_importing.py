"""Scripts of tc, Dummynet and NIST Net: the lab of each, worked out by hand from the tools' manuals."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ewan.cli import main
from ewan.extras.importers.conversion import describe
from ewan.extras.importers.findings import ImportingError
from ewan.extras.importers.scan import UNKNOWN
from ewan.extras.importers.script import commands
from ewan.labs.base.units import Duration, Fraction, Rate, Size, UnitError, tools
from ewan.labs.compile import HostFacts, compile
from ewan.labs.link import DelayTable, Direction, DropTail, Red
from ewan.labs.plan import Plan

HOST = HostFacts(cpus=(0, 1), networks=())

SHAPE = """\
#!/bin/sh
DEV=eth0
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: netem delay 50ms loss 0.5%
tc qdisc add dev $DEV parent 1:1 handle 10: tbf rate 10mbit burst 16kb latency 100ms
tc qdisc add dev eth1 root netem rate 1mbps delay 20ms 2ms distribution normal limit 200
"""

DUMMYNET = """\
ipfw -q flush
ipfw pipe 1 config bw 10Mbit/s delay 50ms plr 0.01 queue 50
ipfw pipe 2 config bw 300KByte/s delay 20 queue 30KBytes
ipfw add 100 pipe 1 ip from 10.0.0.0/24 to 10.1.0.0/24 in
ipfw add 200 pipe 2 ip from 10.1.0.0/24 to 10.0.0.0/24 in
"""

NISTNET = """\
cnistnet -u
cnistnet -a 10.0.0.1 10.0.0.2 --delay 50 --drop 1.5% --bandwidth 1250000
cnistnet -a 10.0.0.2 10.0.0.1 --delay 12.5
"""

HTB = """\
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 10mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 20mbit ceil 25mbit
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 30mbit
tc qdisc add dev eth0 parent 1:10 handle 10: netem delay 10ms
tc filter add dev eth0 protocol ip parent 1:0 prio 1 u32 match ip dst 10.0.0.2/32 flowid 1:10
tc filter add dev eth0 protocol ip parent 1:0 prio 1 u32 match ip dst 10.0.0.3 flowid 1:20
"""


def plan_of(text: str, **options: Any) -> Plan:
    _, spec = describe(text, "shape.sh", **options)
    return compile(spec, HOST)


def core(text: str, **options: Any) -> tuple[Direction, Direction]:
    """Forward and backward of the one link."""
    (link,) = [link for link in plan_of(text, **options).links if link.role == "wan"]
    return link.forward, link.backward


def delay_of(direction: Direction) -> int:
    """Nanoseconds."""
    assert not isinstance(direction.delay, DelayTable)
    return direction.delay.delay_ns


def refusal_of(text: str, **options: Any) -> str:
    with pytest.raises(ImportingError) as refusal:
        describe(text, "shape.sh", **options)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (tools.tc_rate, "10mbit", Rate(10_000_000)),
        (tools.tc_rate, "10Mbit", Rate(10_000_000)),
        (tools.tc_rate, "10mbps", Rate(80_000_000)),  # bytes: the trap
        (tools.tc_rate, "0.5mbit", Rate(500_000)),
        (tools.tc_rate, "10mibit", Rate(10_485_760)),  # 10 × 2^20
        (tools.tc_rate, "64kibps", Rate(524_288)),  # 64 × 1024 × 8
        (tools.tc_rate, "1000000", Rate(1_000_000)),
        (tools.tc_rate, "1gbit", Rate(10**9)),
        (tools.tc_time, "100ms", Duration(100_000_000)),
        (tools.tc_time, "1.5secs", Duration(1_500_000_000)),
        (tools.tc_time, "20usec", Duration(20_000)),
        (tools.tc_time, "0", Duration(0)),
        (tools.tc_size, "1540", Size(1540)),
        (tools.tc_size, "5kb", Size(5120)),
        (tools.tc_size, "32k", Size(32768)),
        (tools.tc_size, "8kbit", Size(1024)),
        (tools.tc_size, "1mb", Size(1_048_576)),
        (tools.tc_percent, "0.1%", Fraction(1_000_000)),
        (tools.tc_percent, "1", Fraction(10_000_000)),  # no unit is a percentage too
        (tools.dummynet_rate, "300Kbit/s", Rate(300_000)),
        (tools.dummynet_rate, "1MByte/s", Rate(8_000_000)),
        (tools.dummynet_rate, "10MBit/s", Rate(10_000_000)),
        (tools.dummynet_rate, "64000", Rate(64_000)),
        (tools.dummynet_rate, "0", None),
        (tools.dummynet_delay, "50", Duration(50_000_000)),
        (tools.dummynet_delay, "50ms", Duration(50_000_000)),
        (tools.dummynet_queue, "50", 50),
        (tools.dummynet_queue, "30KBytes", Size(30_720)),
        (tools.dummynet_queue, "3000B", Size(3000)),
        (tools.dummynet_bytes, "16k", Size(16_384)),
        (tools.probability, "0.01", Fraction(10_000_000)),
        (tools.nistnet_bandwidth, "1250000", Rate(10_000_000)),  # bytes a second
        (tools.nistnet_bandwidth, "0", None),
        (tools.nistnet_delay, "0.25", Duration(250_000)),
        (tools.nistnet_percent, "1.5%", Fraction(15_000_000)),
    ],
)
def test_a_quantity_is_what_its_tool_reads(parse: Callable[[str], object], text: str, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (tools.tc_rate, "10M", 'is no rate of tc: write "10mbit" (bits), or "10mbps" (bytes)'),
        (tools.tc_rate, "50%", "is a part of the card's speed"),
        (tools.tc_rate, "5kbit", "is 5000 bit/s: links have 8kbit/s to 1Tbit/s"),
        (
            tools.tc_time,
            "100",
            'has no unit: tc reads microseconds, newer ones nanoseconds for netem: write "100us" or',
        ),
        (tools.tc_time, "1e3q", "is no time of tc"),
        (tools.tc_percent, "150%", "is above 100 %"),
        (tools.tc_percent, "0.00000001%", "is not a whole number of parts per billion"),
        (tools.dummynet_rate, "1.5Mbit/s", "ipfw reads only a whole number"),  # ipfw: 1 bit/s
        (tools.dummynet_delay, "0.5", "ipfw reads whole milliseconds"),  # ipfw: 0
        (tools.dummynet_delay, "1s", "ipfw reads whole milliseconds"),  # ipfw: 1 ms
        (tools.dummynet_queue, "3000b", "is no queue size of ipfw"),  # ipfw: 3000 packets
        (tools.probability, "1%", "ipfw would lose every packet"),
        (tools.nistnet_bandwidth, "10mbit", "NIST Net reads bytes a second"),
        (tools.nistnet_delay, "50ms", "NIST Net reads milliseconds"),
        (tools.tc_rate, "-1mbit", "write a rate as"),
        (tools.tc_rate, "nan", "write a rate as"),
        (tools.tc_rate, "٣mbit", "write a rate as"),
    ],
)
def test_what_a_tool_would_read_otherwise_is_refused(parse: Callable[[str], object], text: str, message: str) -> None:
    with pytest.raises(UnitError) as refusal:
        parse(text)
    assert message in str(refusal.value)


def test_netem_and_a_token_bucket_become_a_link() -> None:
    forward, backward = core(SHAPE)
    assert (forward.framing.overhead_bytes, forward.framing.minimum_bytes) == (14, 0)
    assert forward.rate_bps == 10_000_000
    assert forward.burst_bytes == 16 * 1024
    assert delay_of(forward) == 50_000_000
    # tc: limit = rate × latency + burst = 1 250 000 B/s × 0.1 s + 16 384 B
    assert (forward.queue.limit_bytes, forward.queue.limit_packets) == (141_384, None)
    assert forward.loss.loss_ppb == 5_000_000  # type: ignore[union-attr]
    assert backward.rate_bps == 8_000_000  # 1mbps
    # netem's limit is 200 with the delay line, which has 8 Mbit/s × 20 ms = 20 000 B = 13 frames of 1514 B
    assert backward.queue.limit_packets == 187
    assert isinstance(backward.queue.discipline, DropTail)


def test_a_script_without_a_delay_is_a_lab_without_one() -> None:
    forward, backward = core("tc qdisc add dev e root tbf rate 8mbit burst 16kb limit 400kb\n")
    assert (delay_of(forward), delay_of(backward), forward.rate_bps) == (0, 0, 8_000_000)


def test_each_value_has_the_line_it_comes_from() -> None:
    text, _ = describe(SHAPE, "shape.sh")
    assert "rate: 10Mbit/s              # line 5" in text
    assert "delay: 50ms                 # line 4" in text
    assert "forward:                      # what leaves eth0" in text
    assert "# line 6: limit 200 counts the delay line too, which has 13 full packets at 8Mbit/s" in text


def test_dummynet_becomes_a_link() -> None:
    forward, backward = core(DUMMYNET)
    assert forward.framing.overhead_bytes == 0
    assert (forward.rate_bps, delay_of(forward)) == (10_000_000, 50_000_000)
    assert (forward.queue.limit_packets, forward.queue.limit_bytes) == (50, None)
    assert forward.loss.loss_ppb == 10_000_000  # type: ignore[union-attr]
    assert (backward.rate_bps, delay_of(backward)) == (2_400_000, 20_000_000)  # 300 × 1000 × 8
    assert backward.queue.limit_bytes == 30_720


def test_nistnet_becomes_a_link() -> None:
    forward, backward = core(NISTNET)
    assert (forward.rate_bps, delay_of(forward)) == (10_000_000, 50_000_000)
    assert forward.loss.loss_ppb == 15_000_000  # type: ignore[union-attr]
    assert (backward.rate_bps, delay_of(backward)) == (1_000_000_000, 12_500_000)
    assert core(NISTNET, line_rate=Rate.parse("100Mbit/s"))[1].rate_bps == 100_000_000


RED = """\
tc qdisc add dev eth0 root handle 1: tbf rate 8mbit burst 16kb limit 400kb
tc qdisc add dev eth0 parent 1:1 handle 10: red limit 400000 min 30000 max 90000 avpkt 1000 \
burst 55 probability 0.1 bandwidth 8mbit ecn harddrop
"""


def test_red_has_its_thresholds_and_the_weight_that_tc_works_out() -> None:
    """30 kB are 30 packets; 55 + 1 - 30 <= (1 - (1 - W)^55) / W holds from W = 2^-5 on (26.4): tc-red(8)."""
    forward, _ = core(RED)
    assert forward.queue.discipline == Red(
        ecn=True, max_bytes=90_000, max_p_ppb=100_000_000, min_bytes=30_000, weight_log2=5
    )
    assert (forward.queue.limit_bytes, forward.queue.limit_packets) == (400_000, None)
    text, _ = describe(RED, "shape.sh")
    assert "ecn: true}} # line" in text, "a comment has a space before it"
    assert "a description's is gentle" in text.replace("\n#  ", "")
    plain = core("tc qdisc add dev e root handle 1: tbf rate 10mbit burst 16kb limit 1mb\n"
                 "tc qdisc add dev e parent 1:1 red limit 120000 avpkt 1000\n")[0]  # fmt: skip
    # max is a quarter of the limit, min a third of that, burst (2 × 10 + 30) / 3 = 16: 7 <= (1 - (1 - W)^16) / W.
    assert plain.queue.discipline == Red(
        ecn=False, max_bytes=30_000, max_p_ppb=20_000_000, min_bytes=10_000, weight_log2=3
    )


def test_classes_of_htb_become_links_of_their_own() -> None:
    plan = plan_of(HTB)
    rates = {link.name: (link.forward.rate_bps, delay_of(link.forward)) for link in plan.links if link.role == "wan"}
    assert rates == {
        "to-h10-0-0-2": (10_000_000, 10_000_000),
        # 10 + 25 + 30 Mbit/s fit into the parent's 100: the class always has its ceil
        "to-h10-0-0-3": (25_000_000, 0),
        "to-rest": (30_000_000, 0),
    }


def test_a_class_that_may_borrow_has_no_rate_of_its_own() -> None:
    text = HTB.replace("rate 100mbit", "rate 60mbit")
    assert refusal_of(text).startswith(
        'shape.sh:4: "tc class add dev eth0 parent 1:1 classid 1:20 htb rate 20mbit ceil'
    )
    lenient, _ = describe(text, "shape.sh", lenient=True)
    assert "take its rate of 20Mbit/s" in lenient.replace("\n#  ", "")


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ("delay 10ms 2ms", {"jitter": "2ms", "distribution": "uniform", "reorder": "true"}),
        (
            "delay 10ms 2ms distribution pareto",
            {"delay": "10.976068ms", "jitter": "2.309401ms", "distribution": "pareto", "reorder": "true"},
        ),
        ("loss random 2%", {"loss": "2%"}),
        (
            "loss gemodel 1% 10%",
            {"loss": "{gilbert-elliott: {to_bad: 1%, to_good: 10%, loss_bad: 100%, loss_good: 0%}}"},
        ),
        ("loss gemodel 1%", {"loss": "{gilbert-elliott: {to_bad: 1%, to_good: 99%, loss_bad: 100%, loss_good: 0%}}"}),
        ("loss state 1% 20%", {"loss": "{markov: {p13: 1%, p31: 20%, p32: 0%, p23: 100%, p14: 0%}}"}),
        ("corrupt 0.1% duplicate 1%", {"corrupt": "0.1%", "duplicate": "1%"}),
        ("rate 10mbit 24", {"rate": "10Mbit/s", "framing": "wire"}),
        ("rate 10mbit 4", {"framing": "ethernet"}),
        ("rate 10mbit -14", {"framing": "ip"}),
    ],
)
def test_options_of_netem(options: str, keys: dict[str, str]) -> None:
    text, _ = describe(f"tc qdisc add dev eth0 root netem {options}\n", "a.sh")
    forward = text.split("forward:")[1].split("backward:")[0]
    lines = [line.split("#")[0].strip() for line in forward.splitlines()]
    assert {key: f"{key}: {value}" in lines for key, value in keys.items()} == dict.fromkeys(keys, True)


RED_OF = (
    "tc qdisc add dev e root handle 1: tbf rate 8mbit burst 9kb limit 9kb\ntc qdisc add dev e parent 1:1 handle 2: red"
)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("", "shape.sh: has no command of tc, ipfw or cnistnet: write a script of one of them"),
        ("echo tc qdisc add dev eth0 root netem", "shape.sh: has no command of tc, ipfw or cnistnet"),
        ("tc qdisc add dev eth0 root netem delay 100", 'shape.sh:1: "delay 100": has no unit: tc reads microseconds'),
        ("tc qdisc add dev eth0 root netem delay $1", "only running the script would show: write the value"),
        ("tc qdisc add dev eth0 root netem delay $(cat x)", "only running the script would show: write the value"),
        ("for i in 1 2; do tc qdisc add dev eth$i root netem delay 1ms; done", "only running the script would show"),
        ("if a; then\ntc qdisc add dev e root netem\nfi", 'shape.sh:2: "tc qdisc add dev e root netem": is inside'),
        ("tc qdisc add dev e root netem delay 10ms 1ms 25%", "netem's correlation (25%) changes the share itself"),
        ("tc qdisc add dev e root netem delay 10ms reorder 25% 50%", '"reorder 25%": sends a share of the packets'),
        ("tc qdisc add dev e root netem rate 1mbit delay 5s limit 10", "which has 412 full packets at 1Mbit/s: the"),
        ("tc qdisc add dev e root tbf rate 1mbit burst 5kb", "tbf needs latency or limit, one of them"),
        ("tc qdisc add dev e root tbf rate 1mbps", "tbf needs burst: write it"),
        ("tc qdisc add dev e root cake bandwidth 1mbit", '"cake": is a discipline that has no word in a description'),
        ("tc qdisc add dev e root netem\ntc qdisc add dev e root netem loss 2%", "line 1 put one there, so tc refuses"),
        ("tc qdisc change dev e root netem delay 1ms", "there is nothing to change: write add"),
        ("tc qdisc add root netem delay 1ms", 'names no device: write "dev eth0"'),
        ("tc -b other.txt", "is a file of commands: import other.txt itself"),
        ("tc qdisc add dev e root netem\nsleep 5\ntc qdisc change dev e root netem loss 2%", "the pause of line 2"),
        ("tc qdisc add dev e root red limit 400kb", "red needs avpkt: write it"),
        (f"{RED_OF} limit 400kb avpkt 1000", 'shape.sh:2: "bandwidth 10Mbit/s": tells red how fast its average sinks'),
        (f"{RED_OF} limit 400kb avpkt 1000", "write bandwidth 8000000bit"),
        (f"{RED_OF} limit 400kb min 90kb max 30kb avpkt 1000", "write limit, avpkt and a min below max"),
        (f"{RED_OF} limit 400kb min 30kb max 90kb avpkt 1000 burst 9", 'as too small: write "burst 31"'),
        (f"{RED_OF} limit 400kb min 30kb avpkt 1000 burst 999999", "burst 999999 is more than a description has"),
        (f"{RED_OF} limit 400kb avpkt 1000 probability 2%", 'write "0.02" for 2 %'),
        (f"{RED_OF} limit 400kb avpkt 1000 burst 1e9", '"burst 1e9": is no whole number: write one'),
        (f"{RED_OF} limit 9gb avpkt 1000", '"limit 9gb": is more than tc takes: write less than 4 GiB'),
        (f"{RED_OF} limit 400kb avpkt 1000 adaptive", '"adaptive": moves max_p by itself'),
        (f"{RED_OF} limit 400kb avpkt 1000 nodrop", '"nodrop": keeps what cannot be marked'),
        (f"{RED_OF} limit 400kb avpkt 1000 wred 1", '"wred": is no option that can be read here'),
        (f"{RED_OF} limit 4kb avpkt 100\ntc qdisc add dev e parent 2:1 netem", "is below red of line 2"),
        ("ipfw pipe 1 config plr 1%", "ipfw would lose every packet"),
        ("ipfw pipe 1 config bw 1Mbit/s mask dst-ip 0xff", '"mask dst-ip 0xff": makes a pipe for each flow'),
        ("ipfw pipe 1 config delay 5\nipfw add pipe 1 ip from any to any", "takes both directions into pipe 1"),
        ("ipfw add pipe 7 ip from a to b", "pipe 7 has no config: write one"),
        ("ipfw pipe 1 config delay 5\nipfw add pipe 1 tcp from a to b in", "takes packets of tcp alone"),
        ("ipfw pipe 1 config delay 5\nipfw add deny ip from a to b", "is the firewall's"),
        ("cnistnet -a 10.0.0.1", "has no two ends"),
        ("cnistnet -a a b --delay 50ms", "NIST Net reads milliseconds"),
        ("cnistnet -a a b --delay 50 10/0.5", "spreads delays by a table in NIST Net's kernel module"),
        ("cnistnet -a a b --drd 10 50", "drops by NIST Net's own rule"),
        ("cnistnet -a a b --delay 5\ncnistnet -a c d --delay 5", "the ways of this script have no end in common"),
        ("cnistnet -a a a --delay 5", "goes from an end to itself"),
        ("tc qdisc show\nipfw pipe 1 config delay 1", "say which with --format tc or --format dummynet"),
        ("tc qdisc add dev 'e root", "has a quote ' without its end: write it"),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_refused_with_its_line(script: str, message: str) -> None:
    assert message in refusal_of(script)


def test_lenient_leaves_out_with_a_comment() -> None:
    script = "tc qdisc add dev e root netem delay 10ms 1ms 25% reorder 25% loss 1%"
    text, _ = describe(script, "a.sh", lenient=True)
    said = " ".join(line.lstrip("# ") for line in text.splitlines() if line.startswith("#"))
    assert (
        '"reorder 25%" sends a share of the packets without any delay, which has no word in a description: left out'
        in said
    )
    assert "(25%) changes the share itself" in said
    assert core(script, lenient=True)[0].loss.loss_ppb == 10_000_000  # type: ignore[union-attr]


def test_two_directions_of_one_card_by_ifb() -> None:
    forward, backward = core(
        "tc qdisc add dev eth0 ingress\n"
        "tc filter add dev eth0 parent ffff: protocol ip u32 match u32 0 0 action mirred egress redirect dev ifb0\n"
        "tc qdisc add dev ifb0 root netem delay 30ms\n"
        "tc qdisc replace dev eth0 root netem delay 20ms\n"
    )
    assert {delay_of(forward), delay_of(backward)} == {20_000_000, 30_000_000}
    assert (
        "forward:                      # what leaves eth0"
        in describe("tc qdisc add dev eth0 root netem delay 20ms", "a.sh")[0]
    )


def test_three_cards_become_a_star_around_the_box() -> None:
    script = "".join(f"tc qdisc add dev eth{n} root netem delay {n}0ms\n" for n in (1, 2, 3))
    plan = plan_of(script)
    assert {link.name: delay_of(link.forward) for link in plan.links if link.role == "wan"} == {
        f"to-eth{n}": n * 10_000_000 for n in (1, 2, 3)
    }


def test_a_changed_netem_keeps_what_change_keeps() -> None:
    forward, _ = core(
        "tc qdisc add dev e root netem delay 10ms rate 5mbit loss 3%\ntc qdisc change dev e root netem delay 20ms\n"
    )
    assert (forward.rate_bps, delay_of(forward)) == (5_000_000, 20_000_000)
    assert not hasattr(forward.loss, "loss_ppb") or not forward.loss.loss_ppb


def test_a_script_is_read_as_the_shell_reads_it() -> None:
    script = 'A="1:" B=\'x y\'\ntc a $A "$B" ${A}10 \\\n  b#c # not this\ncat <<E\ntc not this\nE\nf() { tc inside; }\n'
    found = [command for command in commands(script) if command.name == "tc"]
    assert [(command.line, command.words, command.conditional) for command in found] == [
        (2, ("a", "1:", "x y", "1:10", "b#c"), False),
        (7, ("inside",), True),
    ]
    assert commands('tc "`rm -rf /`"')[-1].words == (UNKNOWN,)


def test_nothing_of_a_script_is_run(tmp_path: Path) -> None:
    script = tmp_path / "evil.sh"
    script.write_text(f"touch {tmp_path}/run\ntc qdisc add dev $(touch {tmp_path}/run2) root netem delay 1ms\n")
    done = CliRunner().invoke(main, ["lab", "import", str(script)])
    assert done.exit_code == 2
    assert list(tmp_path.iterdir()) == [script]


def test_the_command_writes_a_new_file_alone(tmp_path: Path) -> None:
    script, target = tmp_path / "shape.sh", tmp_path / "shape.lab.yaml"
    script.write_text(SHAPE)
    done = CliRunner().invoke(main, ["lab", "import", str(script), "-o", str(target)])
    assert (done.exit_code, target.read_text()) == (0, describe(SHAPE, str(script))[0])
    again = CliRunner().invoke(main, ["lab", "import", str(script), "-o", str(target)])
    assert again.exit_code == 2
    assert "is there already" in again.output
    assert CliRunner().invoke(main, ["lab", "import", str(tmp_path / "none.sh")]).exit_code == 2
    script.write_bytes(b"\xff\xfe tc")
    assert CliRunner().invoke(main, ["lab", "import", str(script)]).exit_code == 2


def test_damaged_scripts_are_refused_in_one_line_or_read() -> None:
    """Words and letters taken away, doubled, swapped and replaced: never another exception than the refusal."""
    chance = random.Random(17)
    strange = [
        "\0",
        "\x1b[2J",
        "$",
        "`",
        "'",
        '"',
        "\\",
        "999999999999999999999",
        "-1",
        "%",
        "1:",
        ":",
        "é",
        "<<E",
        "(",
        "}",
    ]
    begun = [SHAPE, DUMMYNET, NISTNET, HTB]
    read = 0
    for _ in range(500):
        letters = list(chance.choice(begun))
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(letters))
            match chance.randrange(4):
                case 0:
                    del letters[at : at + chance.randint(1, 12)]
                case 1:
                    letters[at:at] = letters[at : at + chance.randint(1, 30)]
                case 2:
                    letters[at] = chance.choice(strange)
                case _:
                    words = "".join(letters).split(" ")
                    words[chance.randrange(len(words))] = chance.choice(words)
                    letters = list(" ".join(words))
            if not letters:
                break
        try:
            text, _ = describe("".join(letters), "x.sh", lenient=chance.random() < 0.5)
        except ImportingError as error:
            assert "\n" not in str(error)
            assert str(error).startswith("x.sh")
        else:
            assert all(line.isprintable() for line in text.splitlines())
            read += 1
    assert read > 40


@pytest.mark.parametrize(
    "script",
    [
        "A=$A$A" * 10 + "\n" + "A=aaaaaaaaaa\n" + "A=$A$A\n" * 40 + "tc $A\n",
        "tc " + "x " * 10_000,
        "tc " + "x" * 100_000,
        "tc qdisc add dev e root " * 20_000,
        "(" * 50_000,
        "$(" * 50_000,
        "".join(f"tc qdisc add dev e parent {n}:1 handle {n + 1}: tbf rate 1mbit burst 5k\n" for n in range(1, 2000)),
        "tc qdisc add dev e root handle 1: netem delay 1ms\n"
        "tc qdisc add dev e parent 1:1 handle 1: netem delay 1ms\n",
        "#" * 1_000_000,
        "tc filter add dev e parent 1: u32 match ip dst 1.2.3.4 flowid 1:1\n" * 3000,
    ],
)  # fmt: skip
def test_hostile_scripts_end_soon_in_one_line(script: str) -> None:
    assert refusal_of(script, lenient=True).startswith("shape.sh")
