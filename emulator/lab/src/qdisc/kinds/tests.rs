//! The bytes that the kernel gets.

use ewan_model::config::Queue;
use ewan_system::netlink::attributes;

use super::*;

const WIRE: Sizes = Sizes { overhead_bytes: 24, minimum_bytes: 84, mtu: 1500 };

fn direction() -> Direction {
    Direction {
        seed: 0x0123_4567_89ab_cdef,
        store_packets: 1000,
        ..Direction::plain(100_000_000, Queue::drop_tail(None, Some(1_250_000)), 50_000_000)
    }
}

/// The attributes that `fill` writes.
fn written(fill: impl FnOnce(&mut Attributes)) -> Vec<(u16, Vec<u8>)> {
    let mut bytes = Vec::new();
    fill(&mut Attributes::new(&mut bytes));
    attributes(&bytes).map(|(kind, value)| (kind, value.to_vec())).collect()
}

fn in_words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|word| u32::from_ne_bytes(word.try_into().expect("four bytes"))).collect()
}

#[test]
fn probabilities_fill_32_bits() {
    assert_eq!([below(0), below(ONE_PPB / 2), below(ONE_PPB)], [0, 1 << 31, u32::MAX]);
    assert_eq!([up_to(0), up_to(1), up_to(ONE_PPB / 2), up_to(ONE_PPB)], [0, 3, (1 << 31) - 1, u32::MAX]);
    assert_eq!(share(ONE_PPB / 2, ONE_PPB / 2), [1 << 31, (1 << 31) - 1], "their sum fits");
}

#[test]
fn a_size_table_counts_what_the_wire_carries() {
    let table = written(|table| sizes(table, WIRE));
    assert_eq!(in_words(&table[0].1)[1..], [24, 1, 84, 1500, 1539]);
    let entry = |bytes: usize| u16::from_ne_bytes([table[1].1[2 * bytes], table[1].1[2 * bytes + 1]]);
    assert_eq!([entry(66), entry(84), entry(85), entry(1538)], [84, 84, 85, 1538]);
    assert_eq!([WIRE.counted(28), WIRE.counted(52), WIRE.counted(1500)], [84, 90, 1538]);
}

#[test]
fn ip_framing_takes_the_header_off_and_needs_no_table() {
    let ip = Sizes { overhead_bytes: -14, minimum_bytes: 0, mtu: 1500 };
    let table = written(|table| sizes(table, ip));
    assert_eq!(table.len(), 1);
    assert_eq!(in_words(&table[0].1)[1] as i32, -14);
    assert_eq!(ip.counted(1500), 1500);
}

#[test]
fn netem_delays_in_ns_and_holds_more_than_the_link() {
    let way = direction();
    assert_eq!(in_words(&netem_head(&way)), [0, 14_000, 0, 0, 0, 0]);
    let expected = vec![(10, 50_000_000u64.to_ne_bytes().to_vec()), (14, way.seed.to_ne_bytes().to_vec())];
    assert_eq!(written(|options| netem(options, &way)), expected);
    let large = Direction { store_packets: 1 << 40, ..way };
    assert_eq!(in_words(&netem_head(&large))[1], i32::MAX as u32);
}

#[test]
fn gilbert_elliott_gives_netem_what_passes_in_the_bad_state() {
    let loss = Loss::GilbertElliott {
        to_bad_ppb: ONE_PPB / 4,
        to_good_ppb: ONE_PPB / 2,
        loss_good_ppb: 0,
        loss_bad_ppb: 3 * (ONE_PPB / 4),
    };
    let options = written(|options| netem(options, &Direction { loss, ..direction() }));
    let (kind, model) = &options[1];
    assert_eq!(*kind, 5);
    assert_eq!(in_words(model)[1..], [1 << 30, 1 << 31, (1 << 30) - 1, 0]);
}

