// SPDX-License-Identifier: GPL-2.0-or-later
//! One direction of a link inside a kernel: what sch_ewan.c calls, by C's conventions (ewan_model.h).
//!
//! Comes in: packets as the caller's own pointers, with what the model must know of them, and the plan's own words for a
//! direction, as JSON. Goes out: the same pointers, when they are due. Memory is the kernel's (`memory`). Nothing here
//! calculates with floating point.
//!
//! Pointers from C keep to these rules, on which each `unsafe` block here rests:
//!
//! 1. A `lane` comes from `ewan_lane_new`, is never null, and lives until `ewan_lane_free`, which sch_ewan.c calls once,
//!    in `ewan_destroy`, after which nothing calls this crate for it. `change`, `report` and `flow` likewise.
//! 2. Nobody else uses a lane during a call that takes it: there is one processor (sch_ewan.c refuses to be built for
//!    more), soft interrupts are off in each such call, and none of these calls sleeps. So a lane may be borrowed for
//!    writing, and with it the lane of the link's other direction. `ewan_change_new` alone may sleep; it reads a part of a
//!    lane that only callers under the kernel's netlink lock write, of whom it is one.
//! 3. Bytes are given by an address and a length, and belong to the caller, who does not change them during the call. The
//!    address is null only where the length is 0.

#![no_std]

extern crate alloc;

mod memory;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::c_void;
use core::num::NonZeroU64;
use core::ptr::{addr_of, null_mut, NonNull};
use core::slice;

use ewan_model::config::Direction;
use ewan_model::{frame, Change, Counters, DirectionModel, Drop, FlowCounters, FlowTable, Meta, ModelChange};

type Packet = NonNull<c_void>;

/// Of a link that was made without reordering.
const MOST_OVERTAKING: u64 = 1 << 16;

/// # Safety
/// Rule 3.
unsafe fn slice_of<'a>(address: *const u8, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: rule 3: there are `length` bytes, which nobody changes during the call; the slice does not outlive it.
    unsafe { slice::from_raw_parts(address, length) }
}

/// # Safety
/// Rule 3, and nobody else reads the bytes during the call.
unsafe fn slice_of_mut<'a>(address: *mut u8, length: usize) -> &'a mut [u8] {
    if length == 0 {
        return &mut [];
    }
    // SAFETY: rule 3: there are `length` bytes, which are ours during the call; the slice does not outlive it.
    unsafe { slice::from_raw_parts_mut(address, length) }
}

/// A direction, and how it is configured now.
pub struct Lane {
    model: DirectionModel<Packet>,
    config: Direction,
}

/// A change of a direction, and what the direction is after it.
pub struct LaneChange {
    change: ModelChange,
    config: Direction,
}

/// What the model is told of a frame, and what stage 1 decides; struct ewan_arrival.
#[repr(C)]
pub struct Arrival {
    ip_bytes: u32,
    flow: u16,
    traffic_class: u8,
    lost: bool,
    duplicate: bool,
    corrupt: bool,
    bleach: bool,
    /// Chooses the bit to turn over.
    random: u32,
    /// Of a pure ACK its flow, or 0; what it acknowledges, and its marks.
    ack_flow: u64,
    ack_number: u32,
    ack_marks: u16,
    /// The place of its flow among those that are counted, and what it carries behind its headers.
    place: u16,
    payload_bytes: u16,
}

/// struct ewan_release.
#[repr(C)]
pub struct Release {
    packet: *mut c_void,
    /// The packets that come next, or null.
    ahead: [*mut c_void; 2],
    mark_ce: bool,
}

/// A direction of JSON's words; null with the reason in `reason`, one line that ends in 0.
///
/// # Safety
/// `text` has `length` bytes, `reason` has room for `room`.
#[no_mangle]
pub unsafe extern "C" fn ewan_lane_new(text: *const u8, length: usize, reason: *mut u8, room: usize) -> *mut Lane {
    // SAFETY: rule 3; text and reason do not overlap: one is a netlink message's, the other the discipline's own.
    let (text, reason) = unsafe { (slice_of(text, length), slice_of_mut(reason, room)) };
    match direction(text) {
        Ok(config) => Box::into_raw(Box::new(Lane { model: DirectionModel::growing(&config), config })),
        Err(why) => {
            tell(reason, &why);
            null_mut()
        }
    }
}

/// The link is made at `now`: its trace begins.
///
/// # Safety
/// `lane` came from `ewan_lane_new`.
#[no_mangle]
pub unsafe extern "C" fn ewan_lane_begin(lane: *mut Lane, now: u64) {
    // SAFETY: rules 1 and 2; the lane is not in use yet.
    unsafe { &mut *lane }.model.begin(now);
}

