"""What this host can be trusted with: timers, processors, paths, links of each back end, the virtual clock."""
