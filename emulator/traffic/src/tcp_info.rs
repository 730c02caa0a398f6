//! What the kernel tells of a TCP connection: `struct tcp_info` (linux/tcp.h), by the names of its fields.

use std::os::fd::AsFd;

use ewan_system::socket::get_option_with_length;
use serde::Serialize;

/// As bytes: longer than the libc crate's structure. What an older kernel does not know is 0.
#[derive(Clone, Copy)]
pub struct Info {
    bytes: [u8; 256],
    /// So many of them are the kernel's.
    length: usize,
}

/// The sending end at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Since the flows' common start.
    pub time_ns: u64,
    pub acked_bytes: u64,
    /// Acknowledged, cumulatively or selectively.
    pub delivered_segments: u32,
    pub cwnd_segments: u32,
    pub ssthresh_segments: u32,
    /// Sent, and neither acknowledged nor taken for lost (RFC 6675's pipe).
    pub in_flight_segments: u32,
    pub srtt_ns: u64,
    pub rttvar_ns: u64,
    pub retransmitted_segments: u32,
    pub lost_segments: u32,
    /// The kernel's last estimate; 0 before the first.
    pub delivery_rate_bps: u64,
    /// At which it may send at most, headers included; null: as fast as it can.
    pub pacing_rate_bps: Option<u64>,
}

impl Info {
    pub fn of(socket: &impl AsFd) -> Result<Self, String> {
        let read = get_option_with_length(socket, libc::IPPROTO_TCP, libc::TCP_INFO);
        read.map(|(bytes, length)| Self { bytes, length }).map_err(|error| format!("TCP_INFO: {error}"))
    }

    /// `length` bytes of them are the kernel's.
    pub fn new(bytes: [u8; 256], length: usize) -> Self {
        Self { bytes, length }
    }

    /// What several connections are together that carry one stream of bytes, of which so much was received and
    /// acknowledged: sums, but for the RTTs, which are those of the connection with the least.
    pub fn together(all: &[Self], received_bytes: u64, acked_bytes: u64) -> Self {
        const WORDS: [usize; 11] = [24, 28, 32, 36, 76, 80, 100, 136, 140, 152, 156];
        const DELIVERED_AND_COPIED: [usize; 2] = [192, 216];
        const LONGS: [usize; 3] = [104, 160, 200];
        const ESTABLISHED: u8 = 1;
        let least = all.iter().min_by_key(|info| info.word(148));
        let mut whole = least.copied().unwrap_or(Self { bytes: [0; 256], length: 256 });
        for at in WORDS.into_iter().chain(DELIVERED_AND_COPIED) {
            let sum = all.iter().fold(0, |sum: u32, info| sum.saturating_add(info.word(at)));
            whole.bytes[at..at + 4].copy_from_slice(&sum.to_ne_bytes());
        }
        for at in LONGS {
            let sum = all.iter().fold(0, |sum: u64, info| sum.saturating_add(info.long(at)));
            whole.bytes[at..at + 8].copy_from_slice(&sum.to_ne_bytes());
        }
        for (at, bytes) in [(120, acked_bytes), (128, received_bytes)] {
            whole.bytes[at..at + 8].copy_from_slice(&bytes.to_ne_bytes());
        }
        let timeouts = all.iter().filter_map(Self::timeouts).sum::<u32>().min(u16::MAX.into()) as u16;
        whole.bytes[240..242].copy_from_slice(&timeouts.to_ne_bytes());
        // The end of the stream is no byte of it.
        whole.bytes[0] = ESTABLISHED;
        whole
    }

    pub fn sample(&self, time_ns: u64) -> Sample {
        let pacing = self.long(104);
        Sample {
            time_ns,
            acked_bytes: self.acked_bytes(),
            delivered_segments: self.delivered_segments(),
            cwnd_segments: self.cwnd_segments(),
            ssthresh_segments: self.ssthresh_segments(),
            in_flight_segments: self.in_flight_segments(),
            srtt_ns: self.srtt_ns(),
            rttvar_ns: self.microseconds(72),
            retransmitted_segments: self.retransmitted_segments(),
            lost_segments: self.lost_segments(),
            delivery_rate_bps: self.long(160).saturating_mul(8),
            pacing_rate_bps: (pacing != u64::MAX).then(|| pacing.saturating_mul(8)),
        }
    }

    pub fn segment_bytes(&self) -> u32 {
        self.word(16)
    }

    /// As the receiver takes the other end's full segments to be.
    pub fn received_segment_bytes(&self) -> u32 {
        self.word(20)
    }

    /// The connection is over, or was never one.
    pub fn closed(&self) -> bool {
        const TCP_CLOSE: u8 = 7;
        self.bytes[0] == TCP_CLOSE
    }

    pub fn lost_segments(&self) -> u32 {
        self.word(32)
    }

