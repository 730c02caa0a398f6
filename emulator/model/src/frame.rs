//! What the link must know of a frame, and what it may change in one: complete a checksum that the sender
//! left to its (absent) hardware, mark congestion or clear the bits of ECN (RFC 3168), flip a bit. In and out: the frame's bytes.
//!
//! VLAN tags (IEEE 802.1Q, 802.1ad) and MPLS labels (RFC 3032) may stand before the IP packet. An MPLS label does not say
//! what it carries, so behind labels only what is an IP packet by its length and, for IPv4, by its header's checksum is
//! taken for one: nothing else is ever marked.

use core::num::NonZeroU64;
use core::ops::Range;

use crate::config::Framing;

const ETHERNET: usize = 14;
/// Destination and source.
pub const ADDRESSES: usize = 12;
/// A VLAN tag: its protocol and its control information.
pub const TAG: usize = 4;
/// The Ethernet header and two VLAN tags.
pub const FRAME_BYTES_BEYOND_MTU: usize = ETHERNET + 2 * TAG;
/// Deeper stacks are carried like any frame; their IP header is not looked for.
const MOST_TAGS_AND_LABELS: usize = 16;
const ECN_MASK: u8 = 0b11;

/// The kernel keeps the outermost VLAN tag of a received frame beside it. `space`: TAG free bytes, then the frame.
pub fn put_tag_back(space: &mut [u8], protocol: u16, control: u16) {
    space.copy_within(TAG..TAG + ADDRESSES, 0);
    space[ADDRESSES..ADDRESSES + 2].copy_from_slice(&protocol.to_be_bytes());
    space[ADDRESSES + 2..ADDRESSES + TAG].copy_from_slice(&control.to_be_bytes());
}

/// Bytes that the frame counts before the framing's overhead: all behind the Ethernet header, so tags and labels take
/// time as they do on a wire. Framing `ip` counts the IP packet alone.
#[inline]
pub fn counted_bytes(frame: &[u8], framing: Framing) -> u32 {
    let before = if framing.overhead_bytes == 0 { payload(frame).0 } else { ETHERNET };
    frame.len().saturating_sub(before) as u32
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    V4,
    V6,
    Other,
}

/// Where what tags and labels carry begins, and what it is.
#[inline]
fn payload(frame: &[u8]) -> (usize, Protocol) {
    match frame.get(ADDRESSES..ETHERNET) {
        Some([0x08, 0x00]) if frame.len() >= ETHERNET + 20 => (ETHERNET, Protocol::V4),
        Some([0x86, 0xdd]) if frame.len() >= ETHERNET + 40 => (ETHERNET, Protocol::V6),
        Some([0x81 | 0x91, 0x00] | [0x88, 0xa8 | 0x47 | 0x48]) => behind_tags(frame),
        _ => (ETHERNET, Protocol::Other),
    }
}

#[cold]
fn behind_tags(frame: &[u8]) -> (usize, Protocol) {
    let mut at = ETHERNET;
    for _ in 0..MOST_TAGS_AND_LABELS {
        match frame.get(at - 2..at) {
            Some([0x81 | 0x91, 0x00] | [0x88, 0xa8]) if frame.len() >= at + TAG => at += TAG,
            Some([0x08, 0x00]) if frame.len() >= at + 20 => return (at, Protocol::V4),
            Some([0x86, 0xdd]) if frame.len() >= at + 40 => return (at, Protocol::V6),
            Some([0x88, 0x47 | 0x48]) => return behind_labels(frame, at),
            _ => return (at, Protocol::Other),
        }
    }
    (at, Protocol::Other)
}

fn behind_labels(frame: &[u8], mut at: usize) -> (usize, Protocol) {
    for _ in 0..MOST_TAGS_AND_LABELS {
        let Some(label) = frame.get(at..at + 4) else { break };
        at += 4;
        if label[2] & 1 == 1 {
            return (at, surely_ip(&frame[at..]));
        }
    }
    (at, Protocol::Other)
}

/// By its length and, for IPv4, its header's checksum.
fn surely_ip(packet: &[u8]) -> Protocol {
    let length = |at: usize| usize::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
    match packet.first().map(|first| (first >> 4, usize::from(first & 15) * 4)) {
        Some((4, header))
            if header >= 20
                && packet.len() >= header
                && length(2) == packet.len()
                && fold(sum(&packet[..header])) == 0xffff =>
        {
            Protocol::V4
        }
        Some((6, _)) if packet.len() >= 40 && length(4) + 40 == packet.len() => Protocol::V6,
        _ => Protocol::Other,
    }
}

