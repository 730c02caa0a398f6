//! Frames of any bytes, whole and damaged: nothing is read or written outside, and only what a function is for changes.
//! `PROPTEST_CASES=1000000 cargo test --release properties` looks longer.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Any bytes, and bytes that look like Ethernet, VLAN tags, MPLS labels and an IP packet up to where they are cut off.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let tag =
        prop_oneof![Just([0x81, 0x00]), Just([0x88, 0xa8]), Just([0x88, 0x47]), Just([0x08, 0x00]), Just([0x86, 0xdd])];
    let behind = (prop_oneof![Just(0x45u8), Just(0x46), Just(0x60), any::<u8>()], vec(any::<u8>(), 0..90));
    let likely = (vec((tag, any::<[u8; 2]>()), 0..20), behind, any::<bool>(), 0usize..150).prop_map(
        |(tags, (first, rest), next_is_tcp, cut)| {
            let mut frame = vec![2; ADDRESSES];
            for (protocol, control) in tags {
                frame.extend(protocol);
                frame.extend(control);
            }
            frame.extend(if first >> 4 == 6 { [0x86, 0xdd] } else { [0x08, 0x00] });
            let at = frame.len();
            frame.push(first);
            frame.extend(rest);
            let length = (frame.len() - at) as u16;
            // A length and a next protocol that fit, so that the transport's header is reached.
            for (place, value) in [
                (at + 2, length.to_be_bytes()),
                (at + 4, length.saturating_sub(40).to_be_bytes()),
                (at + 6, [if next_is_tcp { 6 } else { 17 }, 0]),
                (at + 8, [64, if next_is_tcp { 6 } else { 17 }]),
            ] {
                if let Some(bytes) = frame.get_mut(place..place + 2) {
                    bytes.copy_from_slice(&value);
                }
            }
            frame.truncate(cut.max(ETHERNET));
            frame
        },
    );
    prop_oneof![vec(any::<u8>(), 0..120), likely]
}

fn changed(before: &[u8], after: &[u8]) -> Vec<usize> {
    (0..before.len()).filter(|&at| before[at] != after[at]).collect()
}

/// Its header says that it is 0 bytes long: a bit of that length would change where the next bit is flipped.
#[test]
fn a_flip_leaves_a_header_whole_that_says_it_is_shorter_than_any() {
    let mut frame = [vec![2; ADDRESSES], vec![0x08, 0x00, 0x40], vec![0; 40]].concat();
    let before = frame.clone();
    for random in 0..1000 {
        flip_bit(&mut frame, random);
        assert!(changed(&before, &frame).iter().all(|&place| place >= ETHERNET + 20));
        frame.clone_from(&before);
    }
}

proptest! {
    #[test]
    fn a_frame_counts_at_most_its_bytes(frame in frames(), overhead_bytes in prop_oneof![Just(0), Just(18), Just(38)]) {
        let counted = counted_bytes(&frame, Framing { overhead_bytes, minimum_bytes: 0 });
        prop_assert!(counted as usize <= frame.len());
    }

    #[test]
    fn bleaching_changes_the_bits_of_ecn_and_their_checksum(frame in frames()) {
        let mut bleached = frame.clone();
        bleach(&mut bleached);
        let (at, protocol) = payload(&frame);
        let may = if protocol == Protocol::V4 { vec![at + 1, at + 10, at + 11] } else { vec![at + 1] };
        prop_assert!(changed(&frame, &bleached).iter().all(|place| may.contains(place)));
        prop_assert_eq!(traffic_class(&bleached), traffic_class(&frame) & !3);
        if protocol == Protocol::V4 {
            let rest = |frame: &[u8]| fold(sum(&frame[at..at + 20]));
            prop_assert!(rest(&frame) != 0xffff || rest(&bleached) == 0xffff);
        }
    }

    #[test]
    fn an_acknowledgement_is_of_tcp_and_whole(frame in frames()) {
        if let Some(ack) = pure_ack(&frame, 3) {
            let (at, protocol) = payload(&frame);
            let (next, segment) = if protocol == Protocol::V4 {
                (frame[at + 9], at + usize::from(frame[at] & 15) * 4)
            } else {
                (frame[at + 6], at + 40)
            };
            prop_assert_eq!((next, frame[segment + 13] & 0x3f), (6, 0x10));
            prop_assert_eq!(ack.number.to_be_bytes(), frame[segment + 8..segment + 12].try_into().unwrap_or([0; 4]));
        }
    }

    #[test]
    fn a_mark_changes_the_mark_and_its_checksum_once(frame in frames()) {
        let mut marked = frame.clone();
        mark_ce(&mut marked);
        let (at, protocol) = payload(&frame);
        let may = match protocol {
            Protocol::V4 => vec![at + 1, at + 10, at + 11],
            Protocol::V6 => vec![at + 1],
            Protocol::Other => vec![],
        };
        prop_assert!(changed(&frame, &marked).iter().all(|place| may.contains(place)));
        prop_assert_eq!(traffic_class(&marked) & 3 == 3, protocol != Protocol::Other);
        if protocol == Protocol::V4 {
            // A header that was sound stays sound: of 20 bytes, whatever options follow.
            let rest = |frame: &[u8]| fold(sum(&frame[at..at + 20]));
            prop_assert!(rest(&frame) != 0xffff || rest(&marked) == 0xffff);
        }
        let once = marked.clone();
        mark_ce(&mut marked);
        prop_assert!(protocol == Protocol::V4 || once == marked);
        prop_assert!(changed(&once, &marked).iter().all(|&place| place == at + 10 || place == at + 11));
    }

    #[test]
    fn a_flip_is_one_bit_behind_the_headers_and_undoes_itself(frame in frames(), random in any::<u32>()) {
        let mut flipped = frame.clone();
        flip_bit(&mut flipped, random);
        let places = changed(&frame, &flipped);
        let start = payload(&frame).0;
        prop_assert!(places.len() <= 1 && places.iter().all(|&place| place >= start));
        prop_assert!(places.iter().all(|&place| (frame[place] ^ flipped[place]).count_ones() == 1));
        prop_assert!(!places.is_empty() || frame.len() <= start + 60);
        // Behind an unchanged header the same random number means the same bit.
        flip_bit(&mut flipped, random);
        prop_assert_eq!(frame, flipped);
    }

    #[test]
    fn a_completed_checksum_is_right_and_all_that_changes(frame in frames()) {
        let mut completed = frame.clone();
        let done = complete_checksum(&mut completed);
        let places = changed(&frame, &completed);
        prop_assert!(done || places.is_empty());
        prop_assert!(places.len() <= 2 && places.windows(2).all(|two| two[1] == two[0] + 1));
        let again = completed.clone();
        prop_assert_eq!(complete_checksum(&mut completed), done);
        prop_assert_eq!(again, completed);
    }
}