#[test]
fn psp_is_told_the_rate_in_bits_and_the_overhead_with_its_sign() {
    let class = Class {
        rate_bps: 40_000_000_001,
        overhead_bytes: -14,
        minimum_bytes: 0,
        dither_ns: 123_040,
        seed: 9,
        departure: Departure::End,
    };
    let options = written(|options| psp_class(options, &class));
    let expected = [
        (4, 40_000_000_001u64.to_ne_bytes().to_vec()),
        (5, (-14i32).to_ne_bytes().to_vec()),
        (6, 0u32.to_ne_bytes().to_vec()),
        (7, vec![1]),
        (8, 123_040u64.to_ne_bytes().to_vec()),
        (9, 9u64.to_ne_bytes().to_vec()),
    ];
    assert_eq!(options, expected);
}

#[test]
fn psp_is_told_the_line_that_gap_packets_fill() {
    assert_eq!(written(|options| psp(options, Mode::Timer, 2)), [(1, vec![0]), (2, 2u32.to_ne_bytes().to_vec())]);
    let gaps = written(|options| psp(options, Mode::Gap { line_bps: 100_000_000_000 }, 2));
    let line = 100_000_000_000u64.to_ne_bytes().to_vec();
    assert_eq!(gaps, [(1, vec![1]), (2, 2u32.to_ne_bytes().to_vec()), (3, line)]);
}

#[test]
fn a_burst_lasts_its_bytes_at_the_rate() {
    assert_eq!(burst_ticks(125_000_000, 125_000), 15_625); // 1 ms at 1 Gbit/s
    assert_eq!(burst_ticks(12_500_000_000, 125_000), 157); // 10 µs at 100 Gbit/s, rounded up
    assert_eq!(burst_ticks(1_000, 131_072), 2_048_000_000); // 131 s at 8 kbit/s
}

#[test]
fn reds_average_sinks_with_the_time_of_packets_that_did_not_come() {
    let (cell_log2, idle) = red_idle(9, 123.04); // 512 packets of 123 µs: to 1/e in 63 ms
    assert_eq!(cell_log2, 16);
    assert_eq!(idle[..4], [0, 2, 3, 5], "halves: cells of 65.5 ms × 1.5");
    assert_eq!(idle[255], 31);
    assert_eq!(red_idle(0, 1.0).0, 0);
}

#[test]
fn the_other_active_queues_are_told_microseconds_and_sixteenths() {
    let codel = written(|options| codel(options, 812, 5_000_000, 100_000_000, true));
    assert_eq!(codel.iter().map(|(_, value)| in_words(value)[0]).collect::<Vec<_>>(), [5000, 812, 100_000, 1]);
    let pie = written(|options| pie(options, 812, [15_000_000, 15_000_000], [125, 1250], false));
    assert_eq!(pie.iter().map(|(_, value)| in_words(value)[0]).collect::<Vec<_>>(), [15_000, 812, 15_000, 2, 20, 0]);
    let config =
        FqCodelConfig { flows: 64, quantum_bytes: 1538, target_ns: 5_000_000, interval_ns: 100_000_000, ecn: true };
    let fq = |made| written(|options| fq_codel(options, 812, &config, made));
    let numbers = fq(true).iter().map(|(kind, value)| (*kind, in_words(value)[0])).collect::<Vec<_>>();
    assert_eq!(numbers, [(1, 5000), (2, 812), (3, 100_000), (4, 1), (5, 64), (6, 1538), (9, u32::MAX)]);
    assert!(fq(false).iter().all(|(kind, _)| *kind != 5), "the number of queues is told once");
}

#[test]
fn dualpi2s_gains_are_the_kernels_own_by_default() {
    let config = DualPi2Config {
        target_ns: 15_000_000,
        update_ns: 16_000_000,
        alpha_mhz: 160,
        beta_mhz: 3200,
        coupling: 2,
        step_ns: 1_000_000,
        classic_ppb: 100_000_000,
    };
    let told = written(|options| dualpi2(options, 812, &config));
    let numbers = told[..7].iter().map(|(kind, value)| (*kind, in_words(value)[0])).collect::<Vec<_>>();
    assert_eq!(numbers, [(1, 812), (2, u32::MAX), (3, 15_000), (4, 16_000), (5, 41), (6, 819), (8, 1000)]);
    assert_eq!(told[7..], [(10, vec![2]), (13, vec![10])]);
}
