//! The state of a congestion control, as columns of the series beside those of TCP_INFO.
//!
//! In: the name of a control, a socket that has it, and perhaps the layout of its private state. Out: names of columns,
//! which begin with `cc.`, and a cell for each of them. The kernel tells the state of some controls itself
//! (TCP_CC_INFO, a structure of linux/inet_diag.h for each). Our virtual kernel also copies the bytes that a control
//! keeps (icsk_ca_priv), of which a layout says what stands where.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::sync::LazyLock;

use ewan_system::socket::get_option_with_length;
use serde::Deserialize;

/// The socket option of images/kernel/patches that copies the private state.
const PRIVATE_STATE: libc::c_int = 0x4557;
/// ICSK_CA_PRIV_SIZE.
const STATE_BYTES: usize = 104;
const INFO_BYTES: usize = 32;
const PREFIX: &str = "cc.";
/// For BBR it is derived from the gains, so the word of a layout goes before it.
const MODE: &str = "mode";

/// The layouts of private states, by the controls' names.
pub type Layouts = BTreeMap<String, Vec<Field>>;

/// A variable of the private state.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    pub name: String,
    /// The offset of the word that holds it.
    pub offset: usize,
    /// 1, 2, 4 or 8: of that word.
    pub bytes: usize,
    #[serde(default)]
    pub signed: bool,
    /// The first bit of a bit-field, counted from the lowest of the word.
    #[serde(default)]
    pub bit_offset: u32,
    /// Its width; 0: the whole word.
    #[serde(default)]
    pub bits: u32,
    /// Words for values.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
}

impl Field {
    fn check(&self) -> Result<(), String> {
        let known =
            |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.[]".contains(c));
        if !known(&self.name) {
            return Err(format!("name {:?}: write letters, digits, \"_\" and \".\"", self.name));
        }
        if let Some(word) = self.values.values().find(|word| !known(word)) {
            return Err(format!("{}: value {word:?}: write letters, digits, \"_\" and \".\"", self.name));
        }
        if !matches!(self.bytes, 1 | 2 | 4 | 8) {
            return Err(format!("{}: bytes {}: give 1, 2, 4 or 8", self.name, self.bytes));
        }
        if self.offset > STATE_BYTES - self.bytes {
            return Err(format!("{}: it ends after the {STATE_BYTES} bytes that a control has", self.name));
        }
        let width = self.bytes as u32 * 8;
        if self.bit_offset >= width || self.bits > width - self.bit_offset {
            return Err(format!("{}: its bits are not in its {} bytes", self.name, self.bytes));
        }
        Ok(())
    }

    /// The text of the value in a state.
    fn read(&self, state: &[u8; STATE_BYTES]) -> String {
        let mut word = [0; 8];
        word[..self.bytes].copy_from_slice(&state[self.offset..self.offset + self.bytes]);
        let width = if self.bits > 0 { self.bits } else { self.bytes as u32 * 8 - self.bit_offset };
        // Shifted to the top and back: bits above are gone, and the sign is kept.
        let top = u64::from_le_bytes(word) << (64 - width - self.bit_offset);
        let text = match self.signed {
            true => (top.cast_signed() >> (64 - width)).to_string(),
            false => (top >> (64 - width)).to_string(),
        };
        self.values.get(&text).cloned().unwrap_or(text)
    }
}

/// Errors name the control and the field.
pub fn check(layouts: &Layouts) -> Result<(), String> {
    for (control, fields) in layouts {
        let mut names = BTreeSet::new();
        for field in fields {
            field.check().map_err(|what| format!("congestion_state of {control:?}: {what}"))?;
            if !names.insert(&field.name) {
                return Err(format!("congestion_state of {control:?}: two fields are called {:?}", field.name));
            }
        }
    }
    Ok(())
}

/// A structure of TCP_CC_INFO, and the controls that fill it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ControlInfo {
    structure: Structure,
    controls: Vec<String>,
    /// The size of the structure.
    bytes: usize,
    columns: Vec<String>,
    /// Columns whose cells are words, by the number that stands for each.
    #[serde(default)]
    words: BTreeMap<String, Vec<String>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Structure {
    Bbr,
    Vegas,
    /// That of Vegas, of controls that mean other times by it.
    Delays,
    Dctcp,
}

impl ControlInfo {
    /// A cell for each column; an empty one is not known.
    fn read(&self, info: &Bytes) -> Vec<String> {
        let cells = match self.structure {
            Structure::Bbr => bbr(info),
            Structure::Vegas => vegas(info),
            Structure::Delays => delays(info),
            Structure::Dctcp => dctcp(info),
        };
        let word = |column: &String, cell: String| {
            let number: Option<usize> = self.words.get(column).and(cell.parse().ok());
            number.and_then(|number| self.words[column].get(number).cloned()).unwrap_or(cell)
        };
        self.columns.iter().zip(cells).map(|(column, cell)| word(column, cell)).collect()
    }
}

