"""A change of a running link says only what its words say."""

from __future__ import annotations

import pytest

from labs.change import as_it_is, compile_change, delay_until
from labs.compile import HostFacts, compile
from labs.plan import Plan
from labs.spec import DescriptionError, from_template

HOST = HostFacts(cpus=(0, 1), networks=())


def plan(**words: str) -> Plan:
    return compile(from_template("dumbbell", {"rtt": "100ms", "rate": "1Gbit/s", **words}), HOST)


def change(text: str, **words: str) -> dict[str, object]:
    made = plan(**words)
    pairs = dict(word.split("=") for word in text.split())
    return compile_change(made, made.links[0], "forward", pairs)


def test_a_rate_alone_changes_the_rate_alone() -> None:
    assert change("rate=500Mbit/s") == {"rate_bps": 500_000_000}


def test_a_delay_keeps_the_jitter_that_there_is() -> None:
    assert change("delay=20ms") == {"delay": {"kind": "constant", "delay_ns": 20_000_000}}
    kept = {"delay": {"kind": "normal", "delay_ns": 20_000_000, "jitter_ns": 1_000_000}}
    assert change("delay=20ms", jitter="1ms") == kept


def test_a_buffer_in_bdp_means_the_rate_that_is_set_with_it() -> None:
    assert change("buffer=1BDP")["queue"] == {
        "limit_bytes": 12_500_000,
        "limit_packets": None,
        "discipline": {"kind": "drop_tail"},
    }
    assert change("rate=100Mbit/s buffer=1BDP")["queue"]["limit_bytes"] == 1_250_000  # type: ignore[index]


def test_a_discipline_keeps_the_limit_and_a_limit_the_discipline() -> None:
    queue = change("queue=codel", buffer="100pkt")["queue"]
    assert queue["limit_packets"] == 100 and queue["discipline"]["kind"] == "codel"  # type: ignore[index]
    queue = change("buffer=50pkt", queue="codel")["queue"]
    assert queue["limit_packets"] == 50 and queue["discipline"]["kind"] == "codel"  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rate=1000", "1000"),
        ("bandwidth=1G", "a link has rate"),
        ("loss=120%", "120%"),
        ("jitter=90ms", "90ms"),
        ("delay=2s", "has room for"),
    ],
)
def test_refused_as_a_description_would_be(text: str, says: str) -> None:
    with pytest.raises(DescriptionError, match=says) as refused:
        change(text)
    assert "\n" not in str(refused.value)


def test_when() -> None:
    assert delay_until("+10s") == 10_000_000_000
    for bad in ("10s", "+10", "+-1s"):
        with pytest.raises(DescriptionError, match="at="):
            delay_until(bad)


def test_a_change_starts_from_the_link_as_it_is() -> None:
    link = plan().links[0]
    past = [
        {"link": "core", "direction": "forward", "change": {"delay": {"kind": "constant", "delay_ns": 20_000_000}}},
        {"link": "core", "direction": "forward", "change": change("buffer=50pkt")},
        {"link": "other", "direction": "forward", "change": {"rate_bps": 1}},
    ]
    now = as_it_is(link, past)
    assert now.backward == link.backward and now.forward.rate_bps == link.forward.rate_bps
    jitter = compile_change(plan(), now, "forward", {"jitter": "1ms"})
    assert jitter == {"delay": {"kind": "normal", "delay_ns": 20_000_000, "jitter_ns": 1_000_000}}
    queue = compile_change(plan(), now, "forward", {"queue": "codel"})["queue"]
    assert queue["limit_packets"] == 50


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rate=500Mbit/s delay=20ms loss=1%", None),
        ("buffer=1MB", None),
        ("buffer=100pkt", "its queue counts bytes"),
        ("queue=codel", "its queue is drop_tail"),
        ("delay=20ms jitter=1ms distribution=uniform", 'write "reorder: true"'),
        ("delay=20ms jitter=1ms reorder=true distribution=normal", "no normal distribution"),
    ],
)
def test_a_link_of_the_kernel_takes_what_it_can_do_without_a_loss(text: str, says: str | None) -> None:
    if says is None:
        assert change(text, emulator="kernel")
        return
    with pytest.raises(DescriptionError, match=says):
        change(text, emulator="kernel")
