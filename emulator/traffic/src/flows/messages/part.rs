//! What one rank does in every iteration. In: its connections. Out: messages of the sizes that were drawn, sent and taken;
//! both ends of a message draw its size from the same stream.

use std::os::fd::OwnedFd;
use std::sync::{mpsc, Arc};

use super::super::law::{stream, Law, Stream};
use super::super::{take, World};
use super::{Group, Pattern, Peers, SIZES};

const GONE: &str = "the thread that sends is gone";

pub struct Part {
    ping: bool,
    sender: Sender,
    receiver: Receiver,
}

enum Sender {
    /// This thread.
    Own(Outbox),
    /// Another one, while this one receives: told to begin, it tells when all is sent.
    Other { go: mpsc::Sender<()>, sent: mpsc::Receiver<Result<u64, String>> },
}

/// A message of each step of an iteration: the connection, and whence its sizes come.
struct Mail {
    peer: usize,
    connection: Arc<OwnedFd>,
    sizes: Stream,
}

struct Outbox {
    world: Arc<World>,
    law: Option<Law>,
    mail: Vec<Mail>,
}

struct Receiver {
    group: Arc<Group>,
    rank: usize,
    mail: Vec<Mail>,
}

/// A barrier's messages are one byte long, all others at least that.
fn draw(law: Option<Law>, sizes: &mut Stream) -> u64 {
    law.map_or(1, |law| law.draw_whole(sizes).max(1))
}

impl Part {
    pub fn new(group: &Arc<Group>, world: &Arc<World>, rank: usize, peers: &Peers) -> Result<Self, String> {
        let (pattern, ranks, seed) = (group.work.pattern, group.work.ranks.len(), group.common.seed);
        let steps = pattern.steps(rank, ranks);
        let mail = |peer: usize, from: usize, to: usize| {
            let connection = peers[peer].clone().ok_or_else(|| format!("rank {peer} did not connect"))?;
            Ok(Mail { peer, connection, sizes: stream(seed, SIZES + (from * ranks + to) as u64) })
        };
        let out = steps.iter().map(|step| mail(step.to, rank, step.to)).collect::<Result<_, String>>()?;
        let inbox = steps.iter().map(|step| mail(step.from, step.from, rank)).collect::<Result<_, String>>()?;
        let law = group.work.size_bytes.filter(|_| pattern != Pattern::Barrier);
        let mut outbox = Outbox { world: world.clone(), law, mail: out };
        let receiver = Receiver { group: group.clone(), rank, mail: inbox };
        let ping = pattern == Pattern::PingPong;
        if ping || pattern == Pattern::Barrier {
            return Ok(Self { ping, sender: Sender::Own(outbox), receiver });
        }
        let (go, begin) = mpsc::channel();
        let (tell, sent) = mpsc::channel();
        world.spawn("sender", move || {
            while begin.recv().is_ok() {
                let sum = (0..outbox.mail.len()).map(|step| outbox.send_next(step)).sum();
                if tell.send(sum).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { ping, sender: Sender::Other { go, sent }, receiver })
    }

    /// One iteration; gives the bytes sent and received. Errors also where the group was ended.
    pub fn exchange(&mut self) -> Result<(u64, u64), String> {
        let receiver = &mut self.receiver;
        match &mut self.sender {
            Sender::Own(outbox) if self.ping && receiver.rank.is_multiple_of(2) => {
                let sent = outbox.send_next(0)?;
                Ok((sent, receiver.take(0, sent)?))
            }
            Sender::Own(outbox) if self.ping => {
                let came = receiver.take_next(0, outbox.law)?;
                Ok((outbox.send(0, came)?, came))
            }
            Sender::Own(outbox) => {
                let (mut sent, mut came) = (0, 0);
                for step in 0..outbox.mail.len() {
                    sent += outbox.send_next(step)?;
                    came += receiver.take_next(step, outbox.law)?;
                }
                Ok((sent, came))
            }
            Sender::Other { go, sent } => {
                go.send(()).map_err(|_| GONE)?;
                let law = receiver.group.work.size_bytes;
                let came = (0..receiver.mail.len()).map(|step| receiver.take_next(step, law)).sum::<Result<_, _>>()?;
                Ok((sent.recv().map_err(|_| GONE)??, came))
            }
        }
    }
}

impl Outbox {
    fn send_next(&mut self, step: usize) -> Result<u64, String> {
        let bytes = draw(self.law, &mut self.mail[step].sizes);
        self.send(step, bytes)
    }

    fn send(&self, step: usize, bytes: u64) -> Result<u64, String> {
        let Mail { peer, connection, .. } = &self.mail[step];
        let sent = self.world.filling.send(connection, bytes);
        sent.map(|()| bytes).map_err(|error| format!("sending to rank {peer}: {error}"))
    }
}

impl Receiver {
    fn take_next(&mut self, step: usize, law: Option<Law>) -> Result<u64, String> {
        let bytes = draw(law, &mut self.mail[step].sizes);
        self.take(step, bytes)
    }

    fn take(&self, step: usize, bytes: u64) -> Result<u64, String> {
        let Mail { peer, connection, .. } = &self.mail[step];
        let came = take(connection, bytes);
        self.group.came(self.rank, came);
        if came < bytes {
            return Err(format!("the connection with rank {peer} ended after {came} of {bytes} bytes"));
        }
        Ok(bytes)
    }
}
