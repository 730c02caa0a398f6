"""Generator: the traffic of a lab: flows, scenarios and suites."""
