//! Netlink of any bytes, of damaged messages and of whole ones: nothing is read outside, what is built is read again.
//! `PROPTEST_CASES=1000000 cargo test --release -p ewan-system properties` looks longer.

use std::net::IpAddr;

use proptest::collection::vec;
use proptest::prelude::*;

use super::answers::{messages, requests, single, Dump};
use super::*;

/// An attribute as it is built: plain, or a structure with attributes behind it.
#[derive(Clone, Debug, PartialEq)]
enum Attribute {
    Plain(u16, Vec<u8>),
    Nested(u16, Vec<u8>, Vec<Attribute>),
}

impl Attribute {
    fn build(&self, into: &mut Attributes) {
        match self {
            Attribute::Plain(kind, value) => into.bytes(*kind, value),
            Attribute::Nested(kind, header, inner) => {
                into.nested(*kind, header, |into| inner.iter().for_each(|each| each.build(into)))
            }
        };
    }

    /// Is this what was read?
    fn is(&self, (kind, value): (u16, &[u8])) -> bool {
        match self {
            Attribute::Plain(wanted, bytes) => kind == *wanted && value == bytes,
            Attribute::Nested(wanted, header, inner) => {
                let (head, rest) = value.split_at(header.len().next_multiple_of(4));
                kind == *wanted && head.starts_with(header) && same(inner, rest)
            }
        }
    }
}

fn same(wanted: &[Attribute], bytes: &[u8]) -> bool {
    let found: Vec<_> = attributes(bytes).collect();
    found.len() == wanted.len() && wanted.iter().zip(found).all(|(wanted, found)| wanted.is(found))
}

fn attribute() -> impl Strategy<Value = Attribute> {
    let kind = || 0..NESTED;
    let plain = (kind(), vec(any::<u8>(), 0..40)).prop_map(|(kind, value)| Attribute::Plain(kind, value));
    plain.prop_recursive(4, 24, 5, move |inner| {
        (kind(), vec(any::<u8>(), 0..24), vec(inner, 0..5))
            .prop_map(|(kind, header, inner)| Attribute::Nested(kind, header, inner))
    })
}

/// Requests as a lab's are, some of them with attributes of any kind.
fn batch() -> impl Strategy<Value = Batch> {
    let one = (
        0..7u8,
        any::<[u8; 6]>(),
        any::<[u32; 3]>(),
        any::<[u8; 16]>(),
        0..=32u8,
        "[a-z0-9]{1,15}",
        vec(attribute(), 0..4),
    );
    vec(one, 0..12).prop_map(|all| {
        let mut batch = Batch::default();
        for (kind, mac, [index, mtu, number], octets, prefix, name, attributes) in all {
            let v4 = <[u8; 4]>::try_from(&octets[..4]).expect("four");
            let address: IpAddr = if number % 2 == 0 { v4.into() } else { octets.into() };
            let port = requests::Port { name: &name, index, mac, mtu };
            let what = name.clone();
            let metrics =
                requests::Metrics { quick_acks: mtu % 2 == 0, window_bytes: (number % 3 == 0).then_some(number) };
            match kind {
                0 => requests::veth(&mut batch, &port, &port, number as i32, what),
                1 => requests::address(&mut batch, index, address, prefix, what),
                2 => requests::neighbour(&mut batch, index, address, mac, what),
                3 => {
                    let by = requests::NextHop { index, via: address, metric: index };
                    requests::route(&mut batch, (address, prefix), &by, libc::RT_TABLE_MAIN, metrics, what);
                }
                5 => requests::connected(&mut batch, index, address, prefix, metrics, what),
                4 => requests::correct(&mut batch, index, Some(mtu), Some(mac), what),
                _ => batch
                    .add(number as u16, 0, &octets, what, |into| attributes.iter().for_each(|each| each.build(into))),
            }
        }
        batch
    })
}

/// What a kernel might answer, by the numbers that it answers to.
fn answer() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![
        Just(libc::NLMSG_DONE as u16),
        Just(libc::NLMSG_ERROR as u16),
        Just(libc::RTM_NEWLINK),
        Just(libc::RTM_NEWQDISC),
        any::<u16>(),
    ];
    let flags = prop_oneof![Just(0u16), Just(2), Just(0x10), Just(0x300), any::<u16>()];
    let number = prop_oneof![Just(0i32), Just(-libc::EEXIST), any::<i32>()];
    let message = (kind, flags, 0..6u32, number, vec(any::<u8>(), 0..40), vec(attribute(), 0..4));
    vec(message, 0..6).prop_map(|all| {
        let mut bytes = Vec::new();
        for (kind, flags, sequence, number, echoed, attributes) in all {
            let start = bytes.len();
            bytes.extend([0; 4]);
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(flags.to_ne_bytes());
            bytes.extend(sequence.to_ne_bytes());
            bytes.extend([0; 4]);
            bytes.extend(number.to_ne_bytes());
            bytes.extend(echoed);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            attributes.iter().for_each(|each| each.build(&mut Attributes::new(&mut bytes)));
            let length = (bytes.len() - start) as u32;
            bytes[start..start + 4].copy_from_slice(&length.to_ne_bytes());
        }
        bytes
    })
}

