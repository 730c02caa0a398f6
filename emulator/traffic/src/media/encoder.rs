//! A live video encoder after the statistical reference model of RFC 8593, section 5. Pure.
//!
//! In: the target rate at each frame, wishes for a key frame, seeded streams of random numbers. Out: frames with their sizes
//! and the times at which they were captured.
//!
//! - Section 5.1: after it has changed its rate, the encoder ignores other target rates for tau_v.
//! - Section 5.2: after a large change, the first of K_d frames is a burst of K_B, and the others are so much smaller that all
//!   K_d have the target rate. A key frame is such a burst too, as the section says of on-demand I frames; here they come
//!   at the start, at regular times, and when the receiver asks for one. Which change is large the section does not say:
//!   here more than a fifth.
//! - Section 5.3: deviations of sizes and of intervals from their means are Laplacian, of zero mean. They are cut at 95 % of
//!   the mean on both sides, which keeps the mean.
//! - Section 5.4: the rate stays within what the content allows.
//!
//! The numbers are those of its table 1; K_B, 13.5 kB there, is kept as the ratio to the mean size of its example.

use rand_core::RngCore;

use crate::flows::law::{Stream, Sum};

/// Encoder reaction latency, tau_v.
const REACTION_NS: u64 = 200_000_000;
/// Frames of a transient period, K_d.
const BURST_FRAMES: u32 = 8;
/// The first of them as a multiple of the mean size, K_B / B_0.
const BURST_RATIO: f64 = 13.5 / 4.17;
/// The others, so that the mean of all is that of the rate.
const AFTER_RATIO: f64 = (BURST_FRAMES as f64 - BURST_RATIO) / (BURST_FRAMES as f64 - 1.0);
/// SCALE_t and SCALE_B.
const SCALE: f64 = 0.15;
const LARGEST_DEVIATION: f64 = 0.95;
const LARGE_CHANGE: f64 = 0.2;
const LEAST_BYTES: f64 = 32.0;
/// The receiver may ask for a key frame so long after it came in part.
const ASKED_NS: u64 = 100_000_000;

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub frames_per_second: f64,
    pub least_bps: f64,
    pub most_bps: f64,
    /// From a key frame to the next; none: only those that are asked for.
    pub key_every_ns: Option<u64>,
    /// Sizes and intervals deviate from their means, and key frames are larger than others.
    pub varies: bool,
    /// No frame is captured from the first of these times on until the second, at which a key frame is.
    pub pause_ns: Option<[u64; 2]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub number: u32,
    pub key: bool,
    pub bytes: u32,
    pub captured_ns: u64,
}

pub struct Encoder {
    settings: Settings,
    rate_bps: f64,
    changed_ns: Option<u64>,
    /// Frames of the transient period that are to come.
    transient: u32,
    next_key_ns: u64,
    last_key_ns: u64,
    key_wanted: bool,
    number: u32,
    next: Sum,
    sizes: Stream,
    intervals: Stream,
}

impl Encoder {
    pub fn new(settings: Settings, rate_bps: f64, start_ns: u64, sizes: Stream, intervals: Stream) -> Self {
        Self {
            settings,
            rate_bps: rate_bps.clamp(settings.least_bps, settings.most_bps),
            changed_ns: None,
            transient: 0,
            next_key_ns: start_ns,
            last_key_ns: start_ns,
            key_wanted: false,
            number: 0,
            next: Sum::from_ns(start_ns),
            sizes,
            intervals,
        }
    }

    /// When the next frame is captured.
    pub fn next_ns(&self) -> u64 {
        self.next.ns()
    }

    /// The next frame is to be a key frame.
    pub fn want_key(&mut self) {
        self.key_wanted = true;
    }

    /// The receiver asks for a key frame at `now_ns`; one that was made less than a round trip before is on its way.
    pub fn ask_key(&mut self, now_ns: u64, rtt_ns: u64) {
        self.key_wanted |= now_ns > self.last_key_ns.saturating_add(rtt_ns + ASKED_NS);
    }

