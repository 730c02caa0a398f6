//! The spinner's share of its CPU. An engine puts each container into a group of its own, and groups share a CPU evenly:
//! within one, the best priority counts against nobody outside. With two programs of the host on the spinner's CPU, the
//! spinner would have a third of it.
//!
//! In: a process. Out: that process in the machine's root group of the CPU controller, where its priority counts as it
//! does for a lab of namespaces (cgroups of version 1); or its container's group with the greatest weight there is
//! (version 2, which shows a container no group but its own). All of it as far as the container may.

use std::ffi::CString;

use ewan_lab::kernel_files::{mounted_nowhere, write_below};

const WEIGHT: &str = "/sys/fs/cgroup/cpu.weight";
const GREATEST: &str = "10000";

pub fn raise(process: u32) {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let Some(controllers) = with_cpu(&groups) else {
        let _ = std::fs::write(WEIGHT, GREATEST);
        return;
    };
    let controllers: Vec<_> = controllers.iter().filter_map(|name| CString::new(*name).ok()).collect();
    let names: Vec<_> = controllers.iter().map(CString::as_c_str).collect();
    let _ = mounted_nowhere(c"cgroup", &names)
        .and_then(|groups| write_below(&groups, "cgroup.procs", &process.to_string()));
}

/// The controllers that are together with that of the CPU, if there is a hierarchy of version 1 with it.
fn with_cpu(groups: &str) -> Option<Vec<&str>> {
    let mut lists = groups.lines().filter_map(|line| line.split(':').nth(1)).map(|list| list.split(',').collect());
    lists.find(|controllers: &Vec<&str>| controllers.contains(&"cpu"))
}

#[cfg(test)]
mod tests {
    use super::with_cpu;

    #[test]
    fn the_cpus_hierarchy_is_found_with_all_of_its_controllers() {
        let first = "4:memory:/docker/x\n3:cpuset:/\n2:cpu,cpuacct:/docker/x\n1:name=systemd:/docker/x\n0::/\n";
        assert_eq!(with_cpu(first), Some(vec!["cpu", "cpuacct"]));
        assert_eq!(with_cpu("0::/docker/x\n"), None);
    }
}
