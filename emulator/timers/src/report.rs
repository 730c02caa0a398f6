//! What this host's clocks and timers can do: what each clock resolves and costs to read, how late deadlines are met by
//! spinning, by sleeping and by the kernel's own timers, with idle CPUs and with busy ones, and how often a thread that
//! spins is without its CPU.
//!
//! In: how long it may take, on which CPUs. Out: one JSON object; progress, a line each, on standard error.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ewan_system::process::detach;
use ewan_system::schedule::{keep_to, raise_session, set_nice};
use nix::sys::prctl::{set_pdeathsig, set_timerslack};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use crate::bucket::{Pair, TokenBucket};
use crate::facts::{hypervisor, own_nice, steal_ns};
use crate::lateness::{self, Gaps};
use crate::request::Request;
use ewan_model::classes;
use ewan_system::clock::{gettime, Clock};

/// Between two deadlines.
pub const INTERVALS_NS: [u64; 5] = [50_000, 100_000, 500_000, 1_000_000, 10_000_000];
/// Shares of the time, in tenths of a part: long intervals give few samples a second.
const SHARES: [u64; 5] = [10, 10, 15, 25, 40];
const SHARE: u64 = 100;
/// As the processes of links and of probes have them, where that is allowed.
const LINK_NICE: i32 = -20;
const PROBE_NICE: i32 = -10;
/// Samples below which a percentile beyond the median means nothing: one beyond it, at least.
const FOR_P99: usize = 100;
const FOR_P999: usize = 1000;
const CALIBRATION: Duration = Duration::from_millis(100);
/// What `Clock::new` and the start of a process take.
const CALIBRATED_NS: u64 = 60_000_000;

#[derive(Serialize)]
struct Report {
    format: &'static str,
    elapsed_ns: u64,
    link_cpu: u32,
    host_cpus: Vec<u32>,
    /// What the hypervisor calls itself; none where there is none, or it does not say.
    hypervisor: Option<String>,
    clock: Source,
    reads: Vec<Read>,
    lateness: Vec<Lateness>,
    spinning: Vec<Spinning>,
    /// By method: why.
    not_measured: BTreeMap<&'static str, String>,
}

/// Of the clock that links and probes read.
#[derive(Serialize)]
struct Source {
    source: &'static str,
    frequency_hz: Option<u64>,
    /// How far the middle of the calibration lay from the line through its ends.
    residual_ns: i64,
    /// Frequency found by a second calibration, against the first.
    recalibration_ppb: Option<i64>,
    /// Over the whole measurement, against CLOCK_MONOTONIC_RAW, and how uncertain the readings make it.
    against_raw_ppb: i64,
    uncertain_ppb: i64,
    /// CLOCK_MONOTONIC against CLOCK_MONOTONIC_RAW: by how much the time service turns it.
    monotonic_against_raw_ppb: i64,
}

