"""Scripts that tc and Linux accept, and their result, as they were tried (iproute2 6.1, Linux 6.12)."""

from __future__ import annotations

import pytest

from ewan.extras.importers.conversion import imported
from ewan.extras.importers.findings import ImportingError
from ewan.labs.base.units import Duration, Rate, Size
from ewan.labs.base.units.tools import tc_rate, tc_size, tc_time, tc_whole
from tests.torture.imports import directions, nothing_is_forgotten

NETEM = "tc qdisc add dev eth0 root handle 1: netem delay 5ms\n"
HTB = "tc qdisc add dev eth0 root handle 1: htb default 10\n"
PRIO = "tc qdisc add dev eth0 root handle 1: prio {}\ntc qdisc add dev eth0 parent 1:{} netem delay 5ms\n"
TO = "tc filter add dev eth0 parent 1: protocol ip u32 match ip dst 10.0.0.2 flowid 1:{}\n"


def refusal_of(text: str) -> str:
    with pytest.raises(ImportingError) as refusal:
        imported(text, "a.sh")
    return str(refusal.value)


def ways(text: str) -> dict[str, dict[str, object]]:
    made = imported(text, "a.sh")
    nothing_is_forgotten(text, made)
    return directions(made.text)


def of(text: str) -> dict[str, object]:
    return ways(text)["what leaves eth0"]


def qdisc(options: str) -> dict[str, object]:
    return of(f"tc qdisc add dev eth0 root {options}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tc qdisc del dev eth0", "says neither root nor parent, so tc refuses it and netem stays"),
        ("tc qdisc del dev eth0 handle 1:", "says neither root nor parent, so tc refuses it and netem stays"),
        ("tc qdisc del dev eth0 root handle 2:", "has the handle 1:, so tc refuses it and it stays"),
        ("tc qdisc del dev eth0 root tbf", "put netem there, so tc refuses it and it stays: leave tbf out"),
        ("tc qdisc change dev eth0 handle 2: netem delay 7ms", "says neither root nor parent"),
        ("tc qdisc add dev eth0 handle 1: netem delay 7ms", "write replace, and root or parent"),
        ("tc qdisc change dev eth0 handle 1: pfifo", "put netem there"),
        ("tc qdisc change dev eth0 root handle 2: netem delay 7ms", "write replace and another handle"),
        ("tc qdisc add dev eth0 parent 1 pfifo", '"1" is no handle'),
        ("tc qdisc add dev eth0 clsact\ntc qdisc del dev eth0 ingress", "put clsact there, so tc refuses it"),
    ],
)
def test_what_does_not_touch_the_qdisc_that_is_there_is_refused(text: str, message: str) -> None:
    assert message in refusal_of(f"{NETEM}{text}\n")


@pytest.mark.parametrize(
    "text", ["tc qdisc del dev eth0", "tc qdisc del dev eth0 root handle 5:", "tc qdisc del dev eth0 parent 1:1",
             "tc qdisc del dev eth0 ingress"]
)  # fmt: skip
def test_nothing_is_taken_away_where_nothing_is(text: str) -> None:
    made = imported(f"{text}\n{NETEM}", "a.sh")
    assert made.warnings == () and directions(made.text)["what leaves eth0"]["delay"] == "5ms"


@pytest.mark.parametrize(
    "text",
    [
        "tc qdisc change dev eth0 handle 1: netem delay 7ms",
        "tc qdisc replace dev eth0 handle 1: netem delay 7ms",
        "tc qdisc change dev eth0 root netem delay 7ms",
        "tc qdisc del dev eth0 root\ntc qdisc add dev eth0 root netem delay 7ms",
        "tc qdisc del dev eth0 root handle 1: netem\ntc qdisc add dev eth0 root netem delay 7ms",
        "tc qdisc add dev eth0 parent 1:1 pfifo\ntc qdisc del dev eth0 parent 1:2\n"
        "tc qdisc change dev eth0 handle 1: netem delay 7ms",
    ],
)
def test_a_later_line_says_what_is_there(text: str) -> None:
    assert of(f"{NETEM}{text}\n")["delay"] == "7ms"


def test_a_replacement_that_names_no_kind_changes_nothing() -> None:
    assert of(f"{NETEM}tc qdisc replace dev eth0 root\n")["delay"] == "5ms"


def test_a_change_to_another_kind_puts_it_in_place_of_the_old_one() -> None:
    made = of(f"{NETEM}tc qdisc change dev eth0 root tbf rate 1mbit burst 5k latency 50ms\n")
    assert (made["rate"], made["delay"]) == ("1Mbit/s", "0ms")


