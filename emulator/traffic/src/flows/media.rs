//! Interactive video: a source whose rate follows the network (`crate::media`), and a receiver that tells it what came.
//!
//! In: the source's settings, two ends. Out: packets of frames from one end and reports from the other, on one pair of
//! ports; what became of each frame (frames.csv), what the rate control knew (media.csv) and what the UDP flow had of loss
//! and delay. Each end is a thread that sleeps until the next thing that it has to do, or until a packet comes. Sizes are of
//! UDP payload.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use serde::Deserialize;

use super::records::{FrameRow, MediaSample};
use super::udp::reception::Reception;
use super::{Common, Ending, Ends, Flow, Received, Record, UdpRecord, World};
use crate::clock::offset_ns;
use crate::media::arrivals::Arrivals;
use crate::media::control::{Bounds, Kind};
use crate::media::encoder::{Encoder, Settings};
use crate::media::history::History;
use crate::media::playout::Playout;
use crate::media::queue::Queue;
use crate::media::wire::{Header, Report, HEADER_BYTES, MOST_REPORT_BYTES};
use crate::room::Room;
use crate::socket::Endpoint;

mod datagrams;
mod source;

use datagrams::{mark, receive, tell_marks, wait};
use source::Source;

const BUFFER_BYTES: usize = 4 << 20;
/// A thread that waits looks at least so often whether its flow has ended.
const LOOK_NS: u64 = 50_000_000;
/// After the last packet left nobody waits longer for those on their way, unless they may take longer.
const LINGER_NS: u64 = 500_000_000;
const PACKETS: std::ops::RangeInclusive<usize> = 200..=65_507;
const FRAMES_PER_SECOND: std::ops::RangeInclusive<f64> = 1.0..=240.0;
const RATES_BPS: std::ops::RangeInclusive<u64> = 1_000..=1_000_000_000;
/// ECT(1), RFC 9331.
const L4S: u8 = 0b01;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Media {
    pub control: Kind,
    /// What the encoder makes at the start.
    pub initial_bps: u64,
    pub least_bps: u64,
    pub most_bps: u64,
    pub frames_per_second: f64,
    /// From a key frame to the next; none: the first one and those that the receiver asks for.
    #[serde(default)]
    pub key_interval_ns: Option<u64>,
    /// Of a packet, with the header of the generator.
    pub packet_bytes: usize,
    /// All frames are alike, and come at equal times.
    #[serde(default)]
    pub even: bool,
    /// Packets are sent as ECT(1).
    #[serde(default)]
    pub l4s: bool,
    /// The source captures nothing for a while.
    #[serde(default)]
    pub pause: Option<Pause>,
    /// The longest time that a packet may be on its way, as far as is known; 0: it is not known.
    #[serde(default)]
    pub transit_ns: u64,
}

/// From the flow's start.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    pub at_ns: u64,
    pub for_ns: u64,
}

impl Media {
    pub fn check(&self, stops: bool) -> Result<(), String> {
        let rates = [self.least_bps, self.initial_bps, self.most_bps];
        if !stops {
            Err("give stop_ns".into())
        } else if rates.iter().any(|rate| !RATES_BPS.contains(rate)) || !rates.is_sorted() {
            Err(format!(
                "give least_bps, initial_bps and most_bps, none less than the one before, {} to {}",
                RATES_BPS.start(),
                RATES_BPS.end()
            ))
        } else if !FRAMES_PER_SECOND.contains(&self.frames_per_second) {
            Err(format!("frames_per_second: give {} to {}", FRAMES_PER_SECOND.start(), FRAMES_PER_SECOND.end()))
        } else if !PACKETS.contains(&self.packet_bytes) {
            Err(format!("packet_bytes: give {} to {}", PACKETS.start(), PACKETS.end()))
        } else if self.key_interval_ns == Some(0) {
            Err("key_interval_ns must be above 0".into())
        } else {
            Ok(())
        }
    }

    fn settings(&self, start_ns: u64) -> Settings {
        let times = |pause: Pause| {
            let from_ns = start_ns.saturating_add(pause.at_ns);
            [from_ns, from_ns.saturating_add(pause.for_ns)]
        };
        Settings {
            frames_per_second: self.frames_per_second,
            least_bps: self.least_bps as f64,
            most_bps: self.most_bps as f64,
            key_every_ns: self.key_interval_ns,
            varies: !self.even,
            pause_ns: self.pause.map(times),
        }
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            initial_bps: self.initial_bps as f64,
            least_bps: self.least_bps as f64,
            most_bps: self.most_bps as f64,
            l4s: self.l4s,
            frames_per_second: self.frames_per_second,
            packet_bytes: self.packet_bytes as f64,
        }
    }
}

