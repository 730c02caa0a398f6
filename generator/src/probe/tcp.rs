//! One TCP bulk transfer between two namespaces: goodput of its last part, and the sender's TCP_INFO as a series.
//!
//! The receiver counts what its kernel delivered without copying it (MSG_TRUNC, tcp(7)); the sender writes zeros.

use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ewan_system::socket::throw_away;
use nix::sched::{sched_getaffinity, CpuSet};
use nix::sys::socket::{connect, setsockopt, sockopt, MsgFlags, SockaddrStorage};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::Pid;
use serde::Serialize;

use super::request::Tcp;
use crate::socket::{forget_when_closed, name_class, Namespaces, Options, UNPACED};
use crate::tcp_info::Info;

#[derive(Serialize)]
pub struct Measured {
    congestion: String,
    connect_ns: u64,
    /// Payload that reached the receiver in the last `steady_ns`, in order or not: what the application gets waits
    /// for holes and then comes at once.
    goodput_bps: f64,
    steady_ns: u64,
    received_bytes: u64,
    segment_bytes: u32,
    min_rtt_ns: u64,
    srtt_ns: u64,
    retransmitted_segments: u32,
    /// How much of the steady part the CPUs of this process (all hosts and routers run there) had nothing to do.
    idle_ratio: f64,
    series: Vec<Sample>,
}

#[derive(Clone, Debug, Serialize)]
struct Sample {
    /// Since the connection was there.
    time_ns: u64,
    /// Given to the receiving application.
    received_bytes: u64,
    /// Acknowledged, cumulatively or selectively.
    delivered_segments: u32,
    cwnd_segments: u32,
    ssthresh_segments: u32,
    srtt_ns: u64,
    retransmitted_segments: u32,
    lost_segments: u32,
    /// Time without work of the CPUs of this process, since the machine started.
    idle_ns: u64,
}

pub fn run(namespaces: &Namespaces, probe: &Tcp) -> Result<Measured, String> {
    let listener = namespaces.listen(&probe.to, &Options::default())?;
    let to = listener.local_addr().map_err(|error| format!("getsockname: {error}"))?;
    let begun = Instant::now();
    let stream = dial(namespaces, probe, to)?;
    let connect_ns = begun.elapsed().as_nanos() as u64;
    // The handshake is done, so this returns at once.
    let (sink, _) = listener.accept().map_err(|error| format!("accept: {error}"))?;
    name_class(sink.as_fd(), UNPACED)?;

    let received = Arc::new(AtomicU64::new(0));
    let reader = {
        let received = received.clone();
        let sink = sink.try_clone().map_err(|e| format!("dup: {e}"))?;
        thread::spawn(move || discard(&sink, &received))
    };
    let writer = {
        let mut stream = stream.try_clone().map_err(|e| format!("dup: {e}"))?;
        thread::spawn(move || while stream.write_all(&[0; 1 << 16]).is_ok() {})
    };
    let cpus = own_cpus();
    let series = watch(&stream, probe, &received, &cpus);
    let info = Info::of(&stream);
    forget_when_closed(&stream)?;
    let _ = (stream.shutdown(Shutdown::Both), sink.shutdown(Shutdown::Both));
    let _ = (writer.join(), reader.join());
    let (series, info) = (series?, info?);

    let last = series.last().cloned().ok_or("no sample: duration_ns is below sample_ns")?;
    let from_ns = last.time_ns.saturating_sub(probe.steady_ns);
    let first = series.iter().rev().find(|sample| sample.time_ns <= from_ns).unwrap_or(&series[0]).clone();
    let steady_ns = last.time_ns - first.time_ns;
    let segments = last.delivered_segments.wrapping_sub(first.delivered_segments);
    let idle_ns = (last.idle_ns - first.idle_ns) as f64 / cpus.len().max(1) as f64;
    let bits = 8.0 * f64::from(segments) * f64::from(info.segment_bytes());
    Ok(Measured {
        congestion: probe.congestion.clone(),
        connect_ns,
        goodput_bps: if steady_ns == 0 { 0.0 } else { bits * 1e9 / steady_ns as f64 },
        steady_ns,
        received_bytes: last.received_bytes,
        segment_bytes: info.segment_bytes(),
        min_rtt_ns: info.min_rtt_ns().unwrap_or(0),
        srtt_ns: last.srtt_ns,
        retransmitted_segments: last.retransmitted_segments,
        idle_ratio: if steady_ns == 0 { 0.0 } else { (idle_ns / steady_ns as f64).min(1.0) },
        series,
    })
}

fn dial(namespaces: &Namespaces, probe: &Tcp, to: SocketAddr) -> Result<TcpStream, String> {
    let congestion = Some(probe.congestion.clone());
    let options = Options { congestion, class: Some(UNPACED), ..Options::default() };
    let fd = namespaces.tcp(&probe.from, &options)?;
    let limit = |timeout: TimeVal| {
        setsockopt(&fd, sockopt::SendTimeout, &timeout).map_err(|error| format!("SO_SNDTIMEO: {error}"))
    };
    // Bounds connect(2) as well (socket(7)).
    limit(TimeVal::microseconds((probe.connect_timeout_ns / 1000) as i64))?;
    connect(fd.as_raw_fd(), &SockaddrStorage::from(to))
        .map_err(|error| format!("connect {} to {to}: {error}", probe.from.address))?;
    // Later writes end by shutdown, not by this timeout.
    limit(TimeVal::microseconds(0))?;
    Ok(TcpStream::from(fd))
}

fn discard(sink: &TcpStream, received: &AtomicU64) {
    loop {
        match throw_away(sink, 1 << 20, MsgFlags::empty()) {
            Ok(count @ 1..) => received.fetch_add(count as u64, Ordering::Relaxed),
            _ => return,
        };
    }
}

fn watch(stream: &TcpStream, probe: &Tcp, received: &AtomicU64, cpus: &[usize]) -> Result<Vec<Sample>, String> {
    let begun = Instant::now();
    let mut series = Vec::new();
    for number in 0..=probe.duration_ns / probe.sample_ns {
        let due = Duration::from_nanos(number * probe.sample_ns);
        thread::sleep(due.saturating_sub(begun.elapsed()));
        let info = Info::of(stream)?;
        let time_ns = begun.elapsed().as_nanos() as u64;
        series.push(Sample {
            time_ns,
            received_bytes: received.load(Ordering::Relaxed),
            delivered_segments: info.delivered_segments(),
            cwnd_segments: info.cwnd_segments(),
            ssthresh_segments: info.ssthresh_segments(),
            srtt_ns: info.srtt_ns(),
            retransmitted_segments: info.retransmitted_segments(),
            lost_segments: info.lost_segments(),
            idle_ns: idle_ns(cpus)?,
        });
    }
    Ok(series)
}

/// The CPUs that this process may use.
fn own_cpus() -> Vec<usize> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect()
}

/// Idle time of these CPUs together (proc_stat(5): the fourth and fifth number, in hundredths of a second).
fn idle_ns(cpus: &[usize]) -> Result<u64, String> {
    const TICK_NS: u64 = 10_000_000;
    let text = std::fs::read_to_string("/proc/stat").map_err(|error| format!("/proc/stat: {error}"))?;
    let idle = |line: &str| -> Option<u64> {
        let mut fields = line.strip_prefix("cpu")?.split_whitespace();
        cpus.contains(&fields.next()?.parse().ok()?).then_some(())?;
        let numbers: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
        Some(numbers.get(3)? + numbers.get(4)?)
    };
    Ok(text.lines().filter_map(idle).sum::<u64>() * TICK_NS)
}
