"""Each line of an imported script ends in the lab, in a refusal or in a warning, and means the same as in Linux."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from ewan.cli import main
from ewan.extras.importers.conversion import ImportedLab, imported
from ewan.extras.importers.findings import CommandOutcome, ImportingError
from tests.torture.imports import directions, nothing_is_forgotten
from tests.torture.shaping_scripts import script

HTB = """\
tc qdisc add dev eth0 root handle 1: htb
tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit
tc qdisc add dev eth0 parent 1:10 handle 10: netem delay 30ms loss 1%
"""
TBF = "tc qdisc add dev eth0 root handle 1: tbf rate 8mbit burst 16kb limit 400kb\n"
CLSACT = "tc qdisc add dev eth0 clsact\n"
POLICE = "action police rate 8mbit burst 32k conform-exceed drop\n"


def refusal_of(text: str) -> str:
    with pytest.raises(ImportingError) as refusal:
        imported(text, "a.sh")
    return str(refusal.value)


def way(text: str, label: str = "what leaves eth0") -> dict[str, object]:
    return directions(imported(text, "a.sh").text)[label]


def fates(made: ImportedLab) -> list[set[CommandOutcome]]:
    return [set(each) for _, each in made.fates]


def test_a_class_to_which_nothing_is_sent_is_named_with_all_below_it() -> None:
    made = imported(HTB, "a.sh")
    assert made.warnings == (
        "a.sh:2: no packets are sent to class 1:10, by a filter, iptables or default: its rate of 10Mbit/s is lost",
        "a.sh:3: not imported: tc qdisc add dev eth0 parent 1:10 handle 10: netem delay 30ms loss 1%",
    )


@pytest.mark.parametrize(
    "lines",
    [
        "iptables -t mangle -A POSTROUTING -d 10.0.0.2 -j CLASSIFY --set-class 1:10\n",
        "iptables -t mangle -A OUTPUT -o eth0 -d 10.0.0.2/32 -j MARK --set-mark 5\n"
        "tc filter add dev eth0 parent 1: protocol ip handle 5 fw flowid 1:10\n",
    ],
)
def test_iptables_leads_packets_to_a_class(lines: str) -> None:
    made = imported(HTB + lines, "a.sh")
    there = directions(made.text)["what leaves eth0 to 10.0.0.2"]
    assert (there["rate"], there["delay"], there["loss"]) == ("10Mbit/s", "30ms", "1%")
    assert made.warnings == ()
    assert fates(made) == [{CommandOutcome.LAB}] * len(made.fates)


def test_a_class_whose_parent_is_not_there_is_a_root_class() -> None:
    lines = "tc class add dev eth0 parent 1:77 classid 1:20 htb rate 5mbit ceil 9mbit\n"
    assert way(HTB.replace("htb\n", "htb default 20\n", 1) + lines)["rate"] == "5Mbit/s"


@pytest.mark.parametrize("match", ["matchall", "protocol ip flower", "protocol ip u32 match u32 0 0"])
def test_policers_of_both_directions(match: str) -> None:
    text = CLSACT + "".join(f"tc filter add dev eth0 {where} {match} {POLICE}" for where in ("egress", "ingress"))
    made = directions(imported(text, "a.sh").text)
    police = {"rate": "8Mbit/s", "burst": "32.768kB"}
    assert (made["what leaves eth0"]["police"], made["what leaves eth0"]["framing"]) == (police, "header")
    assert (made["what comes in by eth0"]["police"], made["what comes in by eth0"]["framing"]) == (police, "ip")


def test_a_policer_of_old_scripts_is_before_the_qdisc_of_the_same_card() -> None:
    text = TBF + CLSACT + "tc filter add dev eth0 egress protocol ip u32 match ip src 0.0.0.0/0 police rate 1mbit "
    made = way(f"{text}burst 10k drop flowid :1\n")
    assert (made["rate"], made["police"]) == ("8Mbit/s", {"rate": "1Mbit/s", "burst": "10.24kB"})


SHOWN = """\
qdisc noqueue 0: dev lo root refcnt 2
qdisc netem 20: dev eth0 parent 1:20 limit 1000 delay 30ms loss 1%
qdisc htb 1: dev eth0 root refcnt 9 r2q 10 default 0x20 direct_packets_stat 0 direct_qlen 1000
class htb 1:20 parent 1:1 leaf 20: prio 0 rate 5Mbit ceil 5Mbit burst 1600b cburst 1600b
class htb 1:1 root rate 10Mbit ceil 10Mbit burst 1600b cburst 1600b
"""


@pytest.mark.parametrize("device", ["eth0", "card"])
def test_what_tc_shows_is_read_as_it_is(device: str) -> None:
    text = SHOWN if device == "eth0" else SHOWN.replace("dev eth0 ", "").replace("dev lo ", "")
    made = way(text, f"what leaves {device}")
    assert (made["rate"], made["delay"], made["loss"]) == ("5Mbit/s", "30ms", "1%")
    assert imported(text, "a.sh").warnings == ()


def test_a_filter_that_tc_shows_is_refused() -> None:
    line = "filter parent 1: protocol ip pref 1 u32 chain 0 fh 800::800 order 2048 flowid 1:20\n"
    assert "a.sh:6:" in refusal_of(SHOWN + line) and "write the command that made it" in refusal_of(SHOWN + line)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{TBF}tc qdisc add dev eth0 parent 2:1 netem delay 1ms", "there is no qdisc 2: on eth0 at this line"),
        (f"{HTB}tc qdisc add dev eth0 parent 1:30 netem", "there is no class 1:30 at this line"),
        (f"{HTB}tc qdisc replace dev eth0 root handle 1: htb default 10", "htb of line 1 cannot be changed"),
        (f"{HTB}tc class add dev eth0 root classid 2:1 htb rate 1mbit", "there is no htb 2: on eth0"),
        (
            f"{TBF}tc qdisc add dev eth0 parent 1:7 netem\ntc qdisc add dev eth0 parent 1:8 netem",
            "line 2 put one there",
        ),
        ("tc qdisc add dev eth0 netem delay 1ms", "says neither root nor parent"),
        ("tc qdisc add dev eth0 root netem gap 5 delay 10ms", "sends each such packet without any delay"),
        (
            "tc qdisc add dev eth0 root tbf rate 1mbit burst 1000 limit 9000",
            "is less than a packet, and tbf drops such",
        ),
        (f"tc filter add dev eth0 ingress matchall {POLICE}", "there is no qdisc for it on eth0"),
        (f"{CLSACT}tc filter add dev eth0 parent ffff: matchall {POLICE}", "clsact has filters of two directions"),
        (
            f"{CLSACT}tc filter add dev eth0 ingress matchall action police rate 1mbit burst 9k",
            "drops not what exceeds",
        ),
        (
            f"{CLSACT}tc filter add dev eth0 egress flower dst_ip 10.0.0.2 {POLICE}",
            "besides one policer of all of them",
        ),
        (f"{HTB}tc class add dev eth0 parent 1: classid 1:11 htb rate 2mbit ceil 1mbit", "ceil 1Mbit/s is below rate"),
        (
            f"{HTB}iptables -t mangle -A OUTPUT -p tcp -j CLASSIFY --set-class 1:10",
            "something else than one destination",
        ),
        (
            f"{HTB}iptables -t mangle -A OUTPUT -j CLASSIFY --set-class 1:9",
            "1:9 is no class, so its packets go to no class, and are not limited: write",
        ),
        (f"{HTB}iptables -A OUTPUT -j MARK --set-mark 1", "MARK is in the table mangle only"),
        ("[ -n x ] && tc qdisc add dev eth0 root netem delay 1ms", "is inside of if, case, a loop or a function, or"),
        ("tc qdisc change dev e root netem || tc qdisc add dev e root netem", "or behind a test, and nothing"),
    ],
)
def test_what_linux_refuses_or_no_link_does_is_refused(text: str, message: str) -> None:
    said = refusal_of(text.rstrip("\n") + "\n")
    assert message in said
    assert "\n" not in said


def test_destinations_that_share_a_class_share_its_rate() -> None:
    filters = "".join(
        f"tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.{n} flowid 1:10\n" for n in (2, 3)
    )
    assert "as line 4 does, so both share its rate" in refusal_of(HTB + filters)


def test_a_filter_without_a_priority_is_asked_before_those_that_stand_above_it() -> None:
    classes = HTB + "tc class add dev eth0 parent 1: classid 1:20 htb rate 5mbit\n"
    filters = [f"tc filter add dev eth0 parent 1: protocol ip u32 match ip dst {to} flowid 1:{flow}\n"
               for to, flow in (("10.0.0.2", 10), ("10.0.0.0/24", 20))]  # fmt: skip
    made = imported(classes + "".join(filters), "a.sh")
    assert made.warnings[-1].startswith("a.sh:5: line 6 takes these packets before")
    assert not imported(classes + "".join(reversed(filters)), "a.sh").warnings


ODD = """\
#!/bin/sh
IF=eth0; N=$(nproc)

