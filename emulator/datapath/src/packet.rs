//! An AF_PACKET port. In: a TPACKET_V2 ring in shared memory, read without a system call, with the kernel's stamp
//! (CLOCK_REALTIME) on each frame. Out: one `sendmmsg` per burst, past the queueing discipline.
//!
//! Version 2, not 3: version 3 hands over blocks of frames, the last of them up to a timer late.

use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

use ewan_system::clock::Clock;
use ewan_system::packet::{
    FrameHead, RingRequest, Statistics, ETH_P_ALL, PACKET_IGNORE_OUTGOING, PACKET_QDISC_BYPASS, PACKET_RESERVE,
    PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION, TPACKET_V2, TP_STATUS_CSUMNOTREADY, TP_STATUS_USER,
    TP_STATUS_VLAN_TPID_VALID, TP_STATUS_VLAN_VALID,
};
use ewan_system::socket::{self, require_option, PacketAddress};
use ewan_system::{Context, Result};

use super::memory::Map;
use super::port::{ring_size, Facts, Port, SEND_BURST};
use super::stamps::FUTURE_NS;
use ewan_model::frame::{complete_checksum, put_tag_back, ADDRESSES, FRAME_BYTES_BEYOND_MTU, TAG};
use ewan_model::Nanos;

pub struct AfPacket {
    /// The ring's.
    receiver: Arc<OwnedFd>,
    sender: OwnedFd,
    ring: Map,
    frame_size: usize,
    frames: usize,
    next: usize,
    staging: Vec<u8>,
    stage_bytes: usize,
    lengths: Vec<usize>,
    facts: Arc<Facts>,
}

impl AfPacket {
    /// Opens an interface of the namespace that the calling thread is in. `ring_bytes`: memory for frames that came in.
    pub fn open(interface: &str, mtu: u32, ring_bytes: usize) -> Result<AfPacket> {
        let say = |what: &str| format!("AF_PACKET on {interface}: {what}");
        let index = socket::interface_index(interface)?;
        let room = mtu as usize + FRAME_BYTES_BEYOND_MTU;
        // The kernel puts its head, an address, alignment and what is reserved before the frame.
        let frame_size = (room + 128).next_power_of_two();
        let frames = ring_size(ring_bytes, frame_size, 64, 8192);
        let block_size = frame_size.max(1 << 16).min(frame_size * frames);

        let receiver = socket::packet().attempting(|| say("socket"))?;
        require_option(&receiver, libc::SOL_PACKET, PACKET_VERSION, &TPACKET_V2, &say("TPACKET_V2"))?;
        require_option(&receiver, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1i32, &say("PACKET_IGNORE_OUTGOING"))?;
        // Room before the frame, so that the tag that the kernel took out can be put back in place.
        require_option(&receiver, libc::SOL_PACKET, PACKET_RESERVE, &(TAG as i32), &say("PACKET_RESERVE"))?;
        // Stamps when the frame enters the stack. A frame of TCP is stamped when it is copied into the ring all the same, as
        // TCP keeps its time of departure in the same place: 1.4 µs later at the median, 3 to 9 µs at p99, measured between
        // two namespaces by the stamps of a second ring at the sender. U holds that in what it has for the stack's path.
        require_option(&receiver, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32, &say("timestamps"))?;
        let request = RingRequest {
            block_size: block_size as u32,
            block_nr: (frame_size * frames / block_size) as u32,
            frame_size: frame_size as u32,
            frame_nr: frames as u32,
        };
        require_option(&receiver, libc::SOL_PACKET, PACKET_RX_RING, &request, &say("receive ring"))?;
        let ring = Map::of(&receiver, frame_size * frames, 0, &say("mapping the receive ring"))?;
        (0..frames).for_each(|index| ring.forbid(beyond_status(index * frame_size, frame_size)));
        socket::bind(&receiver, &PacketAddress::new(index, ETH_P_ALL)).attempting(|| say("bind"))?;

        let sender = socket::packet().attempting(|| say("socket"))?;
        require_option(&sender, libc::SOL_PACKET, PACKET_QDISC_BYPASS, &1i32, &say("PACKET_QDISC_BYPASS"))?;
        // What waits for the receiver's CPU is charged to this socket.
        require_option(&sender, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &(64i32 << 20), &say("SO_SNDBUFFORCE"))?;
        socket::bind(&sender, &PacketAddress::new(index, 0)).attempting(|| say("bind"))?;

        let receiver = Arc::new(receiver);
        // Weak, so that the port alone decides when its socket closes.
        let (drops, counted) = (AtomicU64::new(0), Arc::downgrade(&receiver));
        let overruns = move || {
            let Some(receiver) = counted.upgrade() else { return drops.load(Ordering::Relaxed) };
            // Reading clears the kernel's count.
            let statistics = socket::get_option::<Statistics>(&receiver, libc::SOL_PACKET, PACKET_STATISTICS);
            let new = statistics.map_or(0, |statistics| u64::from(statistics.drops));
            drops.fetch_add(new, Ordering::Relaxed) + new
        };
        Ok(AfPacket {
            receiver,
            sender,
            ring,
            frame_size,
            frames,
            next: 0,
            staging: vec![0; room * SEND_BURST],
            stage_bytes: room,
            lengths: Vec::with_capacity(SEND_BURST),
            facts: Facts::new(interface, "packet", Box::new(overruns)),
        })
    }

