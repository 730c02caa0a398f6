//! A pcapng file as it is written: blocks of whole 32-bit words, little-endian, with times in nanoseconds since 1970.
//!
//! In: interfaces by name, packets with their times. Out: a section header, a description of each interface, a block for
//! each packet, and the statistics of each interface at the end; never more bytes than were allowed. Source: PCAP Next
//! Generation Capture File Format, draft-ietf-opsawg-pcapng.

use std::io::{self, Write};

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const BYTE_ORDER: u32 = 0x1A2B_3C4D;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const LINK_TYPE_ETHERNET: u16 = 1;

const USER_APPLICATION: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TIME_RESOLUTION: u16 = 9;
/// Ten to the minus nine seconds.
const NANOSECONDS: u8 = 9;
const PACKET_FLAGS: u16 = 2;
const STATISTICS_RECEIVED: u16 = 4;
const STATISTICS_DROPPED: u16 = 7;
const STATISTICS_WRITTEN: u16 = 8;

const INBOUND: u32 = 1;
/// Bits of epb_flags: it went out.
pub const OUTBOUND: u32 = 2;

/// Which way a packet went, and to whom, as linux/if_packet.h tells it: the bits of epb_flags.
pub fn flags(packet_type: u8) -> u32 {
    match packet_type {
        libc::PACKET_HOST => INBOUND | 1 << 2,
        libc::PACKET_MULTICAST => INBOUND | 2 << 2,
        libc::PACKET_BROADCAST => INBOUND | 3 << 2,
        libc::PACKET_OTHERHOST => INBOUND | 4 << 2,
        libc::PACKET_OUTGOING => OUTBOUND,
        _ => 0,
    }
}

/// A packet at an interface. `bytes`: its first ones; `length`: how many it has; `time_ns`: since 1970.
pub struct Packet<'a> {
    pub interface: usize,
    pub time_ns: u64,
    pub bytes: &'a [u8],
    pub length: u32,
    pub flags: u32,
}

/// What became of the packets of one interface.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    /// They came to the interface or left it.
    pub seen: u64,
    /// The kernel had no room for them.
    pub dropped: u64,
    /// They are in the file.
    pub written: u64,
}

pub struct File<W: Write> {
    out: W,
    block: Vec<u8>,
    /// What packets may still take.
    left_bytes: u64,
}

impl<W: Write> File<W> {
    /// `most_bytes`: of the whole file. Errors: that is too little for a file without packets; writing failed.
    pub fn begin(out: W, interfaces: &[String], snap_bytes: u32, most_bytes: u64) -> io::Result<Self> {
        let mut file = File { out, block: Vec::new(), left_bytes: most_bytes };
        file.words(&[BYTE_ORDER]);
        file.block.extend(1u16.to_le_bytes());
        file.block.extend(0u16.to_le_bytes());
        // How long the section is, is not known.
        file.block.extend((-1i64).to_le_bytes());
        file.option(USER_APPLICATION, format!("ewan-node {}", crate::VERSION).as_bytes());
        file.end_of_options();
        file.write(SECTION_HEADER)?;
        for name in interfaces {
            file.block.extend(LINK_TYPE_ETHERNET.to_le_bytes());
            file.block.extend(0u16.to_le_bytes());
            file.words(&[snap_bytes]);
            file.option(IF_NAME, name.as_bytes());
            file.option(IF_TIME_RESOLUTION, &[NANOSECONDS]);
            file.end_of_options();
            file.write(INTERFACE_DESCRIPTION)?;
        }
        // Room for the end is kept free.
        for interface in 0..interfaces.len() {
            file.statistics(interface, 0, Counts::default());
            let size = file.framed_bytes();
            file.block.clear();
            file.left_bytes = file.left_bytes.checked_sub(size).ok_or_else(too_small)?;
        }
        Ok(file)
    }

    /// False where the file has no room for it; a smaller one may have.
    pub fn packet(&mut self, packet: &Packet<'_>) -> io::Result<bool> {
        let (high, low) = halves(packet.time_ns);
        self.words(&[packet.interface as u32, high, low, packet.bytes.len() as u32, packet.length]);
        self.block.extend(packet.bytes);
        self.pad();
        self.option(PACKET_FLAGS, &packet.flags.to_le_bytes());
        self.end_of_options();
        if self.framed_bytes() > self.left_bytes {
            self.block.clear();
            return Ok(false);
        }
        self.write(ENHANCED_PACKET).map(|()| true)
    }

    /// All packets that are not younger than `time_ns` are written: statistics of the first interface that tell no count.
    /// It counts against the file's size; where that is used up, it is left out.
    pub fn mark(&mut self, time_ns: u64) -> io::Result<()> {
        let (high, low) = halves(time_ns);
        self.words(&[0, high, low]);
        if self.framed_bytes() > self.left_bytes {
            self.block.clear();
            return Ok(());
        }
        self.write(INTERFACE_STATISTICS)
    }

    /// What was written until now goes on to whoever reads it.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The end: what became of the packets of each interface, at `time_ns`.
    pub fn end(mut self, time_ns: u64, counts: &[Counts]) -> io::Result<W> {
        self.left_bytes = u64::MAX;
        for (interface, counts) in counts.iter().enumerate() {
            self.statistics(interface, time_ns, *counts);
            self.write(INTERFACE_STATISTICS)?;
        }
        self.out.flush()?;
        Ok(self.out)
    }

