//! One TCP bulk transfer between two namespaces: goodput of its last part, and the sender's TCP_INFO as a series.
//!
//! The receiver counts what its kernel delivered without copying it (MSG_TRUNC, tcp(7)); the sender writes zeros.

use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{sched_getaffinity, CpuSet};
use nix::sys::socket::{bind, connect, socket, AddressFamily, SockFlag, SockType, SockaddrStorage};
use nix::unistd::Pid;
use serde::Serialize;

use super::request::{Endpoint, Tcp};
use super::socket::{get, set, Namespaces};

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

/// The kernel's `struct tcp_info` (linux/tcp.h), as bytes: longer than the libc crate's.
#[derive(Clone, Copy)]
struct Info([u8; 256]);

impl Info {
    fn of(stream: &TcpStream) -> Result<Self, String> {
        let bytes = get(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, [0; 256]);
        bytes.map(Self).map_err(|error| format!("TCP_INFO: {error}"))
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    fn microseconds(&self, at: usize) -> u64 {
        u64::from(self.word(at)) * 1000
    }

    fn sample(&self, time_ns: u64, received_bytes: u64, idle_ns: u64) -> Sample {
        Sample {
            time_ns,
            received_bytes,
            idle_ns,
            delivered_segments: self.word(192),
            lost_segments: self.word(32),
            srtt_ns: self.microseconds(68),
            ssthresh_segments: self.word(76),
            cwnd_segments: self.word(80),
            retransmitted_segments: self.word(100),
        }
    }
}

pub fn run(namespaces: &Namespaces, probe: &Tcp) -> Result<Measured, String> {
    let listener = listen(namespaces, &probe.to)?;
    let to = listener.local_addr().map_err(|error| format!("getsockname: {error}"))?;
    let begun = Instant::now();
    let stream = dial(namespaces, probe, to)?;
    let connect_ns = begun.elapsed().as_nanos() as u64;
    // The handshake is done, so this returns at once.
    let (sink, _) = listener.accept().map_err(|error| format!("accept: {error}"))?;

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
    // Without lingering: what still waits is thrown away, so that it does not disturb the next probe.
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    set(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &linger, "SO_LINGER")?;
    let _ = (stream.shutdown(Shutdown::Both), sink.shutdown(Shutdown::Both));
    let _ = (writer.join(), reader.join());
    let (series, info) = (series?, info?);

    let last = series.last().cloned().ok_or("no sample: duration_ns is below sample_ns")?;
    let from_ns = last.time_ns.saturating_sub(probe.steady_ns);
    let first = series.iter().rev().find(|sample| sample.time_ns <= from_ns).unwrap_or(&series[0]).clone();
    let steady_ns = last.time_ns - first.time_ns;
    let segments = last.delivered_segments.wrapping_sub(first.delivered_segments);
    let idle_ns = (last.idle_ns - first.idle_ns) as f64 / cpus.len().max(1) as f64;
    let bits = 8.0 * f64::from(segments) * f64::from(info.word(16));
    Ok(Measured {
        congestion: probe.congestion.clone(),
        connect_ns,
        goodput_bps: if steady_ns == 0 { 0.0 } else { bits * 1e9 / steady_ns as f64 },
        steady_ns,
        received_bytes: last.received_bytes,
        segment_bytes: info.word(16),
        min_rtt_ns: info.microseconds(148),
        srtt_ns: last.srtt_ns,
        retransmitted_segments: last.retransmitted_segments,
        idle_ratio: if steady_ns == 0 { 0.0 } else { (idle_ns / steady_ns as f64).min(1.0) },
        series,
    })
}

fn listen(namespaces: &Namespaces, end: &Endpoint) -> Result<TcpListener, String> {
    namespaces.within(&end.netns, || {
        let at = SocketAddr::new(end.address, 0);
        TcpListener::bind(at).map_err(|error| format!("{}: listen on {at}: {error}", end.netns.display()))
    })
}

fn dial(namespaces: &Namespaces, probe: &Tcp, to: SocketAddr) -> Result<TcpStream, String> {
    let from = SockaddrStorage::from(SocketAddr::new(probe.from.address, 0));
    let family = if to.is_ipv6() { AddressFamily::Inet6 } else { AddressFamily::Inet };
    let fd: OwnedFd = namespaces.within(&probe.from.netns, || {
        socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).map_err(|error| format!("socket: {error}"))
    })?;
    let raw = fd.as_raw_fd();
    let name = probe.congestion.as_bytes();
    // SAFETY: the kernel reads `name.len()` bytes.
    let set_name = unsafe {
        libc::setsockopt(raw, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_ptr().cast(), name.len() as u32)
    };
    if set_name != 0 {
        return Err(format!("congestion control {:?}: {}", probe.congestion, io::Error::last_os_error()));
    }
    let timeout = libc::timeval {
        tv_sec: (probe.connect_timeout_ns / 1_000_000_000) as i64,
        tv_usec: (probe.connect_timeout_ns % 1_000_000_000 / 1000) as i64,
    };
    // Bounds connect(2) as well (socket(7)).
    set(raw, libc::SOL_SOCKET, libc::SO_SNDTIMEO, &timeout, "SO_SNDTIMEO")?;
    bind(raw, &from).map_err(|error| format!("bind {}: {error}", probe.from.address))?;
    connect(raw, &SockaddrStorage::from(to))
        .map_err(|error| format!("connect {} to {to}: {error}", probe.from.address))?;
    // Later writes end by shutdown, not by this timeout.
    set(raw, libc::SOL_SOCKET, libc::SO_SNDTIMEO, &libc::timeval { tv_sec: 0, tv_usec: 0 }, "SO_SNDTIMEO")?;
    Ok(TcpStream::from(fd))
}

fn discard(sink: &TcpStream, received: &AtomicU64) {
    loop {
        // SAFETY: with MSG_TRUNC a TCP socket throws the bytes away and writes nothing to the buffer.
        match unsafe { libc::recv(sink.as_raw_fd(), std::ptr::null_mut(), 1 << 20, libc::MSG_TRUNC) } {
            count @ 1.. => received.fetch_add(count as u64, Ordering::Relaxed),
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
        series.push(info.sample(time_ns, received.load(Ordering::Relaxed), idle_ns(cpus)?));
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
