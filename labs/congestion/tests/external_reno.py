"""AIMD (RFC 5681) as a program that sets windows: it sends the packets that Linux's Reno sends."""

from __future__ import annotations

from ewan.labs.congestion.external import EventRecord, FlowEvent, Reduction, WindowAnswer, serve


class Reno:
    """The controller of one flow. `counted`: packets acknowledged since the window grew."""

    def __init__(self) -> None:
        self.counted = 0

    def decide(self, record: EventRecord) -> WindowAnswer | None:
        if record.events & FlowEvent.START:
            return WindowAnswer(reduction=Reduction.LINUX)
        if record.events & (FlowEvent.LOSS | FlowEvent.TIMEOUT | FlowEvent.ECN):
            self.counted = 0
            return WindowAnswer(ssthresh_packets=max(record.prior_cwnd_packets // 2, 2))
        repairing = record.recovery_state in (2, 3)
        if repairing or not record.advanced or not record.cwnd_limited:
            return None
        return WindowAnswer(cwnd_packets=self.grown(record.cwnd_packets, record.ssthresh_packets, record.acked_packets))

    def grown(self, cwnd: int, ssthresh: int, acked: int) -> int:
        if cwnd < ssthresh:
            begin, cwnd = cwnd, min(cwnd + acked, ssthresh)
            acked -= cwnd - begin
        if not acked:
            return cwnd
        window = cwnd
        if self.counted >= window:
            self.counted, cwnd = 0, cwnd + 1
        steps, self.counted = divmod(self.counted + acked, window)
        return cwnd + steps


flows: dict[int, Reno] = {}
serve(lambda record: flows.setdefault(record.flow, Reno()).decide(record))
