"""Where the warm-up of a series ends. Pure.

In: a series of values at equal intervals. Out: how many of them, from the first on, are warm-up, by MSER-5: K. P.
White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69, 1997.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

BATCH = 5
LEAST_BATCHES = 10
"""Of fewer nothing is found."""


def mser5(values: Sequence[float]) -> int | None:
    """How many values to cut: a multiple of five, at most half of them; None: that cannot be told.

    Means are taken of five values each. Of all cuts d the one with the least Σ(yⱼ − ȳ)²/(m − d)² over the m − d means
    that stay, the first of equal ones. A least one in the second half says that the series did not settle.
    """
    batches = len(values) // BATCH
    if batches < LEAST_BATCHES:
        return None
    means = np.asarray(values[: batches * BATCH], dtype=np.float64).reshape(batches, BATCH).mean(axis=1)
    # Sums from each cut to the end, of values about their mean, so that little is lost to rounding.
    centred = means - means.mean()
    staying = np.arange(batches, 0, -1, dtype=np.float64)
    sums = np.cumsum(centred[::-1])[::-1]
    squares = np.cumsum(centred[::-1] ** 2)[::-1]
    errors = np.maximum(squares - sums**2 / staying, 0.0) / staying**2
    # The last few cuts leave so few means that their spread is small by chance.
    found = int(np.argmin(errors[: batches - BATCH + 1]))
    return found * BATCH if found <= batches // 2 else None
