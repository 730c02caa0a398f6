"""Measures this host: its timers, its processors, its paths, its links, and the cost of virtual runs.

In: this machine, and how long measuring may take. Out: a document each (`timers.Timers`, `processors.Processors`,
`paths.Paths`, `virtual.VirtualCost`; of links `envelope.Frontier`), kept together (`kept.HostCalibration`); what
follows from them in words (`finding.Finding`), and figures of them.
"""