    /// The frame's head and its status word, which the kernel changes under us.
    fn head(&self, index: usize) -> (*mut u8, &AtomicU32) {
        debug_assert!(index < self.frames);
        // SAFETY: the slot lies within the ring; the status is the head's first, aligned word, and both sides access
        // it atomically.
        unsafe {
            let slot = self.ring.pointer().add(index * self.frame_size);
            (slot, &*slot.cast::<AtomicU32>())
        }
    }

    /// The slot that is read next, its status and its head, if a frame is in it.
    #[inline]
    fn next_head(&self) -> Option<(*mut u8, u32, FrameHead)> {
        let (slot, status) = self.head(self.next);
        let flags = status.load(Ordering::Acquire);
        if flags & TP_STATUS_USER == 0 {
            return None;
        }
        let at = self.next * self.frame_size;
        self.ring.allow(at..at + size_of::<FrameHead>());
        // SAFETY: the slot lies within the ring and begins with a head, which the kernel wrote before it set the status
        // (acquired above) and does not write again until we give the slot back.
        Some((slot, flags, unsafe { slot.cast::<FrameHead>().read() }))
    }
}

#[inline]
fn stamp(clock: &Clock, head: &FrameHead) -> Nanos {
    clock.from_realtime(u64::from(head.sec) * 1_000_000_000 + u64::from(head.nsec))
}

/// Of the ring's slot at `at`: what is ours only while its status says so. The status itself may always be read.
fn beyond_status(at: usize, frame_size: usize) -> Range<usize> {
    // AddressSanitizer notes eight bytes at a time; in the second four is the frame's length.
    at + 8..at + frame_size
}

impl Port for AfPacket {
    fn receive(&mut self, clock: &Clock, budget: usize, until: Nanos, each: &mut dyn FnMut(&mut [u8], Nanos)) -> usize {
        for count in 0..budget {
            let Some((slot, flags, head)) = self.next_head() else { return count };
            let stamp = stamp(clock, &head);
            if stamp > until && stamp <= clock.now() + FUTURE_NS {
                return count;
            }
            let at = self.next * self.frame_size;
            // SAFETY: the status gave this slot to us until we give it back below, so nobody else reads or writes it; the
            // kernel wrote the frame within the slot, behind at least TAG bytes of its own (PACKET_RESERVE).
            let space = unsafe {
                let start = head.mac as usize - TAG;
                let length = (head.snaplen as usize).min(self.frame_size - head.mac as usize);
                self.ring.allow(at + start..at + start + TAG + length);
                std::slice::from_raw_parts_mut(slot.add(start), TAG + length)
            };
            let frame = if flags & TP_STATUS_VLAN_VALID != 0 && space.len() >= TAG + ADDRESSES {
                let protocol =
                    if flags & TP_STATUS_VLAN_TPID_VALID != 0 { head.vlan_tpid } else { libc::ETH_P_8021Q as u16 };
                put_tag_back(space, protocol, head.vlan_tci);
                space
            } else {
                &mut space[TAG..]
            };
            if head.snaplen < head.len || frame.len() > self.stage_bytes {
                // Cut off by the ring, or beyond what the far port may send: half a frame helps nobody.
                Facts::add(&self.facts.too_long, 1);
            } else {
                if flags & TP_STATUS_CSUMNOTREADY != 0 && complete_checksum(frame) {
                    Facts::add(&self.facts.checksums_completed, 1);
                }
                each(frame, stamp);
            }
            self.ring.forbid(beyond_status(at, self.frame_size));
            self.head(self.next).1.store(0, Ordering::Release);
            self.next = (self.next + 1) % self.frames;
        }
        budget
    }

    fn next_stamp(&mut self, clock: &Clock) -> Option<Nanos> {
        self.next_head().map(|(_, _, head)| stamp(clock, &head))
    }

    fn stage(&mut self, frame: &[u8]) {
        let start = self.lengths.len() * self.stage_bytes;
        self.staging[start..start + frame.len()].copy_from_slice(frame);
        self.lengths.push(frame.len());
    }

    fn flush(&mut self) {
        let count = self.lengths.len();
        // SAFETY: all-zero is a valid value of these plain structures: no pointer, no length.
        let (mut pieces, mut messages): ([libc::iovec; SEND_BURST], [libc::mmsghdr; SEND_BURST]) =
            unsafe { std::mem::zeroed() };
        for (index, &length) in self.lengths.iter().enumerate() {
            pieces[index].iov_base = self.staging[index * self.stage_bytes..].as_mut_ptr().cast();
            pieces[index].iov_len = length;
            messages[index].msg_hdr.msg_iov = &mut pieces[index];
            messages[index].msg_hdr.msg_iovlen = 1;
        }
        let mut sent = 0;
        while sent < count {
            // SAFETY: the headers point to pieces of our own staging area, which all outlive the call.
            let result = unsafe {
                let first = messages.as_mut_ptr().add(sent);
                libc::sendmmsg(self.sender.as_raw_fd(), first, (count - sent) as u32, libc::MSG_DONTWAIT)
            };
            if result > 0 {
                sent += result as usize;
            } else {
                // The first of them was refused (the interface is down, or its receiver's queue is full).
                Facts::add(&self.facts.refused, 1);
                sent += 1;
            }
        }
        self.lengths.clear();
    }

    fn facts(&self) -> Arc<Facts> {
        self.facts.clone()
    }

    fn descriptor(&self) -> RawFd {
        self.receiver.as_raw_fd()
    }
}
