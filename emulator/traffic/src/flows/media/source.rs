//! What the sending thread of a media flow works with: the encoder, the rate control, and the packets that wait or are on
//! their way. In: reports, the time. Out: when something is due next.

use super::super::records::MediaSample;
use super::State;
use crate::media::control::Control;
use crate::media::encoder::Encoder;
use crate::media::history::History;
use crate::media::queue::Queue;
use crate::media::wire::Report;

pub struct Source {
    pub encoder: Encoder,
    pub control: Box<dyn Control>,
    pub queue: Queue,
    pub history: History,
    pub run: u32,
    pub srtt_ns: Option<u64>,
}

impl Source {
    pub fn hear(&mut self, report: &Report, now_ns: u64) {
        if report.key_wanted {
            self.encoder.ask_key(now_ns, self.srtt_ns.unwrap_or(0));
        }
        let feedback = self.history.take(report, now_ns);
        // RFC 6298, section 2.
        if let Some(rtt_ns) = feedback.rtt_ns {
            self.srtt_ns = Some(self.srtt_ns.map_or(rtt_ns, |srtt_ns| (7 * srtt_ns + rtt_ns) / 8));
        }
        self.control.take(&feedback);
    }

    /// When the next packet may go.
    pub fn next_packet_ns(&self) -> Option<u64> {
        let in_flight = self.history.in_flight_bytes();
        self.queue.next_ns(self.control.window_bytes().map(|most| most.saturating_sub(in_flight)))
    }

    /// When something is due; none: all came, or no more will.
    pub fn next_ns(&self, state: &mut State, now_ns: u64, stop_ns: u64, linger_ns: u64) -> Option<u64> {
        let next_packet_ns = self.next_packet_ns();
        if self.encoder.next_ns() < stop_ns {
            return Some(next_packet_ns.map_or(u64::MAX, |at_ns| at_ns).min(self.encoder.next_ns()));
        }
        if now_ns < stop_ns {
            return Some(next_packet_ns.unwrap_or(u64::MAX).min(stop_ns));
        }
        let over_ns = *state.sent_all_ns.get_or_insert(now_ns);
        if self.queue.bytes() > 0 && now_ns < over_ns + linger_ns {
            state.sent_all_ns = Some(now_ns.min(stop_ns + linger_ns));
            return Some(next_packet_ns.unwrap_or(u64::MAX).min(over_ns + linger_ns));
        }
        let until_ns = over_ns + linger_ns;
        (state.heard.packets < state.sent_packets && now_ns < until_ns).then_some(until_ns)
    }

    pub fn sample(&self) -> MediaSample {
        MediaSample {
            target_bps: self.control.target_bps() as u64,
            encoder_bps: self.encoder.rate_bps() as u64,
            window_bytes: self.control.window_bytes(),
            in_flight_bytes: self.history.in_flight_bytes(),
            queued_bytes: self.queue.bytes(),
            srtt_ns: self.srtt_ns,
            queue_delay_ns: self.control.queue_delay_ns(),
        }
    }
}
