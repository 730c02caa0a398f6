//! Who exchanges with whom in an iteration: pure. In: a pattern and a number of ranks. Out: for each rank the steps of an
//! iteration, each a rank to send to and a rank to receive from.
//!
//! A rank sends in the order of its steps and receives in the order of its steps. Its step k sends to whom receives from it
//! in a step k, so however small the sockets' buffers are, all of a step come to their end once all have come so far.

use serde::Deserialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Rank 2i sends to rank 2i+1, which answers with as much.
    PingPong,
    /// Everybody to everybody, in n − 1 steps: in step k to the rank k further on (MPI's pairwise all-to-all).
    AllToAll,
    /// A ring: to both neighbours.
    NeighbourExchange,
    /// Dissemination (Hensgen, Finkel, Manber 1988): in step k one byte to the rank 2^k further on, which is waited for.
    Barrier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub to: usize,
    pub from: usize,
}

impl Pattern {
    pub fn check(self, ranks: usize) -> Result<(), String> {
        match self {
            _ if ranks < 2 => Err(format!("{ranks} ranks: give two or more")),
            Self::PingPong if ranks % 2 == 1 => Err(format!("{ranks} ranks: ping-pong is between pairs")),
            _ => Ok(()),
        }
    }

    /// Of one iteration. In ping-pong the odd ranks receive first and then send.
    pub fn steps(self, rank: usize, ranks: usize) -> Vec<Step> {
        let further = |by: usize| Step { to: (rank + by) % ranks, from: (rank + ranks - by) % ranks };
        match self {
            Self::PingPong => vec![Step { to: rank ^ 1, from: rank ^ 1 }],
            Self::AllToAll => (1..ranks).map(further).collect(),
            Self::NeighbourExchange if ranks == 2 => vec![further(1)],
            Self::NeighbourExchange => vec![further(1), further(ranks - 1)],
            Self::Barrier => (0..).map(|k| 1 << k).take_while(|&by| by < ranks).map(further).collect(),
        }
    }

    /// The ranks that it has a connection with, each once, the ones to which it sends first.
    pub fn peers(self, rank: usize, ranks: usize) -> Vec<usize> {
        let steps = self.steps(rank, ranks);
        let mut peers = Vec::new();
        for peer in steps.iter().map(|step| step.to).chain(steps.iter().map(|step| step.from)) {
            if !peers.contains(&peer) {
                peers.push(peer);
            }
        }
        peers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Pattern; 4] = [Pattern::PingPong, Pattern::AllToAll, Pattern::NeighbourExchange, Pattern::Barrier];

    #[test]
    fn whom_a_rank_sends_to_in_a_step_receives_from_it_in_that_step() {
        for pattern in ALL {
            for ranks in (2..20).filter(|&ranks| pattern.check(ranks).is_ok()) {
                for rank in 0..ranks {
                    for (step, k) in pattern.steps(rank, ranks).into_iter().zip(0..) {
                        let there = pattern.steps(step.to, ranks);
                        assert_eq!(there[k].from, rank, "{pattern:?} {ranks}");
                        assert_ne!(step.to, rank);
                        assert!(pattern.peers(step.to, ranks).contains(&rank));
                    }
                }
            }
        }
    }

    #[test]
    fn everybody_hears_of_everybody_before_leaving_a_barrier() {
        for ranks in 2..70 {
            let steps: Vec<Vec<Step>> = (0..ranks).map(|rank| Pattern::Barrier.steps(rank, ranks)).collect();
            assert_eq!(steps[0].len() as u32, (ranks - 1).ilog2() + 1, "{ranks}");
            let mut heard: Vec<Vec<bool>> = (0..ranks).map(|rank| (0..ranks).map(|r| r == rank).collect()).collect();
            for k in 0..steps[0].len() {
                let before = heard.clone();
                for (rank, steps) in steps.iter().enumerate() {
                    let came = &before[steps[k].from];
                    heard[rank].iter_mut().zip(came).for_each(|(mine, theirs)| *mine |= theirs);
                }
            }
            assert!(heard.iter().flatten().all(|&yes| yes), "{ranks}");
        }
    }

    #[test]
    fn all_to_all_reaches_each_once_and_a_ring_of_two_has_one_neighbour() {
        for ranks in 2..10 {
            let mut to: Vec<usize> = Pattern::AllToAll.steps(1, ranks).iter().map(|step| step.to).collect();
            to.sort_unstable();
            assert_eq!(to, (0..ranks).filter(|&rank| rank != 1).collect::<Vec<_>>());
        }
        assert_eq!(Pattern::NeighbourExchange.peers(0, 2), [1]);
        assert_eq!(Pattern::NeighbourExchange.peers(0, 5), [1, 4]);
        assert_eq!(Pattern::PingPong.peers(3, 4), [2]);
        assert!(Pattern::PingPong.check(3).is_err() && Pattern::Barrier.check(1).is_err());
    }
}
