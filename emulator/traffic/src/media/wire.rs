//! What packets hold. Media: the bits of a header of RTP with transport-wide sequence number and send time as extensions
//! (24 bytes), then part of a frame. Reports: as RFC 8888 has them, for each packet whether it came, its ECN bits and how
//! long before the report; with four bytes a packet where RFC 8888 has two, so that times are exact to 1 µs.

pub const HEADER_BYTES: usize = 24;
const REPORT_BYTES: usize = 28;
/// Of packets that one report tells of.
pub const MOST_REPORTED: usize = 256;
pub const MOST_REPORT_BYTES: usize = REPORT_BYTES + 4 * MOST_REPORTED;
/// Of parts of a frame.
pub const MOST_PARTS: u32 = 0x7fff;

const KEY: u16 = 0x8000;
const CAME: u32 = 0x8000_0000;
const ECN_SHIFT: u32 = 29;
const MOST_AGO: u32 = (1 << ECN_SHIFT) - 1;

/// Congestion experienced (RFC 3168).
pub const CE: u8 = 0b11;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Tells this flow's packets of this run from others.
    pub run: u32,
    pub sequence: u32,
    pub frame: u32,
    /// Of the frame's parts, from 0.
    pub part: u16,
    pub parts: u16,
    pub key: bool,
    pub sent_ns: u64,
}

impl Header {
    pub fn write(&self, into: &mut [u8]) {
        into[..4].copy_from_slice(&self.run.to_be_bytes());
        into[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        into[8..12].copy_from_slice(&self.frame.to_be_bytes());
        into[12..14].copy_from_slice(&self.part.to_be_bytes());
        into[14..16].copy_from_slice(&(self.parts | if self.key { KEY } else { 0 }).to_be_bytes());
        into[16..24].copy_from_slice(&self.sent_ns.to_be_bytes());
    }

    /// None: it is not one of ours.
    pub fn read(from: &[u8]) -> Option<Self> {
        let parts = u16_at(from, 14)?;
        let header = Self {
            run: u32_at(from, 0)?,
            sequence: u32_at(from, 4)?,
            frame: u32_at(from, 8)?,
            part: u16_at(from, 12)?,
            parts: parts & !KEY,
            key: parts & KEY != 0,
            sent_ns: u64_at(from, 16)?,
        };
        (header.part < header.parts).then_some(header)
    }
}

/// When a packet came, and its ECN bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub at_ns: u64,
    pub ecn: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub run: u32,
    pub sent_ns: u64,
    /// The sequence number of the packet that came last: its sender gets the RTT of it.
    pub last: u32,
    /// The receiver cannot go on without a key frame.
    pub key_wanted: bool,
    /// The sequence number of the first of `packets`.
    pub begin: u32,
    /// None: it had not come.
    pub packets: Vec<Option<Arrival>>,
}

impl Report {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(REPORT_BYTES + 4 * self.packets.len());
        bytes.extend(self.run.to_be_bytes());
        bytes.extend(self.sent_ns.to_be_bytes());
        bytes.extend(self.last.to_be_bytes());
        bytes.extend(self.begin.to_be_bytes());
        bytes.extend((self.packets.len() as u32).to_be_bytes());
        bytes.extend(u32::from(self.key_wanted).to_be_bytes());
        for packet in &self.packets {
            let word = packet.map_or(0, |arrival| {
                let ago = (self.sent_ns.saturating_sub(arrival.at_ns) / 1000).min(u64::from(MOST_AGO)) as u32;
                CAME | u32::from(arrival.ecn & 0b11) << ECN_SHIFT | ago
            });
            bytes.extend(word.to_be_bytes());
        }
        bytes
    }

    /// None: it is not one of ours.
    pub fn read(from: &[u8]) -> Option<Self> {
        let sent_ns = u64_at(from, 4)?;
        let count = u32_at(from, 20)? as usize;
        if count > MOST_REPORTED || from.len() != REPORT_BYTES + 4 * count {
            return None;
        }
        let packet = |place: usize| {
            let word = u32_at(from, REPORT_BYTES + 4 * place)?;
            let at_ns = sent_ns.saturating_sub(u64::from(word & MOST_AGO) * 1000);
            (word & CAME != 0).then_some(Arrival { at_ns, ecn: (word >> ECN_SHIFT) as u8 & 0b11 })
        };
        Some(Self {
            run: u32_at(from, 0)?,
            sent_ns,
            last: u32_at(from, 12)?,
            key_wanted: u32_at(from, 24)? != 0,
            begin: u32_at(from, 16)?,
            packets: (0..count).map(packet).collect(),
        })
    }
}

fn u16_at(from: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(from.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(from: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(from.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(from: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(from.get(at..at + 8)?.try_into().ok()?))
}

/// The sizes of the packets that carry a frame, none larger than `most` with its header and all alike.
pub fn sizes(frame_bytes: u32, most: usize) -> Vec<u32> {
    let room = (most - HEADER_BYTES) as u32;
    let parts = frame_bytes.div_ceil(room).clamp(1, MOST_PARTS);
    let (each, rest) = (frame_bytes / parts, frame_bytes % parts);
    (0..parts).map(|part| each + u32::from(part < rest) + HEADER_BYTES as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_and_a_report_come_back_as_they_went() {
        let header = Header { run: 7, sequence: 8, frame: 9, part: 2, parts: 3, key: true, sent_ns: 1 << 40 };
        let mut bytes = [0; HEADER_BYTES];
        header.write(&mut bytes);
        assert_eq!(Header::read(&bytes), Some(header));
        let packets = vec![Some(Arrival { at_ns: 5_000_000_000, ecn: CE }), None, Some(Arrival { at_ns: 1, ecn: 1 })];
        let report = Report { run: 7, sent_ns: 5_000_001_000, last: 3, key_wanted: true, begin: 1, packets };
        let read = Report::read(&report.to_bytes()).expect("a report");
        assert_eq!(read.packets[..2], report.packets[..2]);
        // Exact to a microsecond.
        assert!(read.packets[2].is_some_and(|arrival| arrival.ecn == 1 && arrival.at_ns.abs_diff(1) <= 1000));
        assert_eq!(Report { packets: Vec::new(), ..read }, Report { packets: Vec::new(), ..report });
    }

    #[test]
    fn what_is_cut_short_or_too_long_is_none_of_ours() {
        let report = Report { run: 7, sent_ns: 9, last: 3, key_wanted: false, begin: 1, packets: vec![None; 4] };
        let bytes = report.to_bytes();
        assert_eq!((0..bytes.len()).filter(|&end| Report::read(&bytes[..end]).is_some()).count(), 0);
        assert_eq!(Report::read(&[bytes.as_slice(), &[0]].concat()), None);
        assert_eq!(Header::read(&[0; HEADER_BYTES]), None);
    }

    #[test]
    fn a_frame_is_cut_into_like_parts() {
        assert_eq!(sizes(100, 1200), [124]);
        assert_eq!(sizes(2352, 1200), [1200, 1200]);
        assert_eq!(sizes(2353, 1200), [809, 808, 808]);
    }
}
