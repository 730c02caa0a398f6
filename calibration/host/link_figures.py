"""Figures of this host's links for the report of its calibration.

In: what was measured of links (`Accuracy`, `Frontier`), and the links of a lab to be marked. Out: drawings (SVG,
caption, CSV). Those after the eWAN paper's figures 4, 5 and 6 say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ewan.analysis.figures import style
from ewan.analysis.figures.style import Drawing
from ewan.calibration import envelope
from ewan.calibration.envelope import Frontier, LinkDemand
from ewan.calibration.host.accuracy import Accuracy
from ewan.labs.base.units import NS_PER_MS, Rate
from ewan.labs.base.units.shown import about

GRID = 48
"""Points of a heat map each way."""
LEAST_BPS, MOST_BPS = Rate.parse("1Mbit/s").bps, Rate.parse("100Gbit/s").bps


def delays(found: Accuracy) -> Drawing:
    """Configured against measured delay."""
    configured = [each.configured_ns / NS_PER_MS for each in found.delays]
    with style.sheet(2, 2.6, sharex=False, sharey=False) as (figure, axes):
        left, right = axes
        left.plot(configured, configured, color=style.COLOURS[5], linestyle=style.DASHES[1], label="configured")
        for number, (name, values) in enumerate(
            (
                ("measured, p50", [each.p50_ns for each in found.delays]),
                ("measured, p99", [each.p99_ns for each in found.delays]),
            )
        ):
            colour, marker = style.COLOURS[number], style.MARKERS[number]
            measured = [each / NS_PER_MS for each in values]
            left.plot(configured, measured, linestyle="none", label=name, color=colour, marker=marker, markersize=3.5)
            error = [max(v - e.configured_ns, 1.0) / 1_000 for v, e in zip(values, found.delays, strict=True)]
            right.plot(
                configured, error, linestyle=style.DASHES[number], label=name, color=colour, marker=marker,
                markersize=3.5,
            )  # fmt: skip
        for axis in axes:
            axis.set_xscale("log")
            axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axis.set_xlabel("configured delay (ms)")
        left.set_yscale("log")
        left.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        left.set_ylabel("measured delay (ms)")
        right.set_yscale("log")
        right.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        right.set_ylabel("error (µs)")
        style.legend(figure, axes)
        text = style.svg(figure)
    caption = (
        "After figure 4 of the eWAN paper, whose netem could delay by whole ticks of 1 or 10 ms only. One-way delay of "
        f"small packets 0.2 ms apart, {min(each.packets for each in found.delays)} or more a point, with the path "
        "through the network stacks, on a link of our own on this host. Right: only the error."
    )
    rows = [
        {
            "configured_ns": each.configured_ns,
            "p50_ns": each.p50_ns,
            "p99_ns": each.p99_ns,
            "p999_ns": each.p999_ns,
            "max_ns": each.max_ns,
            "packets": each.packets,
        }
        for each in found.delays
    ]
    return Drawing("link-delays", "Configured and measured delay", caption, text, style.csv(rows))


def rates(found: Accuracy) -> Drawing | None:
    """Rate error over rate, with its uncertainty."""
    told = [(each, each.error_ratio, each.uncertainty_ratio) for each in found.rates if each.error_ratio is not None]
    if not told:
        return None

    with style.sheet(1, 2.4) as (figure, axes):
        axis = axes[0]
        axis.errorbar(
            [each.configured_bps for each, _, _ in told],
            [100 * (error or 0) for _, error, _ in told],
            yerr=[100 * (known or 0) for _, _, known in told],
            color=style.COLOURS[0], marker=style.MARKERS[0], markersize=3.5, capsize=2.5, linestyle="none",
        )  # fmt: skip
        for edge in (-0.1, 0.1):
            axis.axhline(edge, color=style.COLOURS[1], linestyle=style.DASHES[1], linewidth=0.8)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(lambda value, _: about(value, "rate", 3))
        axis.set_yscale("symlog", linthresh=0.1)
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_xlabel("configured rate")
        axis.set_ylabel("error (%)")
        text = style.svg(figure)
    missing = [each for each in found.rates if each.error_ratio is None]
    caption = (
        "Error of the rate of a link that is offered more, with its expanded uncertainty (k = 2), which a longer "
        "window would make smaller: each took 0.12 s. Dashed: the tolerance of 0.1 %."
    )
    if missing:
        caption += (
            f" Not measured, as this host could not offer more: {_listed(each.configured_bps for each in missing)}."
        )
    rows = [
        {
            "configured_bps": each.configured_bps,
            "error_ratio": each.error_ratio,
            "uncertainty_ratio": each.uncertainty_ratio,
        }
        for each in found.rates
    ]
    return Drawing("link-rates", "Rate error over rate", caption, text, style.csv(rows))


def _listed(rates_bps: Any) -> str:
    return ", ".join(about(bps, "rate", 3) for bps in rates_bps)


def spacings(found: Accuracy) -> Drawing:
    """Times between packets, as they come and behind the link's rate."""
    with style.sheet(1, 2.4) as (figure, axes):
        axis = axes[0]
        for number, (each, words) in enumerate(
            zip(
                found.spacings, ("before the rate: as the sender's bunches come", "behind the link's rate"), strict=True
            )
        ):
            shares = [share for share, _ in each.quantiles_ns]
            values = [max(ns, 1) / 1_000 for _, ns in each.quantiles_ns]
            axis.step(
                values, shares, where="post", color=style.COLOURS[number], linestyle=style.DASHES[number], label=words
            )
        even = found.spacings[-1].even_ns / 1_000
        axis.axvline(even, color=style.COLOURS[2], linestyle=style.DASHES[2], label=f"an even pace: {even:.4g} µs")
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_ylim(0, 1.03)
        axis.set_xlabel("time between two packets (µs)")
        axis.set_ylabel("share of all")
        style.legend(figure, axes)
        text = style.svg(figure)
    before, behind = (each.largest_burst_packets for each in found.spacings)
    caption = (
        "After figures 5 and 6 of the eWAN paper, on this host: full packets at about 100 Mbit/s. The largest burst, "
        f"as the depth of a token bucket of that rate, is {before:.3g} packets before the rate and {behind:.3g} behind "
        "it. The paper's own figures, netem with and without psp, are drawn by ewan suite figures."
    )
    rows = [
        {"link_bps": each.link_bps, "share": share, "spacing_ns": ns}
        for each in found.spacings
        for share, ns in each.quantiles_ns
    ]
    return Drawing("link-spacings", "Spacing before and behind the rate", caption, text, style.csv(rows))


