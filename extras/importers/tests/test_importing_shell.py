"""Commands of tc wherever a script has them: in substitutions, behind other commands, in texts that shells read."""

from __future__ import annotations

import pytest

from ewan.extras.importers.conversion import ImportedLab, imported
from ewan.extras.importers.findings import ImportingError
from tests.torture.imports import directions, nothing_is_forgotten

NETEM = "tc qdisc add dev eth0 root netem delay 5ms"
BATCH = NETEM.removeprefix("tc ")


def read(text: str) -> ImportedLab:
    made = imported(text, "a.sh")
    nothing_is_forgotten(text, made)
    return made


def delays(text: str) -> dict[str, object]:
    """The delays by the card's name, with its place."""
    return {label.removeprefix("what leaves "): way["delay"] for label, way in directions(read(text).text).items()}


def refusal_of(text: str) -> str:
    with pytest.raises(ImportingError) as refusal:
        imported(text, "a.sh")
    return str(refusal.value)


@pytest.mark.parametrize(
    "text",
    [
        f"x=$({NETEM})",
        f"x=`{NETEM} 2>&1`",
        f'echo "made: $({NETEM})"',
        f"local x=$({NETEM})",
        f'if ! O=$({NETEM} 2>&1); then\n  echo "failed: $O"\n  exit 1\nfi',
        f"for X in $({NETEM}); do :; done",
        f"echo $(echo $({NETEM}))",
        f"cat <<EOF\n$({NETEM})\nEOF",
        f"tc -batch - <<EOF\n# a comment\n{BATCH}\nEOF",
        f"tc -force -batch - <<-'EOF'\n\t{BATCH}\n\tEOF",
        f"tc -b - <<< '{BATCH}'",
        f"echo '{BATCH}' | tc -b -",
        f"echo '{BATCH}' |\n  sudo tc -b /dev/stdin",
        f"cat <<EOF | tc -batch -\n{BATCH}\nEOF",
        f"printf '{BATCH}\\n' | tc -b -",
        f"printf '%s\\n' '{BATCH}' | tc -b -",
        f'echo "{NETEM}" | sudo sh',
        f"bash <<EOF\n{NETEM}\nEOF",
        f"D=5ms\nsudo bash -s <<EOF\n{NETEM.replace('5ms', '$D')}\nEOF",
        f"bash <<'EOF'\nD=5ms\n{NETEM.replace('5ms', '$D')}\nEOF",
        f"sudo sh -c '{NETEM}'",
        f"sudo bash -ec '\n  {NETEM}\n'",
        f"su root -c '{NETEM}'",
        f"sudo -s <<EOF\n{NETEM}\nEOF",
        f"eval '{NETEM}'",
        f"C='{NETEM}'; eval $C",
        f"time {NETEM}",
        f"sudo nice -n 5 timeout 5 nohup {NETEM}",
        f"sudo chroot /mnt {NETEM}",
        f"chroot --userspec root /mnt sh -c '{NETEM}'",
        f"TC=$(which tc)\nsudo {NETEM.replace('tc', '$TC', 1)}",
        f"{{ {NETEM}; }} 2>/dev/null",
    ],
)
def test_a_command_of_tc_is_found_wherever_it_runs(text: str) -> None:
    assert delays(text + "\n") == {"eth0": "5ms"}
    assert not read(text + "\n").warnings


@pytest.mark.parametrize(
    ("begin", "place"),
    [
        ("docker exec -it --privileged -u root box {}", "box"),
        ("docker exec box sh -c '{}'", "box"),
        ("docker compose exec -T box {}", "box"),
        ("kubectl -n x exec box -- {}", "x/box"),
        ("kubectl exec -n x box -c c -- {}", "x/box"),
        ("kubectl exec box -- {}", "box"),
        ("kubectl exec -it box --container=c -- sh -c '{}'", "box"),
        ("lxc-attach -n box -- {}", "box"),
        ("nsenter -t 17 -n {}", "17"),
        ("ip netns exec box {}", "box"),
        ("sudo ip netns exec box bash -c '{}'", "box"),
        ("ssh -p 22 root@box {}", "box"),
        ("ssh box 'sudo {}'", "box"),
        ("ssh box <<EOF\n{}\nEOF", "box"),
        ("ssh box sudo bash -s <<EOF\n{}\nEOF", "box"),
        ("ssh box ip netns exec h1 {}", "box/h1"),
    ],
)
def test_a_command_that_runs_elsewhere_is_of_a_card_there(begin: str, place: str) -> None:
    text = begin.format(NETEM) + "\n"
    assert delays(text) == {f"{place}/eth0": "5ms"}


