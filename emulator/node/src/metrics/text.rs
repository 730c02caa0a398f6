//! Prometheus' text format, version 0.0.4: families with their help and type, then their samples.
//!
//! In: samples in any order, each of a family in FAMILIES. Out: the text. Base units throughout (seconds, bytes), as the
//! naming conventions want it; a family without a sample is left out.

use std::collections::HashMap;
use std::fmt::{Display, Write};

/// What an answer of ours says its body is.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Name, type, help.
const FAMILIES: [(&str, &str, &str); 36] = [
    ("ewan_build_info", "gauge", "Always 1; its label tells the version of ewan-node."),
    ("ewan_lab_info", "gauge", "Always 1; its labels tell the topology and who finds the routes."),
    ("ewan_up", "gauge", "Whether whatever emulates the link answers: 1 or 0."),
    ("ewan_link_rate_bytes_per_second", "gauge", "Rate of the link as it is set now, of what its framing counts."),
    ("ewan_link_delay_seconds", "gauge", "Propagation delay of the link as it is set now; without jitter."),
    ("ewan_link_queue_limit_bytes", "gauge", "The queue's limit as it is set now, if it counts bytes."),
    ("ewan_link_queue_limit_packets", "gauge", "The queue's limit as it is set now, if it counts packets."),
    ("ewan_link_in_bytes_total", "counter", "Bytes that came to the link, as its framing counts them."),
    ("ewan_link_in_packets_total", "counter", "Packets that came to the link."),
    ("ewan_link_out_bytes_total", "counter", "Bytes that left the link, as its framing counts them."),
    ("ewan_link_out_packets_total", "counter", "Packets that left the link."),
    (
        "ewan_link_dropped_packets_total",
        "counter",
        "Packets that did not leave the link, by cause. User links: loss, blackhole, policed, queue_full, aqm, ack_filtered, store_full; kernel links: \
         queue (full, or its discipline), netem (loss, or no room in the delay line).",
    ),
    ("ewan_link_corrupted_packets_total", "counter", "Packets of which one bit was turned over."),
    ("ewan_link_duplicated_packets_total", "counter", "Packets that were sent twice."),
    ("ewan_link_ce_marked_packets_total", "counter", "Packets that the queue marked Congestion Experienced."),
    ("ewan_link_queue_bytes", "gauge", "Bytes that wait in the queue, as the link's framing counts them."),
    ("ewan_link_queue_packets", "gauge", "Packets that wait in the queue."),
    ("ewan_link_queue_highest_bytes", "gauge", "The most bytes that ever waited in the queue."),
    ("ewan_link_queue_highest_packets", "gauge", "The most packets that ever waited in the queue."),
    ("ewan_link_delay_line_packets", "gauge", "Packets that are under way in the link."),
    ("ewan_class_served_packets_total", "counter", "Packets of a class of the queue that were taken out to be sent."),
    ("ewan_class_waited_seconds_total", "counter", "Time that packets of a class waited, summed over packets."),
    ("ewan_class_dropped_packets_total", "counter", "Packets of a class that the queue dropped."),
    ("ewan_class_ce_marked_packets_total", "counter", "Packets of a class that were marked Congestion Experienced."),
    ("ewan_class_queue_bytes", "gauge", "Bytes of a class that wait in the queue."),
    ("ewan_class_queue_packets", "gauge", "Packets of a class that wait in the queue."),
    (
        "ewan_link_lateness_seconds",
        "histogram",
        "How much later than due packets left the link. Its sum is of classes' middles, right within 3 %.",
    ),
    ("ewan_link_lateness_max_seconds", "gauge", "The most that a packet ever left the link later than due."),
    ("ewan_link_late_packets_total", "counter", "Packets that psp released after their instant."),
    (
        "ewan_port_dropped_packets_total",
        "counter",
        "Packets lost beside the link's model, which should be none, by cause: ring_overrun, ring_full, receive, \
         transmit, refused.",
    ),
    ("ewan_spinner_info", "gauge", "Always 1; its labels tell the CPU, clock and priority of the spinner."),
    ("ewan_spinner_shared", "gauge", "Whether the spinner has its CPU to share with another one: 1 or 0."),
    ("ewan_spinner_busy_seconds_total", "counter", "Time that the spinner spent on packets."),
    ("ewan_spinner_gap_seconds", "histogram", "Times at which the spinner had lost its CPU."),
    ("ewan_spinner_gap_max_seconds", "gauge", "The longest time for which the spinner had lost its CPU."),
    ("ewan_metrics_refused_connections_total", "counter", "Connections to this page that were ended to make room."),
];

pub struct Exposition {
    /// By place in FAMILIES.
    samples: [String; FAMILIES.len()],
}

impl Default for Exposition {
    fn default() -> Self {
        Exposition { samples: std::array::from_fn(|_| String::new()) }
    }
}

/// Label names with their values, as they stand between braces.
#[derive(Clone, Default)]
pub struct Labels(String);

impl Labels {
    pub fn with(&self, name: &str, value: impl Display) -> Labels {
        let mut text = self.0.clone();
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(name);
        text.push_str("=\"");
        for character in value.to_string().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                other => text.push(other),
            }
        }
        text.push('"');
        Labels(text)
    }
}

/// Nanoseconds in seconds, to the last digit.
pub struct Seconds(pub u64);

impl Display for Seconds {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, rest) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        if rest == 0 {
            return write!(formatter, "{whole}");
        }
        write!(formatter, "{whole}.{}", format!("{rest:09}").trim_end_matches('0'))
    }
}

impl Exposition {
    pub fn add(&mut self, family: &str, labels: &Labels, value: impl Display) {
        self.line(family, "", labels, value);
    }

