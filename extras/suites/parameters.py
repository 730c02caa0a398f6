"""The parameters of HSTTS: the given ones, the derived ones, and contradictions. Pure.

In: words as on the command line (`{"RATE": "1G", "CG": "1.0"}`), the application's defaults. Out: `Parameters`, every
one decided, and notes on those outside the ranges of the poster (Guillier and Vicat-Blanc Primet, "High Speed Transport
Protocol Test Suite", table "Parameter range"). Two relations tie them: K = C/C_a and C_g = M·C_a/C = M/K; a third is R
= N_r·C_a/C. Arithmetic is exact; impossible values are refused in one line, with the arithmetic."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction as Exact

from ewan.extras.suites import background
from ewan.labs.base.source import DescriptionError
from ewan.labs.base.units import Buffer, Duration, Fraction, Rate, UnitError

MIX = ("1ms", "20ms", "200ms")
"""The poster's RTTs; "Mix" gives them to the pairs in turn."""


@dataclass(frozen=True, slots=True)
class ParameterRange:
    """A parameter: its word, its symbol on the poster, its meaning, the poster's values and their span."""

    word: str
    symbol: str
    meaning: str
    values: str
    low: Exact | None = None
    high: Exact | None = None


RANGES = (
    ParameterRange("RTT", "RTT", "base RTT; Mix: 1, 20 and 200 ms in turn over the pairs", "1ms, 20ms, 200ms, Mix"),
    ParameterRange("RATE", "C", "capacity of the bottleneck", "C_a·K"),
    ParameterRange("CA", "C_a", "capacity of each source's access link", "100M, 1G, 10G"),
    ParameterRange("K", "K = C/C_a", "aggregation level", "1, 10, 1000", Exact(1), Exact(1000)),
    ParameterRange("M", "M", "multiplexing factor: sources that contribute", "1, about K, far above K"),
    ParameterRange("CG", "C_g = M·C_a/C", "congestion level", "0.8, 1.0, 2.0", Exact("0.8"), Exact(2)),
    ParameterRange("NS", "N_s", "parallel streams of each source", "1, 5, 10", Exact(1), Exact(10)),
    ParameterRange(
        "R", "R = N_r·C_a/C", "reverse traffic level, from N_r further pairs", "0, 0.8, 1.5", Exact(0), Exact("1.5")
    ),
    ParameterRange(
        "B",
        "B",
        "background traffic: none, light and heavy web, CBR, VBR-Poisson, VBR-Pareto, VBR-Weibull",
        "0, WMI, WMII",
    ),
    ParameterRange("MTU", "MTU", "largest IP packet in bytes", "not given: 1500"),
    ParameterRange("LOSS", "loss rate", "on the bottleneck, both ways", "not given: 0%"),
    ParameterRange("BUFFER", "buffer size", "of the bottleneck, both ways", "not given: 1BDP"),
)
_RTT_SPAN = (Duration.parse("1ms"), Duration.parse("200ms"))
_CA_SPAN = (Rate.parse("100M"), Rate.parse("10G"))
_NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?|[0-9]{1,20}/[1-9][0-9]{0,19}")
MOST_SOURCES = 20_000
MOST_STREAMS = 1000


@dataclass(frozen=True, slots=True)
class Defaults:
    """The values that an application takes by default."""

    rate: str
    rtt: str
    k: str = "10"
    cg: str = "2.0"
    r: str = "0"


@dataclass(frozen=True, slots=True)
class Parameters:
    """All parameters with their values. Elsewhere than in a dumbbell, None stands for the topology's own value."""

    rtt: str
    rate: Rate
    access: Rate | None
    k: Exact | None
    m: int | None
    cg: Exact | None
    streams: int
    r: Exact
    reverse: int
    background: str
    mtu: int | None
    loss: str | None
    buffer: str | None
    notes: tuple[str, ...]

    def text(self) -> str:
        """All of them in one line."""
        words = [f"RTT = {self.rtt}", f"C = {self.rate}"]
        if self.access is not None:
            words.append(f"C_a = {self.access}")
        if self.k is not None and self.cg is not None:
            words += [f"K = {short(self.k)}", f"M = {self.m}", f"C_g = {short(self.cg)}"]
            words.append(f"R = {short(self.r)}")
        words += [f"N_s = {self.streams}", f"B = {self.background}"]
        rest = {"buffer": self.buffer, "MTU": None if self.mtu is None else f"{self.mtu} B", "loss": self.loss}
        return ", ".join([*words, *(f"{key} = {value}" for key, value in rest.items() if value is not None)])


