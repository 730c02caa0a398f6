"""Token buckets and queues of tc: tbf, classes of HTB, and the queues below them.

See tc-tbf(8), tc-htb(8), tc-pfifo(8), tc-codel(8), tc-fq_codel(8), tc-pie(8), tc-red(8), tc-sfq(8) and net/sched of
Linux.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction as Exact

from ewan.extras.importers.findings import Findings
from ewan.extras.importers.legs import CARD_PACKETS, Setting
from ewan.extras.importers.script import Command
from ewan.extras.importers.tc.tree import Class
from ewan.labs.base.units import Buffer, Duration, Rate, Size
from ewan.labs.base.units.tools import tbf_limit, tc_probability, tc_rate, tc_size, tc_time

ONE_PACKET = Size.parse("2000B")
"""A bucket up to this holds one packet of 1514 bytes and never two: it is no burst."""
FULL_FRAME = Size.parse("1514B")
SIXTEENTH_MHZ = Exact(125, 2)
"""PIE's gains in tc are sixteenths of a hertz."""


@dataclass(slots=True)
class Shaper:
    """A rate. `limit`: bytes that wait for it where nothing is below it; None for a class."""

    command: Command
    rate: Rate
    burst: Size | None = None
    peak: Rate | None = None
    limit: Size | None = None


@dataclass(slots=True)
class Held:
    """A queue: its buffer and discipline, with the words they come from.

    `bandwidth`: of RED, the rate by which its average sinks while the queue is empty.
    """

    command: Command
    buffer: Buffer
    queue: Setting | None
    words: str
    bandwidth: Rate | None = None


def pairs(words: Sequence[str], flags: Sequence[str], command: Command, findings: Findings) -> dict[str, str]:
    """`key value` pairs and flags; ImportingError where a value is missing."""
    found: dict[str, str] = {}
    left = list(words)
    while left:
        key = left.pop(0)
        if key in flags:
            found[key] = ""
        elif not left:
            raise findings.error(command.line, command.text, f"{key} has no value: write it")
        else:
            found[key] = left.pop(0)
    return found


def _unknown(given: dict[str, str], known: Sequence[str], command: Command, findings: Findings) -> None:
    for key in given:
        if key not in known:
            raise findings.error(
                command.line, key, f"is no option that can be read here: write one of {', '.join(known)}"
            )


def bucket(text: str) -> Size:
    """`6000/16` has the size of a cell behind it, which old kernels needed."""
    return tc_size(text.split("/")[0])


def tbf(command: Command, options: Sequence[str], findings: Findings) -> Shaper:
    """ImportingError for what tc refuses, and for a second bucket that holds more than a packet."""
    given = pairs(options, (), command, findings)
    alike = {"buffer": "burst", "maxburst": "burst", "minburst": "mtu"}
    given = {alike.get(key, key): value for key, value in given.items()}
    _unknown(
        given,
        ("rate", "burst", "latency", "limit", "peakrate", "mtu", "mpu", "overhead", "linklayer"),
        command,
        findings,
    )
    missing = [key for key in ("rate", "burst") if key not in given]
    if missing or ("latency" in given) == ("limit" in given):
        what = missing[0] if missing else "latency or limit, one of them"
        raise findings.error(command.line, command.text, f"tbf needs {what}: write it")
    rate = findings.read(command, "rate", tc_rate, given["rate"])
    burst = findings.read(command, "burst", bucket, given["burst"])
    if burst < FULL_FRAME:
        findings.cannot(
            command, f"burst {burst}", f"is less than a packet, and tbf drops such: write {FULL_FRAME} or more"
        )
    shaper = Shaper(command, rate, burst if burst > ONE_PACKET else None)
    if "peakrate" in given:
        peak = findings.read(command, "peakrate", tc_rate, given["peakrate"])
        least = findings.read(command, "mtu", bucket, given.get("mtu", "0"))
        if least > ONE_PACKET:
            why = f"lets {least} pass at once above the peak rate, which has no word in a description"
            findings.cannot(command, f"mtu {given['mtu']}", why)
        shaper.peak = peak if shaper.burst else None
    if "limit" in given:
        shaper.limit = findings.read(command, "limit", tc_size, given["limit"])
    else:
        latency = findings.read(command, "latency", tc_time, given["latency"])
        shaper.limit = tbf_limit(rate, latency, burst)
        if "peakrate" in given:
            shaper.limit = min(shaper.limit, tbf_limit(peak, latency, least))
    _sizes(given, command, findings)
    return shaper