@pytest.mark.parametrize("parent", ["parent 1: classid 10", "parent 1: classid :10", "parent 1: classid 0x10",
                                    "root classid 1:10", "classid 1:10", "classid 10"])  # fmt: skip
def test_the_number_of_a_qdisc_may_be_left_out_of_its_class(parent: str) -> None:
    assert of(f"{HTB}tc class add dev eth0 {parent} htb rate 3mbit\n")["rate"] == "3Mbit/s"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("parent 2: classid 1:10 htb rate 1mbit", "its parent is of another qdisc, so tc refuses it"),
        ("parent 1: classid 2:10 htb rate 1mbit", "its parent is of another qdisc, so tc refuses it"),
        ("parent 1: htb rate 1mbit", "names no class"),
        ("parent 1: classid 1:10 htb rate 1mbit rate 2mbit", "rate is there twice, so tc refuses it"),
        ("parent 1: classid 1:10 htb rate 1mbit ceil 2mbit ceil 2mbit", "ceil is there twice, so tc refuses it"),
        ("parent 1: classid 1:10 htb rate 1kbit", "is 1kbit/s, and links have 8kbit/s or more"),
    ],
)
def test_classes_that_linux_refuses_or_no_link_has_are_refused(text: str, message: str) -> None:
    assert message in refusal_of(f"{HTB}tc class add dev eth0 {text}\n")


def test_a_class_may_have_its_ceil_however_low_its_rate_is() -> None:
    text = f"{HTB}tc class add dev eth0 parent 1: classid 1:1 htb rate 8mbit\n"
    text += "tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1kbit ceil 8mbit\n"
    assert of(text)["rate"] == "8Mbit/s"


def test_of_buckets_that_tc_takes_twice_the_last_one_counts() -> None:
    text = f"{HTB}tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit burst 9k buffer 5k cburst 5k\n"
    assert of(text)["burst"] == "5.12kB"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("tbf rate 1mbit rate 2mbit burst 5k latency 50ms", "rate is there twice"),
        ("tbf rate 1mbit burst 5k buffer 6k latency 50ms", "burst is there twice"),
        ("tbf rate 1mbit burst 5k latency 50ms lat 60ms", "latency is there twice"),
        ("tbf rate 1mbit burst 5k limit 0", "tbf needs latency or limit, one of them"),
        ("netem loss 1% loss 2%", "loss"),
        ("netem delay 5ms distribution normal", "a distribution is of delay and jitter"),
        ("netem distribution normal", "a distribution is of delay and jitter"),
        ("netem limit 0", '"limit 0": drops every packet'),
        ("pfifo limit 0", '"limit 0": drops every packet'),
        ("bfifo limit 0", '"limit 0": drops every packet'),
        ("netem loss .5", "that begins with a digit"),
        ("netem delay 50 ms", '"50 ms": a quantity and its unit are one word, or tc refuses it: write "50ms"'),
        ("netem delay 50ms loss 1 %", 'write "1%"'),
        ("tbf rate 1 mbit burst 5k latency 50ms", 'write "1mbit"'),
        ("handle 1: htb offload", "tc refuses it: leave offload out"),
        ("codel limit 1e3", "is no whole number"),
        ("prio bands 2", "has 2 bands, and its priomap (the default one if absent) names band 2"),
        ("prio bands 17", "write 2 to 16 bands"),
        ("prio priomap 3 1", "names band 3"),
    ],
)
def test_options_that_tc_refuses_or_no_link_has_are_refused(options: str, message: str) -> None:
    assert message in refusal_of(f"tc qdisc add dev eth0 root {options}\n")


@pytest.mark.parametrize(
    ("options", "key", "value"),
    [
        ("netem delay 1e2ms", "delay", "100ms"),
        ("netem delay 0x10ms", "delay", "16ms"),
        ("netem del 5ms", "delay", "5ms"),
        ("netem lat 5ms", "delay", "5ms"),
        ("netem dist normal delay 5ms 1ms", "distribution", "normal"),
        ("netem delay 5ms delay 7ms", "delay", "7ms"),
        ("netem delay 5ms 1ms delay 7ms", "jitter", "1ms"),
        ("netem limit 1e6", "buffer", "1000000pkt"),
        ("netem limit 1k", "buffer", "1024pkt"),
        ("netem rate 1e3kbit", "rate", "1Mbit/s"),
        ("netem rate 0x100000", "rate", "1.048576Mbit/s"),
        ("pfifo limit 1e3", "buffer", "1000pkt"),
        ("codel limit 0", "buffer", "1000pkt"),
        ("codel limit 010", "buffer", "8pkt"),
        ("fq_codel limit 0x100", "buffer", "256pkt"),
    ],
)
def test_options_mean_what_tc_makes_of_them(options: str, key: str, value: str) -> None:
    assert qdisc(options)[key] == value


