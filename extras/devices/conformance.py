"""Checks of a driver's conformance to the protocol: one check a line, made over its own standard input and output.

In: the command that starts the driver, the device's address. Out: checks, each with its finding. The device is set to
many values and is at its defaults afterwards. Only the answers of the driver count."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ParamSpec

import orjson

from ewan.labs.base import codec
from ewan.labs.base.codec import JsonValue, replace
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.hardware.abilities import Abilities, Range, ranges
from ewan.labs.hardware.driver import ANSWERS_S, ENDS_S, PROTOCOL, DeviceDescription, DeviceReading, Driver, DriverError
from ewan.labs.hardware.settings import DeviceSettings
from ewan.labs.link import (
    BernoulliLoss,
    BitErrorLoss,
    Codel,
    ConstantDelay,
    Delay,
    DelayTable,
    Discipline,
    DropTail,
    EveryNthLoss,
    FqCodel,
    GaussMarkovDelay,
    GilbertElliottLoss,
    Loss,
    LossPattern,
    Markov4Loss,
    NoLoss,
    NormalDelay,
    ParetoDelay,
    Pie,
    Queue,
    Red,
    UniformDelay,
)

LONG_LINE = b'{"request": "' + b"x" * 100_000 + b'"}\n'
SERIES_WAIT_S = 0.1


@dataclass(frozen=True, slots=True)
class ConformanceCheck:
    """A requirement, whether it is met, and the finding."""

    what: str
    holds: bool
    found: str = ""


P = ParamSpec("P")
Start = Callable[[], Driver]


def checks(start: Start, address: str, model: str | None, options: Mapping[str, str]) -> Iterator[ConformanceCheck]:
    """Every check, as it is made; the last ones are left out where the first ones fail."""
    try:
        driver = start()
    except DriverError as error:
        yield ConformanceCheck("the program starts", False, str(error))
        return
    with driver:
        test = _Test(driver)
        described: list[DeviceDescription] = []
        yield test.check("describe is well-formed", lambda: _described(driver, address, model, options, described))
        if not described:
            return
        try:
            yield from _of_an_open_device(test, described[0].abilities)
            slowest, what = test.slowest
            yield ConformanceCheck(
                f"answers come within {ANSWERS_S / 2:g} s", slowest < ANSWERS_S / 2, f"slowest {slowest:.3f} s, {what}"
            )
            yield test.check("the program ends with its input", lambda: _ends(driver))
        finally:
            with suppress(DriverError, OSError, ValueError):
                driver.reset()
    yield _other_protocol(start, address, model, options)


def _of_an_open_device(test: _Test, known: Abilities) -> Iterator[ConformanceCheck]:
    driver = test.driver
    first: list[DeviceReading] = []

    def defaults() -> str:
        driver.reset()
        first.append(driver.read())
        return "reset, then read"

    yield test.check("reset and read answer", defaults)
    if not first:
        return
    base = first[0]
    for heading in ("forward", "backward"):
        yield test.check(f"the defaults can be set, {heading}", _round_trip, driver, heading, base.of(heading))
    yield from _of_ranges(test, known, base.forward)
    yield from _of_kinds(test, known, base.forward)
    if known.apart:
        yield test.check("the directions are apart", lambda: _apart(driver, known, base))
    yield test.check(
        "what one set says does not outlive the next", lambda: _round_trip(driver, "forward", base.forward)
    )
    yield from _of_series(test, known)
    if known.counters:
        yield test.check("read counts packets", lambda: _counted(driver))
    for what, line in (
        ("a line that is no JSON is refused", b"what is this\n"),
        ("a list is refused", b"[1, 2]\n"),
        ("an unknown request is refused", b'{"request": "explode"}\n'),
        ("a request without its keys is refused", b'{"request": "set"}\n'),
        ("an unknown direction is refused", _set_line("sideways", base.forward)),
        ("settings with an unknown key are refused", _set_line("forward", base.forward, colour="red")),
        ("settings without a key are refused", _set_line("forward", base.forward, rate_bps=None)),
        ("a line of 100 kB is refused", LONG_LINE),
        ("bytes that are no UTF-8 are refused", b'{"request": "\xff\xfe"}\n'),
    ):
        yield test.check(what, _refused, driver, line)
    yield test.check("refusals changed nothing", lambda: _same(driver.read(), base))

    def back() -> str:
        driver.set("forward", replace(base.forward, delay=ConstantDelay(known.delay.delay_ns.most)))
        driver.reset()
        return _same(driver.read(), base)

    yield test.check("reset brings the defaults back", back)


class _Test:
    """Makes checks, and measures the longest time that an answer took."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.slowest = (0.0, "none")
        exchange = driver.exchange

        def timed(line: bytes, what: str, longest_s: float = ANSWERS_S) -> dict[str, JsonValue]:
            began = time.monotonic()
            try:
                return exchange(line, what, longest_s)
            finally:
                if what != "describe":  # it opens the device
                    self.slowest = max(self.slowest, (time.monotonic() - began, what))

        driver.exchange = timed  # type: ignore[method-assign]

    def check(self, what: str, attempt: Callable[P, str], *words: P.args, **more: P.kwargs) -> ConformanceCheck:
        """The result of `attempt`, which is called with `words`; it returns the finding, or raises _WrongError or
        DriverError."""
        try:
            return ConformanceCheck(what, True, attempt(*words, **more))
        except (_WrongError, DriverError) as error:
            return ConformanceCheck(what, False, str(error))


