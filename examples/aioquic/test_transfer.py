"""A transfer over QUIC in networks that lose packets and go away."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
VOLUME = 2_000_000


@pytest.fixture
def certificate(tmp_path):
    """A certificate and its key, for one day."""
    files = [str(tmp_path / "certificate.pem"), str(tmp_path / "key.pem")]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        + ["-subj", "/CN=example", "-days", "1", "-out", files[0], "-keyout", files[1]],
        check=True,
        capture_output=True,
    )
    return files


def transfer(lab, certificate):
    """A server at one end, and a client at the other that fetches VOLUME bytes."""
    lab.right1.start([sys.executable, str(HERE / "server.py"), "4433", *certificate], ready="udp:4433")
    return lab.left1.start(
        [sys.executable, str(HERE / "client.py"), "right1", "4433", str(VOLUME)],
        flows={"port": 4433, "from": "right1"},
    )


def test_fills_the_link(ewan, certificate):
    lab = ewan.lab("dumbbell", rtt="40ms", rate="10Mbit/s", buffer="1BDP")
    client = transfer(lab, certificate)
    lab.run()
    assert client.exit_code == 0
    assert client.output == f"{VOLUME}\n"
    assert client.ended - client.started < ewan.seconds(4)


def test_recovers_from_a_burst_of_losses(ewan, certificate):
    lab = ewan.lab("dumbbell", rtt="40ms", rate="10Mbit/s", buffer="1BDP")
    client = transfer(lab, certificate)
    lab.core.at("2500ms").set(loss="30%", duration="100ms")
    result = lab.run()
    assert client.exit_code == 0
    assert result.flow(client).lost.by_link > 0
    assert client.ended - client.started < ewan.seconds(8)


def test_survives_an_outage(ewan, certificate):
    lab = ewan.lab("dumbbell", rtt="40ms", rate="10Mbit/s", buffer="1BDP")
    client = transfer(lab, certificate)
    lab.core.at("2500ms").down(duration="1s")
    lab.run(longest="20s")
    assert client.exit_code == 0
    assert client.ended > ewan.seconds(4)
