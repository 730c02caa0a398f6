//! A burst of packets of one size: how it is sent, and what rate its arrivals show. The second part is pure.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use ewan_system::clock::monotonic_ns;
use ewan_traffic::packets::{Header, Sender, MOST};
use ewan_traffic::probe::stats::Arrival;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};

/// A burst that is not sent by then ends: a tunnel that takes so little shows its rate with what it took.
const LONGEST_NS: i64 = 2_000_000_000;
const PATIENCE_MS: u8 = 20;

/// Sends `packets` packets one after the other, as fast as the socket takes them; gives how many it took.
pub fn send(
    socket: &UdpSocket,
    to: SocketAddr,
    sender: &mut Sender,
    payload_bytes: usize,
    first: Header,
    packets: u64,
) -> u64 {
    let (mut sent, over_ns) = (0, monotonic_ns() + LONGEST_NS);
    while sent < packets && monotonic_ns() < over_ns {
        let header = Header { sequence: first.sequence + sent, ..first };
        let count = (packets - sent).min(MOST as u64) as usize;
        match sender.send(socket, to, payload_bytes, header, count, None) {
            Ok((went, _)) => sent += went as u64,
            // The queue before the wire is full, or an earlier packet was refused.
            Err(_) => {
                let _ = poll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)], PollTimeout::from(PATIENCE_MS));
            }
        }
    }
    sent
}

/// The arrivals of a burst that came in order: behind no packet that was sent later. `arrivals` are as they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InOrder {
    pub packets: u64,
    /// From the first of them to the last.
    pub window_ns: u64,
}

impl InOrder {
    pub fn of(arrivals: &[Arrival]) -> Self {
        let mut next = 0;
        let mut times = arrivals.iter().filter(|arrival| {
            let behind = arrival.sequence >= next;
            next = next.max(arrival.sequence + 1);
            behind
        });
        let Some(first) = times.next() else { return Self::default() };
        let (mut packets, mut last_ns) = (1, first.at_ns);
        for arrival in times {
            packets += 1;
            last_ns = arrival.at_ns;
        }
        Self { packets, window_ns: (last_ns - first.at_ns).max(0) as u64 }
    }

    /// Payload bits a second of those after the first; None of fewer than two, or of no time.
    pub fn rate_bps(self, payload_bytes: usize) -> Option<u64> {
        let bits = u128::from(self.packets.checked_sub(1)?) * payload_bytes as u128 * 8;
        (bits > 0 && self.window_ns > 0).then(|| (bits * 1_000_000_000 / u128::from(self.window_ns)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(sequence: u64, at_ns: i64) -> Arrival {
        Arrival { sequence, at_ns, delay_ns: 0 }
    }

    #[test]
    fn only_what_comes_in_order_counts() {
        // 2 is lost, 1 comes late, 4 twice.
        let arrivals = [at(0, 1000), at(3, 2000), at(1, 2500), at(4, 3000), at(4, 3500), at(5, 4000)];
        let found = InOrder::of(&arrivals);
        assert_eq!(found, InOrder { packets: 4, window_ns: 3000 });
        // 3 × 1000 bytes in 3 µs.
        assert_eq!(found.rate_bps(1000), Some(8_000_000_000));
    }

    #[test]
    fn one_packet_has_no_rate_and_none_has_none() {
        assert_eq!(InOrder::of(&[]).rate_bps(1000), None);
        assert_eq!(InOrder::of(&[at(3, 7)]).rate_bps(1000), None);
        assert_eq!(InOrder::of(&[at(3, 7), at(4, 7)]).rate_bps(1000), None);
    }
}