struct MediaFlow {
    common: Common,
    ends: Ends,
    work: Media,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    started_ns: Option<i64>,
    ended_ns: Option<i64>,
    error: Option<String>,
    refused: Option<String>,
    sent_packets: u64,
    heard: Reception,
    playout: Playout,
    /// By their numbers.
    frames: Vec<SentFrame>,
    sample: MediaSample,
    sent_all_ns: Option<u64>,
    /// CLOCK_REALTIME at T0.
    real_begin_ns: i64,
    /// Both are open until the process ends: no packet that is late finds its port closed.
    sockets: Vec<Arc<UdpSocket>>,
}

#[derive(Clone, Copy)]
struct SentFrame {
    key: bool,
    bytes: u32,
    captured_ns: u64,
    sent_ns: Option<u64>,
}

pub fn new(common: Common, ends: Ends, work: &Media) -> Arc<dyn Flow> {
    Arc::new(MediaFlow { common, ends, work: work.clone(), state: Mutex::default() })
}

impl Flow for MediaFlow {
    fn launch(self: Arc<Self>, world: &Arc<World>) -> Result<(), String> {
        let open = |end: &Endpoint| world.namespaces.udp(end, BUFFER_BYTES);
        let (from, to) = (open(&self.ends.from)?, open(&self.ends.to)?);
        let v6 = self.ends.from.address.is_ipv6();
        self.common.socket.set_udp(&from, v6)?;
        if self.work.l4s {
            mark(&from, v6, self.common.socket.dscp << 2 | L4S)?;
        }
        tell_marks(&to, v6)?;
        let address = to.local_addr().map_err(|error| format!("getsockname: {error}"))?;
        let (from, to) = (Arc::new(from), Arc::new(to));
        let room = Room::of(&world.namespaces, &self.ends.to.netns)?;
        let real_begin_ns = world.begin_ns + offset_ns();
        {
            let mut state = self.lock();
            (state.real_begin_ns, state.sockets) = (real_begin_ns, vec![from.clone(), to.clone()]);
        }
        let run = real_begin_ns as u32 ^ self.common.number;
        let (flow, there, sink) = (self.clone(), world.clone(), to.clone());
        world.spawn("receiver", move || flow.receive(&there, &sink, run))?;
        let (flow, there) = (self.clone(), world.clone());
        world.spawn("sender", move || {
            flow.send(&there, &from, address, run);
            let dropped = room.dropped(&there.namespaces, &to);
            let full = format!("{dropped} packets found no room in the receiver's own buffer");
            flow.finish(&there, there.now_ns(), (dropped > 0).then_some(full));
        })
    }

    /// At its stop the last packets are still on their way: its own thread ends it, when they are there or lost.
    fn end(&self, world: &World, ending: Ending, at_ns: i64) {
        if let Some(error) = ending.error() {
            self.finish(world, at_ns, Some(error));
        }
    }

    fn ended(&self) -> bool {
        self.lock().ended_ns.is_some()
    }

    fn senders(&self, _see: &mut dyn FnMut(u32, BorrowedFd)) {}

    fn media(&self) -> Option<MediaSample> {
        let state = self.lock();
        state.started_ns.is_some().then_some(state.sample)
    }

    fn received(&self, see: &mut dyn FnMut(u32, Received)) {
        let state = self.lock();
        if state.started_ns.is_some() {
            let bytes = state.heard.bytes;
            see(0, Received { delivered_bytes: bytes, arrived_bytes: Some(bytes) });
        }
    }

    fn records(&self) -> Vec<Record> {
        vec![self.lock().record(&self.common)]
    }
}

