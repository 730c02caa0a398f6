"""Queues of tc without a rate of their own: fifos, CoDel, FQ-CoDel, PIE, RED, SFQ.

See tc-pfifo(8), tc-codel(8), tc-fq_codel(8), tc-pie(8), tc-red(8), tc-sfq(8) and net/sched of Linux.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction as Exact

from ewan.extras.importers.directions import CARD_PACKETS, Setting
from ewan.extras.importers.findings import Findings
from ewan.extras.importers.script import ScriptCommand
from ewan.extras.importers.tc.options import pairs, unknown
from ewan.labs.base.units import Buffer, Duration, Rate
from ewan.labs.base.units.tools import tc_probability, tc_rate, tc_size, tc_time, tc_whole

SIXTEENTH_MHZ = Exact(125, 2)
"""PIE's gains in tc are sixteenths of a hertz."""


@dataclass(slots=True)
class QueueSettings:
    """A queue: its buffer and discipline, with the words they come from.

    `bandwidth`: of RED, the rate by which its average sinks while the queue is empty.
    """

    command: ScriptCommand
    buffer: Buffer
    queue: Setting | None
    words: str
    bandwidth: Rate | None = None


def queue(command: ScriptCommand, kind: str, options: Sequence[str], findings: Findings) -> QueueSettings:
    """A qdisc without a rate of its own, at the end of a branch."""
    reader = QUEUES.get(kind)
    if reader is None:
        why = "is a discipline that has no word in a description"
        findings.cannot(command, kind, why, "take a drop-tail queue of 1000 packets")
        return QueueSettings(command, Buffer("packets", CARD_PACKETS), None, kind)
    return reader(command, options, findings)


def _limited(command: ScriptCommand, given: dict[str, str], default: int, findings: Findings) -> Buffer:
    """The limit of codel and the like, where 0 is the default."""
    return Buffer("packets", findings.read(command, "limit", tc_whole, given.get("limit", "0")) or default)


def _room(command: ScriptCommand, given: dict[str, str], findings: Findings) -> int:
    """The limit of a fifo, whose packets tc reads as bytes: `1k` is 1024."""
    room = findings.read(command, "limit", tc_size, given["limit"]).bytes
    if not room:
        raise findings.error(command.line, f"limit {given['limit']}", "drops every packet: write one of 1 or more")
    return room


def _pfifo(command: ScriptCommand, options: Sequence[str], findings: Findings) -> QueueSettings:
    given = pairs(options, (), command, findings)
    unknown(given, ("limit",), command, findings)
    room = _room(command, given, findings) if "limit" in given else CARD_PACKETS
    return QueueSettings(command, Buffer("packets", room), None, "pfifo")


def _pfifo_fast(command: ScriptCommand, options: Sequence[str], findings: Findings) -> QueueSettings:
    why = "orders packets by their TOS bits, which a description says with classes of DSCP"
    findings.note(command, f"pfifo_fast {why}: taken as one queue")
    return QueueSettings(command, Buffer("packets", CARD_PACKETS), None, "pfifo_fast")


def _bfifo(command: ScriptCommand, options: Sequence[str], findings: Findings) -> QueueSettings:
    given = pairs(options, (), command, findings)
    unknown(given, ("limit",), command, findings)
    if "limit" not in given:
        raise findings.error(command.line, command.text, "says no limit, and tc takes it from the card: write limit")
    return QueueSettings(command, Buffer("bytes", _room(command, given, findings)), None, "bfifo")


def _codel_words(given: dict[str, str], command: ScriptCommand, findings: Findings) -> dict[str, Setting]:
    target = findings.read(command, "target", tc_time, given.get("target", "5ms"))
    interval = findings.read(command, "interval", tc_time, given.get("interval", "100ms"))
    if "ce_threshold" in given:
        findings.cannot(command, f"ce_threshold {given['ce_threshold']}", "has no word in a description")
    return {"target": str(target), "interval": str(interval)}


