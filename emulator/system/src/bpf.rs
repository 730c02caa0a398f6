//! BPF programs that a queueing discipline's filter runs on each packet (bpf(2), linux/bpf.h): a few instructions, written
//! by whoever needs them, without a compiler.

use std::os::fd::OwnedFd;

use zerocopy::{Immutable, IntoBytes};

use crate::process::owned;
use crate::{Context, Result};

/// One instruction: struct bpf_insn.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoBytes, Immutable)]
pub struct Instruction {
    code: u8,
    /// The destination in the lower half, the source in the upper one.
    registers: u8,
    offset: i16,
    value: i32,
}

/// A function of the kernel's (enum bpf_func_id).
#[derive(Clone, Copy)]
pub enum Helper {
    PushVlan = 18,
    PopVlan = 19,
    Redirect = 23,
}

impl Instruction {
    const fn of(code: u8, to: u8, from: u8, offset: i16, value: i32) -> Self {
        #[cfg(target_endian = "little")]
        let registers = from << 4 | to;
        #[cfg(target_endian = "big")]
        let registers = to << 4 | from;
        Instruction { code, registers, offset, value }
    }

    /// `to` = `value`
    #[must_use]
    pub const fn set(to: u8, value: i32) -> Self {
        Self::of(0xb7, to, 0, 0, value)
    }

    /// `to` = `from`
    #[must_use]
    pub const fn copy(to: u8, from: u8) -> Self {
        Self::of(0xbf, to, from, 0, 0)
    }

    /// `to` = the 32 bits at `from` + `offset`
    #[must_use]
    pub const fn load(to: u8, from: u8, offset: i16) -> Self {
        Self::of(0x61, to, from, offset, 0)
    }

    /// `to` = `to` & `mask`
    #[must_use]
    pub const fn and(to: u8, mask: i32) -> Self {
        Self::of(0x57, to, 0, 0, mask)
    }

    /// Leaves out the next `skip` instructions if `register` is `value`.
    #[must_use]
    pub const fn skip_if(register: u8, value: i32, skip: i16) -> Self {
        Self::of(0x15, register, 0, skip, value)
    }

    /// Leaves out the next `skip` instructions unless `register` is `value`.
    #[must_use]
    pub const fn skip_unless(register: u8, value: i32, skip: i16) -> Self {
        Self::of(0x55, register, 0, skip, value)
    }

    /// Register 0 = the function's result; its arguments are registers 1 to 5, which it may change.
    #[must_use]
    pub const fn call(helper: Helper) -> Self {
        Self::of(0x85, 0, 0, 0, helper as i32)
    }

    /// Ends with register 0 as the verdict.
    #[must_use]
    pub const fn end() -> Self {
        Self::of(0x95, 0, 0, 0, 0)
    }
}

/// The part of union bpf_attr that loads a program.
#[repr(C)]
#[derive(IntoBytes, Immutable)]
struct Load {
    kind: u32,
    count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel: u32,
    flags: u32,
}

/// Hands a classifier to the kernel, which checks it. Errors: no right to (CAP_BPF), or a kernel without BPF.
pub fn classifier(instructions: &[Instruction]) -> Result<OwnedFd> {
    const BPF_PROG_LOAD: libc::c_long = 5;
    const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
    let load = Load {
        kind: BPF_PROG_TYPE_SCHED_CLS,
        count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        licence: c"Apache-2.0".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel: 0,
        flags: 0,
    };
    let bytes = load.as_bytes();
    // SAFETY: the kernel reads `bytes`, and the instructions and the text that it points to, all of which outlive the
    // call; what it gives is a descriptor that nobody else owns, or -1.
    let answer = unsafe { owned(libc::syscall(libc::SYS_bpf, BPF_PROG_LOAD, bytes.as_ptr(), bytes.len())) };
    answer.attempting(|| "loading a program for packets (CONFIG_BPF_SYSCALL, CAP_BPF)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_as_the_kernel_reads_them() {
        let bytes = |each: Instruction| each.as_bytes().to_vec();
        if cfg!(target_endian = "little") {
            assert_eq!(bytes(Instruction::copy(6, 1)), [0xbf, 0x16, 0, 0, 0, 0, 0, 0]);
            assert_eq!(bytes(Instruction::load(0, 6, 24)), [0x61, 0x60, 24, 0, 0, 0, 0, 0]);
            assert_eq!(bytes(Instruction::skip_unless(0, 4094, 6)), [0x55, 0, 6, 0, 0xfe, 0x0f, 0, 0]);
            assert_eq!(bytes(Instruction::set(0, -1)), [0xb7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
            assert_eq!(bytes(Instruction::call(Helper::Redirect)), [0x85, 0, 0, 0, 23, 0, 0, 0]);
        }
        assert_eq!(size_of::<Load>(), 48);
    }
}