def lateness(frontiers: Sequence[Frontier]) -> Drawing | None:
    """Delay error of links over their load."""
    told = [each for each in frontiers if len(each.loads) > 1 and each.loads[0].own]
    sizes = sorted({each.packet_bytes for each in told})
    told = [each for each in told if each.packet_bytes in (sizes[0], sizes[-1])] if sizes else []
    told = told[: style.MOST_LINES]
    if not told:
        return None
    from matplotlib.ticker import NullLocator

    with style.sheet(2, 2.4) as (figure, axes):
        for axis, name, title in zip(axes, ("error_p50_ns", "error_p99_ns"), ("p50", "p99"), strict=True):
            for number, each in enumerate(told):
                axis.plot(
                    [100 * load.load_ratio for load in each.loads],
                    [max(getattr(load, name), 1) / 1_000 for load in each.loads],
                    color=style.COLOURS[number], linestyle=style.DASHES[number], marker=style.MARKERS[number],
                    markersize=3.5, label=f"{each.links} × {each.packet_bytes} bytes, {each.packets_per_s:,.0f}/s",
                )  # fmt: skip
            axis.set_yscale("log")
            axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axis.yaxis.set_minor_locator(NullLocator())
            axis.set_xlim(0)
            style.title(axis, title, 2)
        style.outer_labels(axes, "load (% of what the links carry)", "release error (µs)")
        style.legend(figure, axes)
        text = style.svg(figure)
    caption = (
        "How late links release packets, due against handed to the kernel, every packet counted, over the share of "
        "what they carry. Number of links loaded at once × packet size, and packets/s of all together at 100 %."
    )
    rows = [
        {
            "links": each.links,
            "packet_bytes": each.packet_bytes,
            "load_ratio": load.load_ratio,
            "error_p50_ns": load.error_p50_ns,
            "error_p99_ns": load.error_p99_ns,
            "error_p999_ns": load.error_p999_ns,
            "error_max_ns": load.error_max_ns,
            "packets": load.packets,
        }
        for each in frontiers
        for load in each.loads
    ]
    return Drawing("link-lateness", "Delay error over load", caption, text, style.csv(rows))


