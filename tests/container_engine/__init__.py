"""A container engine for the test run where none runs: `python -m tests.container_engine start|stop|status`."""
