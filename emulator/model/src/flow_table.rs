//! Counters of each flow at a link: packets, bytes, drops by cause, marks, and how long packets waited in the queue.
//!
//! In: the key of each packet's flow (`frame::FlowKey`), and what happens to it. Out: a report of each flow. So many flows
//! have a place of their own. Where all places are taken, a new flow takes that of the one with the fewest bytes of which no
//! packet is in the link, and what was counted of that one goes to `OTHERS`, as does all that has no place. Nothing is
//! allocated after `new`. A table begins while packets are in the link, whose places are of the table before it, and which
//! are not counted: each place has the number of its table in its first bits.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use super::check::{require, CheckResult};
use super::classes::{class, upper};
use super::config::FlowCounting;
use super::counters::{Amount, Drop, Drops};
use super::frame::FlowKey;
use super::Nanos;

/// The place of all packets whose flow has none.
pub(super) const OTHERS: u16 = 0;
const NONE: u16 = 0;
/// A packet's place has the number of its table from this bit on; the bits below are the index in that table.
const TABLE_SHIFT: u32 = 11;
const INDEX: u16 = (1 << TABLE_SHIFT) - 1;
/// Most flows with a place of their own.
const MOST_FLOWS: u16 = 1024;
const MOST_PORTS: usize = 64;

/// Waiting times are counted in classes of 1.024 µs (`classes`), up to 17 s.
const UNIT_LOG2: u32 = 10;
const LONGEST_LOG2: u32 = 34;
const CLASS_COUNT: usize = class(1 << (LONGEST_LOG2 - UNIT_LOG2));

fn class_of(waited: Nanos) -> usize {
    class(waited >> UNIT_LOG2).min(CLASS_COUNT - 1)
}

/// The largest time of a class; of the last one, which holds all longer times, too.
fn upper_ns(class: usize) -> Nanos {
    ((upper(class) + 1) << UNIT_LOG2) - 1
}

impl FlowCounting {
    pub(super) fn check(&self) -> CheckResult {
        require(self.most <= MOST_FLOWS, || alloc::format!("flows most {}: write at most {MOST_FLOWS}", self.most))?;
        require(self.ports.len() <= MOST_PORTS, || {
            alloc::format!("flows has {} ports: write at most {MOST_PORTS}", self.ports.len())
        })?;
        require(self.ports.is_empty() || self.most > 0, || "flows has ports: write how many flows are counted".into())
    }
}

/// The counters of one flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowCounters {
    key: FlowKey,
    /// The next place whose key has the same hash.
    next: u16,
    /// The configuration names its port, so that it keeps its place.
    stated: bool,
    first: Nanos,
    last: Nanos,
    last_release: Nanos,
    arrived: Amount,
    copies: u64,
    out: Amount,
    out_payload_bytes: u64,
    drops: Drops,
    marked: u64,
    served: u64,
    waited_ns: u64,
    waits: [u32; CLASS_COUNT],
}

impl Default for FlowCounters {
    fn default() -> Self {
        FlowCounters::new(FlowKey::default(), false)
    }
}

impl FlowCounters {
    fn new(key: FlowKey, stated: bool) -> Self {
        FlowCounters {
            key,
            next: NONE,
            stated,
            first: 0,
            last: 0,
            last_release: 0,
            arrived: Amount::default(),
            copies: 0,
            out: Amount::default(),
            out_payload_bytes: 0,
            drops: Drops::default(),
            marked: 0,
            served: 0,
            waited_ns: 0,
            waits: [0; CLASS_COUNT],
        }
    }

    /// Packets that are in the link now.
    fn inside(&self) -> u64 {
        self.arrived.packets + self.copies - self.drops.sum() - self.out.packets
    }

    /// Takes what another one counted, which has no packet in the link.
    fn absorb(&mut self, other: &FlowCounters) {
        if self.arrived.packets == 0 {
            self.first = other.first;
        }
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.last_release = self.last_release.max(other.last_release);
        self.arrived.packets += other.arrived.packets;
        self.arrived.bytes += other.arrived.bytes;
        self.out.packets += other.out.packets;
        self.out.bytes += other.out.bytes;
        for (own, others) in [
            (&mut self.copies, other.copies),
            (&mut self.out_payload_bytes, other.out_payload_bytes),
            (&mut self.marked, other.marked),
            (&mut self.served, other.served),
            (&mut self.waited_ns, other.waited_ns),
        ] {
            *own += others;
        }
        self.drops.absorb(&other.drops);
        for (own, others) in self.waits.iter_mut().zip(&other.waits) {
            *own = own.saturating_add(*others);
        }
    }