    pub fn rate_bps(&self) -> f64 {
        self.rate_bps
    }

    /// The frame that is captured at `next_ns`, where `target_bps` is asked for then.
    pub fn capture(&mut self, target_bps: f64) -> Frame {
        let now_ns = self.next_ns();
        self.react(target_bps, now_ns);
        let key = self.key_wanted || now_ns >= self.next_key_ns;
        if key {
            self.key_wanted = false;
            self.next_key_ns = self.settings.key_every_ns.map_or(u64::MAX, |every_ns| now_ns.saturating_add(every_ns));
            self.last_key_ns = now_ns;
            self.transient = BURST_FRAMES;
        }
        let bytes = (self.mean_bytes() * self.ratio()).round().max(LEAST_BYTES) as u32;
        let frame = Frame { number: self.number, key, bytes, captured_ns: now_ns };
        self.number += 1;
        let deviation = if self.settings.varies { laplacian(&mut self.intervals) } else { 0.0 };
        self.next.add(1e9 / self.settings.frames_per_second * (1.0 + deviation));
        if let Some([_, resumes_ns]) =
            self.settings.pause_ns.filter(|[from, until]| (*from..*until).contains(&self.next_ns()))
        {
            self.next = Sum::from_ns(resumes_ns);
            self.key_wanted = true;
        }
        frame
    }

    fn react(&mut self, target_bps: f64, now_ns: u64) {
        let target_bps = target_bps.clamp(self.settings.least_bps, self.settings.most_bps);
        let deaf = self.changed_ns.is_some_and(|changed_ns| now_ns < changed_ns + REACTION_NS);
        if deaf || target_bps == self.rate_bps {
            return;
        }
        if (target_bps / self.rate_bps - 1.0).abs() > LARGE_CHANGE {
            self.transient = BURST_FRAMES;
        }
        self.rate_bps = target_bps;
        self.changed_ns = Some(now_ns);
    }

    fn mean_bytes(&self) -> f64 {
        self.rate_bps / 8.0 / self.settings.frames_per_second
    }

    fn ratio(&mut self) -> f64 {
        if !self.settings.varies {
            return 1.0;
        }
        if self.transient == 0 {
            return 1.0 + laplacian(&mut self.sizes);
        }
        self.transient -= 1;
        if self.transient + 1 == BURST_FRAMES {
            BURST_RATIO
        } else {
            AFTER_RATIO
        }
    }
}