def test_numbers_are_those_of_the_c_library() -> None:
    assert (tc_rate("1.5e1mbit"), tc_rate("+1mbit")) == (Rate(15_000_000), Rate(1_000_000))
    assert (tc_time("0x10ms"), tc_size("1e4"), tc_size("0x100")) == (Duration(16_000_000), Size(10_000), Size(256))
    assert [tc_whole(text) for text in ("10", "0x10", "010", "0")] == [10, 16, 8, 0]


@pytest.mark.parametrize(
    ("options", "band"), [("", 2), ("priomap 0 0 0 0", 1), ("bands 4", 2), ("bands 4 priomap 3 3 3 3", 4)]
)
def test_a_prio_without_filters_sends_what_has_no_tos_bits_to_one_band(options: str, band: int) -> None:
    assert of(PRIO.format(options, band))["delay"] == "5ms"


def test_what_no_filter_of_a_prio_chooses_goes_to_the_band_of_the_priomap() -> None:
    found = ways(PRIO.format("", 2) + TO.format(1))
    assert {label: way["delay"] for label, way in found.items()} == {
        "what leaves eth0 to 10.0.0.2": "0ms",
        "what leaves eth0 to rest": "5ms",
    }


@pytest.mark.parametrize(
    ("options", "band", "message"),
    [
        ("", 3, "takes only packets with certain TOS bits, by the priomap: all others go to band 2"),
        ("", 1, "takes only packets with certain TOS bits, by the priomap: all others go to band 2"),
        ("bands 4", 4, "gets no packets: no filter names band 1:4, nor does the priomap for any TOS bits"),
    ],
)
def test_a_band_to_which_no_ordinary_packets_go_is_refused(options: str, band: int, message: str) -> None:
    assert message in refusal_of(PRIO.format(options, band))


def test_an_ifb_to_which_nothing_is_redirected_is_refused() -> None:
    text = "tc qdisc add dev ifb0 root netem delay 5ms\n"
    assert "no filter redirects packets to ifb0, so nothing passes it" in refusal_of(text)


def test_iptables_takes_away_its_rules() -> None:
    rule = "iptables -t {} -A POSTROUTING -d 10.0.0.2 -j CLASSIFY --set-class 1:10\n"
    text = f"{HTB.replace('10', '99')}tc class add dev eth0 parent 1: classid 1:10 htb rate 3mbit\n"
    for flush in (
        "-t mangle -F",
        "-t mangle -F POSTROUTING",
        rule.format("mangle").replace("iptables", "").replace("-A", "-D"),
    ):
        assert "what leaves eth0" in ways(f"{text}{rule.format('mangle')}iptables {flush.strip()}\n")
    for flush in ("-F", "-t mangle -F OUTPUT", "-t nat -F"):
        made = imported(f"{text}{rule.format('mangle')}iptables {flush}\n", "a.sh")
        assert "what leaves eth0 to 10.0.0.2" in directions(made.text)
        assert made.warnings == (f"a.sh:4: not imported: iptables {flush}",)
    assert "takes away a rule of several" in refusal_of(
        f"{text}{rule.format('mangle')}iptables -t mangle -D POSTROUTING 1\n"
    )


def test_counters_below_what_tc_shows_are_no_lines_of_it() -> None:
    text = """\
qdisc htb 1: dev eth0 root refcnt 2 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000
 Sent 3420 bytes 42 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
class htb 1:10 dev eth0 root prio 0 rate 5Mbit ceil 5Mbit burst 1600b cburst 1600b
 Sent 3420 bytes 42 pkt (dropped 0, overlimits 0 requeues 0)
 rate 0bit 0pps backlog 0b 0p requeues 0
 lended: 42 borrowed: 0 giants: 0
 tokens: 38125 ctokens: 38125
"""
    assert imported(text, "a.sh").warnings == ()


def test_one_card_is_not_to_be_imported_without_others() -> None:
    text = PRIO.format("", 1) + TO.format(1) + "tc qdisc add dev eth0 ingress\n"
    text += "tc filter add dev eth0 ingress matchall action police rate 1mbit burst 9k conform-exceed drop\n"
    assert refusal_of(text).endswith("import one direction by itself")
