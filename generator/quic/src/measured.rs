//! What quinn tells of a connection.

use quinn::{Connection, ConnectionStats};

use crate::clock::Clock;
use crate::record::{Counted, Sample, Stream};

/// RFC 9000, section 14.1.
const FIRST_BYTES: u64 = 1200;

impl Stream {
    /// The counters of a connection that was accepted. quinn does not count the datagram that opens it, which senders
    /// pad to a size.
    pub fn count_accepted(&mut self, stats: &ConnectionStats) {
        self.count(stats);
        self.udp_received.datagrams += 1;
        self.udp_received.bytes += FIRST_BYTES;
    }

    /// The counters of a connection that has come to its end.
    pub fn count(&mut self, stats: &ConnectionStats) {
        self.udp_sent = Counted { datagrams: stats.udp_tx.datagrams, bytes: stats.udp_tx.bytes };
        self.udp_received = Counted { datagrams: stats.udp_rx.datagrams, bytes: stats.udp_rx.bytes };
        self.sent_packets = Some(stats.path.sent_packets);
        self.lost_packets = Some(stats.path.lost_packets);
        self.congestion_events = Some(stats.path.congestion_events);
        self.min_rtt_ns = Some(stats.path.min_rtt.as_nanos() as u64);
        self.payload_bytes = Some(u64::from(stats.path.current_mtu));
    }
}

impl Sample {
    /// Notes the state at each multiple of the interval from T0; does not end.
    pub async fn each(every_ns: i64, connection: &Connection, clock: Clock, samples: &mut Vec<Sample>) {
        if every_ns == 0 {
            return std::future::pending().await;
        }
        loop {
            let next_ns = (clock.now_ns().div_euclid(every_ns) + 1) * every_ns;
            clock.sleep_until(next_ns).await;
            samples.push(Sample::of(connection, clock.now_ns()));
        }
    }

    /// The state of a connection at this moment. quinn tells what is in flight only in its qlog.
    pub fn of(connection: &Connection, time_ns: i64) -> Self {
        let (path, control) = (connection.stats().path, connection.congestion_state().metrics());
        Sample {
            time_ns,
            cwnd_bytes: path.cwnd,
            // Before the first loss the threshold is the largest number that there is.
            ssthresh_bytes: control.ssthresh.filter(|bytes| *bytes < u64::MAX),
            in_flight_bytes: None,
            pacing_bps: control.pacing_rate,
            srtt_ns: path.rtt.as_nanos() as u64,
            rttvar_ns: None,
            mtu_bytes: u64::from(path.current_mtu),
            sent_packets: path.sent_packets,
            lost_packets: path.lost_packets,
            congestion_events: Some(path.congestion_events),
        }
    }
}
