"""Generator: what goes over a lab: flows, later scenarios and suites."""
