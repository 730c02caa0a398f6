//! What this host's clocks and timers can do, measured in about a second: the cost of reading each clock, how
//! exactly a spinning thread meets a deadline and how late a sleeping one wakes. Out: one JSON object.

use std::io::Write;
use std::time::Duration;

use serde::Serialize;

use crate::clock::{gettime, Clock};

/// Times in nanoseconds.
#[derive(Serialize)]
struct Report {
    clock: &'static str,
    tsc_hz: Option<u64>,
    /// How far the calibration's middle lay from the line through its ends, and what that is of its length.
    calibration_residual_ns: i64,
    calibration_residual_ppb: i64,
    /// Frequency found by a second calibration, against the first.
    recalibration_ppb: Option<i64>,
    read_cost_ns: ReadCost,
    spin_error_ns: Percentiles,
    nanosleep_lateness_ns: Percentiles,
}

#[derive(Serialize)]
struct ReadCost {
    now: f64,
    monotonic: f64,
    monotonic_raw: f64,
    realtime: f64,
}

#[derive(Serialize)]
struct Percentiles {
    samples: usize,
    p50: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

impl Percentiles {
    fn of(mut samples: Vec<u64>) -> Percentiles {
        samples.sort_unstable();
        let at = |thousandths: usize| samples[(samples.len() - 1) * thousandths / 1000];
        Percentiles { samples: samples.len(), p50: at(500), p99: at(990), p999: at(999), max: at(1000) }
    }
}

const CALIBRATION: Duration = Duration::from_millis(100);

/// Writes the report; takes about a second.
pub fn report(mut out: impl Write) -> Result<(), String> {
    let clock = Clock::calibrated(CALIBRATION);
    let again = Clock::calibrated(CALIBRATION);
    let ppb = |part: i64, whole: i64| part * 1_000_000_000 / whole.max(1);
    let report = Report {
        clock: clock.source().name(),
        tsc_hz: clock.frequency_hz(),
        calibration_residual_ns: clock.residual_ns(),
        calibration_residual_ppb: ppb(clock.residual_ns(), CALIBRATION.as_nanos() as i64),
        recalibration_ppb: clock
            .frequency_hz()
            .zip(again.frequency_hz())
            .map(|(one, two)| ppb(two as i64 - one as i64, one as i64)),
        read_cost_ns: ReadCost {
            now: cost(&clock, || clock.now()),
            monotonic: cost(&clock, || gettime(libc::CLOCK_MONOTONIC)),
            monotonic_raw: cost(&clock, || gettime(libc::CLOCK_MONOTONIC_RAW)),
            realtime: cost(&clock, || gettime(libc::CLOCK_REALTIME)),
        },
        spin_error_ns: spin(&clock),
        nanosleep_lateness_ns: sleep(),
    };
    serde_json::to_writer_pretty(&mut out, &report).map_err(|error| format!("writing the report: {error}"))?;
    writeln!(out).map_err(|error| format!("writing the report: {error}"))
}

/// Nanoseconds a read, mean over many.
fn cost(clock: &Clock, read: impl Fn() -> u64) -> f64 {
    const READS: u32 = 100_000;
    let start = clock.now();
    for _ in 0..READS {
        std::hint::black_box(read());
    }
    (clock.now() - start) as f64 / f64::from(READS)
}

/// Deadlines 20 µs apart for 300 ms, awaited by reading the clock.
fn spin(clock: &Clock) -> Percentiles {
    let mut errors = Vec::with_capacity(15_000);
    let start = clock.now();
    let mut deadline = start;
    while deadline < start + 300_000_000 {
        deadline = (deadline + 20_000).max(clock.now());
        let mut now = clock.now();
        while now < deadline {
            now = clock.now();
        }
        errors.push(now - deadline);
    }
    Percentiles::of(errors)
}

/// Absolute deadlines 1 ms apart for about 300 ms, awaited by `clock_nanosleep`.
fn sleep() -> Percentiles {
    let mut errors = Vec::with_capacity(300);
    for _ in 0..300 {
        let deadline = gettime(libc::CLOCK_MONOTONIC) + 1_000_000;
        let time = libc::timespec {
            tv_sec: (deadline / 1_000_000_000) as libc::time_t,
            tv_nsec: (deadline % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: `time` outlives the call; no remainder is asked for.
        unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &time, std::ptr::null_mut()) };
        errors.push(gettime(libc::CLOCK_MONOTONIC).saturating_sub(deadline));
    }
    Percentiles::of(errors)
}

#[cfg(test)]
mod tests {
    #[test]
    fn is_one_json_object_and_takes_less_than_two_seconds() {
        let started = std::time::Instant::now();
        let mut out = Vec::new();
        super::report(&mut out).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert!(report["spin_error_ns"]["p50"].is_u64() && report["read_cost_ns"]["now"].as_f64().unwrap() > 0.0);
        assert!(started.elapsed().as_secs() < 2);
    }
}