def _sizes(given: dict[str, str], command: Command, findings: Findings) -> None:
    for key, why in (
        ("mpu", "counts short packets as longer ones, which has no word in a description"),
        ("overhead", "is no longer read by Linux here: write it as stab overhead, or leave it out"),
        ("linklayer", "counts cells, which has no word in a description"),
    ):
        if given.get(key, "0") not in ("0", "ethernet"):
            findings.cannot(command, f"{key} {given[key]}", why)


@dataclass(frozen=True, slots=True)
class HtbClass:
    """`ceil` is at least `rate`. `burst`: what passes at once, the smaller bucket; None for a packet."""

    rate: Rate
    ceil: Rate
    burst: Size | None


def htb(of: Class, findings: Findings) -> HtbClass:
    """A class alone; what it may borrow, `leaf` decides."""
    command = of.command
    given = pairs(of.options, (), command, findings)
    alike = {"buffer": "burst", "maxburst": "burst", "cbuffer": "cburst", "cmaxburst": "cburst"}
    given = {alike.get(key, key): value for key, value in given.items()}
    known = ("rate", "ceil", "burst", "cburst", "prio", "quantum", "mtu", "mpu", "overhead", "linklayer")
    _unknown(given, known, command, findings)
    if "rate" not in given:
        raise findings.error(command.line, command.text, "a class of HTB needs rate: write it")
    rate = findings.read(command, "rate", tc_rate, given["rate"])
    ceil = findings.read(command, "ceil", tc_rate, given["ceil"]) if "ceil" in given else rate
    if ceil < rate:
        raise findings.error(
            command.line, command.text, f"ceil {ceil} is below rate {rate}: write the one that is meant"
        )
    _sizes(given, command, findings)
    buckets = [findings.read(command, key, bucket, given[key]) for key in ("burst", "cburst") if key in given]
    depth = min(buckets) if len(buckets) == 2 else None
    if len(buckets) == 1:
        findings.note(command, "of burst and cburst only one is written: the other one is a packet, so nothing bursts")
    return HtbClass(rate, ceil, depth if depth is not None and depth > ONE_PACKET else None)


def htb_root(command: Command, options: Sequence[str], findings: Findings) -> tuple[int, Held]:
    """The minor number of the default class (0: none), and the queue of packets that no class limits."""
    given = pairs(options, ("offload",), command, findings)
    _unknown(given, ("default", "r2q", "direct_qlen", "offload"), command, findings)
    text = given.get("default", "0")
    try:
        minor = int(text, 16)
    except ValueError:
        raise findings.error(command.line, f"default {text}", 'is no class: write one like "10"') from None
    packets = _limited(
        command, {"limit": given["direct_qlen"]} if "direct_qlen" in given else {}, CARD_PACKETS, findings
    )
    return minor & 0xFFFF, Held(command, packets, None, "direct_qlen")


def known_bands(command: Command, options: Sequence[str], findings: Findings) -> int:
    """How many bands a prio has."""
    left, bands = list(options), 3
    while left:
        key = left.pop(0)
        if key == "bands" and left and left[0].isdecimal():
            bands = int(left.pop(0))
        elif key == "priomap":
            while left and left[0].isdecimal():
                left.pop(0)
        elif key not in ("multiqueue", "nomultiqueue"):
            raise findings.error(command.line, key, 'is no option of prio that can be read here: write "bands 3"')
    return bands


def queue(command: Command, kind: str, options: Sequence[str], findings: Findings) -> Held:
    """A qdisc without a rate of its own, at the end of a branch."""
    reader = QUEUES.get(kind)
    if reader is None:
        why = "is a discipline that has no word in a description"
        findings.cannot(command, kind, why, "take a drop-tail queue of 1000 packets")
        return Held(command, Buffer("packets", CARD_PACKETS), None, kind)
    return reader(command, options, findings)