/// IPv4's type of service, IPv6's traffic class; 0 of what is no IP packet.
#[inline]
pub fn traffic_class(frame: &[u8]) -> u8 {
    match payload(frame) {
        (at, Protocol::V4) => frame[at + 1],
        (at, Protocol::V6) => frame[at] << 4 | frame[at + 1] >> 4,
        (_, Protocol::Other) => 0,
    }
}

/// A hash of what packets of one flow have in common: addresses, protocol and, in TCP, UDP and their like, the ports. Of
/// fragments the ports do not count, as only the first one has them. What is no IP packet goes by its Ethernet addresses.
pub fn flow(frame: &[u8], salt: u64) -> u16 {
    (flow_hash(frame, salt) >> 48) as u16
}

fn flow_hash(frame: &[u8], salt: u64) -> u64 {
    let (addresses, ports) = match payload(frame) {
        (at, Protocol::V4) => {
            let fragment = frame[at + 6] & 0x3f != 0 || frame[at + 7] != 0;
            let ports = at + usize::from(frame[at] & 15) * 4;
            (at + 12..at + 20, ports_of(frame, ports, frame[at + 9]).filter(|_| !fragment))
        }
        // Behind extension headers ports are not looked for.
        (at, Protocol::V6) => (at + 8..at + 40, ports_of(frame, at + 40, frame[at + 6])),
        (_, Protocol::Other) => (0..ADDRESSES.min(frame.len()), None),
    };
    let words = frame[addresses].chunks(4).map(|word| word.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
    words.chain(ports).fold(salt, |hash, word| mix(hash ^ word))
}

/// What the packets of one flow have in common. IPv4 addresses are mapped into IPv6 (RFC 4291, section 2.5.5.2). Of fragments
/// and behind IPv6 extension headers the ports are 0. What is no IP packet has no protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowKey {
    pub source: [u8; 16],
    pub destination: [u8; 16],
    pub source_port: u16,
    pub destination_port: u16,
    pub protocol: Option<u8>,
}

impl FlowKey {
    /// A multiplicative hash, whose upper bits are the better ones.
    pub fn hash(&self) -> u64 {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let words = [self.source, self.destination].into_iter().flat_map(|address| {
            let word = u128::from_be_bytes(address);
            [(word >> 64) as u64, word as u64]
        });
        let rest = u64::from(self.source_port) << 24
            | u64::from(self.destination_port) << 8
            | u64::from(self.protocol.unwrap_or(0));
        words.chain([rest]).fold(0, |hash: u64, word| (hash.rotate_left(23) ^ word).wrapping_mul(ODD)) >> 32
    }
}

/// The flow of a frame, and the bytes that its packet carries behind the headers of IP and of TCP or UDP; 0 of what is no
/// IP packet. `head` holds the headers.
#[inline]
pub fn flow_key(head: &[u8]) -> (FlowKey, u16) {
    const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    let mut key = FlowKey::default();
    let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let (transport, protocol, length, fragment) = match payload(head) {
        (at, Protocol::V4) => {
            for (address, from) in [(&mut key.source, at + 12), (&mut key.destination, at + 16)] {
                address[..12].copy_from_slice(&MAPPED);
                address[12..].copy_from_slice(&head[from..from + 4]);
            }
            let header = header_bytes(head, at);
            (at + header, head[at + 9], word(at + 2).saturating_sub(header as u16), word(at + 6) & 0x3fff != 0)
        }
        (at, Protocol::V6) => {
            key.source.copy_from_slice(&head[at + 8..at + 24]);
            key.destination.copy_from_slice(&head[at + 24..at + 40]);
            (at + 40, head[at + 6], word(at + 4), false)
        }
        (_, Protocol::Other) => return (key, 0),
    };
    key.protocol = Some(protocol);
    if fragment {
        return (key, length);
    }
    if let (6 | 17 | 33 | 132 | 136, Some(ports)) = (protocol, head.get(transport..transport + 4)) {
        key.source_port = u16::from_be_bytes([ports[0], ports[1]]);
        key.destination_port = u16::from_be_bytes([ports[2], ports[3]]);
    }
    let header = match protocol {
        6 => head.get(transport + 12).map_or(20, |offset| u16::from(offset >> 4) * 4),
        17 => 8,
        _ => 0,
    };
    (key, length.saturating_sub(header))
}