[ "$(id -u)" = 0 ] || exit 1
start() {
    ip link set $IF up
}
for i in 1 2; do
    echo $i
done
cat > /etc/motd <<END
tc qdisc add dev eth1 root netem delay 9ms
END
tc qdisc add \\
  dev $IF root \\
  netem delay 1ms   # slow
case $1 in
    stop) true;;
esac
echo 1 > /proc/sys/net/ipv4/ip_forward
sysctl -w net.ipv4.tcp_ecn=1; ethtool -K $IF tso off
nft add rule ip filter output drop
exit 0
iptables -F
"""


def test_no_line_of_a_script_is_forgotten() -> None:
    made = imported(ODD, "a.sh")
    nothing_is_forgotten(ODD, made)
    named = [int(warning.split(":")[1]) for warning in made.warnings]
    assert named == [6, 11, 20, 21, 21, 22, 24]
    for text in (HTB, TBF, SHOWN, CLSACT + TBF):
        nothing_is_forgotten(text, imported(text, "a.sh"))


def test_no_line_of_random_scripts_is_forgotten() -> None:
    read = 0
    for number in range(200):
        text = script(f"lines/{number}")
        try:
            nothing_is_forgotten(text, imported(text, "a.sh", lenient=number % 2 == 0))
        except ImportingError as error:
            assert "\n" not in str(error)
        else:
            read += 1
    assert read > 50


def test_the_command_prints_warnings_beside_the_description(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(TBF + "ip link set eth0 mtu 1400\n")
    done = CliRunner().invoke(main, ["lab", "import", str(tmp_path / "a.sh"), "-o", str(tmp_path / "a.lab.yaml")])
    assert done.exit_code == 0
    assert f"warning: {tmp_path / 'a.sh'}:2: not imported: ip link set eth0 mtu 1400" in done.stderr
    assert "line 2: not imported: ip link set eth0 mtu 1400" in (tmp_path / "a.lab.yaml").read_text()


def test_lines_of_a_pipe_without_a_rule_and_of_rules_that_pass_are_named() -> None:
    text = "ipfw pipe 1 config delay 5\nipfw pipe 2 config bw 1Mbit/s\nipfw add allow ip from any to any\n"
    text += "ipfw add pipe 1 ip from 10.0.0.1 to 10.0.0.2 in\nipfw table 1 add 10.0.0.9\n"
    named = [warning.split(":")[1] for warning in imported(text, "a.sh").warnings]
    assert named == ["2", "3", "5"]


def test_what_is_too_much_for_comments_is_told_by_its_lines() -> None:
    made = imported(TBF + "ip link set eth0 up\n" * 300, "a.sh")
    assert len(made.warnings) == 201
    assert made.warnings[-1].endswith(
        f"100 more notes are left out, about lines {', '.join(map(str, range(202, 302)))}"
    )
    nothing_is_forgotten(TBF + "ip link set eth0 up\n" * 300, made)


NETEM = "tc qdisc add dev eth0 root netem delay {}\n"
SECOND = "tc qdisc add dev eth1 root netem delay 9ms\n"


@pytest.mark.parametrize(
    "change",
    [
        "for X in 30 40; do :; done",
        "let X=X*2",
        "((X /= 2))",
        "read -p 'delay? ' X",
        "X+=0",
        "X[0]=7",
        "X=(30 40)",
        "declare -i X=30",
        "unset X",
        "printf -v X %d 30",
        "source ./values.sh",
        "f() { X=30; }\nX=20\nf",
        "function f { X=30; }\nX=20\nf",
    ],
)
def test_a_variable_that_something_else_than_plain_text_sets_is_unknown(change: str) -> None:
    said = refusal_of(f"X=20\n{change}\n{NETEM.format('${X}ms')}")
    assert said.endswith("has a word that only running the script would show: write the value")


@pytest.mark.parametrize("other", ["(X=30)", "if ((X > 3)); then :; fi", 'printf "X is %s" $X', "let Y=X*2"])
def test_a_variable_keeps_its_value_where_nothing_sets_it(other: str) -> None:
    assert way(f"X=20\n{other}\n{NETEM.format('${X}ms')}")["delay"] == "20ms"


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("<<\\EOF", "EOF"),
        ("<<END-OF-TEXT", "END-OF-TEXT"),
        ("<<'!'", "!"),
        ("<<-EOF", "\tEOF"),
        ("<<EOF", "  EOF\nEOF"),
    ],
)
def test_a_text_within_a_script_ends_where_the_shell_ends_it(begin: str, end: str) -> None:
    made = imported(f": {begin}\n{NETEM.format('70ms')}{end}\n{NETEM.format('5ms')}{SECOND}", "a.sh")
    found = directions(made.text)
    assert (found["what leaves eth0"]["delay"], found["what leaves eth1"]["delay"]) == ("5ms", "9ms")
    assert made.warnings == ()


def test_a_text_without_its_end_is_refused() -> None:
    assert refusal_of(f"{NETEM.format('5ms')}cat <<EOF\n{SECOND}") == (
        'a.sh:2: has a text that goes on to a line "EOF", and there is none: write it'
    )


def test_words_like_then_begin_a_command_only_where_one_begins() -> None:
    made = imported(NETEM.format("5ms") + f"echo if so, then {SECOND}", "a.sh")
    assert "what leaves eth1" not in directions(made.text) and made.warnings == ()
    assert "is inside of if" in refusal_of(f"function f {{\n{SECOND}}}\n{NETEM.format('5ms')}")


@pytest.mark.parametrize("options", ["-s", "-s -d", "-stat -pretty"])
def test_options_of_tc_do_not_make_a_change_a_question(options: str) -> None:
    made = imported(NETEM.format("5ms") + SECOND.replace("tc", f"tc {options}"), "a.sh")
    assert directions(made.text)["what leaves eth1"]["delay"] == "9ms"


@pytest.mark.parametrize("option", ["-n", "-net", "-netns"])
def test_cards_of_two_namespaces_are_two(option: str) -> None:
    lines = [
        f"tc {option} {of} qdisc add dev eth0 root netem delay {delay}\n" for of, delay in (("a", "5ms"), ("b", "9ms"))
    ]
    found = directions(imported("".join(lines), "a.sh").text)
    assert (found["what leaves a/eth0"]["delay"], found["what leaves b/eth0"]["delay"]) == ("5ms", "9ms")


@pytest.mark.parametrize("card", ["eth{0,1}", "eth*", "eth[01]", "[iface]", "“eth0”", "eth0/1", "a-name-of-16-let"])
def test_a_pattern_is_no_card(card: str) -> None:
    assert "is no name of a card" in refusal_of(NETEM.format("5ms").replace("eth0", card))


@pytest.mark.parametrize(
    "text",
    ["\ufeff{}", "```bash\n{}```\n", "$ sudo {}", "root@box:~# {}", "[ada@box ~]$ {}", "sudo -u root {}"],
)
def test_commands_are_found_as_they_are_copied(text: str) -> None:
    made = imported(text.format(NETEM.format("5ms")), "a.sh")
    assert directions(made.text)["what leaves eth0"]["delay"] == "5ms" and made.warnings == ()


def test_what_tc_shows_of_a_card_is_that_cards() -> None:
    shown = "tc qdisc show dev {}\nqdisc netem 8001: root refcnt 2 limit 1000 delay {}\n"
    found = directions(imported(shown.format("eth0", "5ms") + shown.format("eth1", "9ms"), "a.sh").text)
    assert (found["what leaves eth0"]["delay"], found["what leaves eth1"]["delay"]) == ("5ms", "9ms")
    htb = """\
