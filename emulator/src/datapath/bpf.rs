//! The XDP program of an AF_XDP port: stamps each frame's arrival (CLOCK_MONOTONIC) into eight bytes before it, and
//! redirects it to the port's socket. Assembled here and loaded with the bpf system call, so that neither a compiler
//! nor a library is needed where the binary runs. In: an interface and a socket; out: an attachment that ends with
//! the descriptors it holds.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::sys;

/// Bytes of the stamp before each frame.
pub const STAMP_BYTES: usize = 8;

// linux/bpf.h
const BPF_MAP_CREATE: i32 = 0;
const BPF_MAP_UPDATE_ELEM: i32 = 2;
const BPF_PROG_LOAD: i32 = 5;
const BPF_LINK_CREATE: i32 = 28;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
const BPF_PSEUDO_MAP_FD: u8 = 1;
const KTIME_GET_NS: i32 = 5;
const REDIRECT_MAP: i32 = 51;
const XDP_ADJUST_META: i32 = 54;
const XDP_DROP: i32 = 1;

/// struct bpf_insn
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u8,
    /// Destination in the low half, source in the high one.
    registers: u8,
    offset: i16,
    immediate: i32,
}

const fn op(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { code, registers: destination | source << 4, offset, immediate }
}

const fn move_register(to: u8, from: u8) -> Instruction {
    op(0xbf, to, from, 0, 0)
}

const fn move_value(to: u8, value: i32) -> Instruction {
    op(0xb7, to, 0, 0, value)
}

const fn load_word(to: u8, base: u8, offset: i16) -> Instruction {
    op(0x61, to, base, offset, 0)
}

const fn call(helper: i32) -> Instruction {
    op(0x85, 0, 0, 0, helper)
}

const EXIT: Instruction = op(0x95, 0, 0, 0, 0);

/// A frame that cannot be stamped (no room before it; veth always has some) or has no socket is dropped, and veth
/// counts it: unstamped it would be delayed wrongly without anybody knowing.
fn program(map: i32) -> [Instruction; 19] {
    [
        move_register(6, 1),
        // if (bpf_xdp_adjust_meta(ctx, -8)) drop
        move_value(2, -(STAMP_BYTES as i32)),
        call(XDP_ADJUST_META),
        op(0x55, 0, 0, 13, 0),
        // *(u64 *)ctx->data_meta = bpf_ktime_get_ns(), with the check that the verifier wants
        call(KTIME_GET_NS),
        load_word(1, 6, 8),
        load_word(2, 6, 0),
        move_register(3, 1),
        op(0x07, 3, 0, 0, STAMP_BYTES as i32),
        op(0x2d, 3, 2, 7, 0),
        op(0x7b, 1, 0, 0, 0),
        // return bpf_redirect_map(map, ctx->rx_queue_index, XDP_DROP)
        op(0x18, 1, BPF_PSEUDO_MAP_FD, 0, map),
        op(0, 0, 0, 0, 0),
        load_word(2, 6, 16),
        move_value(3, XDP_DROP),
        call(REDIRECT_MAP),
        EXIT,
        // drop:
        move_value(0, XDP_DROP),
        EXIT,
    ]
}

/// Holds map, program and attachment; the kernel takes all of it away when the last descriptor closes.
pub struct Attachment {
    _descriptors: [OwnedFd; 3],
}

/// Loads the program and attaches it, in the driver (native) mode only, to `interface`: the other mode copies each
/// frame once more and is slower than AF_PACKET.
pub fn attach(interface: u32, socket: &OwnedFd) -> Result<Attachment, String> {
    let map = create_map()?;
    let program = load(&map)?;
    put_socket(&map, socket)?;

    #[repr(C)]
    struct LinkCreate {
        program: i32,
        interface: u32,
        attach_type: u32,
        flags: u32,
    }
    let request =
        LinkCreate { program: program.as_raw_fd(), interface, attach_type: BPF_XDP, flags: XDP_FLAGS_DRV_MODE };
    let link = descriptor(bpf(BPF_LINK_CREATE, &request, "attaching the XDP program")?);
    Ok(Attachment { _descriptors: [map, program, link] })
}

fn create_map() -> Result<OwnedFd, String> {
    #[repr(C)]
    struct MapCreate {
        kind: u32,
        key_bytes: u32,
        value_bytes: u32,
        entries: u32,
        flags: u32,
    }
    let request = MapCreate { kind: BPF_MAP_TYPE_XSKMAP, key_bytes: 4, value_bytes: 4, entries: 1, flags: 0 };
    Ok(descriptor(bpf(BPF_MAP_CREATE, &request, "creating an XSKMAP")?))
}

fn put_socket(map: &OwnedFd, socket: &OwnedFd) -> Result<(), String> {
    #[repr(C)]
    struct Update {
        map: u32,
        _padding: u32,
        key: u64,
        value: u64,
        flags: u64,
    }
    let (key, value) = (0u32, socket.as_raw_fd());
    let request = Update {
        map: map.as_raw_fd() as u32,
        _padding: 0,
        key: std::ptr::from_ref(&key) as u64,
        value: std::ptr::from_ref(&value) as u64,
        flags: 0,
    };
    bpf(BPF_MAP_UPDATE_ELEM, &request, "putting the socket into the XSKMAP").map(drop)
}

fn load(map: &OwnedFd) -> Result<OwnedFd, String> {
    #[repr(C)]
    struct ProgramLoad {
        kind: u32,
        instructions: u32,
        code: u64,
        license: u64,
        log_level: u32,
        log_bytes: u32,
        log: u64,
        kernel_version: u32,
        flags: u32,
        name: [u8; 16],
        interface: u32,
        attach_type: u32,
    }
    let code = program(map.as_raw_fd());
    let mut name = [0; 16];
    name[..9].copy_from_slice(b"ewan_port");
    let request = ProgramLoad {
        kind: BPF_PROG_TYPE_XDP,
        instructions: code.len() as u32,
        code: code.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
        log_level: 0,
        log_bytes: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name,
        interface: 0,
        attach_type: BPF_XDP,
    };
    Ok(descriptor(bpf(BPF_PROG_LOAD, &request, "loading the XDP program")?))
}

fn bpf<T>(command: i32, request: &T, attempt: &str) -> Result<i32, String> {
    // SAFETY: each request is the head of the kernel's union for its command (all that it sets); what its addresses
    // name outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(request), size_of::<T>()) };
    sys::check(result as i32, attempt)
}

fn descriptor(fd: i32) -> OwnedFd {
    // SAFETY: the kernel just gave us this descriptor; nobody else holds it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verifier_accepts_the_program() {
        let map = create_map().expect("as root, on a kernel with AF_XDP");
        load(&map).unwrap();
    }
}