#[derive(Serialize)]
struct Read {
    clock: &'static str,
    cost_ns: f64,
    /// The least difference between two reads that differ.
    resolution_ns: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Method {
    Spin,
    Nanosleep,
    Timerfd,
    Qdisc,
}

#[derive(Serialize, Deserialize)]
struct Lateness {
    method: Method,
    loaded: bool,
    interval_ns: u64,
    samples: usize,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    p999_ns: Option<u64>,
    max_ns: Option<u64>,
    /// Upper end and count.
    classes: Vec<(u64, u64)>,
}

impl Lateness {
    fn of(method: Method, loaded: bool, interval_ns: u64, mut late: Vec<u64>) -> Lateness {
        late.sort_unstable();
        let samples = late.len();
        // Nearest rank: the smallest with at least so many thousandths of all at or below it.
        let at = |thousandths: usize, least: usize| {
            (samples >= least).then(|| late[(samples * thousandths).div_ceil(1000).max(1) - 1])
        };
        let (p50_ns, p99_ns, p999_ns, max_ns) = (at(500, 1), at(990, FOR_P99), at(999, FOR_P999), at(1000, 1));
        let classes = classes::counts(&late);
        Lateness { method, loaded, interval_ns, samples, p50_ns, p99_ns, p999_ns, max_ns, classes }
    }
}

#[derive(Serialize, Deserialize)]
struct Spinning {
    loaded: bool,
    cpu: u32,
    nice: i32,
    duration_ns: u64,
    gaps: u64,
    gaps_ns: u64,
    longest_gap_ns: u64,
    /// Of this CPU, as the kernel counts it, in its ticks; none where it does not.
    steal_ns: Option<u64>,
}

/// What a thread that spun found.
#[derive(Serialize, Deserialize)]
pub struct SpinResult {
    lateness: Vec<Lateness>,
    spinning: Spinning,
}

/// Spins on a CPU, loaded or not, for so many nanoseconds.
pub type Spin<'a> = &'a (dyn Fn(u32, bool, u64) -> Result<SpinResult, String> + Sync);

/// Measures and writes the report.
pub fn report(request: &Request, bucket: TokenBucket, spin: Spin, mut out: impl Write) -> Result<(), String> {
    let begun = Instant::now();
    let mut clock = Clock::calibrated(CALIBRATION);
    let first = Three::read(&clock);
    let again = Clock::calibrated(CALIBRATION);
    let reads = reads(&clock);
    let mut found = Findings::default();
    let phase = request.duration.saturating_sub(begun.elapsed()) / 2;
    for loaded in [false, true] {
        phase_of(request, loaded, phase.as_nanos() as u64, bucket, spin, &mut found)?;
    }
    clock.refresh();
    let last = Three::read(&clock);
    let report = Report {
        format: "ewan-timers/1",
        elapsed_ns: begun.elapsed().as_nanos() as u64,
        link_cpu: request.link_cpu,
        host_cpus: request.host_cpus.clone(),
        hypervisor: hypervisor(),
        clock: Source {
            source: clock.source().name(),
            frequency_hz: clock.frequency_hz(),
            residual_ns: clock.residual_ns(),
            recalibration_ppb: clock
                .frequency_hz()
                .zip(again.frequency_hz())
                .map(|(one, two)| ppb(two as i64 - one as i64, one as i64)),
            against_raw_ppb: last.since(&first, last.ours - first.ours),
            uncertain_ppb: ppb((first.width + last.width) as i64, (last.raw - first.raw) as i64),
            monotonic_against_raw_ppb: last.since(&first, last.monotonic - first.monotonic),
        },
        reads,
        lateness: found.lateness,
        spinning: found.spinning,
        not_measured: found.not_measured,
    };
    serde_json::to_writer(&mut out, &report).map_err(|error| format!("writing the report: {error}"))?;
    writeln!(out).map_err(|error| format!("writing the report: {error}"))
}

fn ppb(part: i64, whole: i64) -> i64 {
    (i128::from(part) * 1_000_000_000 / i128::from(whole.max(1))) as i64
}

/// Three clocks at one moment, and how long the reading took.
struct Three {
    ours: u64,
    raw: u64,
    monotonic: u64,
    width: u64,
}

impl Three {
    /// The tightest of many readings: the others were interrupted.
    fn read(clock: &Clock) -> Three {
        let reading = |_| {
            let before = clock.now();
            let raw = gettime(libc::CLOCK_MONOTONIC_RAW);
            let monotonic = gettime(libc::CLOCK_MONOTONIC);
            let width = clock.now() - before;
            Three { ours: before + width / 3, raw, monotonic, width }
        };
        (0..64).map(reading).min_by_key(|each| each.width).expect("64 readings")
    }