/// A pure acknowledgement of TCP: no data, no SYN, FIN, RST, URG or PSH, and no option but timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// A hash of the flow's addresses and ports, from sender to receiver.
    pub flow: NonZeroU64,
    /// The acknowledgement number.
    pub number: u32,
    /// The traffic class of its IP header, and before it the three flags of ECN in its TCP header (RFC 3168, RFC 9768).
    pub marks: u16,
}

impl Ack {
    /// Is nothing lost if only this one arrives? Numbers go round (RFC 9293, section 3.4).
    pub fn acknowledges_more_than(&self, earlier: &Ack) -> bool {
        (self.flow, self.marks) == (earlier.flow, earlier.marks)
            && (1..1 << 31).contains(&self.number.wrapping_sub(earlier.number))
    }
}

/// What a frame acknowledges that does nothing else. Of IPv4 fragments and behind IPv6 extension headers nothing is known.
pub fn pure_ack(frame: &[u8], salt: u64) -> Option<Ack> {
    const TCP: u8 = 6;
    const ACK: u8 = 0x10;
    const OTHER_FLAGS: u8 = 0x3f;
    let word = |at: usize| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    let (segment, end) = match payload(frame) {
        (at, Protocol::V4) if frame[at + 9] == TCP && word(at + 6) & 0x3fff == 0 => {
            (at + usize::from(frame[at] & 15) * 4, at + word(at + 2))
        }
        (at, Protocol::V6) if frame[at + 6] == TCP => (at + 40, at + 40 + word(at + 4)),
        _ => return None,
    };
    let header = frame.get(segment..end)?;
    let (fixed, options) = header.split_at_checked(20)?;
    let plain = usize::from(fixed[12] >> 4) * 4 == header.len() && fixed[13] & OTHER_FLAGS == ACK;
    if !plain || !has_timestamps_alone(options) {
        return None;
    }
    let flags = u16::from(fixed[12] & 1) << 2 | u16::from(fixed[13] >> 6);
    Some(Ack {
        flow: NonZeroU64::new(flow_hash(frame, salt)).unwrap_or(NonZeroU64::MIN),
        number: u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]),
        marks: flags << 8 | u16::from(traffic_class(frame)),
    })
}

/// Options of TCP (RFC 9293, section 3.2; RFC 7323): ends, fillings and timestamps.
fn has_timestamps_alone(mut options: &[u8]) -> bool {
    loop {
        options = match options {
            [] | [0, ..] => return true,
            [1, rest @ ..] => rest,
            [8, 10, rest @ ..] if rest.len() >= 8 => &rest[8..],
            _ => return false,
        };
    }
}

/// Ports and protocol, where the protocol has ports in its first four bytes.
fn ports_of(frame: &[u8], at: usize, protocol: u8) -> Option<u64> {
    let ports = match protocol {
        6 | 17 | 33 | 132 | 136 => frame.get(at..at + 4)?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        _ => 0,
    };
    Some(ports << 8 | u64::from(protocol))
}

/// The finalizer of MurmurHash3 (Appleby): each bit of the input changes each bit of the output with probability 1/2.
fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

/// Sets Congestion Experienced, and the IPv4 header's checksum accordingly (RFC 1624).
pub fn mark_ce(frame: &mut [u8]) {
    set_ecn(frame, ECN_MASK);
}

/// Clears both bits of ECN, and sets the IPv4 header's checksum accordingly.
pub fn bleach(frame: &mut [u8]) {
    set_ecn(frame, 0);
}

fn set_ecn(frame: &mut [u8], ecn: u8) {
    match payload(frame) {
        (at, Protocol::V4) => {
            let word = |frame: &[u8], at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
            let old = word(frame, at);
            frame[at + 1] = frame[at + 1] & !ECN_MASK | ecn;
            let new = word(frame, at);
            let check = fold(u32::from(!word(frame, at + 10)) + u32::from(!old) + u32::from(new));
            frame[at + 10..at + 12].copy_from_slice(&(!check).to_be_bytes());
        }
        (at, Protocol::V6) => frame[at + 1] = frame[at + 1] & !(ECN_MASK << 4) | ecn << 4,
        (_, Protocol::Other) => {}
    }
}

/// Of the IPv4 header at `at`; no such header is shorter than 20 bytes, whatever it says of itself (RFC 791, section 3.1).
fn header_bytes(frame: &[u8], at: usize) -> usize {
    usize::from(frame[at] & 15).max(5) * 4
}

