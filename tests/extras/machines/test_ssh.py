"""Machines over SSH: real sshds in namespaces (machines_rig.py), our connections, and what can go wrong."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ewan.extras.machines.file import ClusterMachine
from ewan.extras.machines.ssh import PACKED_BYTES, ConnectedMachine, Fleet
from ewan.labs.runtime.base import LabError
from tests.conftest import ROOT
from tests.extras.machines_rig import GUEST, WORKER, Rig

pytestmark = pytest.mark.live


@pytest.fixture(autouse=True)
def inside(rig: Rig) -> Iterator[None]:
    """Each test is where the coordinator is."""
    with rig.inside():
        yield


@pytest.fixture(scope="module")
def fleet(rig: Rig) -> Iterator[Fleet]:
    with rig.inside(), Fleet(rig.cluster.machines, rig.ssh_config) as connected:
        yield connected


@pytest.fixture
def one(fleet: Fleet) -> ConnectedMachine:
    return fleet["one"]


def connecting(machine: ClusterMachine, config: Path, connect_s: float = 5.0) -> str:
    """What connecting to it is refused with: one line."""
    with pytest.raises(LabError) as told, Fleet([machine], config, connect_s=connect_s):
        pass
    line = str(told.value)
    assert "\n" not in line
    assert line.startswith(f"machine {machine.name}")
    return line


def config(place: Path, rig: Rig, text: str) -> Path:
    """A configuration whose first words are these; what it does not say, the rig's says."""
    file = place / "config"
    file.write_text(f"{text}\n{rig.ssh_config.read_text()}")
    return file


# Programs


def test_a_program_gets_its_words_and_input_and_gives_its_output_and_status(one: ConnectedMachine) -> None:
    done = one.run(["sh", "-c", 'cat; echo "$1" >&2; exit 7', "sh", "a 'b' $c"], b"given\n")
    assert done == (7, b"given\n", b"a 'b' $c\n")


def test_a_signal_that_ends_a_program_is_its_status(one: ConnectedMachine) -> None:
    assert one.run(["sh", "-c", "kill -9 $$"]).returncode == -9


def test_a_program_that_is_not_there_has_the_shells_status(one: ConnectedMachine) -> None:
    done = one.run(["no-such-program"])
    assert done.returncode == 127
    assert "not found" in done.said


def test_ten_megabytes_go_through_both_ways(one: ConnectedMachine) -> None:
    data = os.urandom(10_000_000)
    assert one.run(["cat"], data).stdout == data


def test_what_takes_too_long_is_ended_there(one: ConnectedMachine) -> None:
    with pytest.raises(LabError, match=r"machine one: sleep 86399 did not end within 0\.3 s"):
        one.run(["sleep", "86399"], longest_s=0.3)
    assert one.run(["pgrep", "-f", "^sleep 86399"]).returncode == 1


def test_a_program_that_runs_on_is_talked_to_in_lines(one: ConnectedMachine) -> None:
    shown = "dd bs=1 status=none count="
    with one.start(["sh", "-c", f"{shown}17; {shown}1 >/dev/null"]) as process:
        process.write(b"first\nsec")
        assert process.readline() == b"first\n"
        process.write(b"ond\nrest")
        assert process.readline() == b"second\n"
        with pytest.raises(LabError, match=r"no line came within 0\.1 s"):
            process.readline(0.1)
        process.write(b"\n")
        assert process.wait(5) == (0, b"rest", b"")


def test_the_lines_of_a_program_end_when_it_does(one: ConnectedMachine) -> None:
    with one.start(["seq", "3"]) as process:
        assert list(process) == [b"1\n", b"2\n", b"3\n"]


def test_a_program_is_sent_signals_and_is_ended(one: ConnectedMachine) -> None:
    with one.start(["sh", "-c", "trap 'echo got; exit 3' USR1; echo ready; while :; do sleep 0.01; done"]) as process:
        assert process.readline(5) == b"ready\n"
        process.send_signal(signal.SIGUSR1)
        # Its child gets it too, as from a terminal; the shell tells.
        assert process.wait(5)[:2] == (3, b"got\n")
    with one.start(["sleep", "86398"]):
        pass
    assert one.run(["pgrep", "-f", "^sleep 86398"]).returncode == 1


