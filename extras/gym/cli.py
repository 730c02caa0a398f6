"""The commands `gym try` and `gym example`: a look at the environment, and an example that learns in a minute.

In: settings of a lab. Out: tables. Gymnasium comes with `make setup-gym`.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import time
from typing import TYPE_CHECKING, Any

import click

from ewan.labs.base.product import extra
from ewan.labs.base.sheet import grid
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import pass_context
from ewan.labs.context import Context

if TYPE_CHECKING:
    from ewan.extras.gym.aimd import Aimd, TrialResult
    from ewan.extras.gym.environment import EwanEnv

MOST_STEPS = 10_000_000


def _settings(command: Any) -> Any:
    for name, default, text in (
        ("length", "10s", "length of an episode"),
        ("interval", "20ms", "interval between two actions"),
        ("rate", "12M", "rate of the bottleneck"),
        ("rtt", "20ms", "round trip time without queues"),
    ):
        command = click.option(f"--{name}", default=default, show_default=True, metavar="VALUE", help=text)(command)
    seed = click.option("--seed", default=1, show_default=True, type=click.IntRange(0), metavar="N", help="random seed")
    return seed(command)


def _gymnasium() -> None:
    if importlib.util.find_spec("gymnasium") is None:
        raise Refused(
            f"gymnasium is not installed: {extra('gym', 'make setup-gym')} (or pip install 'gymnasium>=1.1,<2')"
        )


@click.command("try")
@_settings
@click.option("--steps", default=1000, show_default=True, type=click.IntRange(1, MOST_STEPS), help="number of actions")
@guarded
@pass_context
def try_command(context: Context, /, seed: int, steps: int, **settings: str) -> None:
    """Take random actions in the environment for TCP congestion control, and show how fast it is.

    \b
    ewan gym try --steps 1000
    ewan gym try --rtt 100ms --rate 50M --interval 100ms
    """
    _gymnasium()
    from ewan.extras.gym.environment import EwanEnv

    env = EwanEnv(context=context, **settings)  # type: ignore[arg-type]
    try:
        rows = _random(env, seed, steps)
    finally:
        env.close()
    context.reporter.console.print(grid("Random actions", ["", ""], rows))


def _random(env: EwanEnv, seed: int, steps: int) -> list[list[str]]:
    random = env.action_space
    random.seed(seed)
    resets, rewards, simulated_ns, acting_s = [], [], 0, 0.0

    def reset(seed: int | None) -> Any:
        begin = time.monotonic()
        _, info = env.reset(seed=seed)
        resets.append(time.monotonic() - begin)
        return info["record"]

    before = reset(seed)
    for _ in range(steps):
        begin = time.monotonic()
        _, reward, _, ended, info = env.step(random.sample())
        acting_s += time.monotonic() - begin
        rewards.append(reward)
        simulated_ns += info["record"].time_ns - before.time_ns
        before = reset(None) if ended else info["record"]
    others = resets[1:]
    return [
        ["steps", str(steps)],
        ["simulated time", f"{simulated_ns / NS_PER_SECOND:.3f} s"],
        ["mean reward", f"{statistics.fmean(rewards):.4f}"],
        ["steps per second", f"{steps / acting_s:.0f}"],
        ["first reset, with a seed", f"{resets[0]:.3f} s"],
        ["longest other reset", f"{max(others):.3f} s" if others else "there was none"],
    ]


@click.command("example")
@_settings
@click.option("--generations", default=10, show_default=True, type=click.IntRange(1, 1000), help="of 24 episodes each")
@guarded
@pass_context
def example_command(context: Context, /, seed: int, generations: int, **settings: str) -> None:
    """Learn when to open and when to close a window, by the cross-entropy method, and compare it with Reno's rule.

    A controller adds a packets in a round trip and multiplies its window by b, when packets are lost or wait longer
    than d times the least RTT. Ten generations take about a minute on two CPUs.

    \b
    ewan gym example
    ewan gym example --rtt 50ms --rate 20M --generations 15
    """
    _gymnasium()
    from ewan.extras.gym import aimd
    from ewan.extras.gym.environment import EwanEnv

    EwanEnv(context=context, **settings).close()  # type: ignore[arg-type]  # refused here, and built once
    begin = time.monotonic()
    workers = len(os.sched_getaffinity(0))
    learned = aimd.RENO
    with aimd.Trainer(settings, workers) as trainer:
        click.echo("generation  best reward  mean reward  centre")
        for each in aimd.generations(trainer.trials, generations, seed):
            learned = each.centre
            click.echo(f"{each.number:10}  {each.best:11.4f}  {each.mean:11.4f}  {learned.words}")
        compared = {"Reno's rule": aimd.RENO, "learned": learned}
        results = trainer.trials(list(compared.values()), seed)
    rows = [_row(name, each, compared[name]) for name, each in zip(compared, results, strict=True)]
    columns = ["controller", "a", "b", "d", "reward", "throughput", "RTT", "loss"]
    context.reporter.console.print(grid("An episode that was not among those of learning", columns, rows))
    context.reporter.tell(f"{generations * aimd.TRIALS} episodes on {workers} CPUs in {time.monotonic() - begin:.0f} s")


def _row(name: str, result: TrialResult, controller: Aimd) -> list[str]:
    return [
        name,
        f"{controller.a:.2f}",
        f"{controller.b:.3f}",
        f"{controller.d:.3f}",
        f"{result.reward:.4f}",
        f"{result.throughput:.2f} Mbit/s",
        f"{result.rtt:.1f} ms",
        f"{result.loss:.4%}",
    ]