class _WrongError(Exception):
    """An answer that is not as the protocol demands."""


def _described(
    driver: Driver, address: str, model: str | None, options: Mapping[str, str], found: list[DeviceDescription]
) -> str:
    described = driver.describe(address, model, options)
    found.append(described)
    return f"{described.model}, {described.device}"


def _round_trip(driver: Driver, heading: str, settings: DeviceSettings) -> str:
    driver.set(heading, settings)
    _equal(driver.read().of(heading), settings)
    return "set and read"


def _equal(found: DeviceSettings, wanted: DeviceSettings) -> None:
    here, there = (codec.data_of(_plain(each)) for each in (wanted, found))
    for key, value in here.items():
        if there[key] != value:
            raise _WrongError(f"{key} was set to {_text(value)} and reads {_text(there[key])}")


def _plain(settings: DeviceSettings) -> DeviceSettings:
    """A loss of 0 is none."""
    return replace(settings, loss=NoLoss()) if settings.loss == BernoulliLoss(0) else settings


def _same(found: DeviceReading, wanted: DeviceReading) -> str:
    for heading in ("forward", "backward"):
        _equal(found.of(heading), wanted.of(heading))
    return "as before"


def _text(value: object) -> str:
    return orjson.dumps(value).decode()


def _of_ranges(test: _Test, known: Abilities, base: DeviceSettings) -> Iterator[ConformanceCheck]:
    for name, each in ranges(known).items():
        made = [
            (value, _with(base, known, name, value)) for value in (each.least, each.middle, each.nearest(each.most))
        ]
        yield test.check(
            f"{name}: least, middle and most",
            _round_trips,
            test.driver,
            made,
        )
        if each.step > 1 and each.most - each.least >= each.step:
            yield test.check(f"{name}: between two steps", _between, test.driver, known, base, name, each)
        for value in dict.fromkeys((each.most + each.step, each.least - 1)):
            if value >= 0:
                line = _set_line("forward", _with(base, known, name, value))
                yield test.check(f"{name}: {value} is refused", _refused, test.driver, line)


def _round_trips(driver: Driver, made: Sequence[tuple[int, DeviceSettings]]) -> str:
    for _, settings in made:
        _round_trip(driver, "forward", settings)
    return "; ".join(str(value) for value, _ in made)


def _between(driver: Driver, known: Abilities, base: DeviceSettings, name: str, each: Range) -> str:
    asked = each.least + each.step // 2
    driver.set("forward", _with(base, known, name, asked))
    found = _value(driver.read().forward, name)
    if abs(found - asked) >= each.step or (found - each.least) % each.step:
        raise _WrongError(f"{asked} became {found}, which is no step of {each.step} beside it")
    return f"{asked} became {found}"


