"""`python -m ewan …` is `ewan …`."""

import runpy

runpy.run_module("ewan.cli", run_name="__main__", alter_sys=True)
