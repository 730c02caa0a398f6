//! What may disturb the links of a live lab while a program runs: releases.csv, spinners.csv and machine.csv, with the
//! columns of labs/record/columns.py. What follows from them is for labs/record/disturbances.py to say.
//!
//! In: the spinners' own counters, /proc/stat, the kernel's clocks, an interval and a bound of lateness. Out: of each
//! interval from T0 on, a row per link and direction, per spinner, and of the machine; the last interval ends with the
//! program. Links of the kernel's parts have no spinner and no row. The virtual clock has none of this: nothing takes
//! a link's CPU there.

use std::collections::HashMap;
use std::path::Path;

use ewan_system::clock::gettime;
use ewan_system::schedule;
use ewan_traffic::table::{add, Row, Table};
use nix::unistd::{sysconf, SysconfVar};
use serde::Deserialize;

use super::events::Events;
use ewan_lab::carrier;
use ewan_lab::links::Links;
use ewan_plan::{Plan, HEADINGS};

const NS_PER_SECOND: u64 = 1_000_000_000;
const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// Readings of two clocks, of which the one that took least is taken: others were interrupted.
const READINGS: usize = 8;

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DisturbanceSettings {
    every_ns: u64,
    /// What leaves a link later than that after its due time is late.
    late_ns: u64,
}

impl DisturbanceSettings {
    /// Why it cannot be; none: it can.
    pub fn refusal(&self) -> Option<&'static str> {
        (self.every_ns == 0).then_some("disturbances.every_ns 0: write 1 or more")
    }
}

/// One direction of a link, in an interval.
struct Releases {
    link: String,
    heading: &'static str,
    spinner: usize,
    time_ns: i64,
    interval_ns: i64,
    released: u64,
    bound_ns: u64,
    late: u64,
    lateness_max_ns: u64,
    overrun: u64,
    down: bool,
    ended: bool,
}

impl Row for Releases {
    const COLUMNS: &'static str = "link,direction,spinner,time_ns,interval_ns,released_packets,bound_ns,late_packets,\
        lateness_max_ns,overrun_packets,down,ended";

    fn line(&self, line: &mut String) {
        let Self { link, heading, spinner, time_ns, interval_ns, released, bound_ns, late, .. } = self;
        let Self { lateness_max_ns, overrun, down, ended, .. } = self;
        add(line, format_args!("{link},{heading},{spinner},{time_ns},{interval_ns},{released},{bound_ns},{late}"));
        add(line, format_args!(",{lateness_max_ns},{overrun},{down},{ended}"));
    }
}

/// One spinner, in an interval.
struct CpuLoss {
    spinner: usize,
    cpu: u32,
    time_ns: i64,
    interval_ns: i64,
    taken_ns: u64,
    gap_max_ns: u64,
    shared: bool,
}

impl Row for CpuLoss {
    const COLUMNS: &'static str = "spinner,cpu,time_ns,interval_ns,taken_ns,gap_max_ns,shared";

    fn line(&self, line: &mut String) {
        let Self { spinner, cpu, time_ns, interval_ns, taken_ns, gap_max_ns, shared } = self;
        add(line, format_args!("{spinner},{cpu},{time_ns},{interval_ns},{taken_ns},{gap_max_ns},{shared}"));
    }
}

/// The machine, in an interval.
struct MachineRow {
    time_ns: i64,
    interval_ns: i64,
    cpu_ns: u64,
    stolen_ns: u64,
    stepped_ns: i64,
    clocksource: String,
    changed: bool,
}

impl Row for MachineRow {
    const COLUMNS: &'static str = "time_ns,interval_ns,cpu_ns,stolen_ns,stepped_ns,clocksource,changed";

    fn line(&self, line: &mut String) {
        let Self { time_ns, interval_ns, cpu_ns, stolen_ns, stepped_ns, clocksource, changed } = self;
        add(line, format_args!("{time_ns},{interval_ns},{cpu_ns},{stolen_ns},{stepped_ns}"));
        add(line, format_args!(",{clocksource},{changed}"));
    }
}

/// The three tables while a program runs.
pub struct Disturbances {
    wanted: DisturbanceSettings,
    releases: Table<Releases>,
    spinners: Table<CpuLoss>,
    machine: Table<MachineRow>,
    due_ns: u64,
    /// The last two: the interval between them may still become longer.
    last: Vec<Reading>,
}

