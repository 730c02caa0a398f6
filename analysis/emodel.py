"""The E-model of ITU-T G.107 (06/2015) for a call over a network: how good people would find it. Pure.

In: the delay from mouth to ear in ms, the share of packets that are lost to the listener. Out: the mean opinion score,
from 1 to 4.5. All other parameters have the recommendation's default values, echo is cancelled, losses are random
(BurstR is 1), and the codec is G.711 with concealment of losses (ITU-T G.113, appendix I).
"""

from __future__ import annotations

import math

_DEFAULT_R = 93.2
"""R without delay and loss: section 7.7 of G.107."""
_IE, _BPL = 0.0, 25.1
"""G.711 with concealment: equipment impairment and robustness against loss, table I.3 of G.113."""
_PERCEIVED_MS = 100.0
"""The least delay that is perceived, mT of the default class."""


def delay_impairment(delay_ms: float) -> float:
    """Idd, equations 7-27 and 7-28."""
    if delay_ms <= _PERCEIVED_MS:
        return 0.0
    x = math.log2(delay_ms / _PERCEIVED_MS)
    return 25 * (math.pow(1 + x**6, 1 / 6) - 3 * math.pow(1 + (x / 3) ** 6, 1 / 6) + 2)


def rating(delay_ms: float, loss: float) -> float:
    """The transmission rating factor R."""
    percent = 100 * loss
    return _DEFAULT_R - delay_impairment(delay_ms) - (_IE + (95 - _IE) * percent / (percent + _BPL))


def opinion(r: float) -> float:
    """The mean opinion score of a rating: annex B."""
    if r <= 0:
        return 1.0
    return 4.5 if r >= 100 else max(1.0, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6)