/// # Safety
/// `lane` came from `ewan_lane_new`, and its packets have been taken out.
#[no_mangle]
pub unsafe extern "C" fn ewan_lane_free(lane: *mut Lane) {
    // SAFETY: rule 1: `Box::into_raw` made the pointer, and this is the only call that takes it back.
    drop(unsafe { Box::from_raw(lane) });
}

/// What JSON's words change in `lane`, with all memory that it needs; null with the reason.
///
/// # Safety
/// As for `ewan_lane_new`; `lane` came from it.
#[no_mangle]
pub unsafe extern "C" fn ewan_change_new(
    lane: *const Lane,
    text: *const u8,
    length: usize,
    reason: *mut u8,
    room: usize,
) -> *mut LaneChange {
    // SAFETY: rules 1 and 2: only the configuration is borrowed, which `ewan_lane_take_over` alone writes; the model, which
    // packets meanwhile use, is not. Rule 3 for the bytes.
    let (config, text, reason) =
        unsafe { (&*addr_of!((*lane).config), slice_of(text, length), slice_of_mut(reason, room)) };
    match change(text, config) {
        Ok(change) => {
            Box::into_raw(Box::new(LaneChange { config: change.applied(config), change: ModelChange::new(&change) }))
        }
        Err(why) => {
            tell(reason, &why);
            null_mut()
        }
    }
}

/// # Safety
/// `change` came from `ewan_change_new`.
#[no_mangle]
pub unsafe extern "C" fn ewan_change_free(change: *mut LaneChange) {
    // SAFETY: rule 1: `Box::into_raw` made the pointer, and this is the only call that takes it back.
    drop(unsafe { Box::from_raw(change) });
}

/// Makes the change from `now` on; `change` then holds what it took the place of.
///
/// # Safety
/// `lane` came from `ewan_lane_new`, `change` from `ewan_change_new` for it.
#[no_mangle]
pub unsafe extern "C" fn ewan_lane_take_over(lane: *mut Lane, change: *mut LaneChange, now: u64) {
    // SAFETY: rules 1 and 2; a change belongs to the caller that made it.
    let (lane, change) = unsafe { (&mut *lane, &mut *change) };
    lane.model.take_over(&mut change.change, now);
    core::mem::swap(&mut lane.config, &mut change.config);
}

/// Both directions of a link are evaluated up to `now`, before and after anything is done with one of them; true: they
/// share a medium, and the other one's next event may be another.
///
/// # Safety
/// `lane` and `other` came from `ewan_lane_new`, and are two.
#[no_mangle]
pub unsafe extern "C" fn ewan_lane_share(lane: *mut Lane, other: *mut Lane, now: u64) -> bool {
    // SAFETY: rules 1 and 2, for both; they are two, as sch_ewan.c joins no direction to itself.
    let (lane, other) = unsafe { (&mut *lane, &mut *other) };
    ewan_model::share(&mut lane.model, &mut other.model, now)
}

/// Stage 1, for a frame of `bytes` whose first ones are `head`. `tag_bytes`: of a tag that the kernel keeps beside it.
///
/// # Safety
/// `lane` came from `ewan_lane_new`; `head` has `head_bytes`; `arrival` has room for one.
#[no_mangle]
pub unsafe extern "C" fn ewan_lane_impair(
    lane: *mut Lane,
    head: *const u8,
    head_bytes: usize,
    bytes: u32,
    tag_bytes: u32,
    now: u64,
    arrival: *mut Arrival,
) {
    // SAFETY: rules 1 and 2 for the lane, 3 for the head, which is a packet's and no part of the lane.
    let (lane, head) = unsafe { (&mut *lane, slice_of(head, head_bytes)) };
    let framing = lane.config.framing;
    let tag_bytes = if framing.overhead_bytes == 0 { 0 } else { tag_bytes };
    let ip_bytes = frame::counted_bytes(head, framing) + tag_bytes + bytes.saturating_sub(head.len() as u32);
    let mut meta = lane.model.describe(head, ip_bytes);
    let fate = lane.model.impair(now, &mut meta);
    let Meta { ip_bytes, flow, traffic_class, ack, place, payload_bytes } = meta;
    let found = Arrival {
        ip_bytes,
        flow,
        traffic_class,
        lost: fate.lost,
        duplicate: fate.duplicate,
        corrupt: fate.corrupt.is_some(),
        bleach: fate.bleach,
        random: fate.corrupt.unwrap_or(0),
        ack_flow: ack.map_or(0, |ack| ack.flow.get()),
        ack_number: ack.map_or(0, |ack| ack.number),
        ack_marks: ack.map_or(0, |ack| ack.marks),
        place,
        payload_bytes,
    };
    // SAFETY: `arrival` is on the caller's stack, with C's alignment of the same structure; nothing in it needs a drop.
    unsafe { arrival.write(found) }
}