/// Flips one bit behind the IP header (behind the Ethernet header, tags and labels if it is no IP packet), which bit is
/// `random`'s. The headers stay whole, so that the packet arrives and a checksum above has to find the damage.
pub fn flip_bit(frame: &mut [u8], random: u32) {
    let start = match payload(frame) {
        (at, Protocol::V4) => at + header_bytes(frame, at),
        (at, Protocol::V6) => at + 40,
        (at, Protocol::Other) => at,
    };
    if start < frame.len() {
        let bit = random as usize % ((frame.len() - start) * 8);
        frame[start + bit / 8] ^= 1 << (bit % 8);
    }
}

/// Completes the TCP or UDP checksum of a packet whose sender left it to hardware; false if there is none to.
pub fn complete_checksum(frame: &mut [u8]) -> bool {
    let (transport, end, next, addresses): (usize, usize, u8, Range<usize>) = match payload(frame) {
        (at, Protocol::V4) => {
            let header = header_bytes(frame, at);
            let total = usize::from(u16::from_be_bytes([frame[at + 2], frame[at + 3]]));
            // More fragments, or not the first: the checksum is of the whole packet, and the kernel made it.
            if frame[at + 6] & 0x3f != 0 || frame[at + 7] != 0 {
                return false;
            }
            (at + header, at + total, frame[at + 9], at + 12..at + 20)
        }
        // Extension headers before a checksum that hardware completes do not occur: the kernel does those itself.
        (at, Protocol::V6) => {
            let length = usize::from(u16::from_be_bytes([frame[at + 4], frame[at + 5]]));
            (at + 40, at + 40 + length, frame[at + 6], at + 8..at + 40)
        }
        (_, Protocol::Other) => return false,
    };
    let place = match next {
        6 => transport + 16,
        17 => transport + 6,
        _ => return false,
    };
    if end > frame.len() || place + 2 > end {
        return false;
    }
    frame[place..place + 2].fill(0);
    let pseudo = sum(&frame[addresses]) + u32::from(next) + (end - transport) as u32;
    let check = !fold(pseudo + sum(&frame[transport..end]));
    let check = if check == 0 && next == 17 { 0xffff } else { check };
    frame[place..place + 2].copy_from_slice(&check.to_be_bytes());
    true
}