def test_pipes_of_several_commands_are_read_to_their_end() -> None:
    lines = f"echo '{BATCH}'; echo '{BATCH.replace('eth0', 'eth1').replace('5ms', '9ms')}'"
    for begin, end in (("(", ")"), ("{ ", "; }")):
        assert delays(f"{begin}{lines}{end} | tc -b -\n") == {"eth0": "5ms", "eth1": "9ms"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"tc -batch <<EOF\n{BATCH}\nEOF", 'names no file, so tc refuses it: write "-batch -"'),
        (f"{NETEM}\ntc -batch=FILE", 'tc has no option "-batch=FILE"'),
        (f"tc -foo {BATCH}", 'tc has no option "-foo"'),
        ("generate | tc -b -", "generate | tc -b -"),
        (f"h1 {NETEM}", "is run by a command that is not known here: write only the inner command"),
        (f"docker run --net container:web iproute2 {BATCH}", "is run by a command that is not known here"),
        (f"docker run alpine sh -c '{NETEM}; ping h'", "is run by a command that is not known here"),
        (f'os.system("{NETEM}")', "is run by a command that is not known here"),
        (f"alias t='tc qdisc'\nt {BATCH}", "is run by a command that is not known here"),
        (f"$TC {BATCH}", "has a word that only running the script would show"),
        (f"ssh $BOX {NETEM}", "has a word that only running the script would show"),
        (f"f() {{\n  local x=$({NETEM})\n}}\nf", "is inside of if, case, a loop or a function"),
        (f"test -f x && echo '{NETEM}' | sh", "or behind a test"),
        (f"false || {{ {NETEM}; }}", "or behind a test"),
        (f"false || ( {NETEM} )", "or behind a test"),
        (f"sudo sh -c '\n{NETEM}\n{NETEM}\n'", "a.sh:3:"),
        ('"$(' * 60, "has more than 50"),
        ("x=$(" * 60 + ")" * 60, "has more than 50"),
        (f'tc() {{ echo "tc $@"; }}\n{NETEM}', '"tc" is a function of the script here'),
        (f"function tc {{\n  :\n}}\n{NETEM}", '"tc" is a function of the script here'),
        (f"sudo() {{ :; }}\nsudo {NETEM}", "is run by a command that is not known here"),
        ("eval " * 60 + "x", "has more than 50"),
        (f"{NETEM}\nping -c 10 h\ntc qdisc change dev eth0 root netem delay 9ms", "the pause of line 2 (ping)"),
        (f"{NETEM}\niperf3 -c h -t 30\n{NETEM.replace('eth0', 'eth1')}", "the pause of line 2 (iperf3)"),
        (f"{NETEM}\n./measure.sh\ntc qdisc replace dev eth0 root netem delay 9ms", "the pause of line 2 (measure.sh)"),
    ],
)
def test_what_only_running_would_show_is_refused(text: str, message: str) -> None:
    assert message in refusal_of(text + "\n")


def test_a_shell_that_reads_what_nobody_knows_is_named_with_what_is_before_it() -> None:
    text = f"{NETEM}\ncurl http://example.org/x.sh | sudo sh\n"
    assert read(text).warnings[-1] == "a.sh:2: not imported: curl http://example.org/x.sh | sudo sh"


def test_commands_of_ipfw_are_found_too() -> None:
    assert "pipe 1" in read("x=$(ipfw pipe 1 config delay 5)\n").text


@pytest.mark.parametrize("command", ["iperf3 -s &", "iperf3 -s -D", "./server &", "./server", "ping -c 1 h"])
def test_programs_that_do_not_change_what_a_script_means_are_named_alone(command: str) -> None:
    text = f"{command}\n{NETEM}\n" + f"{command}\n{NETEM.replace('eth0', 'eth1')}\n" * ("ping" not in command)
    assert [warning.split(":")[2].strip() for warning in read(text).warnings] == ["not imported"] * text.count(command)


def test_values_that_commands_print_are_not_named() -> None:
    assert not read(f"N=$(nproc)\nD=`ip route show | awk '{{print $5}}'`\n{NETEM}\n").warnings
    assert len(read(f"N=$(ip link add d type dummy)\n{NETEM}\n").warnings) == 1