/// Stage 2; false: the packet is dropped, and the caller's again. A copy that could not be made is null.
///
/// # Safety
/// `lane` came from `ewan_lane_new`, `arrival` from `ewan_lane_impair`.
#[no_mangle]
pub unsafe extern "C" fn ewan_lane_enqueue(
    lane: *mut Lane,
    packet: *mut c_void,
    arrival: *const Arrival,
    now: u64,
) -> bool {
    // SAFETY: rules 1 and 2; `arrival` is on the caller's stack, and `ewan_lane_impair` has filled it.
    let (lane, arrival) = unsafe { (&mut *lane, &*arrival) };
    let Arrival { ip_bytes, flow, traffic_class, ack_flow, ack_number: number, ack_marks: marks, .. } = *arrival;
    let Arrival { place, payload_bytes, .. } = *arrival;
    let ack = NonZeroU64::new(ack_flow).map(|flow| frame::Ack { flow, number, marks });
    let meta = Meta { ip_bytes, flow, traffic_class, ack, place, payload_bytes };
    match Packet::new(packet) {
        Some(packet) if lane.model.reserve_one() => lane.model.enqueue(packet, meta, now).is_ok(),
        _ => {
            lane.model.count_drop(Drop::Store, meta);
            false
        }
    }
}

/// The next packet that is due; null where none is.
///
/// # Safety
/// `lane` came from `ewan_lane_new`; `release` has room for one.
#[no_mangle]
pub unsafe extern "C" fn ewan_lane_pop(lane: *mut Lane, now: u64, release: *mut Release) {
    // SAFETY: rules 1 and 2; `release` is on the caller's stack, and any bytes are a valid value of its fields but for
    // `mark_ce`, which is not read here.
    let (model, release) = unsafe { (&mut (*lane).model, &mut *release) };
    match model.pop(now) {
        Some(found) => {
            let ahead = model.ahead().map(|packet| packet.map_or(null_mut(), Packet::as_ptr));
            *release = Release { packet: found.packet.as_ptr(), ahead, mark_ce: found.mark_ce };
        }
        None => release.packet = null_mut(),
    }
}

/// A packet that was in the link, which is cut; null: it is empty.
///
/// # Safety
/// `lane` came from `ewan_lane_new`.
#[no_mangle]
pub unsafe extern "C" fn ewan_lane_cut(lane: *mut Lane) -> *mut c_void {
    // SAFETY: rules 1 and 2.
    unsafe { &mut *lane }.model.cut().map_or(null_mut(), Packet::as_ptr)
}

/// A packet that the queue's discipline dropped after it had been accepted, or null.
///
/// # Safety
/// `lane` came from `ewan_lane_new`.
#[no_mangle]
pub unsafe extern "C" fn ewan_lane_dropped(lane: *mut Lane) -> *mut c_void {
    // SAFETY: rules 1 and 2.
    unsafe { &mut *lane }.model.dropped().map_or(null_mut(), Packet::as_ptr)
}

/// When `ewan_lane_pop` or `ewan_lane_dropped` next has something; the greatest number where nothing is there.
///
/// # Safety
/// `lane` came from `ewan_lane_new`.
#[no_mangle]
pub unsafe extern "C" fn ewan_lane_next(lane: *const Lane) -> u64 {
    // SAFETY: rules 1 and 2.
    unsafe { &*lane }.model.next_event().unwrap_or(u64::MAX)
}

/// Memory for what a link counted. It may sleep.
#[no_mangle]
pub extern "C" fn ewan_lane_report_new() -> *mut Counters {
    Box::into_raw(Box::default())
}

/// Copies what the link counted until now. It neither sleeps nor takes memory.
///
/// # Safety
/// `lane` came from `ewan_lane_new`, `report` from `ewan_lane_report_new`.
#[no_mangle]
pub unsafe extern "C" fn ewan_lane_report_fill(report: *mut Counters, lane: *const Lane) {
    // SAFETY: rules 1 and 2; a report belongs to the caller that made it.
    let (report, lane) = unsafe { (&mut *report, &*lane) };
    report.clone_from(lane.model.counters());
}

/// Writes a report as JSON, and gives its memory back; its length, 0 where there is no room for it. It may sleep.
///
/// # Safety
/// `report` came from `ewan_lane_report_new`; `text` has `room`.
#[no_mangle]
pub unsafe extern "C" fn ewan_lane_report_write(report: *mut Counters, text: *mut u8, room: usize) -> usize {
    // SAFETY: rule 1: `Box::into_raw` made the pointer, and this is the only call that takes it back. Rule 3 for the text.
    let (report, text) = unsafe { (Box::from_raw(report), slice_of_mut(text, room)) };
    let report = serde_json::to_vec(&report.report()).unwrap_or_default();
    let Some(text) = text.get_mut(..report.len()) else { return 0 };
    text.copy_from_slice(&report);
    report.len()
}

