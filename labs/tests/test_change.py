"""A change of a running link says only what its words say."""

from __future__ import annotations

import orjson
import pytest

from ewan.labs.base import codec
from ewan.labs.base.codec import replace
from ewan.labs.change import after, as_it_is, check_headings, compile_change, delay_until, wanted
from ewan.labs.compile import HostFacts, compile
from ewan.labs.link import (
    BitErrorLoss,
    Change,
    Codel,
    ConstantDelay,
    DelayTable,
    DropTail,
    GaussMarkovDelay,
    NormalDelay,
    Queue,
    Red,
)
from ewan.labs.link.change import words as change_words
from ewan.labs.link.direction import Heading
from ewan.labs.plan import Plan
from ewan.labs.runtime.requests import AppliedChange
from ewan.labs.spec import DescriptionError, from_template

HOST = HostFacts(cpus=(0, 1), networks=())


def plan(**words: str) -> Plan:
    return compile(from_template("dumbbell", {"rtt": "100ms", "rate": "1Gbit/s", **words}), HOST)


def change(text: str, **words: str) -> Change:
    made = plan(**words)
    pairs = dict(word.split("=", 1) for word in text.split())
    return compile_change(made, made.links[0], "forward", wanted(pairs))


def queue_after(text: str, **words: str) -> Queue:
    found = change(text, **words).queue
    assert isinstance(found, Queue)
    return found


def test_a_rate_alone_changes_the_rate_alone() -> None:
    assert change("rate=500Mbit/s") == Change(rate_bps=500_000_000)


def test_a_delay_keeps_the_jitter_that_there_is() -> None:
    assert change("delay=20ms") == Change(delay=ConstantDelay(20_000_000))
    assert change("delay=20ms", jitter="1ms") == Change(delay=NormalDelay(20_000_000, 1_000_000))


def test_a_correlation_stays_until_it_is_taken_away() -> None:
    correlated = {"jitter": "1ms", "correlation": "90%"}
    kept = Change(delay=GaussMarkovDelay(900_000_000, 20_000_000, 1_000_000))
    assert change("delay=20ms", **correlated) == kept
    assert change_words(kept) == "delay=20ms ± 1ms normal correlated 90%"
    assert change("delay=20ms correlation=90%", jitter="1ms") == kept
    assert change("correlation=0%", **correlated) == Change(delay=NormalDelay(50_000_000, 1_000_000))
    assert change("jitter=0ms", **correlated) == Change(delay=ConstantDelay(50_000_000))
    with pytest.raises(DescriptionError, match=r'^CORRELATION "90%": pareto delays are independent: write'):
        change("distribution=pareto", **correlated)


@pytest.mark.parametrize("distribution", ["uniform", "normal", "pareto"])
@pytest.mark.parametrize("reorder", ["true", "false"])
def test_no_jitter_means_a_constant_delay_whatever_the_distribution_was(distribution: str, reorder: str) -> None:
    spread = {"jitter": "1ms", "distribution": distribution, "reorder": reorder}
    assert change("jitter=0ms", **spread) == Change(delay=ConstantDelay(50_000_000))
    assert change("jitter=0ms delay=20ms", **spread) == Change(delay=ConstantDelay(20_000_000))
    assert change("jitter=0ms delay=0ms", **spread) == Change(delay=ConstantDelay(0))


def test_no_jitter_makes_the_mean_of_a_table_the_delay() -> None:
    made = plan()
    link = replace(made.links[0], forward=replace(made.links[0].forward, delay=DelayTable((10_000_000, 20_000_001))))
    assert compile_change(made, link, "forward", wanted({"jitter": "0ms"})) == Change(delay=ConstantDelay(15_000_000))