def heat_map(frontiers: Sequence[Frontier], marked: Sequence[tuple[str, LinkDemand]] = ()) -> Drawing | None:
    """The envelope: what share of what links carry is asked for, over rate and packet size. `marked`: a lab's links by
    name."""
    if not frontiers:
        return None
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import NullLocator

    backend = envelope.best_first(frontiers, 1500, 1)[0]
    rates_bps = np.geomspace(LEAST_BPS, MOST_BPS, GRID)
    sizes = np.geomspace(64, 9_000, GRID)
    counts = sorted({each.links for each in frontiers if each.backend == backend})
    counts = [counts[0], counts[-1]] if len(counts) > 1 else counts
    rows: list[style.Row] = []
    with style.sheet(len(counts), 2.9) as (figure, axes):
        for axis, links in zip(axes, counts, strict=True):
            shares = np.array(
                [
                    [
                        envelope.predict(frontiers, LinkDemand(int(bps), 0, int(size), links, backend=backend)).share
                        for bps in rates_bps
                    ]
                    for size in sizes
                ]
            )
            image = axis.pcolormesh(
                rates_bps, sizes, shares, norm=LogNorm(0.01, 100), cmap="RdYlBu_r", shading="gouraud", rasterized=True
            )
            axis.contour(rates_bps, sizes, shares, levels=[1.0], colors=[style.INK], linewidths=1.2)
            mine = [(name, demand) for name, demand in marked]
            for name, demand in mine:
                axis.plot(
                    demand.rate_bps,
                    demand.packet_bytes,
                    marker="o",
                    markersize=5,
                    color=style.PAPER,
                    markeredgecolor=style.INK,
                )
                axis.annotate(
                    name, (demand.rate_bps, demand.packet_bytes), xytext=(4, 4), textcoords="offset points", fontsize=7
                )
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.xaxis.set_major_formatter(lambda value, _: about(value, "rate", 3))
            axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axis.yaxis.set_minor_locator(NullLocator())
            axis.set_yticks([64, 256, 512, 1500, 9000])
            axis.set_xticks([Rate.parse(text).bps for text in ("1Mbit/s", "100Mbit/s", "10Gbit/s")])
            axis.grid(False)
            style.title(axis, "1 link" if links == 1 else f"{links} links, each", len(counts))
            rows += [
                {"links": links, "rate_bps": int(bps), "packet_bytes": int(size), "share": float(shares[i, j])}
                for i, size in enumerate(sizes)
                for j, bps in enumerate(rates_bps)
            ]
        style.outer_labels(axes, "rate", "packet size (bytes)")
        bar = figure.colorbar(image, ax=axes, label="asked for, of what is carried (%)")
        bar.ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}")
        text = style.svg(figure)
    caption = (
        f"The envelope of links of the back end {backend}, loaded in one direction: what share of what this host "
        f"carries is asked for, a margin of {envelope.MARGIN:.0%} included. The line is the frontier: to the right of "
        "it a run is refused. Sizes are those of IP packets. Between and beyond the measured points it is interpolated."
    )
    if marked:
        caption += " Circles: links of this lab, each by itself."
    return Drawing("envelope", "The envelope of this host", caption, text, style.csv(rows))