def _with(base: DeviceSettings, known: Abilities, name: str, value: int) -> DeviceSettings:
    """`base` with one value; of a stage that has it."""
    match name:
        case "delay.delay_ns":
            return replace(base, delay=ConstantDelay(value))
        case "delay.jitter_ns":
            kind = next(each for each in known.delay.kinds if each not in ("constant", "table"))
            return replace(base, delay=_delay(kind, known.delay.delay_ns.most, value))
        case "loss.ppb":
            kinds = [each for each in known.loss.kinds if each not in ("none", "every_nth", "pattern")]
            return replace(base, loss=_loss("bernoulli" if "bernoulli" in kinds else kinds[0], value))
        case "queue.limit_bytes":
            return replace(base, queue=Queue(None, value, _discipline(known)))
        case "queue.limit_packets":
            return replace(base, queue=Queue(value, None, _discipline(known)))
        case _:
            return replace(base, **{name: value})


def _value(found: DeviceSettings, name: str) -> int:
    place: Any = found
    for part in name.split("."):
        part = {"ppb": "loss_ppb"}.get(part, part)
        place = getattr(place, part)
    return int(place)


def _discipline(known: Abilities) -> Discipline:
    assert known.queue is not None
    return next(made for kind in ("drop_tail", *known.queue.disciplines) if (made := _queue(kind)) is not None)