# Files


def test_a_file_is_there_whole_and_with_its_mode(one: ConnectedMachine) -> None:
    data = os.urandom(2 * PACKED_BYTES)
    gone: list[float] = []
    path = one.put(data, "~/.cache/ewan/a file", 0o755, fed=gone.append)
    assert len(gone) > 10 and gone == sorted(gone) and gone[-1] == 1.0
    assert path == "/run/machine/home/root/.cache/ewan/a file"
    assert one.run(["cat", path]).stdout == data
    assert one.run(["stat", "-c", "%a", path]).stdout == b"755\n"
    one.put(b"another", path)
    assert one.run(["sh", "-c", 'cat "$1"; ls "${1%/*}"', "sh", path]).stdout == b"anothera file\n"


def test_a_file_that_is_named_by_its_content_is_sent_once(one: ConnectedMachine) -> None:
    path = one.put(b"12345", "/run/by-content", named_by_content=True)
    one.run(["sh", "-c", "printf abcde >/run/by-content"])
    assert one.put(b"12345", path, named_by_content=True) == path
    assert one.run(["cat", path]).stdout == b"abcde"
    # What a power cut left has another size.
    one.run(["sh", "-c", ": >/run/by-content"])
    one.put(b"12345", path, named_by_content=True)
    assert one.run(["cat", path]).stdout == b"12345"


def test_what_a_login_shell_says_is_no_path_and_no_number(rig: Rig) -> None:
    profile = rig.directory / "one/home/root/.bashrc"
    profile.write_text("echo welcome; echo hello >&2\n")
    passwd = rig.directory / "one/etc/passwd"
    before = passwd.read_text()
    passwd.write_text(before.replace("home/root:/bin/sh", "home/root:/bin/bash"))
    try:
        with Fleet([rig.machine("one")], rig.ssh_config) as fleet:
            one = fleet["one"]
            assert one.run(["sh", "-c", "echo done >&2"]) == (0, b"welcome\n", b"hello\ndone\n")
            assert one.put(b"1", "/run/shell", named_by_content=True) == "/run/shell"
            with pytest.raises(LabError, match="did not end"):
                one.run(["sleep", "86395"], longest_s=0.3)
            assert one.run(["pgrep", "-f", "^sleep 86395"]).returncode == 1
    finally:
        passwd.write_text(before)
        profile.unlink()


def test_a_file_that_cannot_be_written_is_an_error_and_leaves_nothing(one: ConnectedMachine) -> None:
    with pytest.raises(LabError, match="machine one: /run could not be written: /run is a directory"):
        one.put(b"", "/run")
    with pytest.raises(LabError, match=r"machine one: /proc/no/file could not be written: .*No such file"):
        one.put(b"", "/proc/no/file")


# Users


def test_sudo_is_used_where_the_file_says_so(rig: Rig) -> None:
    with Fleet([rig.machine("two", WORKER, sudo=True)], rig.ssh_config) as fleet:
        two = fleet["two"]
        assert (two.user, two.run(["id", "-un"]).stdout) == (WORKER, b"root\n")
        assert two.put(b"", "~/own").endswith("home/worker/own")
        assert two.run(["stat", "-c", "%U", two.put(b"", "/run/roots")]).stdout == b"root\n"
        assert two.run(["stat", "-c", "%U", "/run/machine/home/worker/own"]).stdout == b"worker\n"
        with two.start(["sleep", "86397"]) as process:
            process.send_signal(signal.SIGTERM)
            assert process.wait(5).returncode in (-15, 143)


def test_sudo_that_asks_for_a_password_is_refused(rig: Rig) -> None:
    said = connecting(rig.machine("two", GUEST, sudo=True), rig.ssh_config)
    assert "sudo does not let guest in without a password (sudo: a password is required)" in said
    assert '"guest ALL=(ALL) NOPASSWD: ALL"' in said


# What connecting is refused with


