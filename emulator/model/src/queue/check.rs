//! Which queues there can be.

use alloc::format;
use alloc::string::String;

use super::pie::LEAST_UPDATE_NS;
use super::red::MOST_WEIGHT_LOG2;
use crate::check::{probability, require, time, CheckResult, LONGEST_NS, MOST_BYTES, MOST_PACKETS};
use crate::config::{self, Queue};
use crate::counters::MOST_CLASSES;
use crate::Nanos;

/// Of CoDel's interval, which a description leaves to the compiler: ten packets of 10 s each.
const LONGEST_INTERVAL_NS: Nanos = 10 * LONGEST_NS;
/// PIE's gains: 1000 Hz.
const MOST_GAIN_MHZ: u64 = 1_000_000;
/// A packet's flow is told by 16 bits.
const MOST_FLOWS: u32 = 1 << 16;
/// A large packet waits for so many turns at most: 141.
const LEAST_QUANTUM_BYTES: u32 = 64;
const MOST_QUANTUM_BYTES: u32 = 1 << 20;
const MOST_WEIGHT: u32 = 1_000;
const LONGEST_NAME: usize = 32;

impl Queue {
    /// Is there a limit, within what a store holds, and a discipline that works?
    pub(crate) fn check(&self) -> CheckResult {
        let Queue { limit_packets, limit_bytes, discipline } = self;
        require(limit_packets.is_some() || limit_bytes.is_some(), || {
            "queue: give limit_packets or limit_bytes, or both".into()
        })?;
        for (key, limit, most) in
            [("limit_packets", limit_packets, MOST_PACKETS), ("limit_bytes", limit_bytes, MOST_BYTES)]
        {
            let limit = limit.unwrap_or(1);
            require((1..=most).contains(&limit), || format!("{key} {limit}: write 1 to {most}"))?;
        }
        discipline.check()
    }

    /// Can this queue filter ACKs, if it is to?
    pub(crate) fn check_ack_filter(&self, filter: bool) -> CheckResult {
        require(!filter || self.discipline.has_one_list(), || {
            "ack_filter: the queue has several lists: write false, or drop_tail, red, codel, pie or step".into()
        })
    }
}

impl config::Discipline {
    fn check(&self) -> CheckResult {
        match *self {
            config::Discipline::DropTail {} => Ok(()),
            config::Discipline::Step { threshold_bytes } => {
                require((1..=MOST_BYTES).contains(&threshold_bytes), || {
                    format!("threshold_bytes {threshold_bytes}: write 1 to {MOST_BYTES} (8 GiB)")
                })
            }
            config::Discipline::Red { min_bytes, max_bytes, max_p_ppb, weight_log2, ecn: _ } => {
                probability("max_p_ppb", max_p_ppb)?;
                require(min_bytes < max_bytes, || {
                    format!("min_bytes {min_bytes}: must be below max_bytes ({max_bytes})")
                })?;
                require(max_bytes <= MOST_BYTES, || {
                    format!("max_bytes {max_bytes}: write at most {MOST_BYTES} (8 GiB)")
                })?;
                require(weight_log2 <= MOST_WEIGHT_LOG2, || {
                    format!("weight_log2 {weight_log2}: write 0 to {MOST_WEIGHT_LOG2} (usual: 9)")
                })
            }
            config::Discipline::Codel { target_ns, interval_ns, ecn: _ } => codel(target_ns, interval_ns),
            config::Discipline::Pie { target_ns, update_ns, alpha_mhz, beta_mhz, ecn: _ } => {
                controller(target_ns, update_ns, alpha_mhz, beta_mhz)
            }
            config::Discipline::FqCodel { flows, quantum_bytes, target_ns, interval_ns, ecn: _ } => {
                turns(flows, quantum_bytes)?;
                codel(target_ns, interval_ns)
            }
            config::Discipline::Drr { flows, quantum_bytes } => turns(flows, quantum_bytes),
            config::Discipline::Sfq { flows, quantum_bytes, perturb_ns } => {
                turns(flows, quantum_bytes)?;
                require(perturb_ns == 0 || perturb_ns >= LEAST_UPDATE_NS, || {
                    format!("perturb_ns {perturb_ns}: write 0 for never, or {LEAST_UPDATE_NS} or more")
                })
            }
            config::Discipline::DualPi2 {
                target_ns,
                update_ns,
                alpha_mhz,
                beta_mhz,
                coupling,
                step_ns,
                classic_ppb,
            } => {
                controller(target_ns, update_ns, alpha_mhz, beta_mhz)?;
                require((1..=100).contains(&coupling), || format!("coupling {coupling}: write 1 to 100 (usual: 2)"))?;
                time("step_ns", step_ns, 1, LONGEST_NS)?;
                probability("classic_ppb", classic_ppb)
            }
            config::Discipline::Classes { scheduler: _, ref classes } => every_class(classes),
        }
    }
}