    /// What it counted, seen at `now`.
    pub fn report(&self, now: Nanos) -> FlowReport {
        let address = |bytes: [u8; 16]| -> String {
            let address = Ipv6Addr::from(bytes);
            address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4).to_string()
        };
        let ends = self.key.protocol.is_some();
        FlowReport {
            protocol: self.key.protocol,
            source: ends.then(|| address(self.key.source)),
            source_port: self.key.source_port,
            destination: ends.then(|| address(self.key.destination)),
            destination_port: self.key.destination_port,
            first_ago_ns: now.saturating_sub(self.first),
            last_ago_ns: now.saturating_sub(self.last),
            last_release_ago_ns: now.saturating_sub(self.last_release),
            in_packets: self.arrived.packets,
            in_bytes: self.arrived.bytes,
            duplicated_packets: self.copies,
            out_packets: self.out.packets,
            out_bytes: self.out.bytes,
            out_payload_bytes: self.out_payload_bytes,
            drops: self.drops,
            ce_packets: self.marked,
            served_packets: self.served,
            waited_ns: self.waited_ns,
            waits: (self.waits.iter().enumerate().filter(|(_, count)| **count > 0))
                .map(|(class, count)| (upper_ns(class), *count))
                .collect(),
        }
    }
}

/// The counters of one flow at one direction of a link, in the words of the records. A flow without a protocol is all others
/// together. A port of 0 is any, where the configuration states the other one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowReport {
    /// IP's number of it.
    pub protocol: Option<u8>,
    pub source: Option<String>,
    pub source_port: u16,
    pub destination: Option<String>,
    pub destination_port: u16,
    /// When its first and its last packet came to the link, and when its last one left it, before the report.
    pub first_ago_ns: u64,
    pub last_ago_ns: u64,
    pub last_release_ago_ns: u64,
    pub in_packets: u64,
    pub in_bytes: u64,
    pub duplicated_packets: u64,
    pub out_packets: u64,
    pub out_bytes: u64,
    /// What the released packets carried behind the headers of IP and of TCP or UDP.
    pub out_payload_bytes: u64,
    pub drops: Drops,
    pub ce_packets: u64,
    pub served_packets: u64,
    pub waited_ns: u64,
    /// How many packets waited at most so long, and longer than the entry before says; none where none did.
    pub waits: Vec<(u64, u32)>,
}

/// The flows of one direction.
#[derive(Debug)]
pub struct FlowTable {
    /// In order.
    ports: Box<[u16]>,
    /// The first one is `OTHERS`; so many as are in use.
    places: Vec<FlowCounters>,
    most: usize,
    /// The first place of each hash.
    heads: Box<[u16]>,
    /// The flow of the last packet: most packets come in trains. A flow without a place is forgotten when a packet of
    /// another one leaves the link, for that one's place may be had then.
    last: (FlowKey, u16),
    /// In the place of `TABLE_SHIFT`.
    number: u16,
}

impl FlowTable {
    /// With all memory that it needs; none where no flows are to be counted.
    pub fn new(config: &FlowCounting) -> Option<Self> {
        if config.most == 0 {
            return None;
        }
        let most = usize::from(config.most);
        let mut ports = config.ports.clone();
        ports.sort_unstable();
        let mut places = Vec::with_capacity(most + 1);
        places.push(FlowCounters::new(FlowKey::default(), true));
        let heads = vec![NONE; (2 * most).next_power_of_two()].into_boxed_slice();
        let last = (FlowKey::default(), OTHERS);
        Some(FlowTable { ports: ports.into_boxed_slice(), places, most, heads, last, number: 0 })
    }

    /// It is the table of this number, of those that a direction had.
    pub(super) fn begin(&mut self, number: u16) {
        self.number = (number % (u16::MAX >> TABLE_SHIFT) + 1) << TABLE_SHIFT;
    }

    /// The place of a packet's flow, which may be a new one.
    #[inline]
    pub(super) fn place_of(&mut self, key: FlowKey) -> u16 {
        if key != self.last.0 {
            self.last = (key, self.find(key));
        }
        self.number | self.last.1
    }

