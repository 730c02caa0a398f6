//! A filter of system calls, which stays for good: no sockets, no mounts and namespaces, no look at other processes, no
//! links and devices, no new privileges.
//!
//! In: whether Landlock is the only other wall. Out: what is refused ends in EPERM, what a newer kernel may know in ENOSYS. A virtual kernel makes some
//! fifty calls; the filter names what is refused all the same, since a kernel of another version makes others. The calls
//! of its programs do not come here: it takes them before (ptrace).

use ewan_system::{Context, Error, Result};
use libc::{sock_filter, sock_fprog, BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W};

const X86_64: u32 = 0xC000_003E;
/// Numbers of x32 begin here.
const X32: u32 = 0x4000_0000;
/// After the last call of Linux 6.18 (file_setattr).
const UNKNOWN: u32 = 470;
// Fields of struct seccomp_data.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
const REFUSED: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
const NOT_THERE: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

/// What a virtual kernel calls all the time comes first.
const OFTEN: [i64; 8] = [
    libc::SYS_ptrace,
    libc::SYS_wait4,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_access,
    libc::SYS_statx,
];

/// Others' structures, which a filter cannot look into, hold the flags of these: programs take the older call.
const OPAQUE: [i64; 8] = [
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    SYS_OPEN_TREE_ATTR,
    // Attributes of files, by newer calls than those that are refused.
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
    // Memory that no limit counts.
    libc::SYS_memfd_create,
];
const SYS_SETXATTRAT: i64 = 463;
const SYS_REMOVEXATTRAT: i64 = 466;
const SYS_OPEN_TREE_ATTR: i64 = 467;
const SYS_FILE_SETATTR: i64 = 469;

const NEVER: &[i64] = &[
    // The network, also by sockets in the file system.
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Links, by which something outside is reached from the run's directory.
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    libc::SYS_link,
    libc::SYS_linkat,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    // Other processes.
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_setpriority,
    libc::SYS_ioprio_set,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setattr,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_memfd_secret,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_vmsplice,
];

/// What Landlock has no rights for, of files that are shown and of the user's other processes: mode, owner, times and
/// CPUs. In namespaces such files are read-only, and such processes have no number.
const BEYOND_LANDLOCK: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_utimensat,
    libc::SYS_futimesat,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_sched_setaffinity,
];
/// Before version 3 of Landlock (Linux 6.2).
const BEYOND_OLD_LANDLOCK: &[i64] = &[libc::SYS_truncate];

const SET_IDS: u32 = 0o6000;
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;
const SYS_FCHMODAT2: i64 = 452;
/// A call, an argument of it by its number, and bits none of which may be set in it.
const WITHOUT: [(i64, u32, u32); 11] = [
    (libc::SYS_clone, 0, NAMESPACES),
    (libc::SYS_chmod, 1, SET_IDS),
    (libc::SYS_fchmod, 1, SET_IDS),
    (libc::SYS_fchmodat, 2, SET_IDS),
    (SYS_FCHMODAT2, 2, SET_IDS),
    (libc::SYS_creat, 1, SET_IDS),
    (libc::SYS_mkdir, 1, SET_IDS),
    (libc::SYS_mkdirat, 2, SET_IDS),
    // Everything but plain files: S_IFREG is 0o100000.
    (libc::SYS_mknod, 1, SET_IDS | 0o070000),
    (libc::SYS_mknodat, 2, SET_IDS | 0o070000),
    // The limits of another process: a number that is not 0.
    (libc::SYS_prlimit64, 0, u32::MAX),
];
/// A call that opens: its flags' and its mode's argument. The mode means something only where a file is made.
const OPENS: [(i64, u32, u32); 2] = [(libc::SYS_open, 1, 2), (libc::SYS_openat, 2, 3)];
/// What a terminal reads, typed by a program; flags of files, which their owner may set through a descriptor that reads.
const IOCTLS: [u32; 4] = [0x5412, 0x541C, 0x4008_6602, 0x401C_5820]; // TIOCSTI, TIOCLINUX, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR
/// The bits of a socket's type that are not set for streams alone: 1 is a stream. Others send to an address that they name.
const NO_STREAM: u32 = 6;

fn step(code: u32, k: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter { code: code as u16, jt: yes, jf: no, k }
}