tc qdisc show dev {0}
qdisc htb 1: root refcnt 2 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000
tc class show dev {0}
class htb 1:10 root prio 0 rate {1} ceil {1} burst 1600b cburst 1600b
"""
    found = directions(imported(htb.format("eth0", "5Mbit") + htb.format("eth1", "9Mbit"), "a.sh").text)
    assert (found["what leaves eth0"]["rate"], found["what leaves eth1"]["rate"]) == ("5Mbit/s", "9Mbit/s")
    lines = [line for card in (("eth0", "5ms"), ("eth1", "9ms")) for line in shown.format(*card).splitlines()[1:]]
    assert "names no card, nor does line 1" in refusal_of("\n".join(lines))
    assert "shows what line 1 is about too" in refusal_of(NETEM.format("5ms") + shown.format("eth0", "5ms"))


def test_parent_root_is_root() -> None:
    assert way(NETEM.format("5ms").replace("root", "parent root"))["delay"] == "5ms"


PRIO = """\
tc qdisc add dev eth0 root handle 1: prio
tc qdisc add dev eth0 parent 1:3 netem delay 5ms
"""
TO_IFB = "tc qdisc add dev eth0 ingress\ntc qdisc add dev ifb0 root netem delay 5ms\n"
MARK = "iptables -t mangle -A OUTPUT -d 10.0.0.2 -j MARK --set-mark 5\n"


@pytest.mark.parametrize(
    ("before", "begin", "end"),
    [
        (TO_IFB, "dev eth0 parent ffff:", "action mirred egress redirect dev ifb0"),
        (CLSACT, "dev eth0 ingress", POLICE.strip()),
        (f"{CLSACT}{TBF}", "dev eth0 egress", POLICE.strip()),
        (PRIO, "dev eth0 parent 1:", "flowid 1:3"),
    ],
)
@pytest.mark.parametrize("match", ["u32 match u32 0 0", "u32 match ip6 dst ::/0", "flower", "matchall"])
def test_a_filter_for_ipv6_alone_is_not_one_for_all_packets(before: str, begin: str, end: str, match: str) -> None:
    text = f"{before}tc filter add {begin} protocol ipv6 {match} {end}\n"
    assert "takes only packets of IPv6" in refusal_of(text)
    imported(text.replace("ipv6", "ip").replace("ip6 dst ::/0", "ip dst 0/0"), "a.sh")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("protocol ipv6 u32 match ip dst 10.0.0.1", "is of protocol ipv6 and matches an address of IPv4"),
        ("protocol ipv6 flower dst_ip 10.0.0.1", "is of protocol ipv6 and matches an address of IPv4"),
        ("protocol ip flower dst_ip 2001:db8::1", "is of protocol ip and matches an address of IPv6"),
        ("protocol ip u32 match ip6 dst 2001:db8::1", "is of protocol ip and matches an address of IPv6"),
        ("protocol all u32 match ip dst 2001:db8::1", "something else than one destination"),
        ("protocol all u32 match ip6 dst 10.0.0.1", "something else than one destination"),
        ("protocol ipv6 handle 5 fw", "takes only packets of IPv6"),
    ],
)
def test_a_filter_has_addresses_of_its_protocol(words: str, message: str) -> None:
    assert message in refusal_of(f"{PRIO}{MARK}tc filter add dev eth0 parent 1: {words} flowid 1:3\n")


def test_ip6tables_marks_no_packets_of_ipv4() -> None:
    text = f"{PRIO}{MARK}tc filter add dev eth0 parent 1: handle 5 fw flowid 1:3\n"
    assert way(text, "what leaves eth0 to 10.0.0.2")["delay"] == "5ms"
    assert "no address of ip6tables" in refusal_of(text.replace("iptables", "ip6tables"))
    assert "takes only packets of IPv6" in refusal_of(text.replace("iptables", "ip6tables").replace("-d 10.0.0.2", ""))


@pytest.mark.parametrize("box", ["ip netns exec h1", "ssh h1", "docker exec h1"])
def test_rules_of_iptables_are_of_their_own_box(box: str) -> None:
    for rule, choose in (
        (MARK, "tc filter add dev eth0 parent 1: handle 5 fw flowid 1:3\n"),
        (MARK.replace("MARK --set-mark 5", "CLASSIFY --set-class 1:3"), ""),
    ):
        elsewhere = imported(f"{PRIO}{box} {rule}{choose}", "a.sh", lenient=True)
        assert any("not imported: " in warning and "iptables" in warning for warning in elsewhere.warnings)
        assert "10.0.0.2" not in "".join(directions(elsewhere.text))
        there = f"{PRIO}{rule}{choose}".replace("tc ", f"{box} tc ").replace("iptables", f"{box} iptables")
        assert way(there, "what leaves h1/eth0 to 10.0.0.2")["delay"] == "5ms"
    twice = f"{PRIO}{MARK}{box} {MARK}tc filter add dev eth0 parent 1: handle 5 fw flowid 1:3\n"
    assert way(twice, "what leaves eth0 to 10.0.0.2")["delay"] == "5ms"


@pytest.mark.parametrize(
    ("match", "to"),
    [
        ("match ip dst 10/8", "10.0.0.0/8"),
        ("match ip dst 10.1.2/24", "10.1.2.0/24"),
        ("match ip dst 10.0.0.2 match ip src any", "10.0.0.2"),
        ("match ip src 0/0 match ip dst 10.0.0.2", "10.0.0.2"),
    ],
)
def test_addresses_as_iproute2_reads_them(match: str, to: str) -> None:
    text = f"{PRIO}tc filter add dev eth0 parent 1: protocol ip u32 {match} flowid 1:3\n"
    assert way(text, f"what leaves eth0 to {to}")["delay"] == "5ms"


def test_any_is_every_address() -> None:
    text = f"{PRIO}tc filter add dev eth0 parent 1: protocol ip u32 match ip dst any flowid 1:3\n"
    assert way(text)["delay"] == "5ms"


def test_a_comment_of_iptables_says_nothing() -> None:
    rule = MARK.replace("-j", "-m comment --comment 'to h2' -j")
    text = f"{PRIO}{rule}tc filter add dev eth0 parent 1: handle 5 fw flowid 1:3\n"
    assert way(text, "what leaves eth0 to 10.0.0.2")["delay"] == "5ms"


LO = "tc qdisc add dev lo root netem delay 50ms loss 1%\n"


def test_what_lo_does_both_directions_have() -> None:
    made = directions(imported(LO, "a.sh").text)
    assert [(way["delay"], way["loss"]) for way in made.values()] == [("50ms", "1%")] * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LO.replace("loss 1%", "rate 1mbit"), "is shared by both directions, which leave by lo"),
        (TBF.replace("eth0", "lo"), "is shared by both directions, which leave by lo"),
        (LO + LO.replace("lo ", "eth0 "), "pass no other card: import lo alone"),
        (f"{CLSACT}tc filter add dev eth0 ingress matchall {POLICE}".replace("eth0", "lo"), "has left by it before"),
        (
            f"{PRIO}tc filter add dev eth0 protocol ip u32 match ip dst 127.0.0.2 flowid 1:3\n".replace("eth0", "lo"),
            "has both directions",
        ),
        (f"{TBF.strip()} peakrate 10mbit\n", "has a peakrate, for which tc needs mtu"),
        ("tc qdisc add dev eth0 root netem delay 10ms 20ms\n", 'a.sh:1: "delay 10ms 20ms": spreads delays by 20ms'),
        (
            "tc qdisc add dev eth0 root netem delay 10ms 20ms distribution pareto\n",
            'a.sh:1: "delay 10ms 20ms": spreads delays by',
        ),
        (
            f"{HTB.replace('htb', 'htb default 10', 1)}tc filter add dev eth0 parent 1: matchall flowid 1:77\n",
            "1:77 is no class, so its packets go to class 1:10",
        ),
        (
            f"{PRIO}tc filter add dev eth0 parent 1: protocol ip u32 match ip dst 10.0.0.1 match ip dst 10.0.0.2 "
            "flowid 1:3\n",
            "chooses packets by several addresses",
        ),
    ],
)
def test_what_no_direction_of_its_own_has_is_refused(text: str, message: str) -> None:
    assert message in refusal_of(text)


def test_lo_beside_another_card_is_left_out_where_that_is_wanted() -> None:
    made = imported(LO + LO.replace("lo ", "eth0 ").replace("50ms", "9ms"), "a.sh", lenient=True)
    assert directions(made.text)["what leaves eth0"]["delay"] == "9ms"
    assert made.warnings[0].startswith("a.sh:1:")


def test_lo_that_is_empty_again_may_be_beside_another_card() -> None:
    made = imported(f"{LO}tc qdisc del dev lo root\n{TBF}", "a.sh")
    assert directions(made.text)["what leaves eth0"]["rate"] == "8Mbit/s"
    assert not made.warnings


def test_more_jitter_than_delay_is_the_delay_where_that_is_wanted() -> None:
    made = imported("tc qdisc add dev eth0 root netem delay 10ms 20ms\n", "a.sh", lenient=True)
    assert directions(made.text)["what leaves eth0"]["jitter"] == "10ms"


def test_a_redirection_to_another_card_is_named() -> None:
    text = (TO_IFB + "tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0\n").replace(
        "ifb0", "eth1"
    )
    assert "a.sh:3: sends what comes in by eth0 out by eth1" in imported(text, "a.sh").warnings[0]
    assert not imported(text.replace("eth1", "ifb0"), "a.sh").warnings


ROOT_SHOWN, CLASSES_SHOWN = SHOWN.splitlines()[2], "\n".join(SHOWN.splitlines()[3:])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{ROOT_SHOWN}\n", 'a.sh:1: "qdisc htb 1: dev eth0 root'),
        (f"{ROOT_SHOWN}\n", 'what "tc class show dev eth0" prints'),
        ("\n".join(SHOWN.splitlines()[:3]) + "\n", 'what "tc class show dev eth0" prints'),
        (f"{CLASSES_SHOWN}\n", 'what "tc qdisc show dev CARD" prints'),
        (
            "tc qdisc add dev eth0 ingress netem delay 5ms\n",
            'a.sh:1: "tc qdisc add dev eth0 ingress netem delay 5ms": ingress has no options, so tc refuses "netem"',
        ),
        ("tc qdisc show\ntc qdisc del dev eth0 root\n", 'a.sh:2: "tc qdisc del dev eth0 root": shapes nothing'),
        ("tc qdisc add dev eth0 ingress\n", 'a.sh:1: "tc qdisc add dev eth0 ingress": shapes nothing'),
        ("tc qdisc add dev eth0 ingress_block 1 clsact\n", "ingress_block gives several cards the same filters"),
        (f"{TBF}tc -b <(echo 'qdisc add dev eth1 root netem')\n", "a.sh:2:"),
        ("tc -b <(echo 'qdisc add dev eth1 root netem')\n", "a word that only running the script would show"),
        (
            f"{PRIO}tc filter add dev eth0 parent 1:3 matchall flowid 1:3\n",
            'another filter sent to 1:3: write "parent 1:"',
        ),
        (f"{PRIO}tc filter add dev eth0 parent 1: matchall flowid 1:\n", 'there is no band "1:": write'),
    ],
)
def test_a_refusal_says_the_line_and_what_is_missing(text: str, message: str) -> None:
    assert message in refusal_of(text)


def test_commands_in_a_file_of_commands_are_no_group_of_the_script() -> None:
    text = f"diff <(tc qdisc show) <(exit 1)\n{TBF}while read x; do :; done < <(ip link show)\n"
    assert directions(imported(text, "a.sh").text)["what leaves eth0"]["rate"] == "8Mbit/s"


@pytest.mark.parametrize(
    ("begin", "upper"),
    [
        ("", "eth0.100"),
        ("ip link add link eth0 name v5 type vlan id 5\n", "v5"),
        ("ip link add v5 link eth0 type macvlan mode bridge\n", "v5"),
        ("ip link set dev eth0 master br0\n", "br0"),
        ("ip link set eth0 master br0\n", "br0"),
    ],
)
def test_a_card_that_stands_on_another_one_is_no_direction_of_its_own(begin: str, upper: str) -> None:
    text = f"{begin}{TBF}{TBF.replace('eth0', upper)}"
    assert f"packets that leave {upper} leave eth0 too" in refusal_of(text)
    assert len(directions(imported(text.replace("dev eth0 root", "dev eth1 root"), "a.sh").text)) == 2


def test_marks_of_ipv6_are_none_for_a_filter_of_ipv4() -> None:
    rule = MARK.replace("iptables", "ip6tables").replace("10.0.0.2", "2001:db8::1")
    text = f"{PRIO}{rule}tc filter add dev eth0 parent 1: protocol all handle 5 fw flowid 1:3\n"
    assert way(text, "what leaves eth0 to 2001:db8::1")["delay"] == "5ms"
    made = imported(text.replace("protocol all", "protocol ip"), "a.sh", lenient=True)
    assert any("no line of iptables marks packets with 5" in warning for warning in made.warnings)


def test_what_tc_shows_of_an_htb_below_a_prio_is_read() -> None:
    text = (
        "qdisc prio 1: dev eth0 root refcnt 2 bands 3 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"
        "qdisc htb 10: dev eth0 parent 1:2 r2q 10 default 0x1 direct_packets_stat 0 direct_qlen 1000\n"
        "class htb 10:1 root prio 0 rate 5Mbit ceil 5Mbit burst 1600b cburst 1600b\n"
    )
    assert way(text)["rate"] == "5Mbit/s"


def test_what_tc_shows_of_tbf_in_detail_is_read() -> None:
    made = way("qdisc tbf 1: dev eth0 root refcnt 2 rate 8Mbit burst 16Kb/8 mpu 0b lat 10ms\n")
    assert (made["rate"], made["burst"]) == ("8Mbit/s", "16.384kB")
