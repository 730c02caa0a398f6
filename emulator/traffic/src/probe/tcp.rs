//! One TCP bulk transfer between two namespaces, or the end of it that is here: the sender's TCP_INFO as a series.
//!
//! The receiver counts what its kernel delivered without copying it (MSG_TRUNC, tcp(7)); the sender writes zeros.

use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ewan_system::socket::throw_away;
use ewan_system::wait::readable;
use nix::sched::{sched_getaffinity, CpuSet};
use nix::sys::socket::{connect, setsockopt, sockopt, MsgFlags, SockaddrStorage};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::Pid;

use super::lockstep::{Lockstep, Ports};
use super::observation::{self, Idle, Sample};
use super::request::Tcp;
use crate::clock::sleep_until_real;
use crate::socket::{forget_when_closed, name_class, Namespaces, Options, UNPACED};
use crate::tcp_info::Info;

/// Between two looks for a connection, or for the end of the probe.
const LOOK: Duration = Duration::from_millis(10);

/// Runs the ends of one transfer that are here.
pub fn run(namespaces: &Namespaces, probe: &Tcp, others: &mut dyn Lockstep) -> Result<observation::Tcp, String> {
    let listener = others.here(&probe.to).then(|| namespaces.listen(&probe.to, &Options::default())).transpose()?;
    let address = listener.as_ref().map(TcpListener::local_addr).transpose();
    let port = address.map_err(|error| format!("getsockname: {error}"))?.map(|address| address.port());
    let begin = others.begin(Ports { from: vec![None], to: vec![port] })?;
    sleep_until_real(begin.at_ns);
    if !others.here(&probe.from) {
        let listener = listener.ok_or("neither end is here")?;
        return Ok(observation::Tcp { source: None, sink: Some(hear(&listener, probe, others)?) });
    }
    let port = begin.ports.to.first().copied().flatten().ok_or("its sink is nowhere")?;
    let source = send(namespaces, probe, SocketAddr::new(probe.to.address, port), listener.as_ref())?;
    others.sent()?;
    Ok(observation::Tcp { source: Some(source), sink: None })
}

/// The sending end; with `listener` the receiving one too.
fn send(
    namespaces: &Namespaces,
    probe: &Tcp,
    to: SocketAddr,
    listener: Option<&TcpListener>,
) -> Result<observation::Source, String> {
    let begun = Instant::now();
    let stream = dial(namespaces, probe, to)?;
    let connect_ns = begun.elapsed().as_nanos() as u64;
    // The handshake is done, so this returns at once.
    let sink = listener.map(Sink::accept).transpose()?;
    let writer = {
        let mut stream = stream.try_clone().map_err(|e| format!("dup: {e}"))?;
        thread::spawn(move || while stream.write_all(&[0; 1 << 16]).is_ok() {})
    };
    let cpus = own_cpus();
    let series = watch(&stream, probe, sink.as_ref(), &cpus);
    let info = Info::of(&stream);
    forget_when_closed(&stream)?;
    let _ = stream.shutdown(Shutdown::Both);
    if let Some(sink) = sink {
        sink.close();
    }
    let _ = writer.join();
    let (series, info) = (series?, info?);
    Ok(observation::Source {
        connect_ns,
        segment_bytes: info.segment_bytes(),
        min_rtt_ns: info.min_rtt_ns().unwrap_or(0),
        series,
        idle: Idle { cpus: cpus.len(), series: Vec::new() },
    })
}

/// The receiving end of a connection that comes from another machine, until nobody sends any more.
fn hear(listener: &TcpListener, probe: &Tcp, others: &mut dyn Lockstep) -> Result<Idle, String> {
    others.sent()?;
    listener.set_nonblocking(true).map_err(|error| format!("set_nonblocking: {error}"))?;
    let cpus = own_cpus();
    let mut idle = Idle { cpus: cpus.len(), series: Vec::new() };
    let mut heard: Option<(Sink, Instant)> = None;
    while !others.all_sent()? {
        match &heard {
            None => match readable(listener, LOOK.as_nanos() as u64) {
                Ok(true) => heard = Some((Sink::accept(listener)?, Instant::now())),
                Ok(false) => {}
                Err(error) => return Err(format!("accept: {error}")),
            },
            Some((_, since)) => {
                let due = Duration::from_nanos(idle.series.len() as u64 * probe.sample_ns);
                let early = due.saturating_sub(since.elapsed());
                thread::sleep(early.min(LOOK));
                if early <= LOOK {
                    let time_ns = since.elapsed().as_nanos() as u64;
                    idle.series.push((time_ns, idle_ns(&cpus)?));
                }
            }
        }
    }
    if let Some((sink, _)) = heard {
        sink.close();
    }
    Ok(idle)
}

/// An accepted connection, and the thread that counts and discards what comes.
struct Sink {
    stream: TcpStream,
    received: Arc<AtomicU64>,
    reader: JoinHandle<()>,
}

impl Sink {
    fn accept(listener: &TcpListener) -> Result<Self, String> {
        let (stream, _) = listener.accept().map_err(|error| format!("accept: {error}"))?;
        stream.set_nonblocking(false).map_err(|error| format!("set_nonblocking: {error}"))?;
        name_class(stream.as_fd(), UNPACED)?;
        let received = Arc::new(AtomicU64::new(0));
        let reader = {
            let received = received.clone();
            let stream = stream.try_clone().map_err(|e| format!("dup: {e}"))?;
            thread::spawn(move || discard(&stream, &received))
        };
        Ok(Self { stream, received, reader })
    }

    fn close(self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        let _ = self.reader.join();
    }
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

fn watch(stream: &TcpStream, probe: &Tcp, sink: Option<&Sink>, cpus: &[usize]) -> Result<Vec<Sample>, String> {
    let begun = Instant::now();
    let mut series = Vec::new();
    for number in 0..=probe.duration_ns / probe.sample_ns {
        let due = Duration::from_nanos(number * probe.sample_ns);
        thread::sleep(due.saturating_sub(begun.elapsed()));
        let info = Info::of(stream)?;
        let time_ns = begun.elapsed().as_nanos() as u64;
        series.push(Sample {
            time_ns,
            received_bytes: sink.map_or(info.acked_bytes(), |sink| sink.received.load(Ordering::Relaxed)),
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