    fn statistics(&mut self, interface: usize, time_ns: u64, counts: Counts) {
        let (high, low) = halves(time_ns);
        self.words(&[interface as u32, high, low]);
        self.option(STATISTICS_RECEIVED, &counts.seen.to_le_bytes());
        self.option(STATISTICS_DROPPED, &counts.dropped.to_le_bytes());
        self.option(STATISTICS_WRITTEN, &counts.written.to_le_bytes());
        self.end_of_options();
    }

    fn words(&mut self, words: &[u32]) {
        words.iter().for_each(|word| self.block.extend(word.to_le_bytes()));
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.block.extend(value);
        self.pad();
    }

    fn end_of_options(&mut self) {
        self.words(&[0]);
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Of the block with its type, and its length before and after it.
    fn framed_bytes(&self) -> u64 {
        self.block.len() as u64 + 12
    }

    fn write(&mut self, kind: u32) -> io::Result<()> {
        let size = self.framed_bytes();
        self.left_bytes = self.left_bytes.checked_sub(size).ok_or_else(too_small)?;
        let length = (size as u32).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length)?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&length)?;
        self.block.clear();
        Ok(())
    }
}

fn halves(time_ns: u64) -> (u32, u32) {
    ((time_ns >> 32) as u32, time_ns as u32)
}

fn too_small() -> io::Error {
    io::Error::other("the file may not be large enough for its own head")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: usize = 28 + 4 + 16 + 4;

    fn packet(bytes: &[u8]) -> Packet<'_> {
        Packet { interface: 0, time_ns: 0x1_0000_0002, bytes, length: 1500, flags: flags(libc::PACKET_OUTGOING) }
    }

    fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
    }

    /// Types and lengths of blocks, each closed by its length once more.
    fn blocks(bytes: &[u8]) -> Vec<(u32, usize)> {
        let (mut found, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let size = word(bytes, at + 4) as usize;
            assert_eq!(word(bytes, at + size - 4) as usize, size);
            found.push((word(bytes, at), size));
            at += size;
        }
        found
    }

    #[test]
    fn a_packet_stands_as_the_format_says() {
        let mut file = File::begin(Vec::new(), &["eth0".into()], 96, 1 << 20).expect("a file");
        assert!(file.packet(&packet(&[1, 2, 3, 4, 5])).expect("written"));
        let bytes = file.end(7, &[Counts { seen: 3, dropped: 2, written: 1 }]).expect("written");
        let found = blocks(&bytes);
        let kinds: Vec<u32> = found.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [SECTION_HEADER, INTERFACE_DESCRIPTION, ENHANCED_PACKET, INTERFACE_STATISTICS]);
        // Head 8, fields 20, five bytes on eight, flags 8, end 4, length 4.
        assert_eq!(found[2].1, 52);
        let at = found[0].1 + found[1].1;
        let fields: Vec<u32> = (0..5).map(|index| word(&bytes, at + 8 + 4 * index)).collect();
        assert_eq!(fields, [0, 1, 2, 5, 1500]);
        assert_eq!(bytes[at + 28..at + 36], [1, 2, 3, 4, 5, 0, 0, 0]);
        assert_eq!(bytes[at + 36..at + 44], [2, 0, 4, 0, 2, 0, 0, 0]);
    }

    #[test]
    fn a_mark_is_statistics_without_counts_and_never_more_than_the_file_may_have() {
        let whole = File::begin(Vec::new(), &["eth0".into()], 96, 1 << 20).expect("a file");
        let empty = whole.end(0, &[Counts::default()]).expect("written").len() as u64;
        let mut file = File::begin(Vec::new(), &["eth0".into()], 96, empty + 24).expect("a file");
        file.mark(0x1_0000_0002).expect("written");
        file.mark(0x1_0000_0003).expect("left out");
        let bytes = file.end(0, &[Counts::default()]).expect("written");
        assert_eq!(bytes.len() as u64, empty + 24);
        let found = blocks(&bytes);
        assert_eq!(found[2], (INTERFACE_STATISTICS, 24));
        let at = found[0].1 + found[1].1;
        assert_eq!([8, 12, 16].map(|field| word(&bytes, at + field)), [0, 1, 2]);
    }

    #[test]
    fn the_file_keeps_to_its_bound_with_its_end() {
        let whole = File::begin(Vec::new(), &["eth0".into()], 96, 1 << 20).expect("a file");
        let empty = whole.end(0, &[Counts::default()]).expect("written").len() as u64;
        // Room for two packets of 52 bytes and not for three.
        let most = empty + 2 * 52 + 51;
        let mut file = File::begin(Vec::new(), &["eth0".into()], 96, most).expect("a file");
        let taken: Vec<bool> = (0..3).map(|_| file.packet(&packet(&[0; 5])).expect("written")).collect();
        assert_eq!(taken, [true, true, false]);
        let bytes = file.end(0, &[Counts::default()]).expect("written");
        assert_eq!(bytes.len() as u64, most - 51);
        assert!(File::begin(Vec::new(), &["eth0".into()], 96, HEAD as u64).is_err());
    }

    #[test]
    fn directions_are_those_of_the_format() {
        assert_eq!([libc::PACKET_HOST, libc::PACKET_BROADCAST, libc::PACKET_OUTGOING].map(flags), [5, 13, 2]);
    }
}