impl MediaFlow {
    fn send(&self, world: &World, socket: &UdpSocket, to: SocketAddr, run: u32) {
        let (start_ns, stop_ns) = (self.common.start_ns, self.common.stop_ns.expect("checked: it stops"));
        let streams = [self.common.stream(0), self.common.stream(1)];
        let [sizes, intervals] = streams;
        let work = &self.work;
        let mut source = Source {
            encoder: Encoder::new(work.settings(start_ns), work.initial_bps as f64, start_ns, sizes, intervals),
            control: work.control.make(work.bounds()),
            queue: Queue::default(),
            history: History::default(),
            run,
            srtt_ns: None,
        };
        world.sleep_until(start_ns);
        self.lock().started_ns = Some(world.now_ns());
        let (mut buffer, mut packet) = ([0; MOST_REPORT_BYTES], vec![0; work.packet_bytes]);
        loop {
            let now_ns = world.now_ns().max(0) as u64;
            if let Some(next_ns) = self.turn(&mut source, socket, to, now_ns, stop_ns, (&mut buffer, &mut packet)) {
                wait(world, socket, next_ns.min(now_ns + LOOK_NS));
            } else {
                break;
            }
        }
    }

    /// All that is due at `now_ns`; when something is due next, if anything is.
    fn turn(
        &self,
        source: &mut Source,
        socket: &UdpSocket,
        to: SocketAddr,
        now_ns: u64,
        stop_ns: u64,
        (buffer, packet): (&mut [u8], &mut [u8]),
    ) -> Option<u64> {
        while let Ok(bytes) = socket.recv(buffer) {
            if let Some(report) = Report::read(&buffer[..bytes]).filter(|report| report.run == source.run) {
                source.hear(&report, now_ns);
            }
        }
        if let Some(feedback) = source.history.give_up(now_ns) {
            source.control.take(&feedback);
        }
        let mut state = self.lock();
        if state.ended_ns.is_some() {
            return None;
        }
        while source.encoder.next_ns() <= now_ns && source.encoder.next_ns() < stop_ns {
            let frame = source.encoder.capture(source.control.target_bps());
            let (key, bytes, captured_ns) = (frame.key, frame.bytes, frame.captured_ns);
            state.frames.push(SentFrame { key, bytes, captured_ns, sent_ns: None });
            source.queue.push(&frame, self.work.packet_bytes);
            source.control.queued(&frame, source.queue.waited_ns(now_ns));
        }
        if source.control.discards_after_ns().is_some_and(|most_ns| source.queue.waited_ns(now_ns) > most_ns)
            && source.queue.discard().is_some()
        {
            source.encoder.want_key();
        }
        while source.next_packet_ns().is_some_and(|at_ns| at_ns <= now_ns) {
            let Some(due) = source.queue.pop(now_ns, source.control.pacing_bps()) else { break };
            let sequence = source.history.next_sequence();
            let head = Header {
                run: source.run,
                sequence,
                frame: due.frame,
                part: due.part,
                parts: due.parts,
                key: due.key,
                sent_ns: now_ns,
            };
            head.write(packet);
            if let Err(error) = socket.send_to(&packet[..due.bytes as usize], to) {
                state.refused = Some(format!("send to {to}: {error}"));
            }
            source.history.sent(due.bytes, now_ns);
            source.control.sent(source.history.in_flight_bytes());
            state.sent_packets += 1;
            if due.part + 1 == due.parts {
                state.frames[due.frame as usize].sent_ns = Some(now_ns);
            }
        }
        state.sample = source.sample();
        source.next_ns(&mut state, now_ns, stop_ns, self.work.transit_ns.max(LINGER_NS))
    }

    fn receive(&self, world: &World, socket: &UdpSocket, run: u32) {
        let rule = self.work.control.feedback();
        let (mut arrivals, mut peer, mut reported_ns, mut frame_ended) = (Arrivals::default(), None, 0, false);
        let real_begin_ns = self.lock().real_begin_ns;
        let mut buffer = [0; HEADER_BYTES];
        loop {
            let now_ns = world.now_ns().max(0) as u64;
            let key_wanted = {
                let mut state = self.lock();
                if state.ended_ns.is_some() {
                    return;
                }
                loop {
                    match receive(socket, &mut buffer) {
                        Ok(Some(came)) => {
                            let Some(header) = Header::read(&buffer).filter(|header| header.run == run) else {
                                continue;
                            };
                            let at_ns = (came.at_ns - real_begin_ns).max(0) as u64;
                            peer = came.from.or(peer);
                            frame_ended |= header.part + 1 == header.parts;
                            state.take(&header, at_ns, came.bytes);
                            arrivals.take(header.sequence, at_ns, came.ecn);
                        }
                        Ok(None) => break,
                        Err(why) => {
                            state.refused = Some(why);
                            break;
                        }
                    }
                }
                state.playout.key_wanted(now_ns)
            };
            let soon = arrivals.pending >= rule.packets || (rule.each_frame && frame_ended);
            let due_ns = reported_ns + rule.every_ns;
            if arrivals.pending > 0 && (soon || now_ns >= due_ns) {
                for report in arrivals.report(run, now_ns, key_wanted) {
                    if let Some(Err(error)) = peer.map(|peer| socket.send_to(&report.to_bytes(), peer)) {
                        self.lock().refused = Some(format!("send a report: {error}"));
                    }
                }
                (reported_ns, frame_ended) = (now_ns, false);
            }
            let due_ns = if arrivals.pending > 0 { reported_ns + rule.every_ns } else { u64::MAX };
            wait(world, socket, due_ns.min(now_ns + LOOK_NS));
        }
    }

