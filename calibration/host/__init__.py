"""What this host can do before any lab is up: its timers, its processors, its paths.

In: this machine, and how long measuring may take. Out: a document each (`timers.Timers`, `processors.Processors`,
`paths.Paths`), what follows from them in words (`finding.Finding`), and figures of them.
"""