/// Of 16-bit words in network order; at most 65 535 bytes, so 32 bits hold it.
fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum()
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;

    fn ecn_capable(frame: &[u8]) -> bool {
        Ecn::of(traffic_class(frame)).capable()
    }

    /// An IPv4 UDP packet of the kernel's own making (10.0.0.1:1000 → 10.0.0.2:2000, "hello"), ECT(0).
    fn packet() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        frame.extend([0x45, 2, 0, 33, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x03, 0xe8, 0x07, 0xd0, 0, 13, 0, 0]);
        frame.extend(b"hello");
        let check = !fold(sum(&frame[14..34]));
        frame[24..26].copy_from_slice(&check.to_be_bytes());
        frame
    }

    fn header_is_sound(frame: &[u8]) -> bool {
        fold(sum(&frame[14..34])) == 0xffff
    }

    #[test]
    fn marks_congestion_and_keeps_the_header_checksum() {
        let mut frame = packet();
        assert!(header_is_sound(&frame) && ecn_capable(&frame));
        mark_ce(&mut frame);
        assert_eq!(frame[15] & 3, 3);
        assert!(header_is_sound(&frame));
    }

    #[test]
    fn bleaching_undoes_what_a_mark_does() {
        let whole = packet();
        let mut frame = packet();
        bleach(&mut frame);
        assert!(header_is_sound(&frame) && !ecn_capable(&frame));
        assert_eq!(
            (frame[15], frame[..15].to_vec(), frame[26..].to_vec()),
            (0, whole[..15].to_vec(), whole[26..].to_vec())
        );
        let bleached = frame.clone();
        mark_ce(&mut frame);
        bleach(&mut frame);
        assert_eq!(frame, bleached);
    }

    const VLAN: [u8; 4] = [0x81, 0x00, 0x20, 0x05];
    const SERVICE: [u8; 4] = [0x88, 0xa8, 0x00, 0x07];
    const LABELS: [u8; 10] = [0x88, 0x47, 0, 1, 0x10, 64, 0, 2, 0x11, 64];

    /// `packet` with this between its addresses and its type; MPLS replaces the type.
    fn behind(before: &[u8]) -> Vec<u8> {
        let mut frame = packet();
        let type_at = ADDRESSES..if before[0] == 0x88 && before[1] == 0x47 { ETHERNET } else { ADDRESSES };
        frame.splice(type_at, before.iter().copied());
        frame
    }

    fn stacks() -> Vec<(Vec<u8>, usize)> {
        let mut both = SERVICE.to_vec();
        both.extend(VLAN);
        let both = behind(&both);
        vec![(behind(&VLAN), 18), (both, 22), (behind(&LABELS), 22)]
    }

    #[test]
    fn sees_through_tags_and_labels() {
        for (frame, at) in stacks() {
            assert!(payload(&frame) == (at, Protocol::V4) && ecn_capable(&frame));
            let mut marked = frame.clone();
            mark_ce(&mut marked);
            assert_eq!((marked[at + 1] & 3, marked[..at].to_vec()), (3, frame[..at].to_vec()));
            assert_eq!(fold(sum(&marked[at..at + 20])), 0xffff);
            let mut flipped = frame.clone();
            flip_bit(&mut flipped, 77);
            assert_eq!(flipped[..at + 20], frame[..at + 20]);
            assert_ne!(flipped, frame);
            let mut completed = frame.clone();
            assert!(complete_checksum(&mut completed));
            let pseudo = sum(&completed[at + 12..at + 20]) + 17 + 13;
            assert_eq!(fold(pseudo + sum(&completed[at + 20..])), 0xffff);
        }
    }

    #[test]
    fn tags_count_on_a_wire_and_not_as_ip() {
        let framing = |overhead_bytes, minimum_bytes| Framing { overhead_bytes, minimum_bytes };
        let (wire, ip) = (framing(38, 84), framing(0, 0));
        assert_eq!((counted_bytes(&packet(), wire), counted_bytes(&packet(), ip)), (33, 33));
        for (frame, at) in stacks() {
            assert_eq!((counted_bytes(&frame, wire), counted_bytes(&frame, ip)), (33 + at as u32 - 14, 33));
        }
    }

    /// An Ethernet frame behind labels whose destination begins like an IP version, cut-off tags, endless tags.
    #[test]
    fn what_is_no_ip_packet_is_left_alone() {
        let mut wire = behind(&LABELS);
        wire.splice(22.., [0x45, 3, 0, 9, 9, 9, 2, 2, 2, 2, 2, 2, 8, 0].into_iter().chain([7; 30]));
        let endless: Vec<u8> = packet()[..12].iter().copied().chain(VLAN.repeat(40)).collect();
        for whole in [wire, endless, behind(&VLAN), behind(&LABELS)] {
            for length in 0..whole.len() {
                let mut frame = whole[..length].to_vec();
                flip_bit(&mut frame, 1);
                mark_ce(&mut frame);
                let _ = (
                    complete_checksum(&mut frame),
                    counted_bytes(&frame, Framing { overhead_bytes: 0, minimum_bytes: 0 }),
                );
            }
        }
        let mut frame = behind(&LABELS);
        frame.splice(22.., [0x45, 3, 0, 9, 9, 9, 2, 2, 2, 2, 2, 2, 8, 0].into_iter().chain([7; 30]));
        let before = frame.clone();
        assert!(!ecn_capable(&frame) && !complete_checksum(&mut frame));
        mark_ce(&mut frame);
        assert_eq!(frame, before);
    }

    #[test]
    fn a_fragment_has_no_checksum_to_complete() {
        for (more, offset) in [(0x20, 0), (0, 9), (1, 0)] {
            let mut frame = packet();
            (frame[20], frame[21]) = (more, offset);
            let before = frame.clone();
            assert!(!complete_checksum(&mut frame) && frame == before);
        }
    }

    #[test]
    fn marks_ipv6_in_the_traffic_class() {
        let mut frame = vec![0; 14 + 40];
        (frame[12], frame[13], frame[14], frame[15]) = (0x86, 0xdd, 0x60, 0x10);
        assert!(ecn_capable(&frame));
        mark_ce(&mut frame);
        assert_eq!((frame[14], frame[15]), (0x60, 0x30));
        bleach(&mut frame);
        assert_eq!((frame[14], frame[15]), (0x60, 0x00));
    }

    #[test]
    fn a_flipped_bit_leaves_the_headers_whole() {
        for random in 0..13 * 8 {
            let (before, mut frame) = (packet(), packet());
            flip_bit(&mut frame, random);
            assert_eq!(frame[..34], before[..34]);
            let flipped: u32 = frame.iter().zip(&before).map(|(a, b)| (a ^ b).count_ones()).sum();
            assert_eq!(flipped, 1);
        }
    }

    /// An ACK of this number with these flags, options and data, in IPv4 or in IPv6; from port 7000 to port 80.
    fn segment(number: u32, flags: u8, options: &[u8], data: &[u8], version: u8) -> Vec<u8> {
        let length = (20 + options.len() + data.len()) as u8;
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        if version == 4 {
            frame.extend([8, 0, 0x45, 0, 0, 20 + length, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        } else {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, length, 6, 64]);
            frame.extend([[1; 16], [2; 16]].concat());
        }
        frame.extend([0x1b, 0x58, 0, 80, 0, 0, 0, 7]);
        frame.extend(number.to_be_bytes());
        frame.extend([(5 + options.len() as u8 / 4) << 4, flags, 1, 0, 0, 0, 0, 0]);
        frame.extend(options);
        frame.extend(data);
        // A short frame is filled up.
        frame.resize(frame.len().max(60), 0);
        frame
    }

    const TIMESTAMPS: [u8; 12] = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    const SACK: [u8; 12] = [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2];

    #[test]
    fn knows_what_acknowledges_and_does_nothing_else() {
        for version in [4, 6] {
            for options in [&[][..], &TIMESTAMPS, &[0, 0, 0, 0]] {
                let ack = pure_ack(&segment(0xffff_fff0, 0x10, options, &[], version), 5).expect("a pure ACK");
                assert_eq!((ack.number, ack.marks), (0xffff_fff0, 0));
                let more = pure_ack(&segment(16, 0x10, options, &[], version), 5).expect("a pure ACK");
                assert!(more.acknowledges_more_than(&ack), "numbers go round");
                assert!(!ack.acknowledges_more_than(&more) && !ack.acknowledges_more_than(&ack));
            }
            for (flags, options, data) in [
                (0x10, &[][..], &b"x"[..]),
                (0x10, &SACK, b""),
                (0x10, &[30, 4, 0, 0], b""),
                (0x10, &[8, 10, 0, 0], b""),
                (0x18, &[], b""),
                (0x11, &[], b""),
                (0x12, &[], b""),
                (0x14, &[], b""),
                (0x30, &[], b""),
                (0x00, &[], b""),
            ] {
                assert_eq!(pure_ack(&segment(9, flags, options, data, version), 5), None, "{flags:x} {options:?}");
            }
            let whole = segment(9, 0x10, &TIMESTAMPS, &[], version);
            let end = if version == 4 { 14 + 20 + 32 } else { 14 + 40 + 32 };
            assert!((0..end).all(|length| pure_ack(&whole[..length], 5).is_none()));
        }
        assert_eq!(pure_ack(&packet(), 5), None, "UDP");
        let mut fragment = segment(9, 0x10, &[], &[], 4);
        fragment[20] = 0x20;
        assert_eq!(pure_ack(&fragment, 5), None);
    }

    #[test]
    fn an_ack_replaces_none_of_another_flow_or_with_other_marks() {
        let of = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut frame = segment(9, 0x10, &[], &[], 4);
            change(&mut frame);
            pure_ack(&frame, 5).expect("a pure ACK")
        };
        let later = pure_ack(&segment(10, 0x10, &[], &[], 4), 5).expect("a pure ACK");
        assert!(later.acknowledges_more_than(&of(&|_| {})));
        let port = 14 + 20 + 1;
        assert!(!later.acknowledges_more_than(&of(&|frame| frame[port] = 1)));
        assert!(!later.acknowledges_more_than(&of(&|frame| frame[14 + 15] = 9)), "another sender");
        assert!(!later.acknowledges_more_than(&of(&|frame| frame[14 + 20 + 13] |= 0x40)), "ECN echo");
        assert!(!later.acknowledges_more_than(&of(&|frame| frame[14 + 20 + 12] |= 1)), "accurate ECN");
        assert!(!later.acknowledges_more_than(&of(&|frame| frame[15] = 3)), "congestion experienced");
    }

    #[test]
    fn completes_what_the_sender_left_to_hardware() {
        let mut frame = packet();
        assert!(complete_checksum(&mut frame));
        let pseudo = sum(&frame[26..34]) + 17 + 13;
        assert_eq!(fold(pseudo + sum(&frame[34..])), 0xffff);
        assert!(!complete_checksum(&mut [0; 60]), "no IP, nothing to complete");
    }
}
