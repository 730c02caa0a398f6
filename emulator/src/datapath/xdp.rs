//! An AF_XDP port (copy mode, which is what veth has). In: the frames that the XDP program stamped and redirected,
//! read from a ring in shared memory without a system call. Out: frames copied into the shared memory, and one
//! `sendto` per burst that makes the kernel take them.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use ewan_timers::Clock;

use super::bpf::{self, Attachment, STAMP_BYTES};
use super::frame::FRAME_BYTES_BEYOND_MTU;
use super::port::{ring_size, Facts, Port};
use super::sys::{self, Map};
use crate::model::Nanos;

/// Received frames begin this far into their chunk; the stamp lies before them.
const XDP_HEADROOM: usize = 256;
// A VLAN tag is seen here only where the sender's kernel put it into the frame, which a lab's interfaces make it do
// (labs/node/src/ethtool.rs); one that travels beside the frame never reaches an XDP program.

/// veth keeps a frame and its own bookkeeping in one page.
const LARGEST_FRAME: usize = 3520;
const BURST: usize = 32;

/// A ring shared with the kernel: one side moves `producer`, the other `consumer`.
struct Ring<T> {
    map: Map,
    offsets: libc::xdp_ring_offset,
    mask: u32,
    /// The index that this side moves.
    own: u32,
    /// The index that the kernel moves, when last read.
    theirs: u32,
    entry: std::marker::PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    fn map(socket: &OwnedFd, offsets: libc::xdp_ring_offset, size: usize, at: i64) -> Result<Ring<T>, String> {
        let length = offsets.desc as usize + size * size_of::<T>();
        let map = Map::of(socket, length, at, "mapping an AF_XDP ring")?;
        Ok(Ring { map, offsets, mask: size as u32 - 1, own: 0, theirs: 0, entry: std::marker::PhantomData })
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: the kernel gave the offset of this aligned word within the mapping, and both sides use it atomically.
        unsafe { &*self.map.pointer().add(offset as usize).cast::<AtomicU32>() }
    }

    fn entry(&self, index: u32) -> *mut T {
        // SAFETY: masked, the index lies within the entries that the mapping was sized for.
        unsafe { self.map.pointer().add(self.offsets.desc as usize).cast::<T>().add((index & self.mask) as usize) }
    }

    /// The next entry of a ring that we consume.
    #[inline]
    fn peek(&mut self) -> Option<T> {
        if self.own == self.theirs {
            self.theirs = self.word(self.offsets.producer).load(Ordering::Acquire);
            if self.own == self.theirs {
                return None;
            }
        }
        // SAFETY: the kernel filled every entry before its `producer`.
        Some(unsafe { self.entry(self.own).read() })
    }

    fn consume(&mut self) {
        self.own = self.own.wrapping_add(1);
    }

    fn give_back(&self) {
        self.word(self.offsets.consumer).store(self.own, Ordering::Release);
    }

    /// Writes an entry of a ring that we produce; the caller knows that there is room.
    fn put(&mut self, value: T) {
        // SAFETY: the caller holds no more entries than the ring has, so this one is ours.
        unsafe { self.entry(self.own).write(value) };
        self.own = self.own.wrapping_add(1);
    }

    fn publish(&self) {
        self.word(self.offsets.producer).store(self.own, Ordering::Release);
    }

    /// Entries that we published and the kernel has not taken.
    fn pending(&self) -> u32 {
        self.own.wrapping_sub(self.word(self.offsets.consumer).load(Ordering::Acquire))
    }
}

pub struct AfXdp {
    socket: Arc<OwnedFd>,
    _attachment: Attachment,
    umem: Map,
    chunk: usize,
    received: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    sending: Ring<libc::xdp_desc>,
    completed: Ring<u64>,
    /// Chunks to send from.
    free: Vec<u64>,
    facts: Arc<Facts>,
}