def test_an_unknown_host_key_is_refused(rig: Rig, tmp_path: Path) -> None:
    for nothing in (tmp_path / "no-such-file", "/dev/null", "none"):
        file = config(tmp_path, rig, f"UserKnownHostsFile {nothing}\nStrictHostKeyChecking no")
        said = connecting(rig.machine("one"), file)
        assert said == (
            f"machine one: the host key of {rig.address_4['one']} port 22 is not known: log in once, and compare the "
            f"key: ssh -F {file} one"
        )


def test_a_changed_host_key_is_refused(rig: Rig, tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text(f"{rig.address_4['one']} {rig.host_key('two')}\n")
    said = connecting(rig.machine("one"), config(tmp_path, rig, f"UserKnownHostsFile {known}"))
    assert f"{rig.address_4['one']} port 22 has another host key than the known one" in said
    assert "ssh-keygen -R" in said


def test_a_key_that_is_not_known_there_is_refused(rig: Rig, tmp_path: Path) -> None:
    rig.key(tmp_path / "key")
    text = rig.ssh_config.read_text().replace(str(rig.user_key), str(tmp_path / "key"))
    (tmp_path / "config").write_text(text)
    said = connecting(rig.machine("one"), tmp_path / "config")
    assert f"{rig.address_4['one']} port 22 takes none of your keys for the user root" in said


def test_where_nobody_listens_or_nothing_is(rig: Rig, tmp_path: Path) -> None:
    def at(ssh: str, connect_s: float = 5.0) -> str:
        return connecting(ClusterMachine("one", ssh, "eth1", None, None, False), rig.ssh_config, connect_s)

    assert at("one:23") == (
        f"machine one: {rig.address_4['one']} port 23 refuses connections: start sshd there, or write the port that it "
        "listens at"
    )
    assert "gave no answer in 0.2 s" in at("192.0.2.99", 0.2)
    assert '"no-such-host.invalid" has no address (' in at("no-such-host.invalid")
    assert at("a b").startswith('machine one: "a b" is no SSH target')
    said = connecting(rig.machine("one"), tmp_path / "nothing")
    assert said.startswith("machine one: SSH's configuration: ")
    assert str(tmp_path / "nothing") in said


def test_all_that_are_missing_are_counted_or_left_out(rig: Rig) -> None:
    away = [ClusterMachine(name, f"{name}:23", "eth1", None, None, False) for name in ("two", "three")]
    with pytest.raises(LabError, match=r"machine two: .* refuses connections.* \(and 1 more machine\)"):
        Fleet([rig.machine("one"), *away], rig.ssh_config).__enter__()
    with Fleet([rig.machine("one"), *away], rig.ssh_config, all_needed=False) as fleet:
        assert list(fleet.absent) == ["two", "three"]
        result = fleet.each(lambda remote: remote.run(["hostname"]).stdout)
        assert result["one"] == b"one\n"
        assert "machine three: " in str(result["three"])


# SSH's own configuration


def test_a_jump_host_leads_to_a_machine(rig: Rig, tmp_path: Path) -> None:
    file = config(tmp_path, rig, "Host behind\n  HostName 192.0.2.3\n  ProxyJump worker@two")
    with Fleet([ClusterMachine("three", "root@behind", "eth1", None, None, False)], file) as fleet:
        client = fleet["three"].run(["sh", "-c", "echo $SSH_CLIENT"]).stdout.decode().split()[0]
        assert client == rig.address_4["two"]
        assert fleet["three"].run(["hostname"]).stdout == b"three\n"
    file = config(tmp_path, rig, "Host behind\n  HostName 192.0.2.3\n  ProxyJump two:23")
    said = connecting(ClusterMachine("three", "behind", "eth1", None, None, False), file)
    assert said.startswith(f"machine three, through two: {rig.address_4['two']} port 23 refuses connections")


def test_ipv6_and_an_alias_and_an_agent(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
    told = dict(re.findall(r"(SSH_\w+)=([^;]+);", started))
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", told["SSH_AUTH_SOCK"])
        subprocess.run(["ssh-add", "-q", str(rig.user_key)], check=True)
        file = tmp_path / "config"
        file.write_text(
            f"Host alias\n  HostName {rig.address_6['one']}\nHost *\n  UserKnownHostsFile {rig.known_hosts}\n"
        )
        monkeypatch.setenv("HOME", str(tmp_path))
        with Fleet([ClusterMachine("one", "root@alias", "eth1", None, None, False)], file) as fleet:
            assert fleet["one"].run(["hostname"]).stdout == b"one\n"
        # A key with a passphrase, which the agent has, and one that is not there.
        shutil.copy(rig.user_key, tmp_path / "id")
        shutil.copy(f"{rig.user_key}.pub", tmp_path / "id.pub")
        subprocess.run(["ssh-keygen", "-q", "-p", "-N", "secret", "-f", str(tmp_path / "id")], check=True)
        named = "IdentityFile ~/no-such-file\nIdentityFile ~/id\nIdentitiesOnly yes\n"
        (tmp_path / "named").write_text(f"{named}{file.read_text()}")
        with Fleet([ClusterMachine("one", "root@alias", "eth1", None, None, False)], tmp_path / "named") as fleet:
            assert fleet["one"].run(["hostname"]).stdout == b"one\n"
        with Fleet(
            [ClusterMachine("one", f"root@[{rig.address_6['one']}]:22", "eth1", None, None, False)], file
        ) as fleet:
            assert fleet["one"].run(["hostname"]).stdout == b"one\n"
    finally:
        os.kill(int(told["SSH_AGENT_PID"]), signal.SIGTERM)


# Terminals

TERMINAL = """
import sys
from pathlib import Path
from ewan.extras.machines.file import ClusterMachine
from ewan.extras.machines.ssh import Fleet
with Fleet([ClusterMachine("one", "one", "eth1", None, None, False)], Path(sys.argv[1])) as fleet:
    sys.exit(fleet["one"].terminal(sys.argv[2:]))
"""


def terminal(rig: Rig, *argv: str) -> list[str]:
    return [sys.executable, "-c", TERMINAL, str(rig.ssh_config), *argv]


def test_a_program_without_a_terminal_has_our_streams_and_status(rig: Rig) -> None:
    command = terminal(rig, "sh", "-c", "cat; echo bad >&2; test -t 0 || exit 9")
    done = subprocess.run(command, input=b"given", capture_output=True, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (9, b"given", b"bad\n")
    killed = subprocess.run(terminal(rig, "sh", "-c", "kill -9 $$"), stdin=subprocess.DEVNULL, cwd=ROOT)
    assert killed.returncode == 128 + 9


def test_a_signal_reaches_the_program(rig: Rig) -> None:
    command = terminal(rig, "sh", "-c", "trap 'echo got; exit 5' INT; echo ready; while :; do sleep 0.01; done")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 5
        assert process.stdout.read() == b"got\n"


def test_a_program_on_a_terminal_has_its_size_and_keys(rig: Rig) -> None:
    script = "trap 'stty size; echo resized' WINCH; trap 'echo interrupted; exit 4' INT; echo ready; "
    command = terminal(rig, "sh", "-c", script + "while :; do sleep 0.01; done")
    number, master = pty.fork()
    if number == 0:
        os.chdir(ROOT)
        os.execv(command[0], command)
    seen = b""

    def until(text: bytes) -> None:
        nonlocal seen
        end = time.monotonic() + 10
        while text not in seen:
            assert select.select([master], [], [], max(0, end - time.monotonic()))[0], seen
            seen += os.read(master, 4096)

    until(b"ready")
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 111, 0, 0))
    until(b"33 111\r\nresized")
    os.write(master, b"\x03")
    until(b"interrupted")
    assert os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) == 4
    os.close(master)