fn load(offset: u32) -> sock_filter {
    step(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0)
}

/// The low half of an argument.
fn argument(number: u32) -> sock_filter {
    load(16 + 8 * number)
}

fn answer(what: u32) -> sock_filter {
    step(BPF_RET | BPF_K, what, 0, 0)
}

fn equal(value: u32, yes: u8, no: u8) -> sock_filter {
    step(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
}

fn any_of(bits: u32, yes: u8, no: u8) -> sock_filter {
    step(BPF_JMP | BPF_JSET | BPF_K, bits, yes, no)
}

fn filter(beyond: &[&[i64]]) -> Vec<sock_filter> {
    let mut steps = vec![load(ARCHITECTURE), equal(X86_64, 1, 0), answer(libc::SECCOMP_RET_KILL_PROCESS), load(NUMBER)];
    let mut of = |call: i64, then: &[sock_filter]| {
        steps.push(equal(call as u32, 0, then.len() as u8));
        steps.extend_from_slice(then);
    };
    OFTEN.iter().for_each(|call| of(*call, &[answer(ALLOWED)]));
    // Before what says when they are allowed.
    beyond.iter().copied().flatten().for_each(|call| of(*call, &[answer(REFUSED)]));
    for (call, flags, mode) in OPENS {
        let makes = (libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;
        of(
            call,
            &[
                argument(flags),
                any_of(libc::O_TRUNC as u32, 0, 2),
                any_of(libc::O_ACCMODE as u32, 1, 0),
                answer(REFUSED),
                any_of(makes, 0, 2),
                argument(mode),
                any_of(SET_IDS, 1, 0),
                answer(ALLOWED),
                answer(REFUSED),
            ],
        );
    }
    for (call, number, bits) in WITHOUT {
        of(call, &[argument(number), any_of(bits, 1, 0), answer(ALLOWED), answer(REFUSED)]);
    }
    let mut ioctl = vec![argument(1)];
    for (place, number) in IOCTLS.iter().enumerate() {
        ioctl.push(equal(*number, (IOCTLS.len() - place) as u8, 0));
    }
    ioctl.extend([answer(ALLOWED), answer(REFUSED)]);
    of(libc::SYS_ioctl, &ioctl);
    // A pair is connected to itself alone.
    of(
        libc::SYS_socketpair,
        &[
            argument(0),
            equal(libc::AF_UNIX as u32, 0, 2),
            argument(1),
            any_of(NO_STREAM, 0, 1),
            answer(REFUSED),
            answer(ALLOWED),
        ],
    );
    OPAQUE.iter().for_each(|call| of(*call, &[answer(NOT_THERE)]));
    NEVER.iter().for_each(|call| of(*call, &[answer(REFUSED)]));
    // X32 is above all of these, too.
    const { assert!(X32 > UNKNOWN) };
    steps.extend([step(BPF_JMP | BPF_JGE | BPF_K, UNKNOWN, 0, 1), answer(NOT_THERE), answer(ALLOWED)]);
    steps
}

/// Restricts this thread, for good. A filter that is not there is an error: without it there is no wall. `landlock`: its
/// version, where it is the only other wall.
pub fn restrict(landlock: Option<usize>) -> Result<()> {
    nix::sys::prctl::set_no_new_privs().attempting(|| "giving up new privileges")?;
    let beyond: &[&[i64]] = match landlock {
        None => &[],
        Some(..3) => &[BEYOND_LANDLOCK, BEYOND_OLD_LANDLOCK],
        Some(_) => &[BEYOND_LANDLOCK],
    };
    let mut steps = filter(beyond);
    let program = sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // The guest keeps the processor's predictions: its own secrets are all that it could read by them.
    let flags = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    // SAFETY: the program and its steps live until the call has copied them.
    match unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) } {
        0 => Ok(()),
        _ => Err(Error::last("setting the filter of system calls")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter answers; it has these steps alone.
    fn run(beyond: &[&[i64]], number: i64, arguments: [u64; 6]) -> u32 {
        let mut data = [0u32; 16];
        (data[0], data[1]) = (number as u32, X86_64);
        for (place, value) in arguments.iter().enumerate() {
            (data[4 + 2 * place], data[5 + 2 * place]) = (*value as u32, (*value >> 32) as u32);
        }
        let (steps, mut at, mut value) = (filter(beyond), 0, 0);
        loop {
            let now = &steps[at];
            let jump = |taken: bool| usize::from(if taken { now.jt } else { now.jf });
            at += 1 + match u32::from(now.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    value = data[now.k as usize / 4];
                    0
                }
                code if code == BPF_JMP | BPF_JEQ | BPF_K => jump(value == now.k),
                code if code == BPF_JMP | BPF_JGE | BPF_K => jump(value >= now.k),
                code if code == BPF_JMP | BPF_JSET | BPF_K => jump(value & now.k != 0),
                _ => return now.k,
            };
        }
    }

    fn refused(number: i64, arguments: &[u64]) -> bool {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        run(&[], number, all) != ALLOWED
    }

    #[test]
    fn what_reaches_out_is_refused_and_what_a_kernel_needs_is_not() {
        let (read_write, make) = (libc::O_RDWR as u64, (libc::O_RDWR | libc::O_CREAT) as u64);
        for (number, arguments) in [
            (libc::SYS_socket, vec![libc::AF_UNIX as u64]),
            (libc::SYS_socketpair, vec![libc::AF_INET as u64, libc::SOCK_STREAM as u64]),
            (libc::SYS_socketpair, vec![libc::AF_UNIX as u64, (libc::SOCK_DGRAM | libc::SOCK_CLOEXEC) as u64]),
            (libc::SYS_socketpair, vec![libc::AF_UNIX as u64, libc::SOCK_SEQPACKET as u64]),
            (libc::SYS_connect, vec![]),
            (libc::SYS_openat, vec![0, 0, libc::O_TRUNC as u64, 0]),
            (libc::SYS_ioctl, vec![0, 0x4008_6602]),
            (libc::SYS_clone, vec![libc::CLONE_NEWUSER as u64]),
            (libc::SYS_clone3, vec![]),
            (libc::SYS_openat, vec![0, 0, make, 0o4755]),
            (libc::SYS_openat, vec![0, 0, (libc::O_TMPFILE | libc::O_RDWR) as u64, 0o4755]),
            (libc::SYS_chmod, vec![0, 0o2755]),
            (libc::SYS_mknod, vec![0, u64::from(libc::S_IFIFO)]),
            (libc::SYS_mknod, vec![0, u64::from(libc::S_IFCHR)]),
            (libc::SYS_ioctl, vec![0, 0x5412]),
            (libc::SYS_prlimit64, vec![1]),
            (i64::from(UNKNOWN), vec![]),
            (i64::from(X32) + libc::SYS_read, vec![]),
        ] {
            assert!(refused(number, &arguments), "{number} {arguments:?}");
        }
        for (number, arguments) in [
            (libc::SYS_ptrace, vec![]),
            (libc::SYS_clone, vec![(libc::CLONE_FILES | libc::SIGCHLD) as u64]),
            (libc::SYS_openat, vec![0, 0, make, 0o644]),
            // Without a file that is made the mode is whatever stood there.
            (libc::SYS_openat, vec![0, 0, read_write | libc::O_DIRECTORY as u64, 0o7777]),
            (libc::SYS_mknod, vec![0, u64::from(libc::S_IFREG) | 0o644]),
            (libc::SYS_chmod, vec![0, 0o755]),
            (libc::SYS_socketpair, vec![libc::AF_UNIX as u64, (libc::SOCK_STREAM | libc::SOCK_CLOEXEC) as u64]),
            (libc::SYS_openat, vec![0, 0, make | libc::O_TRUNC as u64, 0o644]),
            (libc::SYS_prlimit64, vec![0]),
            (libc::SYS_ioctl, vec![0, 0x5401]),
        ] {
            assert!(!refused(number, &arguments), "{number} {arguments:?}");
        }
    }

    #[test]
    fn what_landlock_has_no_rights_for_is_refused_where_it_is_the_only_other_wall() {
        for call in BEYOND_LANDLOCK {
            assert_eq!(run(&[BEYOND_LANDLOCK], *call, [0; 6]), REFUSED, "{call}");
        }
        assert_eq!(run(&[BEYOND_LANDLOCK], libc::SYS_truncate, [0; 6]), ALLOWED);
        assert_eq!(run(&[], libc::SYS_chmod, [0; 6]), ALLOWED);
    }
}