/// All that is counted, at one moment after T0.
struct Reading {
    time_ns: i64,
    spinners: Vec<Spinner>,
    machine: Machine,
    /// Links that are down on purpose.
    down: Vec<String>,
}

impl Disturbances {
    /// From here on this thread keeps off the spinners' CPUs, as far as it may choose: what watches must not disturb.
    pub fn new(wanted: DisturbanceSettings, plan: &Plan, out: &Path) -> Result<Self, String> {
        let _ = schedule::keep_to(&plan.host_cpus);
        Ok(Disturbances {
            wanted,
            releases: Table::create(&out.join("releases.csv"))?,
            spinners: Table::create(&out.join("spinners.csv"))?,
            machine: Table::create(&out.join("machine.csv"))?,
            due_ns: 0,
            last: Vec::new(),
        })
    }

    /// When the next interval ends, from T0, at which the first one begins.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Ends an interval, if that is due at `now_ns` after T0; one that ends late is so much longer.
    pub fn look(&mut self, links: &mut Links, lab: &Lab, now_ns: i64) -> Result<(), String> {
        if now_ns < self.due_ns as i64 {
            return Ok(());
        }
        self.due_ns = (now_ns as u64 / self.wanted.every_ns + 1) * self.wanted.every_ns;
        self.last.push(Reading::take(links, lab, now_ns)?);
        self.write_all_but(2, lab)
    }

    /// Ends the last interval with the program. Less than half of one is a part of the one before it: a share of few
    /// packets says nothing.
    pub fn finish(&mut self, links: &mut Links, lab: &Lab, now_ns: i64) -> Result<(), String> {
        let least_ns = (self.wanted.every_ns / 2) as i64;
        let whole = |last: &Reading| now_ns >= last.time_ns + least_ns;
        if self.last.len() == 2 && !self.last.last().is_some_and(whole) {
            self.last.pop();
        }
        // What was read before is written, also of a spinner that does not answer any more.
        let read = Reading::take(links, lab, now_ns).map(|last| self.last.push(last));
        let read = read.and(self.write_all_but(1, lab));
        read.and(self.releases.flush()).and(self.spinners.flush()).and(self.machine.flush())
    }

    /// Writes the oldest intervals until only so many readings are left.
    fn write_all_but(&mut self, left: usize, lab: &Lab) -> Result<(), String> {
        while self.last.len() > left {
            let before = self.last.remove(0);
            self.write(&before, &self.last[0], lab)?;
        }
        Ok(())
    }

    fn write(&self, before: &Reading, now: &Reading, lab: &Lab) -> Result<(), String> {
        let time_ns = now.time_ns;
        let interval_ns = time_ns - before.time_ns;
        let moved: Vec<&str> = lab.events.map_or(Vec::new(), |events| events.moved(before.time_ns, time_ns));
        for (number, (old, new)) in before.spinners.iter().zip(&now.spinners).enumerate() {
            let gaps = grown(&old.gaps.classes, &new.gaps.classes);
            self.spinners.add(&CpuLoss {
                spinner: number,
                cpu: new.cpu,
                time_ns,
                interval_ns,
                taken_ns: new.gaps.lost_ns.saturating_sub(old.gaps.lost_ns),
                gap_max_ns: gaps.last().map_or(0, |(upper, _)| *upper),
                shared: new.shared,
            })?;
            for name in &lab.plan.spinners[number].links {
                let (Some(old), Some(new)) = (old.links.get(name), new.links.get(name)) else { continue };
                let down = moved.contains(&name.as_str()) || before.down.contains(name) || now.down.contains(name);
                for (way, heading) in HEADINGS.into_iter().enumerate() {
                    let lateness =
                        grown(&old.direction(way).lateness_ns.classes, &new.direction(way).lateness_ns.classes);
                    let (released, late) = beyond(&lateness, self.wanted.late_ns);
                    self.releases.add(&Releases {
                        link: name.clone(),
                        heading,
                        spinner: number,
                        time_ns,
                        interval_ns,
                        released,
                        bound_ns: self.wanted.late_ns,
                        late,
                        lateness_max_ns: lateness.last().map_or(0, |(upper, _)| *upper),
                        overrun: new.overruns(way).saturating_sub(old.overruns(way)),
                        down,
                        ended: new.ended.is_some(),
                    })?;
                }
            }
        }
        let (old, new) = (&before.machine, &now.machine);
        self.machine.add(&MachineRow {
            time_ns,
            interval_ns,
            cpu_ns: new.cpu_ns.saturating_sub(old.cpu_ns),
            stolen_ns: new.stolen_ns.saturating_sub(old.stolen_ns),
            stepped_ns: new.realtime.stepped_since(&old.realtime),
            clocksource: new.clocksource.clone(),
            changed: new.clocksource != old.clocksource,
        })
    }
}