def short(value: Exact) -> str:
    """A number for reading: `0.5`, `10`, `0.333333`."""
    return f"{float(value):.6g}"


def resolve(given: Mapping[str, str], defaults: Defaults, *, one_source: bool = False) -> Parameters:
    """The parameters of a dumbbell; DescriptionError, one line, for impossible values and contradictions.

    `one_source`: the application has a single source (TU)."""
    known = _Relations(given)
    if one_source:
        known.only_source()
    known.settle()
    for word, text in (("K", defaults.k), ("RATE", defaults.rate), ("CG", defaults.cg)):
        known.default(word, text)
    rate, access, k, cg = known.rate("RATE"), known.rate("CA"), known.values["K"], known.values["CG"]
    m = known.whole("M", "C_g·K", "sources")
    if not 1 <= m <= MOST_SOURCES:
        raise known.error(("CG", "K"), f"M = {m} sources: write 1 to {MOST_SOURCES}")
    reverse = _reverse(given, known, defaults.r)
    return _Common(given, defaults).parameters(rate, access, k, m, cg, *reverse)


def elsewhere(given: Mapping[str, str], defaults: Defaults, topology: str) -> Parameters:
    """The parameters where all pairs of a topology send: those that only a dumbbell has are refused."""
    only = [word for word in ("K", "M", "CG", "R") if word in given]
    if only:
        what = " ".join(f"{word}={given[word]}" for word in only)
        raise DescriptionError(
            f"{what}: TOPO={topology} has no single bottleneck with M sources: all its pairs send; leave "
            f"{'it' if len(only) == 1 else 'them'} out, or write TOPO=dumbbell"
        )
    if given.get("RTT", "").lower() == "mix":
        raise DescriptionError(f"RTT=Mix: needs one RTT for each pair, which TOPO={topology} has not: write RTT=20ms")
    rate = _rate("RATE", given.get("RATE", defaults.rate))
    access = _rate("CA", given["CA"]) if "CA" in given else None
    return _Common(given, defaults).parameters(rate, access, None, None, None, Exact(0), 0)


def exactly(value: Exact) -> str:
    """The same without a rest: `0.5`, `10`, `1/3`."""
    text = f"{float(value):.12g}"
    return text if "e" not in text and Exact(text) == value else str(value)