    /// Only what is there: a link that does not know a number has no sample of it.
    pub fn add_known(&mut self, family: &str, labels: &Labels, value: Option<impl Display>) {
        if let Some(value) = value {
            self.add(family, labels, value);
        }
    }

    /// `classes`: the upper end and the count of each class, in ns, ascending; `bounds`: of the buckets, in ns.
    pub fn add_histogram(
        &mut self,
        family: &str,
        labels: &Labels,
        classes: &[(u64, u64)],
        bounds: &[u64],
        sum: Seconds,
    ) {
        let mut classes_left = classes.iter().peekable();
        let mut seen = 0;
        for &bound in bounds {
            while let Some((_, count)) = classes_left.next_if(|(upper, _)| *upper <= bound) {
                seen += count;
            }
            self.line(family, "_bucket", &labels.with("le", Seconds(bound)), seen);
        }
        let all: u64 = classes.iter().map(|(_, count)| count).sum();
        self.line(family, "_bucket", &labels.with("le", "+Inf"), all);
        self.line(family, "_sum", labels, sum);
        self.line(family, "_count", labels, all);
    }

    fn line(&mut self, family: &str, suffix: &str, labels: &Labels, value: impl Display) {
        let place = FAMILIES.iter().position(|(name, ..)| *name == family);
        let samples = &mut self.samples[place.expect("FAMILIES names every family")];
        // Writing to a String cannot fail.
        let _ = writeln!(samples, "{family}{suffix}{{{}}} {value}", labels.0);
    }

    /// The samples of each family that has any, by its name, as lines.
    pub fn by_family(&self) -> HashMap<&'static str, &str> {
        let each = FAMILIES.iter().zip(&self.samples);
        each.filter(|(_, samples)| !samples.is_empty()).map(|((name, ..), samples)| (*name, &**samples)).collect()
    }

    /// Samples of another page; those of a family that is not known here, of another version, are left out.
    pub fn absorb(&mut self, by_family: &HashMap<String, String>) {
        for ((name, ..), samples) in FAMILIES.iter().zip(&mut self.samples) {
            samples.push_str(by_family.get(*name).map_or("", String::as_str));
        }
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for ((name, kind, help), samples) in FAMILIES.iter().zip(&self.samples) {
            if !samples.is_empty() {
                let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{samples}");
            }
        }
        text
    }
}

/// The sum of a histogram of which only the classes are known: each value counts as its class's middle, and a class is at
/// most 1/16 of its upper end wide.
pub fn sum_of_classes(classes: &[(u64, u64)]) -> Seconds {
    let sum: u128 = classes.iter().map(|(upper, count)| u128::from(upper - upper / 32) * u128::from(*count)).sum();
    Seconds(u64::try_from(sum).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_its_help_and_type_before_all_of_its_samples() {
        let mut page = Exposition::default();
        page.add("ewan_up", &Labels::default().with("link", "core"), 1);
        page.add("ewan_build_info", &Labels::default().with("version", "1"), 1);
        page.add("ewan_up", &Labels::default().with("link", "other"), 0);
        let text = page.text();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[1..3], ["# TYPE ewan_build_info gauge", "ewan_build_info{version=\"1\"} 1"]);
        assert!(lines[3].starts_with("# HELP ewan_up "));
        assert_eq!(
            lines[4..],
            ["# TYPE ewan_up gauge", "ewan_up{link=\"core\"} 1", "ewan_up{link=\"other\"} 0"],
            "families without a sample are left out"
        );
    }

    #[test]
    fn labels_are_escaped() {
        let labels = Labels::default().with("a", "say \"x\\y\"\n").with("b", 2);
        assert_eq!(labels.0, r#"a="say \"x\\y\"\n",b="2""#);
    }

    #[test]
    fn nanoseconds_become_seconds_without_a_rounding() {
        for (ns, text) in [(0, "0"), (1, "0.000000001"), (1_500_000_000, "1.5"), (u64::MAX, "18446744073.709551615")] {
            assert_eq!(Seconds(ns).to_string(), text);
        }
    }

    #[test]
    fn buckets_are_cumulative_and_end_in_all() {
        let mut page = Exposition::default();
        let classes = [(100, 1), (255, 2), (271, 4), (9_000_000_000, 8)];
        let labels = Labels::default().with("spinner", 0);
        page.add_histogram("ewan_spinner_gap_seconds", &labels, &classes, &[256, 512], Seconds(7));
        let text = page.text();
        let samples: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(
            samples,
            [
                r#"ewan_spinner_gap_seconds_bucket{spinner="0",le="0.000000256"} 3"#,
                r#"ewan_spinner_gap_seconds_bucket{spinner="0",le="0.000000512"} 7"#,
                r#"ewan_spinner_gap_seconds_bucket{spinner="0",le="+Inf"} 15"#,
                r#"ewan_spinner_gap_seconds_sum{spinner="0"} 0.000000007"#,
                r#"ewan_spinner_gap_seconds_count{spinner="0"} 15"#,
            ]
        );
    }

    #[test]
    fn a_sum_of_classes_is_right_within_their_width() {
        let classes: Vec<(u64, u64)> = (1..=100).map(|n| (n * 1000, 10)).collect();
        let exact = 10 * 1000 * 5050;
        let Seconds(sum) = sum_of_classes(&classes);
        assert!(exact - exact / 32 <= sum && sum <= exact, "{sum}");
    }

    #[test]
    fn names_keep_to_prometheus_conventions() {
        for (name, kind, help) in FAMILIES {
            assert!(name.starts_with("ewan_") && name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
            assert!(help.ends_with('.') && !help.contains('\n'), "{name}: {help}");
            for odd in ["_ns", "_ms", "_bits", "_bps", "percent"] {
                assert!(!name.contains(odd), "{name}: base units only");
            }
        }
    }
}
