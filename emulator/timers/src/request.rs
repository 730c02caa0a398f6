//! What is asked for: how long measuring may take, and on which CPUs.

use std::time::Duration;

use nix::sched::{sched_getaffinity, CpuSet};
use nix::unistd::Pid;

/// `link_cpu`: where links spin; `host_cpus`: where hosts and programs run, which are busy in the second half.
pub struct Request {
    pub duration: Duration,
    pub link_cpu: u32,
    pub host_cpus: Vec<u32>,
}

impl Request {
    /// On CPUs that this process may use; where none is named as the compiler of labs has them (labs/compile/placement.py):
    /// links spin on the last one, hosts have the rest.
    pub fn new(duration: Duration, link_cpu: Option<u32>, host_cpus: Vec<u32>) -> Result<Request, String> {
        let usable = usable_cpus()?;
        let last = *usable.last().ok_or("this process may use no CPU")?;
        let link_cpu = link_cpu.unwrap_or(last);
        let host_cpus = if host_cpus.is_empty() {
            let others: Vec<u32> = usable.iter().copied().filter(|cpu| *cpu != link_cpu).collect();
            if others.is_empty() {
                vec![link_cpu]
            } else {
                others
            }
        } else {
            host_cpus
        };
        if let Some(cpu) = host_cpus.iter().chain([&link_cpu]).find(|cpu| !usable.contains(cpu)) {
            return Err(format!("CPU {cpu}: this process may use {usable:?}"));
        }
        Ok(Request { duration, link_cpu, host_cpus })
    }
}

fn usable_cpus() -> Result<Vec<u32>, String> {
    let usable = sched_getaffinity(Pid::from_raw(0)).map_err(|error| format!("CPUs of this process: {error}"))?;
    Ok((0..CpuSet::count()).filter(|cpu| usable.is_set(*cpu) == Ok(true)).map(|cpu| cpu as u32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_spin_on_the_last_cpu_and_hosts_have_the_rest() {
        let usable = usable_cpus().expect("CPUs");
        let request = Request::new(Duration::ZERO, None, Vec::new()).expect("a request");
        assert_eq!(Some(&request.link_cpu), usable.last());
        assert!(!request.host_cpus.is_empty());
        assert_eq!(request.host_cpus.contains(&request.link_cpu), usable.len() == 1);
        assert!(Request::new(Duration::ZERO, Some(100_000), Vec::new()).is_err());
    }
}