class _Relations:
    """C, C_a, K, M, C_g as far as they are known, and the words that each came from."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self.given = dict(given)
        self.values: dict[str, Exact] = {}
        self.origin: dict[str, tuple[str, ...]] = {}
        for word in ("RATE", "CA"):
            if word in given:
                self._put(word, Exact(_rate(word, given[word]).bps), (word,))
        for word in ("K", "CG"):
            if word in given:
                self._put(word, _positive(word, given[word]), (word,))
        if "M" in given:
            self._put("M", Exact(_count("M", given["M"], MOST_SOURCES)), ("M",))

    def _put(self, word: str, value: Exact, origin: tuple[str, ...]) -> None:
        self.values[word] = value
        self.origin[word] = origin

    def only_source(self) -> None:
        if self.values.get("M", Exact(1)) != 1:
            raise DescriptionError(f"M={self.given['M']}: TU has one source and one sink: leave M out")
        self.given.setdefault("M", "1")
        self._put("M", Exact(1), ("M",))

    def default(self, word: str, text: str) -> None:
        """Sets `word` to `text` where it was neither given nor implied; and the words that follow from it."""
        if word in self.values:
            return
        self.given[word] = text
        self._put(word, Exact(_rate(word, text).bps) if word == "RATE" else _positive(word, text), (word,))
        self.settle()

    def settle(self) -> None:
        """Derives further parameters; an error for a contradiction."""
        for _ in range(2):
            self._product("RATE", "K", "CA", "K = C/C_a")
            self._product("M", "CG", "K", "C_g = M·C_a/C")

    def _product(self, whole: str, left: str, right: str, relation: str) -> None:
        """Derives the third of `whole` = `left` × `right`; `relation` is the definition of `left`."""
        have = [word for word in (whole, left, right) if word in self.values]
        if len(have) < 2:
            return
        origin = tuple(dict.fromkeys(word for name in have for word in self.origin[name]))
        if len(have) == 3:
            implied = self.values[whole] / self.values[right]
            if implied != self.values[left]:
                raise self.error((left, whole, right), f"{relation} = {short(implied)}: leave one out")
        elif whole not in have:
            self._put(whole, self.values[left] * self.values[right], origin)
        elif left not in have:
            self._put(left, self.values[whole] / self.values[right], origin)
        else:
            self._put(right, self.values[whole] / self.values[left], origin)

    def error(self, words: tuple[str, ...], message: str) -> DescriptionError:
        """`CG=1.0 M=5 K=10: …`, with the words that those meant came from."""
        sources = dict.fromkeys(source for word in words for source in self.origin[word])
        return DescriptionError(" ".join(f"{word}={self.given[word]}" for word in sources) + f": {message}")

    def rate(self, word: str) -> Rate:
        """RATE or CA, which may have followed from the others."""
        value = self.values[word]
        symbol, formula = ("C", "K·C_a") if word == "RATE" else ("C_a", "C/K")
        if value.denominator != 1:
            k = self.values["K"]
            nearest = Rate(int(self.values["RATE"] // (k.numerator) * k.numerator))
            message = f"{symbol} = {formula} is not a whole number of bit/s: write RATE={nearest}"
            raise self.error((word,), message)
        if not Rate.LOWEST <= value <= Rate.HIGHEST:
            lowest, highest = Rate(Rate.LOWEST), Rate(Rate.HIGHEST)
            message = f"{symbol} = {formula} = {short(value)} bit/s: write what gives {lowest} to {highest}"
            raise self.error((word,), message)
        return Rate(int(value))

    def whole(self, word: str, formula: str, what: str) -> int:
        value = self.values[word]
        if value.denominator != 1:
            near = max(1, round(value))
            fits = exactly(near / self.values["K"])
            message = f"M = {formula} = {short(value)} is not a whole number of {what}: write CG={fits} (M = {near})"
            raise self.error((word,), message)
        return int(value)


def _reverse(given: Mapping[str, str], known: _Relations, default: str) -> tuple[Exact, int]:
    """R and N_r = R·C/C_a; a default that K cannot have is rounded down."""
    k = known.values["K"]
    if "R" not in given:
        pairs = int(Exact(default) * k)
        return pairs / k, pairs
    r = _number("R", given["R"])
    pairs_exactly = r * k
    if pairs_exactly.denominator != 1:
        near = round(pairs_exactly)
        sources = " ".join(f"{word}={known.given[word]}" for word in known.origin["K"])
        raise DescriptionError(
            f"R={given['R']} {sources}: N_r = R·C/C_a = {short(pairs_exactly)} is not a whole number of pairs: "
            f"write R={exactly(near / k)} (N_r = {near})"
        )
    if pairs_exactly > MOST_SOURCES:
        raise DescriptionError(f"R={given['R']}: N_r = R·C/C_a = {pairs_exactly} pairs: write at most {MOST_SOURCES}")
    return r, int(pairs_exactly)


@dataclass(frozen=True, slots=True)
class _Common:
    """The parameters that depend on no other, and the notes."""

    given: Mapping[str, str]
    defaults: Defaults

    def parameters(
        self, rate: Rate, access: Rate | None, k: Exact | None, m: int | None, cg: Exact | None, r: Exact, reverse: int
    ) -> Parameters:
        rtt = self._rtt()
        streams = _count("NS", self.given.get("NS", "1"), MOST_STREAMS)
        buffer = self.given.get("BUFFER", None if k is None else "1BDP")
        if buffer is not None:
            try:
                limit = Buffer.parse(buffer)
            except UnitError as error:
                raise DescriptionError(f'BUFFER "{buffer}": {error}') from None
            if limit.unit == "millibdp" and rtt == str(Duration(0)):
                raise DescriptionError(f'RTT "{rtt}" has no BDP for a BUFFER of {buffer}: write "BUFFER=100pkt" too')
        loss = self.given.get("LOSS")
        if loss is not None:
            try:
                Fraction.parse(loss)
            except UnitError as error:
                raise DescriptionError(f'LOSS "{loss}": {error}') from None
        mtu = None
        if "MTU" in self.given:
            mtu = _count("MTU", self.given["MTU"], 65535)
            if mtu < 576:
                raise DescriptionError(f'MTU "{mtu}": write the largest IP packet in bytes, from 576 to 65535')
        notes = self._notes(rtt, access, {"K": k, "CG": cg, "NS": Exact(streams), "R": r})
        return Parameters(
            rtt, rate, access, k, m, cg, streams, r, reverse, self._background(), mtu, loss, buffer, notes
        )

    def _rtt(self) -> str:
        text = self.given.get("RTT", self.defaults.rtt)
        if text.lower() == "mix":
            return "Mix"
        try:
            return str(Duration.parse(text, 2 * Duration.LONGEST))
        except UnitError as error:
            raise DescriptionError(f'RTT "{text}": {error}, or Mix') from None

    def _background(self) -> str:
        text = self.given.get("B", "0")
        word = background.named(text)
        if word is None:
            known = ", ".join(background.WORDS)
            raise DescriptionError(f'B "{text}": write one of {known} (web, constant or variable bit rate)')
        return word

    def _notes(self, rtt: str, access: Rate | None, numbers: Mapping[str, Exact | None]) -> tuple[str, ...]:
        """Notes on parameters that the poster does not span."""
        notes = []
        if rtt != "Mix" and not _RTT_SPAN[0] <= Duration.parse(rtt, 2 * Duration.LONGEST) <= _RTT_SPAN[1]:
            notes.append(f"RTT = {rtt} is outside the poster's {_RTT_SPAN[0]} to {_RTT_SPAN[1]}")
        if access is not None and not _CA_SPAN[0] <= access <= _CA_SPAN[1]:
            notes.append(f"C_a = {access} is outside the poster's {_CA_SPAN[0]} to {_CA_SPAN[1]}")
        for span in RANGES:
            value = numbers.get(span.word)
            if value is None or span.low is None or span.high is None or span.low <= value <= span.high:
                continue
            symbol, posters = span.symbol.split(" ")[0], f"{short(span.low)} to {short(span.high)}"
            notes.append(f"{symbol} = {short(value)} is outside the poster's {posters}")
        return tuple(notes)


def _rate(word: str, text: str) -> Rate:
    try:
        return Rate.parse(text)
    except UnitError as error:
        raise DescriptionError(f'{word} "{text}": {error}') from None


def _number(word: str, text: str) -> Exact:
    if not _NUMBER.fullmatch(text.strip()):
        raise DescriptionError(f'{word} "{text}": write a plain number, like {word}=1.0')
    return Exact(text.strip())


def _positive(word: str, text: str) -> Exact:
    value = _number(word, text)
    if value == 0:
        raise DescriptionError(f'{word} "{text}": write a number above 0')
    return value


def _count(word: str, text: str, most: int) -> int:
    if not re.fullmatch(r"[0-9]{1,20}", text.strip()) or not 1 <= int(text) <= most:
        raise DescriptionError(f'{word} "{text}": write a whole number from 1 to {most}')
    return int(text)


def markdown() -> str:
    """The parameters as rows of a table: word, symbol, meaning, the poster's values."""
    rows = [f"| `{each.word}` | {each.symbol} | {each.meaning} | {each.values} |" for each in RANGES]
    return "\n".join(["| word | poster | meaning | poster's values |", "|---|---|---|---|", *rows])
