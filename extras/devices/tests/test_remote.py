"""A box that SSH reaches: the output of its commands, and refusals in one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ewan.extras.devices import remote
from ewan.extras.devices.remote import CommandError, ConnectedBox
from ewan.extras.devices.serve import DeviceRefusedError
from ewan.extras.devices.tests.ssh_server import box


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with box(tmp_path_factory.mktemp("box"), {"PATH": os.environ["PATH"]}) as config:
        yield config


@pytest.fixture
def connected(config: Path) -> Iterator[ConnectedBox]:
    connected = ConnectedBox("box", str(config))
    yield connected
    connected.close()


def test_words_are_quoted_and_what_is_printed_comes_back(connected: ConnectedBox) -> None:
    assert connected.run(["printf", r"%s\n", "a 'b' $c;exit"]) == "a 'b' $c;exit\n"
    with pytest.raises(CommandError, match=r"^the box refuses sh -c echo no >&2; exit 3: no$"):
        connected.run(["sh", "-c", "echo no >&2; exit 3"])
    with pytest.raises(CommandError, match=r"^the box refuses false: status 1$"):
        connected.run(["false"])


def test_what_prints_too_much_or_takes_too_long_is_refused(
    connected: ConnectedBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DeviceRefusedError, match=r"^box: head -c 2000000 /dev/zero prints more than 1048576 bytes$"):
        connected.run(["head", "-c", "2000000", "/dev/zero"])
    monkeypatch.setattr(remote, "ANSWERS_S", 0.2)
    with pytest.raises(DeviceRefusedError, match=r"^box: sleep 60 did not end within 0\.2 s$"):
        connected.run(["sleep", "60"])
    assert connected.run(["echo", "there"]) == "there\n"


def test_a_box_of_an_unknown_key_is_refused(config: Path, tmp_path: Path) -> None:
    strange = tmp_path / "config"
    strange.write_text(config.read_text().replace("known_hosts", "no_such_file"))
    with pytest.raises(DeviceRefusedError, match=r"^box: the host key of 127\.0\.0\.1 port \d+ is not known"):
        ConnectedBox("box", str(strange))


@pytest.mark.parametrize("address", ["", "-oProxyCommand=x", "a b", "box;reboot", "root@-x", "$(x)"])
def test_an_address_is_a_name_alone(address: str) -> None:
    with pytest.raises(DeviceRefusedError, match="is no SSH target: write HOST"):
        ConnectedBox(address)