def test_a_group_of_keys_is_written_as_in_a_description() -> None:
    made = plan()
    asked = wanted({"loss": "{bit-errors: 100ppb}"})
    assert compile_change(made, made.links[0], "forward", asked) == Change(loss=BitErrorLoss(100))
    police = wanted({"police": "{rate: 10Mbit/s, burst: 32kB}"})
    found = compile_change(made, made.links[0], "forward", police)
    assert found == Change(police_bps=10_000_000, police_bytes=32_000)
    assert change_words(found) == "police=10Mbit/s + 32kB"
    displace = wanted({"displace": "{share: 1%, packets: 3}"})
    found = compile_change(made, made.links[0], "forward", displace)
    assert found == Change(displace_ppb=10_000_000, displace_packets=3, displace_within_ns=50_000_000)
    assert change_words(found) == "displace=1% by 3 within 50ms"
    with pytest.raises(DescriptionError, match=r"LOSS.*: write a fraction"):
        wanted({"loss": "{bit-errors: 100}"})


def test_a_medium_is_shared_by_both_directions_and_knows_no_bursts() -> None:
    made = plan()
    heading: Heading = "forward"
    asked = wanted({"duplex": "half"})
    found = compile_change(made, made.links[0], "forward", asked)
    assert found == Change(half_duplex=True) and change_words(found) == "duplex=half"
    check_headings(asked, ("forward", "backward"))
    with pytest.raises(DescriptionError, match="duplex=half: both directions share the medium: write no direction"):
        check_headings(asked, [heading])
    now = after(made.links[0], "forward", found)
    with pytest.raises(DescriptionError, match='write "burst: none"'):
        compile_change(made, now, "forward", wanted({"burst": "30kB"}))
    both = compile_change(made, now, "forward", wanted({"burst": "30kB", "duplex": "full"}))
    assert both == Change(burst_bytes=30_000, half_duplex=False)


@pytest.mark.parametrize("word", ["distribution=normal", "reorder=true"])
def test_no_jitter_and_a_word_about_its_spread_contradict_each_other(word: str) -> None:
    with pytest.raises(DescriptionError, match=r'write "jitter: 1ms" too'):
        change(f"jitter=0ms {word}", jitter="2ms", distribution="uniform", reorder="true")


def test_a_buffer_in_bdp_means_the_rate_that_is_set_with_it() -> None:
    assert change("buffer=1BDP").queue == Queue(None, 12_500_000, DropTail())
    assert queue_after("rate=100Mbit/s buffer=1BDP").limit_bytes == 1_250_000


def test_a_discipline_keeps_the_limit_and_a_limit_the_discipline() -> None:
    queue = queue_after("queue=codel", buffer="100pkt")
    assert queue.limit_packets == 100 and isinstance(queue.discipline, Codel)
    queue = queue_after("buffer=50pkt", queue="codel")
    assert queue.limit_packets == 50 and isinstance(queue.discipline, Codel)


def test_red_without_thresholds_goes_by_the_buffer_that_there_is() -> None:
    """Not by the default buffer, whose thresholds a smaller queue never reaches."""
    red = queue_after("queue=red", buffer="60pkt").discipline
    assert isinstance(red, Red)
    assert (red.min_bytes, red.max_bytes) == (10 * 1538, 30 * 1538)


def test_a_change_is_told_and_read_back_without_what_stays() -> None:
    made = change("rate=5Mbit/s queue=codel loss=1%")
    told = codec.data_of(made)
    assert told.keys() == {"rate_bps", "queue", "loss"}
    assert codec.from_data(Change, orjson.loads(orjson.dumps(told)), "change") == made
    with pytest.raises(ValueError, match=r"change\.loss\.kind is 'nonsense'"):
        codec.from_data(Change, {"loss": {"kind": "nonsense"}}, "change")
    with pytest.raises(ValueError, match="change has an unknown key 'colour'"):
        codec.from_data(Change, {"colour": 1}, "change")


