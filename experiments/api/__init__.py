"""Labs and runs in Python, for test suites: `ewan.lab("dumbbell", rtt="100ms")` and what `lab.run()` returns."""