/// How many places of flows are in use; 0 where none are counted.
///
/// # Safety
/// `lane` came from `ewan_lane_new`.
#[no_mangle]
pub unsafe extern "C" fn ewan_lane_flow_count(lane: *const Lane) -> usize {
    // SAFETY: rules 1 and 2.
    unsafe { &*lane }.model.flows().map_or(0, FlowTable::count)
}

/// The counters of a flow, and its report.
#[derive(Default)]
pub struct Flow {
    counters: FlowCounters,
    report: Vec<u8>,
}

/// Memory for what a flow counted. It may sleep.
#[no_mangle]
pub extern "C" fn ewan_flow_new() -> *mut Flow {
    Box::into_raw(Box::default())
}

/// Copies what the flow at `place` counted until now; false where it counted nothing. It neither sleeps nor takes memory.
///
/// # Safety
/// `lane` came from `ewan_lane_new`, `flow` from `ewan_flow_new`.
#[no_mangle]
pub unsafe extern "C" fn ewan_flow_fill(flow: *mut Flow, lane: *const Lane, place: usize) -> bool {
    // SAFETY: rules 1 and 2; a flow belongs to the caller that made it.
    let (flow, lane) = unsafe { (&mut *flow, &*lane) };
    let counters = lane.model.flows().and_then(|flows| flows.counters(place));
    counters.map(|counters| flow.counters = *counters).is_some()
}

/// The report of what was filled in, seen at `now`, as JSON of `length` bytes. It lives as long as `flow`. It may sleep.
///
/// # Safety
/// `flow` came from `ewan_flow_new`; `length` has room for one number.
#[no_mangle]
pub unsafe extern "C" fn ewan_flow_report(flow: *mut Flow, now: u64, length: *mut usize) -> *const u8 {
    // SAFETY: rule 1; a flow belongs to the caller that made it, and `length` is on that caller's stack.
    let (flow, length) = unsafe { (&mut *flow, &mut *length) };
    flow.report = serde_json::to_vec(&flow.counters.report(now)).unwrap_or_default();
    *length = flow.report.len();
    flow.report.as_ptr()
}

/// # Safety
/// `flow` came from `ewan_flow_new`.
#[no_mangle]
pub unsafe extern "C" fn ewan_flow_free(flow: *mut Flow) {
    // SAFETY: rule 1: `Box::into_raw` made the pointer, and this is the only call that takes it back.
    drop(unsafe { Box::from_raw(flow) });
}

/// # Safety
/// `head` has `head_bytes`.
#[no_mangle]
pub unsafe extern "C" fn ewan_frame_mark_ce(head: *mut u8, head_bytes: usize) {
    // SAFETY: rule 3; the caller has made these bytes of a packet its own (skb_ensure_writable, skb_unshare).
    frame::mark_ce(unsafe { slice_of_mut(head, head_bytes) });
}

/// # Safety
/// `head` has `head_bytes`.
#[no_mangle]
pub unsafe extern "C" fn ewan_frame_bleach(head: *mut u8, head_bytes: usize) {
    // SAFETY: rule 3; the caller has made these bytes of a packet its own (skb_ensure_writable, skb_unshare).
    frame::bleach(unsafe { slice_of_mut(head, head_bytes) });
}

/// # Safety
/// `whole` has `bytes`.
#[no_mangle]
pub unsafe extern "C" fn ewan_frame_flip_bit(whole: *mut u8, bytes: usize, random: u32) {
    // SAFETY: rule 3; the caller has made these bytes of a packet its own (skb_ensure_writable, skb_unshare).
    frame::flip_bit(unsafe { slice_of_mut(whole, bytes) }, random);
}

fn direction(text: &[u8]) -> Result<Direction, String> {
    let config = serde_json::from_slice(text).map_err(|error| alloc::format!("{error}"))?;
    ewan_model::check(&config)?;
    Ok(config)
}

fn change(text: &[u8], now: &Direction) -> Result<Change, String> {
    let change: Change = serde_json::from_slice(text).map_err(|error| alloc::format!("{error}"))?;
    change.check_for(now)?;
    // Packets that overtake are in one piece of memory, which the kernel gives in any size only when a link is made.
    if change.reorder == Some(true) && !now.reorder && now.store_packets > MOST_OVERTAKING {
        return Err(alloc::format!(
            "a running link of {} packets cannot begin to reorder: bring the lab up with reorder: true",
            now.store_packets
        ));
    }
    Ok(change)
}

/// As much of it as there is room for.
fn tell(reason: &mut [u8], why: &str) {
    let Some(most) = reason.len().checked_sub(1) else { return };
    let mut length = why.len().min(most);
    while !why.is_char_boundary(length) {
        length -= 1;
    }
    reason[..length].copy_from_slice(&why.as_bytes()[..length]);
    reason[length] = 0;
}