def _of_kinds(test: _Test, known: Abilities, base: DeviceSettings) -> Iterator[ConformanceCheck]:
    delay, jitter = known.delay.delay_ns, known.delay.jitter_ns
    for kind in known.delay.kinds:
        spread = jitter.nearest(min(jitter.middle, delay.middle // 8)) if jitter is not None else 0
        want = replace(base, delay=_delay(kind, delay.middle, spread))
        yield test.check(f"delay {kind}", _round_trip, test.driver, "forward", want)
    for loss in known.loss.kinds:
        share = known.loss.ppb.nearest(min(known.loss.ppb.middle, 10_000_000)) if known.loss.ppb is not None else 0
        want = replace(base, loss=_loss(loss, share))
        yield test.check(f"loss {loss}", _round_trip, test.driver, "forward", want)
    if known.queue is not None:
        for discipline in known.queue.disciplines:
            made = _queue(discipline)
            if made is None:
                continue
            limit = known.queue.limit_packets or known.queue.limit_bytes
            assert limit is not None
            amount = limit.middle
            queue = Queue(amount, None, made) if known.queue.limit_packets is not None else Queue(None, amount, made)
            want = replace(base, queue=queue)
            yield test.check(f"queue {discipline}", _round_trip, test.driver, "forward", want)
    line = _set_line("forward", base, delay={"kind": "magic", "delay_ns": delay.middle})
    yield test.check("an unknown kind of delay is refused", _refused, test.driver, line)


def _delay(kind: str, delay_ns: int, jitter_ns: int) -> Delay:
    made: dict[str, Delay] = {
        "constant": ConstantDelay(delay_ns),
        "uniform": UniformDelay(delay_ns, jitter_ns),
        "normal": NormalDelay(delay_ns, jitter_ns),
        "gauss_markov": GaussMarkovDelay(500_000_000, delay_ns, jitter_ns),
        "pareto": ParetoDelay(delay_ns, jitter_ns),
        "table": DelayTable((delay_ns,)),
    }
    return made[kind]


def _loss(kind: str, ppb: int) -> Loss:
    made: dict[str, Loss] = {
        "none": NoLoss(),
        "bernoulli": BernoulliLoss(ppb),
        "bit_errors": BitErrorLoss(ppb),
        "gilbert_elliott": GilbertElliottLoss(loss_bad_ppb=ppb, loss_good_ppb=0, to_bad_ppb=ppb, to_good_ppb=ppb),
        "markov4": Markov4Loss(p13_ppb=ppb, p14_ppb=0, p23_ppb=ppb, p31_ppb=ppb, p32_ppb=0),
        "every_nth": EveryNthLoss(100),
        "pattern": LossPattern("0001"),
    }
    return made[kind]


def _queue(kind: str) -> Discipline | None:
    """A discipline of a kind; None for those that need more than a test can choose."""
    made: dict[str, Discipline] = {
        "drop_tail": DropTail(),
        "red": Red(ecn=False, max_bytes=45_000, max_p_ppb=100_000_000, min_bytes=15_000, weight_log2=9),
        "codel": Codel(ecn=False, interval_ns=100_000_000, target_ns=5_000_000),
        "pie": Pie(alpha_mhz=125, beta_mhz=1250, ecn=False, target_ns=15_000_000, update_ns=15_000_000),
        "fq_codel": FqCodel(ecn=False, flows=1024, interval_ns=100_000_000, quantum_bytes=1514, target_ns=5_000_000),
    }
    return made.get(kind)


def _apart(driver: Driver, known: Abilities, base: DeviceReading) -> str:
    other = replace(base.forward, delay=ConstantDelay(known.delay.delay_ns.middle))
    driver.set("backward", base.backward)
    driver.set("forward", other)
    found = driver.read()
    _equal(found.forward, other)
    _equal(found.backward, base.backward)
    return "forward changed, backward did not"


def _of_series(test: _Test, known: Abilities) -> Iterator[ConformanceCheck]:
    driver = test.driver
    if known.series is None:
        yield test.check("series is refused", lambda: _refused(driver, b'{"request": "series", "since": 0}\n'))
        return
    yield test.check("series goes on where it ended", lambda: _goes_on(driver, known))
    yield test.check("series of a future period is empty", lambda: _empty(driver))


def _goes_on(driver: Driver, known: Abilities) -> str:
    assert known.series is not None
    one = driver.series(0)
    time.sleep(SERIES_WAIT_S)
    after = one.first + len(one.forward)
    two = driver.series(after)
    if one.period_ns != known.series.period_ns or two.period_ns != one.period_ns:
        raise _WrongError(f"period_ns is {two.period_ns}, and describe says {known.series.period_ns}")
    if len(one.forward) > known.series.rows:
        raise _WrongError(f"it gave {len(one.forward)} rows, and describe says {known.series.rows}")
    if min([*one.forward, *one.backward, *two.forward, *two.backward], default=0) < 0:
        raise _WrongError("bytes below 0")
    if two.forward and two.first < after:
        raise _WrongError(f"it begins at {two.first}, and was asked for {after}")
    expected = SERIES_WAIT_S * NS_PER_SECOND / two.period_ns
    if two.first == after and not expected / 4 <= len(two.forward) <= expected * 20 + 10:
        raise _WrongError(f"{len(two.forward)} periods of {two.period_ns} ns in {SERIES_WAIT_S} s")
    return f"{len(one.forward)} periods, then {len(two.forward)} more"


def _empty(driver: Driver) -> str:
    rows = driver.series(1 << 40)
    if rows.forward:
        raise _WrongError(f"{len(rows.forward)} rows")
    return "no rows"


def _counted(driver: Driver) -> str:
    counters = driver.read().counters
    if not counters:
        raise _WrongError("it has no counters, and describe says that it counts")
    return "counters in both directions"


def _refused(driver: Driver, line: bytes) -> str:
    answer = driver.exchange(line, "what it must refuse")
    said = answer.get("error")
    if answer.get("ok") is not False or not isinstance(said, str) or not said:
        raise _WrongError(f"it answered {_text(answer)[:100]}")
    if "\n" in said:
        raise _WrongError("its error has several lines")
    return said[:100]


def _set_line(heading: str, settings: DeviceSettings, **changed: object) -> bytes:
    data = codec.data_of(settings) | changed
    request = {
        "request": "set",
        "direction": heading,
        "settings": {k: v for k, v in data.items() if v is not None or k == "queue"},
    }
    return orjson.dumps(request) + b"\n"


def _ends(driver: Driver) -> str:
    began = time.monotonic()
    driver.close()
    took = time.monotonic() - began
    if took >= ENDS_S:
        raise _WrongError(f"it was still there after {ENDS_S:g} s, and was killed")
    return f"after {took:.3f} s"


def _other_protocol(start: Start, address: str, model: str | None, options: Mapping[str, str]) -> ConformanceCheck:
    what = f"protocol {PROTOCOL + 98} is refused"
    request = {
        "request": "describe",
        "protocol": PROTOCOL + 98,
        "address": address,
        "model": model,
        "options": dict(options),
    }
    try:
        with start() as other:
            return ConformanceCheck(what, True, _refused(other, orjson.dumps(request) + b"\n"))
    except (_WrongError, DriverError) as error:
        return ConformanceCheck(what, False, str(error))
