//! What the processor, the kernel and the hypervisor say of themselves. In: nothing, or a CPU's number. Out: plain values.

/// The twelve letters of CPUID leaf 0x4000_0000, which exists where the bit of leaf 1 that no real processor sets is set.
#[cfg(target_arch = "x86_64")]
pub fn hypervisor() -> Option<String> {
    use core::arch::x86_64::__cpuid;
    const THERE: u32 = 1 << 31;
    if __cpuid(1).ecx & THERE == 0 {
        return None;
    }
    let leaf = __cpuid(0x4000_0000);
    let letters: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].into_iter().flat_map(u32::to_le_bytes).collect();
    let name: String = letters.iter().filter(|byte| byte.is_ascii_graphic()).map(|byte| char::from(*byte)).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(not(target_arch = "x86_64"))]
pub fn hypervisor() -> Option<String> {
    None
}

pub fn own_nice() -> i32 {
    // SAFETY: no memory is passed. −1 is also a nice value; the call does not fail for the calling thread.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// What the hypervisor gave to others of a CPU's time since it started: /proc/stat, in ticks; proc_stat(5).
pub fn steal_ns(cpu: u32) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok()??;
    steal_ticks(&text, cpu).map(|ticks| ticks * 1_000_000_000 / per_second.max(1) as u64)
}

fn steal_ticks(stat: &str, cpu: u32) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let line = stat.lines().find(|line| line.split(' ').next() == Some(&name))?;
    line.split_whitespace().nth(8)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_ticks_are_those_of_one_cpu() {
        let stat =
            "cpu  1 2 3 4 5 6 7 99 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 91 9 10\ncpu10 1 2 3\nintr 5\n";
        assert_eq!((steal_ticks(stat, 0), steal_ticks(stat, 1)), (Some(8), Some(91)));
        assert_eq!((steal_ticks(stat, 10), steal_ticks(stat, 2)), (None, None));
    }
}
