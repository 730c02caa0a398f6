"""The store: results of runs of the virtual clock, and certificates of its labs, each kept once under a key.

In: what a run is made of, what it left. Out: files below results/store/, from which any experiment takes what it would
otherwise measure again. The key covers all that decides the bytes of a result (`key.py`), an entry is one file that is
there whole or not at all (`entry.py`), and what a store of many machines does is in `store.py`.
"""

from ewan.experiments.store.entry import DamagedError, EntryOrigin, Manifest
from ewan.experiments.store.store import Store

__all__ = ["DamagedError", "EntryOrigin", "Manifest", "Store"]