fn codel(target_ns: Nanos, interval_ns: Nanos) -> CheckResult {
    require(0 < target_ns && target_ns <= interval_ns, || {
        format!("target_ns {target_ns}: must be above 0 and not above interval_ns ({interval_ns})")
    })?;
    require(interval_ns <= LONGEST_INTERVAL_NS, || {
        format!("interval_ns {interval_ns}: write at most {LONGEST_INTERVAL_NS} (100 s)")
    })
}

/// Of PIE and of DualPI2.
fn controller(target_ns: Nanos, update_ns: Nanos, alpha_mhz: u64, beta_mhz: u64) -> CheckResult {
    time("target_ns", target_ns, 1, 2 * LONGEST_NS)?;
    time("update_ns", update_ns, LEAST_UPDATE_NS, LONGEST_NS)?;
    for (key, gain) in [("alpha_mhz", alpha_mhz), ("beta_mhz", beta_mhz)] {
        require(gain <= MOST_GAIN_MHZ, || format!("{key} {gain}: write at most {MOST_GAIN_MHZ} (1000 Hz)"))?;
    }
    Ok(())
}

fn turns(flows: u32, quantum_bytes: u32) -> CheckResult {
    require((1..=MOST_FLOWS).contains(&flows), || format!("flows {flows}: write 1 to {MOST_FLOWS}"))?;
    require((LEAST_QUANTUM_BYTES..=MOST_QUANTUM_BYTES).contains(&quantum_bytes), || {
        format!("quantum_bytes {quantum_bytes}: write {LEAST_QUANTUM_BYTES} to {MOST_QUANTUM_BYTES}")
    })
}

fn every_class(classes: &[config::Class]) -> CheckResult {
    require((1..=MOST_CLASSES).contains(&classes.len()), || {
        format!("classes: {} of them: write 1 to {MOST_CLASSES}", classes.len())
    })?;
    let mut owner = [None; 64];
    for config::Class { name, dscp, weight, limit_packets, limit_bytes } in classes {
        let begins: String = name.chars().take(LONGEST_NAME).collect();
        let told = |rest: String| format!("class {begins:?}: {rest}");
        require(!name.is_empty() && name.len() <= LONGEST_NAME, || told("a name has 1 to 32 bytes".into()))?;
        require((1..=MOST_WEIGHT).contains(weight), || told(format!("weight {weight}: write 1 to {MOST_WEIGHT}")))?;
        require(limit_packets.is_some() || limit_bytes.is_some(), || {
            told("give limit_packets or limit_bytes, or both".into())
        })?;
        for (key, limit, most) in
            [("limit_packets", limit_packets, MOST_PACKETS), ("limit_bytes", limit_bytes, MOST_BYTES)]
        {
            let limit = limit.unwrap_or(1);
            require((1..=most).contains(&limit), || told(format!("{key} {limit}: write 1 to {most}")))?;
        }
        for point in dscp {
            let place = owner.get_mut(usize::from(*point));
            require(place.is_some(), || told(format!("dscp {point}: write 0 to 63")))?;
            if let Some(place) = place {
                require(place.is_none(), || told(format!("dscp {point}: another class has it")))?;
                *place = Some(());
            }
        }
    }
    Ok(())
}
