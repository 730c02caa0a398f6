"""What this host can be trusted with: its timers, its processors, its paths, its links, and what virtual runs cost it.

In: this machine, and how long measuring may take. Out: a document each (`timers.Timers`, `processors.Processors`,
`paths.Paths`, `virtual.VirtualCost`; of links `envelope.Frontier`), kept together (`kept.HostCalibration`); what
follows from them in words (`finding.Finding`), and figures of them.
"""
