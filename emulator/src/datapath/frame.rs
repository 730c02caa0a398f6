//! What the link must know of a frame, and the three things it may change in one: complete a checksum that the
//! sender left to its (absent) hardware, mark congestion (RFC 3168), flip a bit. In and out: the frame's bytes.

const ETHERNET: usize = 14;
const ECN_MASK: u8 = 0b11;

/// Bytes of the packet that the frame carries.
pub fn ip_bytes(frame: &[u8]) -> u32 {
    frame.len().saturating_sub(ETHERNET) as u32
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    V4,
    V6,
    Other,
}

fn protocol(frame: &[u8]) -> Protocol {
    match frame.get(12..14) {
        Some([0x08, 0x00]) if frame.len() >= ETHERNET + 20 => Protocol::V4,
        Some([0x86, 0xdd]) if frame.len() >= ETHERNET + 40 => Protocol::V6,
        _ => Protocol::Other,
    }
}

/// Does the sender understand a mark (ECT(0), ECT(1), or marked already)?
pub fn ecn_capable(frame: &[u8]) -> bool {
    match protocol(frame) {
        Protocol::V4 => frame[ETHERNET + 1] & ECN_MASK != 0,
        Protocol::V6 => frame[ETHERNET + 1] >> 4 & ECN_MASK != 0,
        Protocol::Other => false,
    }
}

/// Sets Congestion Experienced, and the IPv4 header's checksum accordingly (RFC 1624).
pub fn mark_ce(frame: &mut [u8]) {
    match protocol(frame) {
        Protocol::V4 => {
            let word = |frame: &[u8], at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
            let old = word(frame, ETHERNET);
            frame[ETHERNET + 1] |= ECN_MASK;
            let new = word(frame, ETHERNET);
            let check = fold(u32::from(!word(frame, ETHERNET + 10)) + u32::from(!old) + u32::from(new));
            frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&(!check).to_be_bytes());
        }
        Protocol::V6 => frame[ETHERNET + 1] |= ECN_MASK << 4,
        Protocol::Other => {}
    }
}

/// Flips one bit behind the IP header (behind the Ethernet header if it is no IP packet), which bit is `random`'s.
/// The headers stay whole, so that the packet arrives and a checksum above has to find the damage.
pub fn flip_bit(frame: &mut [u8], random: u32) {
    let start = match protocol(frame) {
        Protocol::V4 => ETHERNET + usize::from(frame[ETHERNET] & 15) * 4,
        Protocol::V6 => ETHERNET + 40,
        Protocol::Other => ETHERNET,
    };
    if start < frame.len() {
        let bit = random as usize % ((frame.len() - start) * 8);
        frame[start + bit / 8] ^= 1 << (bit % 8);
    }
}

/// Completes the TCP or UDP checksum of a packet whose sender left it to hardware; false if there is none to.
pub fn complete_checksum(frame: &mut [u8]) -> bool {
    let (transport, end, next, addresses) = match protocol(frame) {
        Protocol::V4 => {
            let header = usize::from(frame[ETHERNET] & 15) * 4;
            let total = usize::from(u16::from_be_bytes([frame[ETHERNET + 2], frame[ETHERNET + 3]]));
            (ETHERNET + header, ETHERNET + total, frame[ETHERNET + 9], ETHERNET + 12..ETHERNET + 20)
        }
        // Extension headers before a checksum that hardware completes do not occur: the kernel does those itself.
        Protocol::V6 => {
            let length = usize::from(u16::from_be_bytes([frame[ETHERNET + 4], frame[ETHERNET + 5]]));
            (ETHERNET + 40, ETHERNET + 40 + length, frame[ETHERNET + 6], ETHERNET + 8..ETHERNET + 40)
        }
        Protocol::Other => return false,
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
mod tests {
    use super::*;

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
        assert!(header_is_sound(&frame) && ecn_capable(&frame) && ip_bytes(&frame) == 33);
        mark_ce(&mut frame);
        assert_eq!(frame[15] & 3, 3);
        assert!(header_is_sound(&frame));
    }

    #[test]
    fn marks_ipv6_in_the_traffic_class() {
        let mut frame = vec![0; 14 + 40];
        (frame[12], frame[13], frame[14], frame[15]) = (0x86, 0xdd, 0x60, 0x10);
        assert!(ecn_capable(&frame));
        mark_ce(&mut frame);
        assert_eq!((frame[14], frame[15]), (0x60, 0x30));
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

    #[test]
    fn completes_what_the_sender_left_to_hardware() {
        let mut frame = packet();
        assert!(complete_checksum(&mut frame));
        let pseudo = sum(&frame[26..34]) + 17 + 13;
        assert_eq!(fold(pseudo + sum(&frame[34..])), 0xffff);
        assert!(!complete_checksum(&mut [0; 60]), "no IP, nothing to complete");
    }
}