impl Reading {
    fn take(links: &mut Links, lab: &Lab, time_ns: i64) -> Result<Self, String> {
        let spinners = links.ask_spinners()?;
        Ok(Reading { time_ns, spinners, machine: Machine::read()?, down: carrier::down(lab.state) })
    }
}

/// What a look must know of the lab.
pub struct Lab<'a> {
    pub plan: &'a Plan,
    pub state: &'a Path,
    pub events: Option<&'a Events<'a>>,
}

/// A spinner's answer to `stats`, as far as it is looked at.
#[derive(Deserialize)]
struct Spinner {
    cpu: u32,
    shared: bool,
    gaps: Gaps,
    links: HashMap<String, Link>,
}

#[derive(Deserialize)]
struct Gaps {
    lost_ns: u64,
    classes: Vec<(u64, u64)>,
}

#[derive(Deserialize)]
struct Link {
    ended: Option<String>,
    ports: [Port; 2],
    forward: Direction,
    backward: Direction,
}

#[derive(Deserialize)]
struct Port {
    ring_overruns: u64,
    veth_drops: VethDrops,
}

#[derive(Deserialize)]
struct VethDrops {
    ring_full: u64,
    receive: u64,
    transmit: u64,
}

#[derive(Deserialize)]
struct Direction {
    lateness_ns: Lateness,
    drops: Drops,
}

#[derive(Deserialize)]
struct Lateness {
    classes: Vec<(u64, u64)>,
}

#[derive(Deserialize)]
struct Drops {
    store_full: u64,
}

impl Link {
    fn direction(&self, way: usize) -> &Direction {
        [&self.forward, &self.backward][way]
    }

    /// Packets of a direction for which there was no room: before the link, in it, or in the queue to who receives them.
    fn overruns(&self, way: usize) -> u64 {
        let (entry, exit) = (&self.ports[way], &self.ports[1 - way]);
        // The interface counts what did not fit the ring among what it dropped on receipt.
        let came = entry.ring_overruns.max(entry.veth_drops.receive) + entry.veth_drops.ring_full;
        came + self.direction(way).drops.store_full + exit.veth_drops.transmit
    }
}

/// By how much each class of a histogram grew, without those that did not: its upper end and the count, ascending.
fn grown(before: &[(u64, u64)], after: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let past: HashMap<u64, u64> = before.iter().copied().collect();
    let more = after.iter().map(|(upper, count)| (*upper, count.saturating_sub(past.get(upper).copied().unwrap_or(0))));
    more.filter(|(_, count)| *count > 0).collect()
}

/// How many values there are, and how many of them lie beyond a bound. The class that holds the bound counts as beyond
/// it, as in a percentile that is its class's upper end: what is late is never missed, and what is taken for late is at
/// most 1/16 less.
fn beyond(classes: &[(u64, u64)], bound: u64) -> (u64, u64) {
    let all = classes.iter().map(|(_, count)| count).sum();
    (all, classes.iter().filter(|(upper, _)| *upper > bound).map(|(_, count)| count).sum())
}

/// Of all CPUs since the machine began, and its clocks.
struct Machine {
    cpu_ns: u64,
    /// Of it, what a hypervisor gave to others.
    stolen_ns: u64,
    realtime: Offset,
    clocksource: String,
}

impl Machine {
    fn read() -> Result<Self, String> {
        let text = std::fs::read_to_string("/proc/stat").map_err(|error| format!("/proc/stat: {error}"))?;
        let (all, stolen) =
            ticks(&text).ok_or_else(|| "/proc/stat: it does not begin with the CPUs' time".to_owned())?;
        let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().filter(|ticks| *ticks > 0).unwrap_or(100) as u64;
        Ok(Machine {
            cpu_ns: all * (NS_PER_SECOND / per_second),
            stolen_ns: stolen * (NS_PER_SECOND / per_second),
            realtime: Offset::read(),
            clocksource: std::fs::read_to_string(CLOCKSOURCE).unwrap_or_default().trim().to_owned(),
        })
    }
}

