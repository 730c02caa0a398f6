"""A container engine for the test run where none runs: `python -m tests.engine start|stop|status`."""