def _limited(command: Command, given: dict[str, str], default: int, findings: Findings) -> Buffer:
    text = given.get("limit", str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise findings.error(command.line, f"limit {text}", 'is no number of packets: write one, like "1000"')
    return Buffer("packets", int(text))


def _pfifo(command: Command, options: Sequence[str], findings: Findings) -> Held:
    given = pairs(options, (), command, findings)
    _unknown(given, ("limit",), command, findings)
    return Held(command, _limited(command, given, CARD_PACKETS, findings), None, "pfifo")


def _pfifo_fast(command: Command, options: Sequence[str], findings: Findings) -> Held:
    why = "orders packets by their TOS bits, which a description says with classes of DSCP"
    findings.note(command, f"pfifo_fast {why}: taken as one queue")
    return Held(command, Buffer("packets", CARD_PACKETS), None, "pfifo_fast")


def _bfifo(command: Command, options: Sequence[str], findings: Findings) -> Held:
    given = pairs(options, (), command, findings)
    _unknown(given, ("limit",), command, findings)
    if "limit" not in given:
        raise findings.error(command.line, command.text, "says no limit, and tc takes it from the card: write limit")
    return Held(command, Buffer("bytes", findings.read(command, "limit", tc_size, given["limit"]).bytes), None, "bfifo")


def _codel_words(given: dict[str, str], command: Command, findings: Findings) -> dict[str, Setting]:
    target = findings.read(command, "target", tc_time, given.get("target", "5ms"))
    interval = findings.read(command, "interval", tc_time, given.get("interval", "100ms"))
    if "ce_threshold" in given:
        findings.cannot(command, f"ce_threshold {given['ce_threshold']}", "has no word in a description")
    return {"target": str(target), "interval": str(interval)}


def _codel(command: Command, options: Sequence[str], findings: Findings) -> Held:
    given = pairs(options, ("ecn", "noecn"), command, findings)
    _unknown(given, ("limit", "target", "interval", "ecn", "noecn", "ce_threshold"), command, findings)
    words = _codel_words(given, command, findings) | {"ecn": _word("ecn" in given)}
    return Held(command, _limited(command, given, 1000, findings), {"codel": words}, "codel")


def _fq_codel(command: Command, options: Sequence[str], findings: Findings) -> Held:
    given = pairs(options, ("ecn", "noecn"), command, findings)
    known = (
        "limit",
        "flows",
        "target",
        "interval",
        "quantum",
        "ecn",
        "noecn",
        "ce_threshold",
        "memory_limit",
        "drop_batch",
    )
    _unknown(given, known, command, findings)
    words = _codel_words(given, command, findings)
    words |= {"flows": given.get("flows", "1024"), "quantum": f"{given.get('quantum', '1514')}B"}
    words |= {"ecn": _word("noecn" not in given)}
    for key, default in (("memory_limit", "32mb"), ("drop_batch", "64")):
        if given.get(key, default).lower() != default:
            findings.cannot(
                command, f"{key} {given[key]}", f"is other than {default}, and has no word in a description"
            )
    return Held(command, _limited(command, given, 10240, findings), {"fq-codel": words}, "fq_codel")


def _pie(command: Command, options: Sequence[str], findings: Findings) -> Held:
    flags = ("ecn", "noecn", "bytemode", "nobytemode", "dq_rate_estimator", "no_dq_rate_estimator")
    given = pairs(options, flags, command, findings)
    _unknown(given, ("limit", "target", "tupdate", "alpha", "beta", *flags), command, findings)
    if "dq_rate_estimator" in given:
        findings.cannot(
            command, "dq_rate_estimator", "estimates the delay otherwise, which has no word in a description"
        )
    if "bytemode" in given:
        findings.cannot(command, "bytemode", "scales drops by the packet's length, which has no word in a description")
    words: dict[str, Setting] = {
        "target": str(findings.read(command, "target", tc_time, given.get("target", "15ms"))),
        "update": str(findings.read(command, "tupdate", tc_time, given.get("tupdate", "15ms"))),
        "ecn": _word("ecn" in given),
    }
    for key, default in (("alpha", "2"), ("beta", "20")):
        text = given.get(key, default)
        gain = SIXTEENTH_MHZ * int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else Exact(1, 2)
        if gain.denominator != 1:
            raise findings.error(command.line, f"{key} {text}", "is no even number of sixteenths of a hertz: write one")
        words[key] = f"{int(gain) // 1000}.{int(gain) % 1000:03d}Hz"
    return Held(command, _limited(command, given, 1000, findings), {"pie": words}, "pie")


RED_BANDWIDTH = "10Mbit"
"""What tc takes where `bandwidth` is absent."""
MOST_RED_WEIGHT = 20


def _red(command: Command, options: Sequence[str], findings: Findings) -> Held:
    """Defaults are those of tc (tc-red(8), Floyd's recommendations); the weight is worked out as it does."""
    flags = ("ecn", "harddrop", "nodrop", "adaptive")
    given = pairs(options, flags, command, findings)
    known = ("limit", "min", "max", "avpkt", "burst", "probability", "bandwidth", *flags)
    _unknown(given, known, command, findings)
    for key in ("limit", "avpkt"):
        if key not in given:
            raise findings.error(command.line, command.text, f"red needs {key}: write it")
    read = {key: findings.read(command, key, tc_size, given.get(key, "0")).bytes for key in known[:4]}
    for key, size in read.items():
        if size >= 1 << 32:
            raise findings.error(command.line, f"{key} {given[key]}", "is more than tc takes: write less than 4 GiB")
    limit, average = read["limit"], read["avpkt"]
    most = read["max"] or read["min"] * 3 or limit // 4
    least = read["min"] or most // 3
    if not average or not limit or not 0 < least < most:
        why = f"min is {least} B and max {most} B there: write limit, avpkt and a min below max"
        raise findings.error(command.line, command.text, why)
    weight = _red_weight(command, given, least, most, average, findings)
    if "adaptive" in given:
        why = "moves max_p by itself, which has no word in a description"
        findings.cannot(command, "adaptive", why, "hold max_p where it starts")
    if "nodrop" in given:
        findings.cannot(command, "nodrop", "keeps what cannot be marked, which has no word in a description")
    if "ecn" in given and "harddrop" not in given:
        findings.note(command, "ecn without harddrop marks above max too; here what is above max is dropped")
    findings.note(
        command,
        f"tc's red drops or marks all above max; a description's is gentle: from max to 2 max its share grows to 1. "
        f"Its average sinks in an empty queue by a step for each packet that could pass, not for each {average} B",
    )
    words: dict[str, Setting] = {
        "min": f"{least}B",
        "max": f"{most}B",
        "max_p": str(findings.read(command, "probability", tc_probability, given.get("probability", "0.02"))),
        "weight": str(weight),
        "ecn": _word("ecn" in given),
    }
    bandwidth = findings.read(command, "bandwidth", tc_rate, given.get("bandwidth", RED_BANDWIDTH))
    return Held(command, Buffer("bytes", limit), {"red": words}, "red", bandwidth)


def _red_weight(
    command: Command, given: dict[str, str], least: int, most: int, average: int, findings: Findings
) -> int:
    """The n of the average's 2^-n by which `burst` packets reach min (tc_red_eval_ewma of iproute2)."""
    text = given.get("burst", str((2 * least + most) // (3 * average)))
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise findings.error(command.line, f"burst {text}", 'is no number of packets: write one, like "55"')
    burst = int(text)
    wanted = burst + 1 - least / average
    if wanted < 1:
        raise findings.error(
            command.line, command.text, f'tc refuses burst {text} as too small: write "burst {1 + least // average}"'
        )
    for number in range(1, 32):
        share = 2.0**-number
        if wanted <= (1 - (1 - share) ** burst) / share:
            if number > MOST_RED_WEIGHT or max(least, most).bit_length() + number > 32:
                break
            return number
    raise findings.error(
        command.line, command.text, f"burst {text} is more than a description has: write a smaller one"
    )


def _sfq(command: Command, options: Sequence[str], findings: Findings) -> Held:
    given = pairs(options, ("headdrop", "ecn", "harddrop"), command, findings)
    known = ("limit", "perturb", "quantum")
    given = {key: value for key, value in given.items() if (key, value) not in (("depth", "127"), ("divisor", "1024"))}
    for key in [key for key in given if key not in known]:
        findings.cannot(command, f"{key} {given[key]}".strip(), "is of an SFQ that has no word in a description")
    words: dict[str, Setting] = {"flows": "1024"}
    if given.get("perturb", "0") != "0":
        seconds = given["perturb"]
        words["perturb"] = str(findings.read(command, "perturb", lambda text: Duration.parse(f"{text}s"), seconds))
    if "quantum" in given:
        words["quantum"] = str(findings.read(command, "quantum", tc_size, given["quantum"]))
    return Held(command, _limited(command, given, 127, findings), {"sfq": words}, "sfq")


def _word(value: bool) -> str:
    return "true" if value else "false"


QUEUES: dict[str, Callable[[Command, Sequence[str], Findings], Held]] = {
    "pfifo": _pfifo,
    "pfifo_fast": _pfifo_fast,
    "bfifo": _bfifo,
    "codel": _codel,
    "fq_codel": _fq_codel,
    "pie": _pie,
    "red": _red,
    "sfq": _sfq,
}