/// Ticks of all CPUs together, and those that were stolen: the first line of proc_stat(5). Guests' time is in that of users.
fn ticks(text: &str) -> Option<(u64, u64)> {
    let counts: Option<Vec<u64>> =
        text.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(8).map(|word| word.parse().ok()).collect();
    let counts = counts.filter(|counts| counts.len() == 8)?;
    Some((counts.iter().sum(), counts[7]))
}

/// CLOCK_REALTIME minus CLOCK_MONOTONIC. NTP turns both alike, so that nothing but a step changes it.
pub struct Offset {
    pub ns: i64,
    /// What reading it took, so how far it may be off.
    width_ns: i64,
}

impl Offset {
    pub fn read() -> Self {
        let reading = || {
            let before = gettime(libc::CLOCK_MONOTONIC) as i64;
            let real = gettime(libc::CLOCK_REALTIME) as i64;
            let width_ns = gettime(libc::CLOCK_MONOTONIC) as i64 - before;
            Offset { ns: real - before - width_ns / 2, width_ns }
        };
        let mut best = reading();
        for _ in 1..READINGS {
            let next = reading();
            if next.width_ns < best.width_ns {
                best = next;
            }
        }
        best
    }

    /// 0 where the difference is not beyond what the readings took.
    fn stepped_since(&self, before: &Offset) -> i64 {
        let step = self.ns - before.ns;
        if step.abs() > self.width_ns + before.width_ns {
            step
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_class_that_holds_the_bound_is_late() {
        let before = [(479_231, 7), (507_903, 1)];
        let after = [(1_023, 90), (479_231, 7), (507_903, 3), (3_276_799, 1)];
        let more = grown(&before, &after);
        assert_eq!(more, [(1_023, 90), (507_903, 2), (3_276_799, 1)]);
        assert_eq!(beyond(&more, 500_000), (93, 3));
        assert_eq!(beyond(&more, 507_903), (93, 1), "the class ends with the bound");
        assert_eq!(beyond(&[], 500_000), (0, 0));
    }

    #[test]
    fn what_found_no_room_is_counted_by_direction_and_once() {
        let port = |ring: u64, full: u64, receive: u64, transmit: u64| {
            json!({"ring_overruns": ring, "refused": 99, "veth_drops": {"ring_full": full, "receive": receive,
                   "transmit": transmit}})
        };
        let way = |store: u64| json!({"lateness_ns": {"classes": []}, "drops": {"store_full": store, "loss": 9}});
        let told = json!({"ended": null, "ports": [port(5, 10, 7, 100), port(0, 20, 0, 1_000)],
                          "forward": way(10_000), "backward": way(0)});
        let link: Link = serde_json::from_value(told).expect("a link's statistics");
        assert_eq!(link.overruns(0), 7 + 10 + 1_000 + 10_000, "what the ring had no room for is in what was dropped");
        assert_eq!(link.overruns(1), 20 + 100);
    }

    #[test]
    fn stolen_time_is_the_eighth_number() {
        let text = "cpu  10 20 30 40 50 60 70 80 5 5\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        assert_eq!(ticks(text), Some((360, 80)));
        assert_eq!(ticks("cpu  1 2 3\n"), None);
        assert_eq!(ticks("intr 1\n"), None);
    }

    #[test]
    fn a_step_is_what_lies_beyond_the_readings() {
        let at = |ns, width_ns| Offset { ns, width_ns };
        assert_eq!(at(2_000_100, 50).stepped_since(&at(100, 60)), 2_000_000);
        assert_eq!(at(100, 60).stepped_since(&at(2_000_100, 50)), -2_000_000);
        assert_eq!(at(200, 60).stepped_since(&at(100, 50)), 0);
    }

    #[test]
    fn a_clock_that_nobody_sets_does_not_step() {
        let before = Offset::read();
        assert_eq!(Offset::read().stepped_since(&before), 0);
        assert!(before.ns > 0, "the epoch is long past");
    }

    #[test]
    fn an_interval_of_nothing_is_refused() {
        let wanted = |every_ns| DisturbanceSettings { every_ns, late_ns: 1 };
        assert!(wanted(0).refusal().is_some_and(|why| why.contains("every_ns 0")));
        assert!(wanted(1).refusal().is_none());
    }
}