    fn find(&mut self, packet: FlowKey) -> u16 {
        if packet.protocol.is_none() {
            return OTHERS;
        }
        let mut key = packet;
        let states = |port: u16| port != 0 && self.ports.binary_search(&port).is_ok();
        let stated = if states(key.destination_port) {
            key.source_port = 0;
            true
        } else if states(key.source_port) {
            key.destination_port = 0;
            true
        } else {
            false
        };
        let head = key.hash() as usize & (self.heads.len() - 1);
        let mut place = self.heads[head];
        while place != NONE {
            let found = &self.places[usize::from(place)];
            if found.key == key {
                return place;
            }
            place = found.next;
        }
        let place = self.room();
        if place != OTHERS {
            let mut flow = FlowCounters::new(key, stated);
            flow.next = core::mem::replace(&mut self.heads[head], place);
            match self.places.get_mut(usize::from(place)) {
                Some(free) => *free = flow,
                None => self.places.push(flow),
            }
        }
        place
    }

    /// A place for one more flow; OTHERS where there is none.
    #[cold]
    fn room(&mut self) -> u16 {
        if self.places.len() <= self.most {
            return self.places.len() as u16;
        }
        let idle = self.places.iter().enumerate().skip(1).filter(|(_, flow)| !flow.stated && flow.inside() == 0);
        let Some((least, _)) = idle.min_by_key(|(_, flow)| flow.arrived.bytes) else { return OTHERS };
        let (others, flows) = self.places.split_at_mut(1);
        let gone = &mut flows[least - 1];
        others[0].absorb(gone);
        let (key, next) = (gone.key, gone.next);
        let head = key.hash() as usize & (self.heads.len() - 1);
        let least = least as u16;
        if self.heads[head] == least {
            self.heads[head] = next;
        } else {
            let mut before = self.heads[head];
            while before != NONE {
                let flow = &mut self.places[usize::from(before)];
                if flow.next == least {
                    flow.next = next;
                    break;
                }
                before = flow.next;
            }
        }
        if self.last.1 == least {
            self.last = (FlowKey::default(), OTHERS);
        }
        least
    }

    /// A packet of this place has left the link.
    #[inline]
    fn leaves(&mut self, place: u16) {
        if self.last.1 == OTHERS && place & INDEX != OTHERS {
            self.last.0 = FlowKey::default();
        }
    }

    /// None where the packet is of the time of another table.
    #[inline]
    fn at(&mut self, place: u16) -> Option<&mut FlowCounters> {
        let index = usize::from(place & INDEX);
        if place & !INDEX == self.number {
            self.places.get_mut(index)
        } else {
            None
        }
    }

    #[inline]
    pub(super) fn arrives(&mut self, place: u16, bytes: u32, now: Nanos) {
        let Some(flow) = self.at(place) else { return };
        if flow.arrived.packets == 0 {
            flow.first = now;
        }
        flow.last = now;
        flow.arrived.add(bytes);
    }

    pub(super) fn copies(&mut self, place: u16) {
        if let Some(flow) = self.at(place) {
            flow.copies += 1;
        }
    }

    pub(super) fn drops(&mut self, place: u16, cause: Drop) {
        if let Some(flow) = self.at(place) {
            *flow.drops.of(cause) += 1;
            self.leaves(place);
        }
    }

    /// A packet goes into service.
    #[inline]
    pub(super) fn serves(&mut self, place: u16, waited: Nanos) {
        let Some(flow) = self.at(place) else { return };
        flow.served += 1;
        flow.waited_ns += waited;
        let count = &mut flow.waits[class_of(waited)];
        *count = count.saturating_add(1);
    }

    #[inline]
    pub(super) fn releases(&mut self, place: u16, bytes: u32, payload_bytes: u32, marked: bool, due: Nanos) {
        let Some(flow) = self.at(place) else { return };
        flow.out.add(bytes);
        flow.out_payload_bytes += u64::from(payload_bytes);
        flow.marked += u64::from(marked);
        flow.last_release = flow.last_release.max(due);
        self.leaves(place);
    }

    /// So many places are in use, the first of which is of all others.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// What a place counted; none of a place that is not in use, or counted nothing.
    pub fn counters(&self, place: usize) -> Option<&FlowCounters> {
        self.places.get(place).filter(|flow| flow.arrived.packets > 0)
    }

    /// What all flows counted, seen at `now`.
    pub fn reports(&self, now: Nanos) -> Vec<FlowReport> {
        (0..self.count()).filter_map(|place| self.counters(place)).map(|flow| flow.report(now)).collect()
    }

    /// Becomes a copy of a table of the same configuration, and takes no memory; of another one it does not.
    pub fn copy_from(&mut self, other: &FlowTable) {
        if (self.most, self.heads.len()) != (other.most, other.heads.len()) {
            return;
        }
        self.places.clone_from(&other.places);
        self.heads.copy_from_slice(&other.heads);
        self.last = other.last;
        self.number = other.number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u16) -> FlowKey {
        let mut key = FlowKey { protocol: Some(17), source_port: number, destination_port: 9, ..FlowKey::default() };
        key.source[15] = 1;
        key.destination[15] = 2;
        key
    }

