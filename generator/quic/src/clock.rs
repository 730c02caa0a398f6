//! Times of this program: ns from T0, which is a time of day in the environment.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The environment has T0 here, as ns since 1970; without it T0 is this program's start.
const T0: &str = "EWAN_T0_UNIX_NS";

#[derive(Clone, Copy)]
pub struct Clock {
    begun: Instant,
    begun_ns: i64,
}

impl Clock {
    pub fn start() -> Self {
        let (begun, day) = (Instant::now(), SystemTime::now());
        let unix_ns = day.duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_nanos() as i64);
        let t0_ns = std::env::var(T0).ok().and_then(|text| text.parse().ok()).unwrap_or(unix_ns);
        Clock { begun, begun_ns: unix_ns - t0_ns }
    }

    /// The time at which this program started.
    pub fn begun_ns(&self) -> i64 {
        self.begun_ns
    }

    pub fn now_ns(&self) -> i64 {
        self.begun_ns + self.begun.elapsed().as_nanos() as i64
    }

    /// T0, or where this program started later, its start: for libraries that count from an instant of theirs.
    pub fn instant(&self, time_ns: i64) -> Instant {
        self.begun + Duration::from_nanos((time_ns - self.begun_ns).max(0) as u64)
    }

    /// Timers of tokio are of whole milliseconds; before there is work, the thread may sleep.
    pub fn sleep_before_work(&self, until_ns: i64) {
        std::thread::sleep(Duration::from_nanos((until_ns - self.now_ns()).max(0) as u64));
    }

    pub async fn sleep_until(&self, time_ns: i64) {
        tokio::time::sleep_until(self.instant(time_ns).into()).await;
    }
}
