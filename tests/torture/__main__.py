"""Runs tortures and prints tried/failed: `python -m tests.torture --help`."""

from __future__ import annotations

import sys

import click

from tests.torture import harness


@click.command()
@click.argument("names", nargs=-1)
@click.option("--long", "long", is_flag=True, help="Make as many trials as in an hour by hand.")
@click.option("--trials", type=click.IntRange(1), help="Make this number of trials of each torture.")
@click.option("--seed", type=int, default=0, show_default=True, help="The first trial's seed; the next has the next.")
def main(names: tuple[str, ...], long: bool, trials: int | None, seed: int) -> None:
    """Run the tortures of these NAMES, or all."""
    known = harness.tortures()
    for name in names:
        if name not in known:
            raise click.UsageError(f"torture {name!r}: write one of {', '.join(known)}")
    failed = 0
    for name in names or known:
        torture = known[name]
        by_hand = 1 if names else 0
        count = trials or (torture.LONG if long else torture.QUICK or by_hand)
        first_line = (torture.__doc__ or "").splitlines()[0]
        print(f"{name}: {first_line}", flush=True)

        def tell(tally: harness.Tally, name: str = name, count: int = count) -> None:
            if sys.stdout.isatty():
                print(f"\r{name}: {tally.tried} of {count} tried, {tally.failed} failed", end="", flush=True)

        tally = harness.run(torture, iter(range(seed, seed + count)), tell)
        print(f"\r{name}: {tally.tried} tried, {tally.failed} failed", flush=True)
        for number, error in tally.failures.items():
            print(f"  seed {number}: {error}", flush=True)
        failed += tally.failed
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