/// Of zero mean and of `SCALE`, cut on both sides.
fn laplacian(stream: &mut Stream) -> f64 {
    // From −1 to 1, neither of them.
    let even = ((stream.next_u64() >> 11) as f64 + 0.5) / (1u64 << 52) as f64 - 1.0;
    (-SCALE * even.signum() * libm::log(1.0 - even.abs())).clamp(-LARGEST_DEVIATION, LARGEST_DEVIATION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::law::stream;

    const STEADY: Settings = Settings {
        frames_per_second: 30.0,
        least_bps: 150e3,
        most_bps: 1.5e6,
        key_every_ns: None,
        varies: true,
        pause_ns: None,
    };

    fn encoder(settings: Settings) -> Encoder {
        Encoder::new(settings, 1e6, 0, stream(1, 0), stream(1, 1))
    }

    fn bytes(frames: &[Frame]) -> f64 {
        frames.iter().map(|frame| f64::from(frame.bytes)).sum()
    }

    #[test]
    fn the_mean_rate_and_the_mean_interval_are_those_asked_for() {
        let mut encoder = encoder(STEADY);
        let frames: Vec<Frame> = (0..30_000).map(|_| encoder.capture(1e6)).collect();
        let seconds = encoder.next_ns() as f64 / 1e9;
        // The standard deviation of a Laplacian of scale 0.15 is 0.21; of the mean of 30,000 it is 0.0012.
        assert!((seconds / 1000.0 - 1.0).abs() < 0.005, "{seconds} s");
        let rate = bytes(&frames) * 8.0 / 1000.0;
        assert!((rate / 1e6 - 1.0).abs() < 0.005, "{rate} bit/s");
    }

    #[test]
    fn deviations_are_laplacian() {
        let mut stream = stream(3, 0);
        let mut drawn: Vec<f64> = (0..100_000).map(|_| laplacian(&mut stream)).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        // The quartiles of a Laplacian of scale b are ∓ b·ln 2.
        assert!((drawn[25_000] + 0.15 * std::f64::consts::LN_2).abs() < 0.003, "{}", drawn[25_000]);
        assert!((drawn[75_000] - 0.15 * std::f64::consts::LN_2).abs() < 0.003, "{}", drawn[75_000]);
        assert!(drawn[50_000].abs() < 0.002, "{}", drawn[50_000]);
    }

    #[test]
    fn other_targets_are_ignored_for_the_reaction_latency() {
        let mut encoder = encoder(STEADY);
        encoder.capture(1e6);
        encoder.capture(9e5);
        let changed_ns = encoder.changed_ns.expect("it followed");
        while encoder.next_ns() < changed_ns + REACTION_NS {
            encoder.capture(8e5);
            assert_eq!(encoder.rate_bps(), 9e5);
        }
        encoder.capture(8e5);
        assert_eq!(encoder.rate_bps(), 8e5);
    }

    #[test]
    fn a_large_change_and_a_key_frame_are_bursts_whose_mean_is_the_rate() {
        let mut first = encoder(STEADY);
        let frames: Vec<Frame> = (0..BURST_FRAMES).map(|_| first.capture(1e6)).collect();
        assert!(frames[0].key && !frames[1].key);
        // Table 1 of RFC 8593: 13.5 kB at 1 Mbit/s and 30 frames a second.
        assert!((frames[0].bytes as i64 - 13_500).abs() < 50, "{}", frames[0].bytes);
        assert!((bytes(&frames) / (1e6 / 240.0 * 8.0) - 1.0).abs() < 0.001);
        for _ in 0..100 {
            first.capture(1e6);
        }
        let burst = first.capture(5e5);
        assert!(!burst.key && (f64::from(burst.bytes) / (5e5 / 240.0) - BURST_RATIO).abs() < 0.01, "{burst:?}");
    }

    #[test]
    fn key_frames_come_at_their_times_and_when_they_are_wanted() {
        let settings = Settings { key_every_ns: Some(2_000_000_000), varies: false, ..STEADY };
        let mut encoder = encoder(settings);
        let mut keys = Vec::new();
        for number in 0..150 {
            if number == 100 {
                encoder.want_key();
            }
            if encoder.capture(1e6).key {
                keys.push(number);
            }
        }
        assert_eq!(keys, [0, 60, 100]);
    }

    #[test]
    fn a_pause_has_no_frames_and_ends_with_a_key_frame() {
        let settings = Settings { pause_ns: Some([1_000_000_000, 3_500_000_000]), varies: false, ..STEADY };
        let mut encoder = encoder(settings);
        let frames: Vec<Frame> = (0..32).map(|_| encoder.capture(1e6)).collect();
        assert_eq!((frames[29].captured_ns, frames[30].captured_ns), (966_666_667, 3_500_000_000));
        assert_eq!(frames.iter().filter(|frame| frame.key).map(|frame| frame.number).collect::<Vec<_>>(), [0, 30]);
        assert_eq!(frames[31].captured_ns - frames[30].captured_ns, 33_333_333);
    }

    #[test]
    fn the_rate_stays_within_the_bounds_and_without_variation_every_frame_is_the_same() {
        let mut encoder = encoder(Settings { varies: false, ..STEADY });
        assert_eq!(encoder.capture(9e9).bytes, 6250);
        let last = (0..12).map(|_| encoder.capture(0.0)).last().expect("a frame");
        assert_eq!((last.bytes, last.captured_ns), (625, 400_000_000));
    }
}