def _codel(command: ScriptCommand, options: Sequence[str], findings: Findings) -> QueueSettings:
    given = pairs(options, ("ecn", "noecn"), command, findings)
    unknown(given, ("limit", "target", "interval", "ecn", "noecn", "ce_threshold"), command, findings)
    words = _codel_words(given, command, findings) | {"ecn": _word("ecn" in given)}
    return QueueSettings(command, _limited(command, given, 1000, findings), {"codel": words}, "codel")


def _fq_codel(command: ScriptCommand, options: Sequence[str], findings: Findings) -> QueueSettings:
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
    unknown(given, known, command, findings)
    words = _codel_words(given, command, findings)
    words |= {
        "flows": str(findings.read(command, "flows", tc_whole, given.get("flows", "1024"))),
        "quantum": f"{findings.read(command, 'quantum', tc_whole, given.get('quantum', '1514'))}B",
    }
    words |= {"ecn": _word("noecn" not in given)}
    for key, default in (("memory_limit", "32mb"), ("drop_batch", "64")):
        if given.get(key, default).lower() != default:
            findings.cannot(
                command, f"{key} {given[key]}", f"is other than {default}, and has no word in a description"
            )
    return QueueSettings(command, _limited(command, given, 10240, findings), {"fq-codel": words}, "fq_codel")


def _pie(command: ScriptCommand, options: Sequence[str], findings: Findings) -> QueueSettings:
    flags = ("ecn", "noecn", "bytemode", "nobytemode", "dq_rate_estimator", "no_dq_rate_estimator")
    given = pairs(options, flags, command, findings)
    unknown(given, ("limit", "target", "tupdate", "alpha", "beta", *flags), command, findings)
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
    return QueueSettings(command, _limited(command, given, 1000, findings), {"pie": words}, "pie")


RED_BANDWIDTH = "10Mbit"
"""The value that tc takes where `bandwidth` is absent."""
MOST_RED_WEIGHT = 20


def _red(command: ScriptCommand, options: Sequence[str], findings: Findings) -> QueueSettings:
    """Defaults are those of tc (tc-red(8), Floyd's recommendations); the weight is worked out as it does."""
    flags = ("ecn", "harddrop", "nodrop", "adaptive")
    given = pairs(options, flags, command, findings)
    known = ("limit", "min", "max", "avpkt", "burst", "probability", "bandwidth", *flags)
    unknown(given, known, command, findings)
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
    return QueueSettings(command, Buffer("bytes", limit), {"red": words}, "red", bandwidth)


def _red_weight(
    command: ScriptCommand, given: dict[str, str], least: int, most: int, average: int, findings: Findings
) -> int:
    """The n of the average's 2^-n by which `burst` packets reach min (tc_red_eval_ewma of iproute2)."""
    text = given.get("burst", str((2 * least + most) // (3 * average)))
    burst = findings.read(command, "burst", tc_whole, text)
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


def _sfq(command: ScriptCommand, options: Sequence[str], findings: Findings) -> QueueSettings:
    given = pairs(options, ("headdrop", "ecn", "harddrop"), command, findings)
    known = ("limit", "perturb", "quantum")
    given = {key: value for key, value in given.items() if (key, value) not in (("depth", "127"), ("divisor", "1024"))}
    for key in [key for key in given if key not in known]:
        findings.cannot(command, f"{key} {given[key]}".strip(), "is of an SFQ that has no word in a description")
    words: dict[str, Setting] = {"flows": "1024"}
    if seconds := findings.read(command, "perturb", tc_whole, given.get("perturb", "0")):
        words["perturb"] = str(findings.read(command, "perturb", Duration.parse, f"{seconds}s"))
    if "quantum" in given:
        words["quantum"] = str(findings.read(command, "quantum", tc_size, given["quantum"]))
    return QueueSettings(command, _limited(command, given, 127, findings), {"sfq": words}, "sfq")


def _word(value: bool) -> str:
    return "true" if value else "false"


QUEUES: dict[str, Callable[[ScriptCommand, Sequence[str], Findings], QueueSettings]] = {
    "pfifo": _pfifo,
    "pfifo_fast": _pfifo_fast,
    "bfifo": _bfifo,
    "codel": _codel,
    "fq_codel": _fq_codel,
    "pie": _pie,
    "red": _red,
    "sfq": _sfq,
}
