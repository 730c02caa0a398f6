"""Torture: what a lab must bear, tried with random seeds. Minutes in CI, an hour by hand.

Each module of this package is one torture. It has

- a docstring, whose first line says what is done and what must hold;
- `QUICK` and `LONG`, the number of trials in CI and by hand;
- `trial(seed, place)`, which raises an exception when the product failed. `place` is an empty directory of the trial's
  own. The same seed makes the same trial.

`python -m tests.torture [NAME …] [--long] [--trials N] [--seed S]` runs them and prints tried/failed.
`test_torture.py` runs the quick count of each.
"""