    fn table(most: u16, ports: &[u16]) -> FlowTable {
        FlowTable::new(&FlowCounting { most, ports: ports.to_vec() }).expect("flows are counted")
    }

    fn come(table: &mut FlowTable, number: u16, packets: u64) -> u16 {
        let place = table.place_of(key(number));
        for now in 0..packets {
            table.arrives(place, 100, now);
            table.releases(place, 100, 72, false, now);
        }
        place
    }

    #[test]
    fn every_time_lies_in_its_class() {
        let times = (0..70_000u64).chain((10..34).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]));
        for waited in times {
            let (class, upper) = (class_of(waited), upper_ns(class_of(waited)));
            assert!(waited <= upper && upper - waited <= (waited / 16).max(1 << UNIT_LOG2), "{waited} {upper}");
            assert!(class == 0 || upper_ns(class - 1) < waited, "{waited}");
        }
        assert_eq!(class_of(u64::MAX), CLASS_COUNT - 1);
        assert_eq!(upper_ns(CLASS_COUNT - 1), (1 << LONGEST_LOG2) - 1);
    }

    #[test]
    fn a_new_flow_takes_the_place_of_the_idle_one_with_the_fewest_bytes() {
        let mut table = table(3, &[]);
        let places = [(1, 5), (2, 2), (3, 9)].map(|(number, packets)| come(&mut table, number, packets));
        assert_eq!(places, [1, 2, 3]);
        assert_eq!(come(&mut table, 4, 1), 2, "the second flow has the fewest bytes");
        assert_eq!((come(&mut table, 1, 0), come(&mut table, 3, 0)), (1, 3), "the others keep their places");
        let reports = table.reports(10);
        assert_eq!(reports.iter().map(|flow| flow.in_packets).collect::<Vec<_>>(), [2, 5, 1, 9]);
        assert_eq!((reports[0].protocol, reports[0].out_payload_bytes), (None, 2 * 72));
    }

    #[test]
    fn a_flow_with_a_packet_in_the_link_keeps_its_place() {
        let mut table = table(1, &[]);
        let place = table.place_of(key(1));
        table.arrives(place, 100, 5);
        assert_eq!(table.place_of(key(2)), OTHERS);
        table.releases(place, 100, 72, true, 8);
        assert_eq!(table.place_of(key(3)), place);
    }

    #[test]
    fn a_flow_that_found_all_places_busy_gets_one_in_the_same_train_of_packets() {
        for dropped in [false, true] {
            let mut table = table(1, &[]);
            let place = table.place_of(key(1));
            table.arrives(place, 100, 5);
            let without = table.place_of(key(2));
            table.arrives(without, 100, 6);
            table.releases(without, 100, 72, false, 7);
            assert_eq!(table.place_of(key(2)), OTHERS, "the place is still busy");
            if dropped {
                table.drops(place, Drop::Loss);
            } else {
                table.releases(place, 100, 72, false, 8);
            }
            assert_eq!(table.place_of(key(2)), place);
        }
    }

    #[test]
    fn a_stated_port_adds_up_what_has_it() {
        let mut table = table(8, &[9]);
        let place = come(&mut table, 1, 3);
        assert_eq!(come(&mut table, 2, 4), place);
        let report = table.counters(usize::from(place)).expect("it counted").report(0);
        assert_eq!((report.in_packets, report.source_port, report.destination_port), (7, 0, 9));
        assert_eq!(report.source.as_deref(), Some("::1"));
        assert_eq!(table.count(), 2);
    }

    #[test]
    fn what_each_place_counts_adds_up_to_all_that_came() {
        let mut table = table(16, &[]);
        let mut random = 1u64;
        let mut came = 0;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            come(&mut table, (random >> 55) as u16, 1);
            came += 1;
            let links: usize = table.heads.iter().map(|head| chain(&table, *head)).sum();
            assert_eq!(links, table.count() - 1, "each place is in one chain");
        }
        assert_eq!(table.reports(0).iter().map(|flow| flow.out_packets).sum::<u64>(), came);
    }

    fn chain(table: &FlowTable, mut place: u16) -> usize {
        let mut length = 0;
        while place != NONE {
            length += 1;
            place = table.places[usize::from(place)].next;
        }
        length
    }
}