    fn since(&self, first: &Three, elapsed_ns: u64) -> i64 {
        let raw = (self.raw - first.raw) as i64;
        ppb(elapsed_ns as i64 - raw, raw)
    }
}

fn reads(clock: &Clock) -> Vec<Read> {
    let kernel =
        |name, id| Read { clock: name, cost_ns: cost(clock, || gettime(id)), resolution_ns: least(|| gettime(id)) };
    vec![
        Read {
            clock: clock.source().name(),
            cost_ns: cost(clock, || clock.now()),
            resolution_ns: least(|| clock.now()),
        },
        kernel("CLOCK_MONOTONIC", libc::CLOCK_MONOTONIC),
        kernel("CLOCK_MONOTONIC_RAW", libc::CLOCK_MONOTONIC_RAW),
        kernel("CLOCK_REALTIME", libc::CLOCK_REALTIME),
    ]
}

/// Nanoseconds a read: the least of several means, for whoever had the CPU meanwhile is no part of it.
fn cost(clock: &Clock, read: impl Fn() -> u64) -> f64 {
    const READS: u32 = 5_000;
    let mean = |_| {
        let start = clock.now();
        for _ in 0..READS {
            std::hint::black_box(read());
        }
        (clock.now() - start) as f64 / f64::from(READS)
    };
    (0..10).map(mean).fold(f64::INFINITY, f64::min)
}

/// The least difference between two successive reads that differ.
fn least(read: impl Fn() -> u64) -> u64 {
    const READS: u32 = 20_000;
    let (mut least, mut before) = (u64::MAX, read());
    for _ in 0..READS {
        let now = read();
        if now > before {
            least = least.min(now - before);
        }
        before = now;
    }
    least
}

#[derive(Default)]
struct Findings {
    lateness: Vec<Lateness>,
    spinning: Vec<Spinning>,
    not_measured: BTreeMap<&'static str, String>,
}

/// Links' CPU and hosts' CPUs at the same time where they are different ones, as in a lab.
fn phase_of(
    request: &Request,
    loaded: bool,
    duration_ns: u64,
    bucket: TokenBucket,
    spin: Spin,
    found: &mut Findings,
) -> Result<(), String> {
    let apart = !request.host_cpus.contains(&request.link_cpu);
    let each_ns = if apart { duration_ns } else { duration_ns / 2 };
    let over = AtomicBool::new(false);
    let Findings { lateness, spinning, not_measured } = found;
    std::thread::scope(|scope| {
        for cpu in request.host_cpus.iter().filter(|_| loaded) {
            scope.spawn(|| {
                let _ = keep_to(&[*cpu]);
                while !over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let spin = || spin(request.link_cpu, loaded, each_ns);
        let sleep = || sleep(&request.host_cpus[..1], loaded, each_ns, bucket);
        let spinner = scope.spawn(spin);
        let (spun, slept) = if apart {
            let sleeper = scope.spawn(sleep);
            (spinner.join(), sleeper.join())
        } else {
            let spun = spinner.join();
            (spun, scope.spawn(sleep).join())
        };
        over.store(true, Relaxed);
        let failed = || "a thread of the measurement failed".to_owned();
        let spun = spun.map_err(|_| failed())??;
        lateness.extend(spun.lateness);
        spinning.push(spun.spinning);
        let (late, lacking) = slept.map_err(|_| failed())??;
        lateness.extend(late);
        not_measured.extend(lacking);
        Ok(())
    })
}

/// Spins in this thread, with the priority of a link's spinner; the calibration of its clock is part of the time.
pub fn spin_here(cpu: u32, loaded: bool, duration_ns: u64) -> Result<SpinResult, String> {
    keep_to(&[cpu])?;
    let _ = set_nice(LINK_NICE);
    raise_session();
    let clock = Clock::new();
    let stolen = steal_ns(cpu);
    let mut gaps = Gaps::default();
    let late = parts(duration_ns.saturating_sub(CALIBRATED_NS)).map(|(interval_ns, part_ns)| {
        let late = lateness::spin(&clock, interval_ns, part_ns, &mut gaps);
        Lateness::of(Method::Spin, loaded, interval_ns, late)
    });
    let lateness = late.collect();
    let steal_ns = stolen.zip(steal_ns(cpu)).map(|(before, after)| after.saturating_sub(before));
    let Gaps { duration_ns, gaps, gaps_ns, longest_gap_ns } = gaps;
    let nice = own_nice();
    let spinning = Spinning { loaded, cpu, nice, duration_ns, gaps, gaps_ns, longest_gap_ns, steal_ns };
    Ok(SpinResult { lateness, spinning })
}

/// The same in a process and session of its own, as a link's spinner is: where sessions share the CPUs as groups, its
/// priority counts for nothing against other sessions otherwise. `program` takes the arguments and writes what was found,
/// as JSON.
pub fn spin_beside(program: &mut Command) -> Result<SpinResult, String> {
    let end_with_us = || {
        detach();
        Ok(set_pdeathsig(Signal::SIGKILL)?)
    };
    // SAFETY: system calls alone between fork and exec.
    let program = unsafe { program.pre_exec(end_with_us) };
    let done = program.output().map_err(|error| format!("a process that spins: {error}"))?;
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).trim().to_owned());
    }
    serde_json::from_slice(&done.stdout).map_err(|error| format!("a process that spins: {error}"))
}

type SleepResult = (Vec<Lateness>, Vec<(&'static str, String)>);

fn sleep(cpus: &[u32], loaded: bool, duration_ns: u64, bucket: TokenBucket) -> Result<SleepResult, String> {
    keep_to(cpus)?;
    let _ = set_nice(PROBE_NICE);
    set_timerslack(1).map_err(|error| format!("timer slack: {error}"))?;
    let pair = Pair::open();
    let methods = if pair.is_ok() { 3 } else { 2 };
    let mut late = Vec::new();
    let mut lacking = Vec::new();
    for (interval_ns, part_ns) in parts(duration_ns / methods) {
        say(loaded, interval_ns);
        late.push(Lateness::of(Method::Nanosleep, loaded, interval_ns, lateness::nanosleep(interval_ns, part_ns)));
        late.push(Lateness::of(Method::Timerfd, loaded, interval_ns, lateness::timerfd(interval_ns, part_ns)?));
        match pair.as_ref().map_err(Clone::clone).and_then(|pair| pair.lateness(interval_ns, part_ns, bucket)) {
            Ok(found) => late.push(Lateness::of(Method::Qdisc, loaded, interval_ns, found)),
            Err(why) => lacking = vec![("qdisc", why)],
        }
    }
    Ok((late, lacking))
}

fn say(loaded: bool, interval_ns: u64) {
    let load = if loaded { "busy" } else { "idle" };
    eprintln!("timers: deadlines {} µs apart, CPUs {load}", interval_ns / 1000);
}

/// Each interval with its part of the time.
fn parts(duration_ns: u64) -> impl Iterator<Item = (u64, u64)> {
    INTERVALS_NS.into_iter().zip(SHARES).map(move |(interval_ns, share)| (interval_ns, duration_ns * share / SHARE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_a_sample_beyond_it() {
        let of = |samples: u64| Lateness::of(Method::Spin, false, 50_000, (1..=samples).rev().collect());
        let few = of(99);
        assert_eq!((few.p50_ns, few.p99_ns, few.p999_ns, few.max_ns), (Some(50), None, None, Some(99)));
        let many = of(1000);
        assert_eq!(
            (many.p50_ns, many.p99_ns, many.p999_ns, many.max_ns),
            (Some(500), Some(990), Some(999), Some(1000))
        );
        assert_eq!(many.classes.iter().map(|(_, count)| count).sum::<u64>(), 1000);
        let none = of(0);
        assert_eq!((none.p50_ns, none.max_ns, none.classes.len()), (None, None, 0));
    }

    #[test]
    fn the_time_of_a_phase_is_shared_out_whole() {
        let parts: Vec<_> = parts(1_000_000_000).collect();
        assert_eq!(parts.iter().map(|(_, part)| part).sum::<u64>(), 1_000_000_000);
        assert_eq!(parts[4], (10_000_000, 400_000_000));
    }

    #[test]
    fn is_one_json_object_within_its_time() {
        let started = Instant::now();
        let request = Request::new(Duration::from_millis(700), None, Vec::new()).expect("a request");
        let mut out = Vec::new();
        let lacking = |_: &mut ewan_system::netlink::Batch, _: u32, _: u64, _: u32, _: u32| {};
        report(&request, &lacking, &spin_here, &mut out).expect("a report");
        let report: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        let spun = &report["lateness"][0];
        assert_eq!((spun["method"].as_str(), spun["loaded"].as_bool()), (Some("spin"), Some(false)));
        assert!(spun["p50_ns"].is_u64() && report["reads"][0]["cost_ns"].as_f64().expect("a cost") > 0.0);
        assert!(started.elapsed().as_secs() < 3);
    }
}
