"""Which protocol suits a path: a lab derived from what was measured of it, experiments on that lab, their ranking."""