/// The table is a file, so that labs/congestion/columns.py has the same.
static CONTROL_INFO: LazyLock<Vec<ControlInfo>> =
    LazyLock::new(|| serde_json::from_str(include_str!("congestion_info.json")).expect("a table of columns"));

fn told(control: &str) -> Option<&'static ControlInfo> {
    CONTROL_INFO.iter().find(|each| each.controls.iter().any(|name| name == control))
}

struct Bytes([u8; INFO_BYTES]);

impl Bytes {
    fn half(&self, at: usize) -> u16 {
        u16::from_ne_bytes(self.0[at..at + 2].try_into().expect("two bytes"))
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    /// Microseconds in nanoseconds; empty where a control has measured none: it begins with the largest number, with or
    /// without a sign.
    fn time(&self, at: usize) -> String {
        match self.word(at) {
            0 | 0x7fff_ffff | u32::MAX => String::new(),
            us => (u64::from(us) * 1000).to_string(),
        }
    }

    /// A number that is kept as a multiple of 1/`one`.
    fn fraction(&self, at: usize, one: u32) -> String {
        format!("{:?}", f64::from(self.word(at)) / f64::from(one))
    }
}

/// struct tcp_bbr_info.
fn bbr(info: &Bytes) -> Vec<String> {
    let bytes_per_second = u64::from(info.word(4)) << 32 | u64::from(info.word(0));
    let gain = |at| info.fraction(at, 256);
    let mode = if bytes_per_second == 0 { 0 } else { bbr_mode(info.word(12), info.word(16)) }.to_string();
    vec![bytes_per_second.saturating_mul(8).to_string(), info.time(8), gain(12), gain(16), mode]
}

/// The number of the mode, which the structure has not, but each mode has gains (in 1/256) that no other has. Before the
/// first acknowledgement of data, when no bandwidth is known either, gains say nothing: that is STARTUP.
///
/// | mode | pacing | window |
/// |---|---|---|
/// | STARTUP | 2.77 to 2.89 | 2 to 2.89 |
/// | DRAIN | 0.35 (BBR, Linux's tcp_bbr.c) to 0.5 (draft-ietf-ccwg-bbr) | 2 to 2.89 |
/// | PROBE_BW | 0.75 to 1.25 | 2 to 2.25 |
/// | PROBE_RTT | 1 | 1 (BBR), 0.5 (BBRv3) |
fn bbr_mode(pacing: u32, window: u32) -> usize {
    match (pacing, window) {
        (512.., _) => 0,
        (..160, _) => 1,
        (_, 257..) => 2,
        (_, _) => 3,
    }
}

/// struct tcpvegas_info.
fn vegas(info: &Bytes) -> Vec<String> {
    vec![info.word(0).to_string(), info.word(4).to_string(), info.time(8), info.time(12)]
}

fn delays(info: &Bytes) -> Vec<String> {
    vec![info.time(8), info.time(12)]
}

/// struct tcp_dctcp_info. A connection without ECN has none of it.
fn dctcp(info: &Bytes) -> Vec<String> {
    let enabled = info.half(0);
    if enabled == 0 {
        return vec![enabled.to_string(), String::new(), String::new(), String::new(), String::new()];
    }
    let (marked, acked) = (info.word(8).to_string(), info.word(12).to_string());
    vec![enabled.to_string(), info.half(2).to_string(), info.fraction(4, 1024), marked, acked]
}

/// The columns of all controls of a request.
#[derive(Default)]
pub struct Columns {
    pub names: Vec<String>,
    controls: BTreeMap<String, Control>,
}

/// With the places of its columns.
#[derive(Default)]
struct Control {
    told: Option<(&'static ControlInfo, Vec<usize>)>,
    fields: Vec<(Field, usize)>,
}

impl Columns {
    /// Whether something of this control may be told.
    pub fn may_have(control: &str, layouts: &Layouts) -> bool {
        told(control).is_some() || layouts.contains_key(control)
    }

    pub fn has(&self, control: &str) -> bool {
        self.controls.contains_key(control)
    }

    /// Adds those of a control of which this kernel tells something; `socket` has it.
    pub fn add(&mut self, control: &str, layouts: &Layouts, socket: &impl AsFd) {
        let told = told(control).filter(|told| info(socket, told).is_some());
        let layout = layouts.get(control).filter(|_| state(socket).is_some());
        self.insert(control, told, layout.map_or(&[], Vec::as_slice));
    }