/// Some bytes are others, and some are missing at the end.
fn damaged(bytes: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), Just(1), Just(3), Just(0xff), any::<u8>()];
    (bytes, vec((any::<prop::sample::Index>(), byte), 0..8), any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(mut bytes, changes, end, cut)| {
            let length = bytes.len();
            if length > 0 {
                changes.iter().for_each(|(at, byte)| bytes[at.index(length)] = *byte);
                bytes.truncate(if cut { end.index(length) } else { length });
            }
            bytes
        },
    )
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..200), damaged(answer()), damaged(batch().prop_map(|batch| batch.bytes)), answer(),]
}

/// Does one lie within the other?
fn within(part: &[u8], whole: &[u8]) -> bool {
    let (part, whole) = (part.as_ptr_range(), whole.as_ptr_range());
    part.start >= whole.start && part.end <= whole.end
}

/// Follows attributes as deep as there are any; gives how many it saw.
fn walk(bytes: &[u8], whole: &[u8]) -> usize {
    let mut seen = 0;
    let mut last = bytes.as_ptr();
    for (_, value) in attributes(bytes) {
        assert!(within(value, whole) && value.as_ptr() > last, "an attribute outside of its message");
        last = value.as_ptr();
        let _ = u32_of(value);
        seen += 1 + walk(value, whole);
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(2048), ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_is_read_within_its_bounds(bytes in any_bytes(), first in 0..4u32, count in 0..4u32, kind in any::<u16>()) {
        let mut last = 0;
        for message in messages(&bytes) {
            let Ok(message) = message else { break };
            prop_assert!(within(message.whole, &bytes) && message.whole.len() >= HEADER);
            prop_assert_eq!(message.body().len(), message.whole.len() - HEADER);
            let at = message.whole.as_ptr() as usize - bytes.as_ptr() as usize;
            prop_assert!(last <= at, "messages overlap");
            last = at + message.whole.len();
            let _ = message.errno();
            let _ = kernel_words(message.whole);
            for header in [0, 4, 12, 16, 20] {
                walk(message.body().get(header..).unwrap_or_default(), &bytes);
            }
        }
        walk(&bytes, &bytes);
        if let Ok(told) = requests(&bytes, first, first + count) {
            let refused = told.refused.map(|(place, number, whole)| (place, number, within(whole, &bytes)));
            prop_assert!(refused.is_none_or(|(place, number, inside)| place <= count as usize && number != 0 && inside));
        }
        let _ = single(&bytes, first, kind);
        let mut dump = Dump::of(first);
        // As it comes in two receive calls, cut anywhere.
        let (one, two) = bytes.split_at(bytes.len() * count as usize / 4);
        if dump.take(one) == Ok(State::Open) {
            let _ = dump.take(two);
        }
    }

    #[test]
    fn what_is_built_is_read_again(wanted in vec(attribute(), 0..8)) {
        let mut bytes = Vec::new();
        wanted.iter().for_each(|each| each.build(&mut Attributes::new(&mut bytes)));
        prop_assert_eq!(bytes.len() % 4, 0);
        prop_assert!(same(&wanted, &bytes), "{:?}", attributes(&bytes).collect::<Vec<_>>());
    }

    #[test]
    fn a_batch_is_as_many_whole_messages_as_requests(batch in batch()) {
        let mut end = 0;
        for (place, message) in messages(&batch.bytes).enumerate() {
            let message = message.expect("a whole message");
            end += message.whole.len().next_multiple_of(4);
            prop_assert_eq!(end, batch.requests[place].end);
            prop_assert_eq!(message.sequence, place as u32 + 1);
            prop_assert!(i32::from(message.flags) & libc::NLM_F_REQUEST != 0);
        }
        prop_assert_eq!(end, batch.bytes.len());
    }

    /// What the kernel says of a refusal is found behind the request that it echoes, or its header alone.
    #[test]
    fn the_kernels_words_are_found(words in "[ -~]{1,60}", number in 1..200i32, echoed in 0..64usize, capped in any::<bool>()) {
        let echoed = if capped { 0 } else { echoed.next_multiple_of(4) };
        let mut bytes = vec![0; HEADER];
        bytes[6..8].copy_from_slice(&(if capped { 0x300u16 } else { 0x200 }).to_ne_bytes());
        bytes.extend((-number).to_ne_bytes());
        bytes.extend(((HEADER + echoed) as u32).to_ne_bytes());
        bytes.resize(bytes.len() + HEADER - 4 + echoed, 7);
        Attributes::new(&mut bytes).u32(2, 9).text(1, &words);
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        prop_assert_eq!(kernel_words(&bytes), Some(words));
    }
}
