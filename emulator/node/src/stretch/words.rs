//! What the two ends say to each other: every packet is a `Header` (emulator/traffic/src/packets.rs), whose `index` says what it
//! is about. A question and its answer have the same `run`, `index` and `sequence`.

/// More packets than any measurement has, of one kind.
pub const MOST_PACKETS: u64 = 100_000;

/// An enum, and which of it has a number.
macro_rules! numbered {
    ($(#[$about:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$each])* $variant = $number,)*
        }

        impl $name {
            pub fn of(number: u64) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

numbered! {
    Word {
        /// A new run begins; answered.
        Hello = 1,
        /// Answered at once, with the delay of the question by both clocks (`forward_ns`) and when the answer left
        /// (`sent_ns`).
        Time = 2,
        /// A large question, a small answer.
        SizeThere = 3,
        /// A small question for an answer with `forward_ns` bytes of payload.
        SizeBack = 4,
        /// Not answered, counted.
        BurstThere = 5,
        /// A question for `sequence` packets with `forward_ns` bytes of payload; they are of this kind too.
        BurstBack = 6,
        /// A question for the `Count` with number `sequence`; the answer has it in `forward_ns`.
        Count = 7,
    }
}

numbered! {
    /// What the answering end has counted since Hello.
    Count {
        /// Different packets of the kind Time.
        TimeReceived = 0,
        TimeReordered = 1,
        TimeDuplicated = 2,
        /// Different packets of the kind BurstThere.
        BurstReceived = 3,
        /// Those that came in order (burst.rs), and from the first to the last of them.
        BurstInOrder = 4,
        BurstWindowNs = 5,
        /// Packets of the kind BurstBack, handed to the tunnel.
        BurstSent = 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_word_and_no_other_has() {
        assert!((1..=7).all(|index| Word::of(index).is_some_and(|word| word as u64 == index)));
        assert_eq!((Word::of(0), Word::of(8)), (None, None));
        assert!((0..=6).all(|number| Count::of(number).is_some_and(|count| count as u64 == number)));
        assert_eq!(Count::of(7), None);
    }
}
