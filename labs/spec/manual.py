"""The page about the description format, made from the models in `ewan.labs.spec.fields`.

Comes in: nothing. Goes out: Markdown with every key, its type, its meaning with the default, and an example.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic.json_schema import JsonSchemaValue
from pydantic_core import to_jsonable_python

from ewan.labs.base.model import Model
from ewan.labs.base.units import MEGA
from ewan.labs.link.bucket import PoliceKeys
from ewan.labs.link.disciplines import KINDS, Kind
from ewan.labs.link.displace import DisplaceKeys
from ewan.labs.link.loss import GilbertElliottKeys, LossKeys, MarkovKeys
from ewan.labs.link.queue import TARGETED, QueueKeys
from ewan.labs.link.radio import AggregateKeys, HarqKeys
from ewan.labs.link.trace import TraceKeys
from ewan.labs.spec import fields

_INTRODUCTION = """# The lab description

Made from the models in `labs/spec/fields`; do not edit.

A description is a YAML file (`NAME.lab.yaml`). `ewan lab FILE` takes it by its path; `ewan lab NAME` takes
`NAME.lab.yaml` of the current directory, else that of `labs/library`. The name of a template (`dumbbell`) always means
the template.

The smallest description is `topology: dumbbell`. Every number has its unit. Unknown keys are refused, and so is a value
that would have to be rounded. Where no default is named, the key is required. On the command line the same settings are
`--rtt`, `--rate` and so on (`make`: `RTT=`, `RATE=`). Those of a link replace what `wan:` says; settings of a single
direction or a single link stay.

```yaml
name: long-and-lossy
topology: {dumbbell: {pairs: 2}}
rtt: 100ms
wan: {rate: 1Gbit/s, buffer: 1BDP, loss: 0.1%, backward: {rate: 100Mbit/s}}
links: {core: {queue: codel}}
```

