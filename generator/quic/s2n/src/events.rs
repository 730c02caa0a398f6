//! What s2n-quic tells of a connection: events, which are added up.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use s2n_quic::provider::event::events::{
    ConnectionInfo, ConnectionMeta, DatagramReceived, DatagramSent, MtuUpdated, PacingRateUpdated, PacketLost,
    PacketSent, RecoveryMetrics,
};
use s2n_quic::provider::event::Subscriber;
use s2n_quic::Connection;

use crate::clock::Clock;
use crate::record::{Counted, Sample, Stream};

/// The sums of one connection, also when it is over.
#[derive(Clone, Default)]
pub struct Sums(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    sent: Counted,
    received: Counted,
    sent_packets: u64,
    lost_packets: u64,
    mtu_bytes: u64,
    pacing_bps: Option<u64>,
    metrics: Metrics,
}

#[derive(Clone, Copy, Default)]
struct Metrics {
    min_rtt: Duration,
    smoothed_rtt: Duration,
    rtt_variance: Duration,
    window_bytes: u64,
    in_flight_bytes: u64,
}

pub struct Adds;

impl Subscriber for Adds {
    type ConnectionContext = Sums;

    fn create_connection_context(&mut self, _meta: &ConnectionMeta, _info: &ConnectionInfo) -> Sums {
        Sums::default()
    }

    fn on_datagram_sent(&mut self, sums: &mut Sums, _meta: &ConnectionMeta, event: &DatagramSent) {
        sums.add(|state| state.sent.add(event.len));
    }

    fn on_datagram_received(&mut self, sums: &mut Sums, _meta: &ConnectionMeta, event: &DatagramReceived) {
        sums.add(|state| state.received.add(event.len));
    }

    fn on_packet_sent(&mut self, sums: &mut Sums, _meta: &ConnectionMeta, _event: &PacketSent) {
        sums.add(|state| state.sent_packets += 1);
    }

    fn on_packet_lost(&mut self, sums: &mut Sums, _meta: &ConnectionMeta, _event: &PacketLost) {
        sums.add(|state| state.lost_packets += 1);
    }

    fn on_mtu_updated(&mut self, sums: &mut Sums, _meta: &ConnectionMeta, event: &MtuUpdated) {
        sums.add(|state| state.mtu_bytes = event.mtu.into());
    }

    fn on_pacing_rate_updated(&mut self, sums: &mut Sums, _meta: &ConnectionMeta, event: &PacingRateUpdated) {
        sums.add(|state| state.pacing_bps = Some(8 * event.bytes_per_second));
    }

    fn on_recovery_metrics(&mut self, sums: &mut Sums, _meta: &ConnectionMeta, event: &RecoveryMetrics) {
        let metrics = Metrics {
            min_rtt: event.min_rtt,
            smoothed_rtt: event.smoothed_rtt,
            rtt_variance: event.rtt_variance,
            window_bytes: event.congestion_window.into(),
            in_flight_bytes: event.bytes_in_flight.into(),
        };
        sums.add(|state| state.metrics = metrics);
    }
}

impl Counted {
    fn add(&mut self, bytes: u16) {
        self.datagrams += 1;
        self.bytes += u64::from(bytes);
    }
}

impl Sums {
    pub fn of(connection: &Connection) -> Self {
        connection.query_event_context(|sums: &Sums| sums.clone()).unwrap_or_default()
    }

    fn add(&self, add: impl FnOnce(&mut State)) {
        add(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Notes the state at each multiple of the interval from T0; does not end.
    pub async fn each(&self, every_ns: i64, clock: Clock, samples: &mut Vec<Sample>) {
        if every_ns == 0 {
            return std::future::pending().await;
        }
        loop {
            let next_ns = (clock.now_ns().div_euclid(every_ns) + 1) * every_ns;
            clock.sleep_until(next_ns).await;
            samples.push(self.sample(clock.now_ns()));
        }
    }

    pub fn sample(&self, time_ns: i64) -> Sample {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Sample {
            time_ns,
            cwnd_bytes: state.metrics.window_bytes,
            ssthresh_bytes: None,
            in_flight_bytes: Some(state.metrics.in_flight_bytes),
            pacing_bps: state.pacing_bps,
            srtt_ns: state.metrics.smoothed_rtt.as_nanos() as u64,
            rttvar_ns: Some(state.metrics.rtt_variance.as_nanos() as u64),
            mtu_bytes: state.mtu_bytes,
            sent_packets: state.sent_packets,
            lost_packets: state.lost_packets,
            congestion_events: None,
        }
    }

    /// The counters of a connection that has come to its end.
    pub fn count(&self, seen: &mut Stream) {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.udp_sent = Counted { datagrams: state.sent.datagrams, bytes: state.sent.bytes };
        seen.udp_received = Counted { datagrams: state.received.datagrams, bytes: state.received.bytes };
        seen.sent_packets = Some(state.sent_packets);
        seen.lost_packets = Some(state.lost_packets);
        seen.min_rtt_ns = Some(state.metrics.min_rtt.as_nanos() as u64);
        seen.payload_bytes = Some(state.mtu_bytes);
    }
}