# Machines that die


def test_a_machine_that_dies_is_an_error_of_that_machine_alone(rig: Rig) -> None:
    with Fleet(rig.cluster.machines, rig.ssh_config, keepalive_s=0.5) as fleet:

        def work(remote: ConnectedMachine) -> bytes:
            if remote.name == "two":
                with remote.start(["sh", "-c", "echo ready; sleep 60"]) as process:
                    process.readline()
                    rig.kill("two")
                    return process.readline()
            return remote.run(["sh", "-c", "sleep 2.5; hostname"]).stdout

        begin = time.monotonic()
        result = fleet.each(work)
        took = time.monotonic() - begin
        rig.revive("two")
        assert (result["one"], result["three"]) == (b"one\n", b"three\n")
        assert str(result["two"]).startswith("machine two: the connection was lost (")
        assert fleet["two"].dead
        assert not fleet["one"].dead
        # Four times the interval of keepalives; each turn of the loop is quick.
        assert took < 10
        with pytest.raises(LabError, match="machine two: the connection was lost"):
            fleet["two"].run(["true"])
    with Fleet([rig.machine("two")], rig.ssh_config) as again:
        # It booted: its /run is new, its files are the same.
        assert again["two"].run(["ls", "/run/machine/home/worker/own", "/run/roots"]).stdout == (
            b"/run/machine/home/worker/own\n"
        )