    /// Where the kernel reports a field too, in units, the value of the kernel counts.
    fn insert(&mut self, control: &str, told: Option<&'static ControlInfo>, layout: &[Field]) {
        let own = told.map_or(&[][..], |told| &told.columns);
        let told = told.map(|told| (told, told.columns.iter().map(|name| self.place(name)).collect()));
        let fields = layout.iter().filter(|field| field.name == MODE || !own.contains(&field.name));
        let fields = fields.map(|field| (field.clone(), self.place(&field.name))).collect();
        self.controls.insert(control.to_owned(), Control { told, fields });
    }

    /// The names of a control's variables, without what the columns begin with.
    pub fn of(&self, control: &str) -> Vec<&str> {
        let Some(control) = self.controls.get(control) else { return Vec::new() };
        let told = control.told.iter().flat_map(|(_, places)| places);
        let places: BTreeSet<usize> = told.chain(control.fields.iter().map(|(_, place)| place)).copied().collect();
        places.into_iter().map(|place| self.names[place].trim_start_matches(PREFIX)).collect()
    }

    /// The place of a variable among the cells.
    pub fn find(&self, variable: &str) -> Option<usize> {
        self.names.iter().position(|name| name.strip_prefix(PREFIX) == Some(variable))
    }

    fn place(&mut self, name: &str) -> usize {
        let name = format!("{PREFIX}{name}");
        self.names.iter().position(|each| *each == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }

    /// A cell for each column, of a socket with this control now; empty where it has none.
    pub fn cells(&self, control: Option<&str>, socket: &impl AsFd) -> Vec<String> {
        let mut cells = vec![String::new(); self.names.len()];
        let Some(control) = control.and_then(|name| self.controls.get(name)) else { return cells };
        if let Some((told, places)) = &control.told {
            if let Some(info) = info(socket, told) {
                told.read(&info).into_iter().zip(places).for_each(|(cell, &place)| cells[place] = cell);
            }
        }
        if !control.fields.is_empty() {
            if let Some(state) = state(socket) {
                control.fields.iter().for_each(|(field, place)| cells[*place] = field.read(&state));
            }
        }
        cells
    }
}

/// None where the kernel tells less than the structure.
fn info(socket: &impl AsFd, told: &ControlInfo) -> Option<Bytes> {
    let read = get_option_with_length(socket, libc::IPPROTO_TCP, libc::TCP_CC_INFO);
    read.ok().filter(|(_, length)| *length >= told.bytes).map(|(bytes, _)| Bytes(bytes))
}

/// None in a kernel that does not copy it.
fn state(socket: &impl AsFd) -> Option<[u8; STATE_BYTES]> {
    let read = get_option_with_length(socket, libc::IPPROTO_TCP, PRIVATE_STATE);
    read.ok().filter(|(_, length)| *length == STATE_BYTES).map(|(bytes, _)| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u32]) -> Bytes {
        let mut bytes = [0; INFO_BYTES];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        Bytes(bytes)
    }

    fn field(text: &str) -> Field {
        serde_json::from_str(text).expect("a field")
    }

    #[test]
    fn bbr_tells_bandwidth_in_bits_and_gains_as_ratios() {
        let cells = told("bbr").expect("a structure").read(&words(&[1_250_000, 0, 20_000, 739, 739]));
        assert_eq!(cells, ["10000000", "20000000", "2.88671875", "2.88671875", "STARTUP"]);
        for gain in [0, 256] {
            let cells = told("bbr").expect("a structure").read(&words(&[0, 0, 20_000, gain, gain]));
            assert_eq!(cells[4], "STARTUP", "no data were acknowledged");
        }
        assert_eq!(bbr(&words(&[0, 1, u32::MAX, 256, 256]))[..2], ["34359738368", ""]);
    }

    #[test]
    fn each_mode_of_bbr_is_known_by_its_gains() {
        let modes = &told("bbr").expect("a structure").words[MODE];
        for (mode, gains) in [
            ("STARTUP", &[(739, 739), (709, 512)][..]),
            ("DRAIN", &[(88, 739), (89, 512), (128, 512)]),
            ("PROBE_BW", &[(320, 512), (192, 512), (256, 512), (230, 512), (320, 576)]),
            ("PROBE_RTT", &[(256, 256), (256, 128)]),
        ] {
            assert!(gains.iter().all(|(pacing, window)| modes[bbr_mode(*pacing, *window)] == mode), "{mode}");
        }
    }

    #[test]
    fn vegas_has_no_rtt_before_the_first() {
        assert_eq!(vegas(&words(&[1, 4, 20_000, 20_100])), ["1", "4", "20000000", "20100000"]);
        assert_eq!(vegas(&words(&[1, 0, 0x7fff_ffff, 0x7fff_ffff])), ["1", "0", "", ""]);
        assert_eq!(delays(&words(&[1, 0, 0, 9])), ["", "9000"]);
    }