def test_a_change_in_words() -> None:
    made = change("rate=5Mbit/s delay=20ms loss=0% corrupt=1% reorder=true jitter=1ms buffer=9pkt")
    assert change_words(made) == (
        "rate=5Mbit/s delay=20ms ± 1ms normal reorder=True loss=0% corrupt=1% buffer=9pkt queue=drop-tail"
    )
    assert change_words(change("ecn=bleach blackhole=1.4kB")) == "ecn=bleach blackhole=1.4kB"
    assert change_words(Change(loss=BitErrorLoss(100))) == "loss=bit errors 0.00001%"
    assert change_words(change("burst=32kB peak=2Gbit/s")) == "burst=32kB peak=2Gbit/s"
    assert change_words(change("burst=none police=none")) == "police=none burst=none"
    assert change_words(change("displace=none")) == "displace=none"
    assert change_words(change("acks=filter queue=codel")).startswith("acks=filter buffer=")
    assert change_words(change("acks=keep", acks="filter")) == "acks=keep"
    assert change("peak=2Gbit/s", burst="32kB") == Change(peak_bps=2_000_000_000)
    assert change_words(change("ecn=keep blackhole=none")) == "ecn=keep blackhole=none"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rate=1000", "1000"),
        ("bandwidth=1G", "a link has rate"),
        ("loss=120%", "120%"),
        ("jitter=90ms", "90ms"),
        ("delay=2s", "has room for"),
        (
            "acks=filter queue=fq-codel",
            '^ACKS "filter": fq-codel has several queues.*: write "acks: keep", or drop-tail',
        ),
    ],
)
def test_refused_as_a_description_would_be(text: str, says: str) -> None:
    with pytest.raises(DescriptionError, match=says) as refused:
        change(text)
    assert "\n" not in str(refused.value)


def test_a_filter_of_acks_goes_with_the_queue_that_there_is() -> None:
    assert change("acks=filter", queue="red") == Change(ack_filter=True)
    with pytest.raises(DescriptionError, match=r"^acks=filter: .* has several queues"):
        change("acks=filter", queue="fq-codel")
    with pytest.raises(DescriptionError, match=r"^queue=fq-codel: .* has several queues"):
        change("queue=fq-codel", acks="filter")
    assert change("acks=keep queue=fq-codel", acks="filter").ack_filter is False


def test_when() -> None:
    assert delay_until("+10s") == 10_000_000_000
    assert delay_until("+3600s") == 3_600_000_000_000
    for bad in ("10s", "+10", "+-1s"):
        with pytest.raises(DescriptionError, match="at="):
            delay_until(bad)


def test_a_change_starts_from_the_link_as_it_is() -> None:
    link = plan().links[0]
    past = [
        AppliedChange("core", "forward", Change(delay=ConstantDelay(20_000_000))),
        AppliedChange("core", "forward", change("buffer=50pkt")),
        AppliedChange("other", "forward", Change(rate_bps=1)),
    ]
    now = as_it_is(link, past)
    assert now.backward == link.backward and now.forward.rate_bps == link.forward.rate_bps
    jitter = compile_change(plan(), now, "forward", wanted({"jitter": "1ms"}))
    assert jitter == Change(delay=NormalDelay(20_000_000, 1_000_000))
    queue = compile_change(plan(), now, "forward", wanted({"queue": "codel"})).queue
    assert queue is not None and queue.limit_packets == 50


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rate=500Mbit/s delay=20ms loss=1%", None),
        ("buffer=1MB", None),
        ("jitter=0ms", None),
        ("buffer=100pkt", "its queue counts bytes"),
        ("queue=codel", "its queue is drop_tail"),
        ("delay=20ms jitter=1ms distribution=uniform", 'write "reorder: true"'),
        ("delay=20ms jitter=1ms reorder=true distribution=normal", "no normal distribution"),
    ],
)
def test_a_link_of_the_kernel_takes_what_it_can_do_without_a_loss(text: str, says: str | None) -> None:
    if says is None:
        assert change(text, emulator="kernel") != Change()
        return
    with pytest.raises(DescriptionError, match=says):
        change(text, emulator="kernel")