def test_a_machine_that_hangs_is_lost_while_its_kernel_still_answers(rig: Rig) -> None:
    with Fleet([rig.machine("three")], rig.ssh_config, keepalive_s=0.3) as fleet:
        process = fleet["three"].start(["sleep", "60"])
        rig.hang("three")
        try:
            with pytest.raises(LabError, match="machine three: the connection was lost"):
                process.readline(10)
            assert fleet["three"].dead
        finally:
            rig.wake("three")


def test_what_a_machine_that_does_not_answer_is_asked_has_its_time_limit(rig: Rig) -> None:
    with Fleet([rig.machine("one")], rig.ssh_config) as fleet:
        process = fleet["one"].start(["cat"])
        rig.pull("one")
        begin = time.monotonic()
        try:
            for _ in range(2):
                with pytest.raises(LabError, match=r"machine one: true did not end within 0\.2 s"):
                    fleet["one"].run(["true"], longest_s=0.2)
            assert time.monotonic() - begin < 2
        finally:
            rig.plug("one")
        process.write(b"still there\n")
        assert process.readline(10) == b"still there\n"


def test_the_end_of_a_fleet_is_the_end_of_what_it_started(rig: Rig) -> None:
    with Fleet([rig.machine("one")], rig.ssh_config) as fleet:
        fleet["one"].start(["sleep", "86394"])
    with Fleet([rig.machine("one")], rig.ssh_config) as fleet:
        assert fleet["one"].run(["pgrep", "-f", "^sleep 86394"]).returncode == 1


def test_ctrl_c_while_all_work_ends_them_all(rig: Rig) -> None:
    script = """
        import sys
        from pathlib import Path
        from ewan.extras.machines.file import ClusterMachine
        from ewan.extras.machines.ssh import Fleet
        made = [ClusterMachine(name, name, "eth1", None, None, False) for name in ("one", "three")]
        with Fleet(made, Path(sys.argv[1])) as fleet:
            fleet.each(lambda remote: remote.run(["true"]))
            print("ready", flush=True)
            fleet.each(lambda remote: remote.run(["sleep", "86396"]))
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(rig.ssh_config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == -signal.SIGINT
        assert process.stderr.read().rstrip().endswith(b"KeyboardInterrupt")
    with Fleet(rig.cluster.machines, rig.ssh_config) as fleet:
        left = fleet.each(lambda remote: remote.run(["pgrep", "-f", "^sleep 86396"]).returncode)
        assert left == {"one": 1, "two": 1, "three": 1}


def test_nothing_of_the_machines_is_left_when_the_tests_are_killed() -> None:
    script = "from tests.extras.machines_rig import machines\nwith machines(1) as rig:\n"
    command = [sys.executable, "-c", f"{script}    print(rig.directory, flush=True)\n    input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        directory = process.stdout.readline().decode().strip()
        assert subprocess.run(["pgrep", "-f", directory], capture_output=True).returncode == 0
        process.kill()
    end = time.monotonic() + 5
    while subprocess.run(["pgrep", "-f", directory], capture_output=True).returncode == 0:
        assert time.monotonic() < end
        time.sleep(0.02)
    shutil.rmtree(directory)