    #[test]
    fn dctcp_without_ecn_has_no_alpha() {
        assert_eq!(dctcp(&words(&[1 << 16 | 1, 512, 1448, 2896])), ["1", "1", "0.5", "1448", "2896"]);
        assert_eq!(dctcp(&words(&[])), ["0", "", "", "", ""]);
    }

    #[test]
    fn fields_are_read_by_their_layout() {
        let mut state = [0; STATE_BYTES];
        state[8..12].copy_from_slice(&0b1110_1011_u32.to_le_bytes());
        state[96..].copy_from_slice(&(-5_i64).to_le_bytes());
        let read = |text: &str| field(text).read(&state);
        assert_eq!(read(r#"{"name": "word", "offset": 8, "bytes": 4}"#), "235");
        let mode = r#"{"name": "mode", "offset": 8, "bytes": 4, "bits": 3, "values": {"3": "PROBE_RTT"}}"#;
        assert_eq!(read(mode), "PROBE_RTT");
        assert_eq!(read(r#"{"name": "high", "offset": 8, "bytes": 1, "bit_offset": 4, "bits": 4}"#), "14");
        assert_eq!(
            read(r#"{"name": "low", "offset": 8, "bytes": 1, "bit_offset": 4, "bits": 4, "signed": true}"#),
            "-2"
        );
        assert_eq!(read(r#"{"name": "last", "offset": 96, "bytes": 8, "signed": true}"#), "-5");
        assert_eq!(read(r#"{"name": "whole", "offset": 96, "bytes": 8}"#), "18446744073709551611");
        assert_eq!(read(r#"{"name": "part", "offset": 96, "bytes": 2, "signed": true}"#), "-5");
    }

    #[test]
    fn a_layout_that_cannot_be_is_refused() {
        for wrong in [
            r#"{"name": "a,b", "offset": 0, "bytes": 4}"#,
            r#"{"name": "a", "offset": 0, "bytes": 3}"#,
            r#"{"name": "a", "offset": 101, "bytes": 4}"#,
            r#"{"name": "a", "offset": 0, "bytes": 4, "bit_offset": 30, "bits": 3}"#,
            r#"{"name": "a", "offset": 0, "bytes": 4, "values": {"1": "x\ny"}}"#,
        ] {
            let layouts = Layouts::from([("mine".into(), vec![field(wrong)])]);
            let why = check(&layouts).expect_err(wrong);
            assert!(why.starts_with("congestion_state of \"mine\": "), "{why}");
        }
        let same = field(r#"{"name": "a", "offset": 0, "bytes": 4}"#);
        let why = check(&Layouts::from([("mine".into(), vec![same.clone(), same])])).expect_err("two of a name");
        assert!(why.contains("two fields"), "{why}");
    }

    #[test]
    fn controls_share_columns_of_a_name() {
        let mut columns = Columns::default();
        columns.insert("bbr", told("bbr"), &[]);
        let layout =
            ["cwnd_gain", "round"].map(|name| field(&format!(r#"{{"name": "{name}", "offset": 0, "bytes": 4}}"#)));
        columns.insert("mine", None, &layout);
        columns.insert("bbr3", told("bbr3"), &layout);
        let names =
            ["bw_bps", "min_rtt_ns", "pacing_gain", "cwnd_gain", "mode", "round"].map(|name| format!("cc.{name}"));
        assert_eq!(columns.names, names);
        assert_eq!(columns.controls["mine"].fields.iter().map(|(_, place)| *place).collect::<Vec<_>>(), [3, 5]);
        assert_eq!(columns.controls["bbr3"].fields.iter().map(|(_, place)| *place).collect::<Vec<_>>(), [5]);
        assert_eq!((columns.of("mine"), columns.find("round")), (vec!["cwnd_gain", "round"], Some(5)));
        columns.insert("bbr2", told("bbr2"), &[field(r#"{"name": "mode", "offset": 0, "bytes": 4}"#)]);
        assert_eq!(columns.controls["bbr2"].fields[0].1, 4, "a layout knows the mode better");
    }

    #[test]
    fn a_control_of_which_the_kernel_tells_nothing_has_no_columns() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut columns = Columns::default();
        let layouts = Layouts::from([("cubic".into(), vec![field(r#"{"name": "a", "offset": 0, "bytes": 4}"#)])]);
        columns.add("cubic", &Layouts::new(), &listener);
        assert!(columns.names.is_empty());
        if state(&listener).is_none() {
            columns.add("cubic", &layouts, &listener);
            assert!(columns.names.is_empty() && columns.cells(Some("cubic"), &listener).is_empty());
        }
    }
}