    /// The first call counts.
    fn finish(&self, world: &World, at_ns: i64, error: Option<String>) {
        let mut state = self.lock();
        if state.ended_ns.is_some() {
            return;
        }
        let last = state.heard.last_ns.map(|ns| ns - state.real_begin_ns);
        state.ended_ns = Some(match state.sent_all_ns {
            None => at_ns,
            Some(over_ns) => last.map_or(over_ns as i64, |last| last.max(over_ns as i64)),
        });
        state.error = error;
        if state.error.is_none() && state.heard.packets == 0 {
            state.error = state.refused.take();
        }
        for row in state.rows(self.common.number) {
            world.frame(&row);
        }
        drop(state);
        world.running.one_ended(self.common.number);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread fails with the lock held")
    }
}

impl State {
    fn take(&mut self, header: &Header, at_ns: u64, bytes: usize) {
        let before = self.heard.packets;
        let real_ns = self.real_begin_ns + at_ns as i64;
        self.heard.take(header.sequence.into(), real_ns, at_ns as i64 - header.sent_ns as i64, bytes);
        if self.heard.packets > before {
            self.playout.take(header.frame, header.parts, header.key, at_ns);
        }
    }

    fn rows(&self, flow: u32) -> Vec<FrameRow> {
        let outcomes = self.playout.outcomes();
        let row = |(number, frame): (usize, &SentFrame)| {
            let outcome = outcomes.get(number).copied().unwrap_or_default();
            FrameRow {
                flow,
                number: number as u32,
                key: frame.key,
                size_bytes: frame.bytes,
                captured_ns: frame.captured_ns,
                sent_ns: frame.sent_ns,
                completed_ns: outcome.completed_ns,
                shown_ns: outcome.shown_ns,
            }
        };
        self.frames.iter().enumerate().map(row).collect()
    }

    fn record(&self, common: &Common) -> Record {
        let record = Record {
            flow: common.number,
            kind: "media",
            scheduled_ns: common.start_ns,
            started_ns: self.started_ns,
            ended_ns: self.ended_ns,
            received_bytes: self.heard.bytes,
            error: self.error.clone(),
            udp: Some(UdpRecord::of(&self.heard, self.sent_packets)),
            ..Record::default()
        };
        record.with_goodput()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Request;

    fn refusal(work: &str) -> String {
        let end = r#"{"netns": "/run/netns/a", "address": "10.0.0.1"}"#;
        let text = format!(
            r#"{{"format": "ewan-traffic/1", "longest_ns": 2000000000, "flows": [
                {{"name": "call", "from": {end}, "to": {end}, "stop_ns": 1000000000, "work": {work}}}]}}"#
        );
        Request::parse(&text).err().unwrap_or_default()
    }

    #[test]
    fn rates_frames_and_packets_have_bounds() {
        let work = |rates: [u64; 3], frames: u32, packet: usize| {
            let [least, initial, most] = rates;
            format!(
                r#"{{"kind": "media", "control": "gcc", "initial_bps": {initial}, "least_bps": {least},
                     "most_bps": {most}, "frames_per_second": {frames}, "packet_bytes": {packet}}}"#
            )
        };
        let good = [150_000, 300_000, 2_500_000];
        assert_eq!(refusal(&work(good, 30, 1200)), "");
        assert!(refusal(&work([400_000, 300_000, 2_500_000], 30, 1200)).contains("none less than the one before"));
        assert!(refusal(&work(good, 0, 1200)).contains("frames_per_second"));
        assert!(refusal(&work(good, 30, 100)).contains("packet_bytes: give 200 to 65507"));
        let unknown = work(good, 30, 1200).replace("gcc", "nada");
        assert!(refusal(&unknown).contains("nada"), "{}", refusal(&unknown));
    }
}