impl AfXdp {
    pub fn open(interface: &str, mtu: u32, ring_bytes: usize, reason: &str) -> Result<AfXdp, String> {
        let frame = mtu as usize + FRAME_BYTES_BEYOND_MTU;
        if frame > LARGEST_FRAME {
            return Err(format!("a frame of {frame} bytes does not fit in the {LARGEST_FRAME} that XDP takes on veth"));
        }
        let say = |what: &str| format!("AF_XDP on {interface}: {what}");
        let index = sys::interface_index(interface)?;
        let chunk = if frame + XDP_HEADROOM <= 2048 { 2048 } else { 4096 };
        let size = ring_size(ring_bytes, 2 * chunk, 64, 2048);

        let socket = sys::socket(libc::AF_XDP, libc::SOCK_RAW, 0, &say("socket"))?;
        let umem = Map::anonymous(2 * size * chunk)?;
        umem.small_pages();
        let registration = libc::xdp_umem_reg {
            addr: umem.pointer() as u64,
            len: umem.bytes() as u64,
            chunk_size: chunk as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        sys::set_option(&socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &registration, &say("registering memory"))?;
        for option in [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING, libc::XDP_TX_RING] {
            sys::set_option(&socket, libc::SOL_XDP, option, &(size as u32), &say("sizing a ring"))?;
        }
        let offsets: libc::xdp_mmap_offsets =
            sys::get_option(&socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, &say("ring offsets"))?;
        let received = Ring::map(&socket, offsets.rx, size, libc::XDP_PGOFF_RX_RING)?;
        let sending = Ring::map(&socket, offsets.tx, size, libc::XDP_PGOFF_TX_RING)?;
        let mut fill = Ring::map(&socket, offsets.fr, size, libc::XDP_UMEM_PGOFF_FILL_RING as i64)?;
        let completed = Ring::map(&socket, offsets.cr, size, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64)?;
        (0..size).for_each(|index| fill.put((index * chunk) as u64));
        fill.publish();

        // What waits for the receiver's CPU is charged to this socket.
        sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &(64i32 << 20), &say("SO_SNDBUFFORCE"))?;
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_COPY,
            sxdp_ifindex: index,
            sxdp_queue_id: 0,
            sxdp_shared_umem_fd: 0,
        };
        sys::bind(&socket, &address, &say("bind"))?;
        let attachment = bpf::attach(index, &socket).map_err(|error| say(&error))?;

        let socket = Arc::new(socket);
        let counted = Arc::downgrade(&socket);
        let overruns = move || {
            let Some(counted) = counted.upgrade() else { return 0 };
            sys::get_option::<libc::xdp_statistics>(&counted, libc::SOL_XDP, libc::XDP_STATISTICS, "statistics")
                .map_or(0, |s| s.rx_dropped + s.rx_ring_full + s.rx_fill_ring_empty_descs)
        };
        Ok(AfXdp {
            socket,
            _attachment: attachment,
            umem,
            chunk,
            received,
            fill,
            sending,
            completed,
            free: (size..2 * size).rev().map(|index| (index * chunk) as u64).collect(),
            facts: Facts::new(interface, "xdp", reason.into(), Box::new(overruns)),
        })
    }

    /// Takes back the chunks whose frames have left us.
    fn reclaim(&mut self) {
        while let Some(address) = self.completed.peek() {
            self.completed.consume();
            self.free.push(address);
        }
        self.completed.give_back();
    }
}

impl Port for AfXdp {
    fn receive(&mut self, clock: &Clock, budget: usize, each: &mut dyn FnMut(&mut [u8], Nanos)) -> usize {
        let mut count = 0;
        while count < budget {
            let Some(descriptor) = self.received.peek() else { break };
            let (start, length) = (descriptor.addr as usize, descriptor.len as usize);
            if start < STAMP_BYTES || start + length > self.umem.bytes() {
                self.received.consume(); // The kernel never writes such a descriptor.
                continue;
            }
            // SAFETY: checked to lie within the memory; the chunk is ours until it is put into the fill ring.
            let (stamp, frame) = unsafe {
                let frame = self.umem.pointer().add(start);
                (frame.sub(STAMP_BYTES).cast::<u64>().read_unaligned(), std::slice::from_raw_parts_mut(frame, length))
            };
            each(frame, clock.from_monotonic(stamp));
            self.received.consume();
            self.fill.put((start - start % self.chunk) as u64);
            count += 1;
        }
        if count > 0 {
            self.received.give_back();
            self.fill.publish();
        }
        count
    }

    fn room(&mut self) -> usize {
        if self.free.len() < BURST {
            self.reclaim();
        }
        self.free.len()
    }

    fn stage(&mut self, frame: &[u8]) {
        let Some(address) = self.free.pop() else { return };
        let length = frame.len().min(self.chunk);
        // SAFETY: a free chunk is ours, lies within the memory, and holds `chunk` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(frame.as_ptr(), self.umem.pointer().add(address as usize), length);
        }
        self.sending.put(libc::xdp_desc { addr: address, len: length as u32, options: 0 });
    }

    fn flush(&mut self) -> bool {
        self.sending.publish();
        let mut pending = self.sending.pending();
        while pending > 0 {
            // SAFETY: no memory is passed.
            let result = unsafe {
                libc::sendto(self.socket.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0)
            };
            let error = if result < 0 { std::io::Error::last_os_error().raw_os_error() } else { None };
            if error == Some(libc::EBUSY) {
                // A frame was taken but not delivered: the receiver's backlog is full.
                Facts::add(&self.facts.refused, 1);
            }
            let left = self.sending.pending();
            if left == pending {
                return false;
            }
            pending = left;
        }
        true
    }

    fn facts(&self) -> Arc<Facts> {
        self.facts.clone()
    }

    fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
