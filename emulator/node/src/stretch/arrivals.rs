//! What follows from the packets that came: pure.

use std::collections::HashSet;

use ewan_traffic::packets::Header;

use super::clocks::Exchange;

/// Which packets of a kind came, some more than once.
pub struct ArrivalSet {
    seen: Vec<bool>,
    pub different: u64,
    all: u64,
}

impl ArrivalSet {
    pub fn of(packets: u64) -> Self {
        Self { seen: vec![false; packets as usize], different: 0, all: 0 }
    }

    /// False of one that was never sent, and of copies without end.
    pub fn note(&mut self, sequence: u64) -> bool {
        let Some(seen) = usize::try_from(sequence).ok().and_then(|place| self.seen.get_mut(place)) else {
            return false;
        };
        self.different += u64::from(!std::mem::replace(seen, true));
        self.all += 1;
        self.all <= 2 * self.seen.len() as u64
    }
}

/// From the question to the answer that came at `at_ns`; None where there was no such question.
pub fn took_ns(sent_at: &[Option<i64>], answer: &Header, at_ns: i64) -> Option<i64> {
    let place = usize::try_from(answer.sequence).ok()?;
    Some(at_ns - (*sent_at.get(place)?)?)
}

/// Of each question the first answer.
pub fn exchanges(sent_at: &[Option<i64>], answers: &[(Header, i64)]) -> Vec<Exchange> {
    let mut seen = vec![false; sent_at.len()];
    let exchange = |(header, received_ns): &(Header, i64)| {
        let place = header.sequence as usize;
        let sent_ns = sent_at[place]?;
        (!std::mem::replace(&mut seen[place], true)).then_some(Exchange {
            sent_ns,
            received_ns: *received_ns,
            there_ns: header.forward_ns,
            back_ns: received_ns - header.sent_ns,
        })
    };
    answers.iter().filter_map(exchange).collect()
}

/// What the way back did to answers, each of which says when it left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Back {
    /// Came behind one that left later.
    pub reordered: u64,
    /// Came once more. A question that came twice has two answers, which left at different times.
    pub duplicated: u64,
}

impl Back {
    /// `answers` are as they came.
    pub fn of(answers: &[(Header, i64)]) -> Self {
        let (mut found, mut seen, mut latest_ns) = (Self::default(), HashSet::new(), i64::MIN);
        for (header, _) in answers {
            if !seen.insert((header.sequence, header.sent_ns)) {
                found.duplicated += 1;
            } else if header.sent_ns < latest_ns {
                found.reordered += 1;
            }
            latest_ns = latest_ns.max(header.sent_ns);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_noted_and_what_was_never_sent_is_not() {
        let mut came = ArrivalSet::of(2);
        assert_eq!([1, 1, 2, 0, 0, 0].map(|sequence| came.note(sequence)), [true, true, false, true, true, false]);
        assert_eq!(came.different, 2);
    }

    #[test]
    fn of_several_answers_the_first_counts() {
        let answer = |sequence, sent_ns, forward_ns| Header { run: 1, index: 2, sequence, sent_ns, forward_ns };
        // The other clock is 1000 ahead; the second question was refused by our own kernel.
        let sent_at = [Some(100), None, Some(300)];
        let answers = [(answer(2, 1_330, 1_020), 350), (answer(0, 1_115, 1_010), 140), (answer(2, 1_390, 1_050), 400)];
        let found = exchanges(&sent_at, &answers);
        assert_eq!(
            found,
            [
                Exchange { sent_ns: 300, received_ns: 350, there_ns: 1_020, back_ns: -980 },
                Exchange { sent_ns: 100, received_ns: 140, there_ns: 1_010, back_ns: -975 },
            ]
        );
        assert_eq!(found[0].round_trip_ns(), 40);
        // The answer to 0 left before that to 2 and came after it.
        assert_eq!(Back::of(&answers), Back { reordered: 1, duplicated: 0 });
        let copied = [answers[1], answers[0], answers[1], answers[2]];
        assert_eq!(Back::of(&copied), Back { reordered: 0, duplicated: 1 });
        assert_eq!(took_ns(&sent_at, &answer(1, 0, 0), 9), None);
        assert_eq!(took_ns(&sent_at, &answer(9, 0, 0), 9), None);
    }
}