| quantity | written as | not as |
|---|---|---|
| rate | `1Gbit/s`, `100Mbit/s`, `8kbit/s`, `1G`, `10Gbps`; 8 kbit/s to 1 Tbit/s | `1000`, `1GB/s` |
| duration | `100ms`, `1.5s`, `20us`, `7ns`; 0 to 10 s (an RTT to 20 s) | `100` |
| size | `1500B`, `500kB`, `1MiB` | `1500` |
| fraction | `0.1%`, `100ppm`, `5ppb` | `0.001` |
| buffer | `1BDP` (rate × longest RTT), `255pkt`, `500kB`, `100ms` (at the link's rate) | `255` |

A link's settings are looked up in this order: the link's direction, the link (`links:`), the direction in `wan:` or
`access:`, `wan:` or `access:`, the default. In each direction a packet passes these stages in this order: loss,
a middlebox (`ecn`, `blackhole`), a policer, corruption and duplication; the queue; the rate; the delay line. The buffer
limits only the queue.

A plain access link has only a rate and a drop-tail buffer. It is a pair of virtual network cards. An access link with a
delay, a loss or another queue discipline is emulated like a wide-area link. In the virtual clock a card serialises each
packet at its rate. In the live clock, and at a router's card above 1 Gbit/s, the card is a token bucket: packets in a
row keep to the rate, and a single packet passes at once. At 10 Mbit/s the RTT of a single packet of 100 bytes is
therefore 0.11 ms shorter for each card on its path. Base RTTs are only propagation. Every emulated link adds the
serialisation time of a packet, in the lab and in the verification's expectation.

Links are our own model, in both clocks the same. `emulator: kernel` makes a link of netem with psp and the queue below
it; `emulator: tbf` takes a token bucket in place of psp. They can do what netem can do: loss as a fraction,
`gilbert-elliott` or `markov`; a constant delay, or `uniform` with `reorder: true`; the queues drop-tail, RED, CoDel,
FQ-CoDel, PIE and, from Linux 6.17 on, DualPI2. They differ from our own model (`user`) in these points:

- The delay line comes before the queue. A queue reacts later by the delay, and overload fills the delay line too.
- Losses and duplicates are drawn independently: one of two copies may be lost.
- A flipped bit may be in the Ethernet header.
- RED is not gentle.
- The kernel's CoDel, FQ-CoDel, PIE and DualPI2 limit packets, RED limits bytes. A `buffer` in the other unit is
  converted by the largest packet.
- Times of queue disciplines are whole microseconds, and PIE's update interval is rounded to the kernel's ticks,
  and DualPI2's gains to 1/256 Hz.
"""


def _of_kind(word: str, kind: Kind) -> Iterator[tuple[str, type[Model], str]]:
    """The sections of a queue discipline; none for one that has no keys."""
    if kind.keys.model_fields:
        yield f"`queue: {{{word}: …}}`", kind.keys, " ".join((kind.keys.__doc__ or "").split())
    if kind.part is not None:
        yield f"A class of `{word}`", kind.part, ""


_SECTIONS: list[tuple[str, type[Model], str]] = [
    ("The description", fields.Description, ""),
    (
        "Settings of links: `wan`, `access`, `links.NAME`",
        fields.LinkKeys,
        "`forward` and `backward` hold any of the same keys but `mtu`, for one direction.",
    ),
    (
        "`access: {switch: {ovs: …}}`",
        fields.OvsPort,
        "All hosts behind a switch share its port to the router: with more senders than `rate` holds it is the "
        "bottleneck, the output port of a layer-2 switch. `switch: ovs` without keys is a switch of equal ports. Open "
        "vSwitch forwards in the virtual kernel, and in the host's where its module openvswitch is loaded; else in a "
        "program, which carries some hundred Mbit/s, adds 0.1 to 0.3 ms, and loses with a packet that finds the port "
        "full up to 31 that came with it. Verification measures the port as a link, from as many hosts as it takes to "
        "fill it.",
    ),
    ("`loss`", LossKeys, "A single fraction is `bernoulli`. Else exactly one of:"),
    ("`loss: {gilbert-elliott: …}`", GilbertElliottKeys, ""),
    ("`loss: {markov: …}`", MarkovKeys, "The four states of netem's `loss state` (Salsano et al. 2009)."),
    ("`police`", PoliceKeys, "`none`, or both of these."),
    ("`aggregate`", AggregateKeys, "`none`, or these."),
    ("`harq`", HarqKeys, "`none`, or these. Repetitions take nothing from the rate."),
    (
        "`displace`",
        DisplaceKeys,
        "`none`, or `share` and `packets`. In the sense of RFC 5236 a packet is displaced by `packets`. With "
        "`reorder`, later ones are those that come later into the delay line.",
    ),
    (
        "`queue`",
        QueueKeys,
        "A word, `codel 5ms` (a discipline and its target, so that a sweep can go over them: of "
        f"{', '.join(TARGETED[:-1])} and {TARGETED[-1]}), or exactly one of these with its settings.",
    ),
    *(each for word, kind in KINDS.items() for each in _of_kind(word, kind)),
    (
        "`trace`",
        TraceKeys,
        "What the trace says is not written beside it: `rate`, `delay` with `jitter`, `distribution` and "
        "`correlation`, `loss`, `buffer`. "
        "Traces of mahimahi count IP packets (`framing: ip`) if nothing else is written. "
        "See [traces](../how-to/labs/traces.md).",
    ),
    ("`links.NAME: {hardware: …}`", fields.HardwareKeys, "See [hardware](../how-to/labs/hardware.md)."),
    ("`hosts.NAME`", fields.Host, "A name, or several as one: `left[1-4]`, `left1,right2`."),
    (
        "`pacing`",
        fields.HostPacing,
        "`none`, `psp 400Mbit/s` (a kind and its rate), or exactly one of `psp`, `tbf` and `fq` with its settings; see "
        "[pacing](../how-to/labs/pacing.md).",
    ),
    (
        "`stack`",
        fields.StackKeys,
        f"The name of a profile ({', '.join(f'`{name}`' for name in fields.PROFILES)}), or these keys; see "
        "[stacks](../how-to/labs/stacks.md).",
    ),
    (
        "`nodes.NAME`, `kinds.KIND`",
        fields.NodeKeys,
        "What a node says itself comes before what its kind says; `binds`, `ports`, `env` and `exec` of both add up.",
    ),
    ("`startup`", fields.Startup, "A file's name without more is merged."),
    (
        "`external`",
        fields.ExternalKeys,
        "One, a list, or several by name; see [hardware](../how-to/labs/hardware.md#machines-that-are-plugged-in).",
    ),
    ("`kinds`", fields.Kinds, ""),
    ("`topology`", fields.Topology, "A word, or exactly one of these with its settings."),
]
_TOPOLOGIES: list[type[Model]] = [
    fields.Dumbbell,
    fields.ParkingLot,
    fields.Star,
    fields.Chain,
    fields.Ring,
    fields.Mesh,
    fields.Fishbone,
    fields.FourDomain,
    fields.Grid,
    fields.Graph,
]


def page() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for title, model, words in _SECTIONS:
        parts.append(section(title, model, words))
    for kind, model in zip(fields.Topology.words(), _TOPOLOGIES, strict=True):
        parts.append(section(f"`topology: {{{kind}: …}}`", model, ""))
    parts.append(section("`links.NAME` only", fields.SingleLink, "And all settings of a link.", but=fields.LinkKeys))
    parts.append(section("`access` only", fields.AccessLink, "And all settings of a link.", but=fields.LinkKeys))
    parts.append(section("`links` of a graph", fields.GraphLink, "And all of `links.NAME`.", but=fields.SingleLink))
    parts.append(section("`routes`", fields.RouteKeys, "See [paths](../how-to/labs/paths.md)."))
    parts.append(section("`tunnels`", fields.TunnelKeys, "See [tunnels](../how-to/labs/tunnels.md)."))
    parts.append(section("`cpus`", fields.CpuPlan, ""))
    return "\n".join(parts)


def section(title: str, model: type[Model], words: str, but: type[Model] | None = None) -> str:
    """One table: the keys of a model, but for those of `but`."""
    schema = model.model_json_schema(by_alias=True)
    skipped = set(but.model_fields) if but is not None else set()
    lines = [
        f"## {title}",
        "",
        *([words, ""] if words else []),
        "| key | type | meaning | example |",
        "|---|---|---|---|",
    ]
    for name, field in model.model_fields.items():
        if name not in skipped:
            key = field.alias or name
            shape = schema["properties"][key]
            meaning = field.description or ""
            lines.append(f"| `{key}` | {_type(shape, schema)} | {meaning} | {_example(shape, schema)} |")
    return "\n".join([*lines, ""])


def _shapes(shape: JsonSchemaValue, schema: JsonSchemaValue) -> list[JsonSchemaValue]:
    """The alternatives of a type, without null, references followed."""
    if "$ref" in shape:
        return _shapes({"group": True, **schema["$defs"][shape["$ref"].rsplit("/", 1)[1]]}, schema)
    if "anyOf" in shape:
        return [inner for part in shape["anyOf"] for inner in _shapes(part, schema) if inner.get("type") != "null"]
    return [shape]


def _type(shape: JsonSchemaValue, schema: JsonSchemaValue) -> str:
    words = []
    for part in _shapes(shape, schema):
        if "enum" in part or "const" in part:
            values = part.get("enum", [part.get("const")])
            words.append(" or ".join("`true`" if value is True else f"`{value}`" for value in values))
        elif part.get("type") == "integer":
            least, most = part.get("minimum"), part.get("maximum")
            words.append(f"{least}–{most}" if most is not None and most < MEGA else f"whole number from {least}")
        elif part.get("type") == "boolean":
            words.append("`true` or `false`")
        elif part.get("type") == "array":
            words.append("list")
        elif part.get("type") == "object":
            words.append(part.get("words", "keys"))
        else:
            words.append(str(part.get("title", part.get("type", ""))))
    return ", ".join(dict.fromkeys(words))


def _example(shape: JsonSchemaValue, schema: JsonSchemaValue) -> str:
    examples = shape.get("examples") or [e for part in _shapes(shape, schema) for e in part.get("examples", [])]
    if not examples and any(part.get("type") == "boolean" for part in _shapes(shape, schema)):
        examples = ["true"]
    shown = [str(to_jsonable_python(example)) for example in examples]
    return ", ".join(f"`{example}`" for example in dict.fromkeys(shown))