AFTER = NETEM.replace("eth0", "eth1").replace("5ms", "9ms")


@pytest.mark.parametrize(
    "begin",
    [
        "ssh a <<'EOF'\nexit\nEOF",
        f"ssh a <<'EOF'\n{NETEM}\nexit 0\n{NETEM}\nEOF",
        'ssh a "true; exit 0"',
        "(exit 1)",
        "(\n  true\n  exit 1\n)",
        'sh -c "exit 0"',
        "X=$(exit 1)",
        "echo y | exit 0",
        "exit 0 | cat",
        "{ exit 1; } | cat",
        "{ exit 1; } 2>&1 | cat",
        "exit 0 &",
        "sleep 1 && exit 0 &",
        "{ sleep 1; exit 0; } &",
        "sudo exit 1",
        "ip netns exec h1 exit 1",
    ],
)
def test_an_exit_ends_its_own_shell_alone(begin: str) -> None:
    made = read(f"{begin}\n{AFTER}\n")
    assert "9ms" in made.text
    behind = [warning for warning in made.warnings if "never runs" in warning]
    assert len(behind) == begin.count(f"0\n{NETEM}")


@pytest.mark.parametrize("end", ["exit", "{ exit 1; }", "eval 'exit 0'", "true; exit 0", "builtin exit"])
def test_an_exit_of_the_script_ends_all_that_is_behind_it(end: str) -> None:
    assert delays(f"{NETEM}\n{end}\n({AFTER})\n") == {"eth0": "5ms"}
    assert "is behind the exit of line 2 and never runs" in read(f"{NETEM}\n{end}\n({AFTER})\n").warnings[0]


@pytest.mark.parametrize(
    "line",
    [
        "D=5ms &", "D=5ms | cat", "{ D=5ms; } | cat", "echo | { D=5ms; }", "(D=5ms)", "{ D=5ms; } &",
        "{\n  D=5ms\n} 2>/dev/null | cat", "eval '(D=5ms)'",
    ],
)  # fmt: skip
def test_a_variable_is_of_the_shell_that_sets_it(line: str) -> None:
    assert delays(f"D=9ms\n{line}\n{NETEM.replace('5ms', '$D')}\n") == {"eth0": "9ms"}
    assert "only running the script would show" in refusal_of(f"{line}\n{NETEM.replace('5ms', '$D')}\n")


def test_a_second_value_of_a_readonly_variable_is_not_known() -> None:
    line = NETEM.replace("5ms", "$D")
    for first in ("readonly D=5ms", "D=5ms\nreadonly D", "D=5ms\nexport D"):
        assert delays(f"{first}\n{line}\n") == {"eth0": "5ms"}
        assert not read(f"{first}\n{line}\n").warnings
    for second in ("D=9ms", "D=9ms; E=1"):
        for first in ("readonly D=5ms", "D=5ms\nreadonly D", "D=5ms\ndeclare -r D", "typeset -xr D=5ms"):
            assert "only running the script would show" in refusal_of(f"{first}\n{second}\n{line}\n")


@pytest.mark.parametrize("wait", ["sleep 10 && {}", "sleep 10; {}", " (sleep 10); {}", "./measure; {}"])
@pytest.mark.parametrize("group", ["({}) &", "{{ {}; }} &", "sh -c '{}' &", "nohup sh -c '{}' > log &"])
def test_what_waits_in_the_background_comes_after_all_else(wait: str, group: str) -> None:
    delete = "tc qdisc del dev eth0 root"
    text = f"{group.format(wait.format(delete))}\n{NETEM}\n"
    assert delays(text) == {"eth0": "5ms"}
    assert any(f"{delete} comes after the pause of line 1" in warning for warning in read(text).warnings)
    text = f"sleep 10 && {delete} &\n{NETEM}\n"
    assert any(f"{delete} comes after the pause of line 1" in warning for warning in read(text).warnings)
    change = NETEM.replace("add", "replace")
    assert "comes after the pause of line 1" in refusal_of(f"{group.format(wait.format(change))}\n{NETEM}\n")


def test_what_a_function_does_instead_of_a_command_is_named() -> None:
    text = f"sudo() {{ :; }}\nsudo {NETEM}\n{AFTER}\n"
    assert delays(text) == {"eth1": "9ms"}
    assert read(text).warnings[-1] == f"a.sh:2: not imported: sudo {NETEM}"