    pub fn in_flight_segments(&self) -> u32 {
        let (unacknowledged, sacked, retransmitted) = (self.word(24), self.word(28), self.word(36));
        (unacknowledged + retransmitted).saturating_sub(sacked + self.lost_segments())
    }

    pub fn srtt_ns(&self) -> u64 {
        self.microseconds(68)
    }

    pub fn ssthresh_segments(&self) -> u32 {
        self.word(76)
    }

    pub fn cwnd_segments(&self) -> u32 {
        self.word(80)
    }

    pub fn retransmitted_segments(&self) -> u32 {
        self.word(100)
    }

    /// Cumulatively.
    pub fn acked_bytes(&self) -> u64 {
        self.long(120)
    }

    /// In order, whether or not the application has taken them. The kernel counts the peer's FIN as a byte (it has a
    /// sequence number, RFC 9293, section 3.4); it is none of payload. Of a
    /// socket that is closed the kernel does not tell whether one came.
    pub fn received_bytes(&self) -> u64 {
        const CLOSE_WAIT: u8 = 8;
        const LAST_ACK: u8 = 9;
        const CLOSING: u8 = 11;
        let fin = matches!(self.bytes[0], CLOSE_WAIT | LAST_ACK | CLOSING);
        self.long(128).saturating_sub(fin.into())
    }

    /// Segments with payload that came, those too that came out of order or more than once.
    pub fn data_segments_in(&self) -> u32 {
        self.word(152)
    }

    /// Segments that came more than once, as the receiver reported to this sender (RFC 2883); none: without SACK it
    /// cannot.
    pub fn copied_segments(&self) -> Option<u32> {
        const TCPI_OPT_SACK: u8 = 2;
        (self.bytes[5] & TCPI_OPT_SACK != 0).then(|| self.word(216))
    }

    /// How often the retransmission timer ran out, for SYNs too, each time in a row counted; none: the kernel does not
    /// tell (before Linux 6.7).
    pub fn timeouts(&self) -> Option<u32> {
        const AT: usize = 240;
        let count = self.bytes[AT..AT + 2].try_into().expect("two bytes");
        (self.length >= AT + 2).then(|| u32::from(u16::from_ne_bytes(count)))
    }

    /// Mean payload of the data segments sent, those too that were sent again: bytes, and by how many segments to divide
    /// them. None before the first, and where the kernel does not count bytes (before Linux 4.19).
    pub fn sent_payload(&self) -> Option<(u64, u32)> {
        Some((self.long(200), self.word(156))).filter(|&(bytes, segments)| bytes > 0 && segments > 0)
    }

    /// None for a connection that has not seen one: nothing was acknowledged, or only what was sent twice.
    pub fn min_rtt_ns(&self) -> Option<u64> {
        Some(self.microseconds(148)).filter(|&ns| ns < u64::from(u32::MAX) * 1000)
    }

    pub fn delivered_segments(&self) -> u32 {
        self.word(192)
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }

    fn long(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    fn microseconds(&self, at: usize) -> u64 {
        u64::from(self.word(at)) * 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};

    #[test]
    fn several_connections_together_have_sums_and_the_least_rtt() {
        let one = |rtt_us: u32, cwnd: u32, sent: u64, timeouts: u16| {
            let mut info = Info::new([0; 256], 248);
            info.bytes[5] = 2; // TCPI_OPT_SACK
            for (at, word) in [(68, rtt_us + 7), (80, cwnd), (100, 1), (148, rtt_us), (216, 2)] {
                info.bytes[at..at + 4].copy_from_slice(&word.to_ne_bytes());
            }
            info.bytes[200..208].copy_from_slice(&sent.to_ne_bytes());
            info.bytes[240..242].copy_from_slice(&timeouts.to_ne_bytes());
            info
        };
        let both = Info::together(&[one(60_000, 5, 300, 1), one(20_000, 7, 500, 2)], 750, 700);
        assert_eq!((both.min_rtt_ns(), both.srtt_ns()), (Some(20_000_000), 20_007_000));
        assert_eq!((both.cwnd_segments(), both.retransmitted_segments(), both.copied_segments()), (12, 2, Some(4)));
        assert_eq!((both.received_bytes(), both.acked_bytes(), both.timeouts()), (750, 700, Some(3)));
        assert!(!both.closed());
        assert_eq!(Info::together(&[], 10, 9).received_bytes(), 10, "all paths are gone");
    }

    #[test]
    fn a_fin_is_no_payload() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut sender = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (mut receiver, _) = listener.accept().expect("a connection");
        sender.write_all(&[0; 100]).expect("room");
        receiver.read_exact(&mut [0; 100]).expect("100 bytes");
        assert_eq!(Info::of(&receiver).expect("information").received_bytes(), 100);
        sender.shutdown(Shutdown::Write).expect("an end");
        assert_eq!(receiver.read(&mut [0]).expect("the end"), 0, "the FIN has come");
        assert_eq!(Info::of(&receiver).expect("information").received_bytes(), 100);
    }
}
