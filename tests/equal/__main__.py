"""python -m tests.equal corpus CORPUS | produce CHECKOUT CORPUS OUT [compile|then] | compare BEFORE AFTER."""

import sys
from pathlib import Path

from tests.equal.compare import compare
from tests.equal.corpus import write
from tests.equal.produce import produce

match sys.argv[1:]:
    case ["corpus", corpus]:
        write(Path(corpus))
    case ["produce", checkout, corpus, out, *only]:
        produce(Path(checkout).resolve(), Path(corpus).resolve(), Path(out).resolve(), *only)
    case ["compare", before, after]:
        sys.exit(min(compare(Path(before), Path(after)), 1))
    case _:
        sys.exit(__doc__)
