//! `ewan-node capture`: the packets at interfaces, into a pcapng file of bounded size or to whoever reads standard output.
//!
//! In: interfaces, of this node or of several, a filter, how many bytes of each packet, how many of the file, perhaps from
//! when until when. Out: the file, whole when a signal, a bound or that time has asked for its end, its packets in the
//! order of their times. What has no room in it is counted in its last blocks. The kernel stamps packets (CLOCK_REALTIME),
//! as it stamps those that a link gets: one that leaves when the driver gets it, behind the interface's queue, one that
//! comes in when it enters the stack.

mod merger;
mod pcapng;
mod tap;

use std::fs;
use std::io::{BufWriter, ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use ewan_model::frame::TAG;
use ewan_system::signals::{Signals, END};
use ewan_system::socket::FilterInstruction;
use ewan_system::{namespace, schedule};
use serde::Serialize;

use ewan_batch::T0;
use merger::PacketMerger;
use pcapng::{Counts, File, Packet};
use tap::{Place, Tap, TapDirection};

/// Between looks. Nothing is stamped here, so looking late costs room alone.
const TURN: Duration = Duration::from_millis(20);
/// A packet is in our socket so long after its stamp at most, or another may be written before it.
const LATEST_NS: u64 = 2_000_000;
/// What is stamped until the last moment has come to the socket by then.
const SETTLES_NS: u64 = 1_000_000;
/// Where a command may put files (emulator/batch/src/command.rs).
const OUT: &str = "EWAN_OUT";
/// In the place of a file's name: standard output.
const PIPE: &str = "-";

#[derive(clap::Args)]
pub struct Request {
    /// An interface of this node; several times for several
    #[arg(long = "interface", required_unless_present = "taps")]
    interfaces: Vec<String>,
    /// What is captured where, as JSON: [{"name", "netns", "interface", "packets": "all", "entering" or "leaving"}]
    #[arg(long, conflicts_with = "interfaces")]
    taps: Option<Taps>,
    /// How many bytes of each packet are kept
    #[arg(long, default_value_t = 96, value_parser = clap::value_parser!(u32).range(14..=262_144))]
    snap_bytes: u32,
    /// The most that the file may have
    #[arg(long, default_value_t = 64_000_000)]
    most_bytes: u64,
    /// End at the first packet that has no room in the file; otherwise those without room are counted
    #[arg(long)]
    end_when_full: bool,
    /// End when so many packets are in the file
    #[arg(long)]
    most_packets: Option<u64>,
    /// End after so long
    #[arg(long)]
    longest_ns: Option<u64>,
    /// Packets that were stamped earlier after T0 are left out, and not counted
    #[arg(long)]
    from_ns: Option<u64>,
    /// It ends then, counted from T0
    #[arg(long)]
    until_ns: Option<u64>,
    /// A program of the classic packet filter: instructions "code jt jf k", with commas between them
    #[arg(long, default_value = "")]
    filter: Filter,
    /// The CPUs that this may run on
    #[arg(long, value_delimiter = ',')]
    cpus: Vec<u32>,
    /// Say at the end, as JSON on standard error, what was seen, kept and dropped, and why it ended
    #[arg(long)]
    tell: bool,
    /// Say in the file, each turn, until when all packets are in it: for whoever puts several captures together
    #[arg(long)]
    marks: bool,
    /// The file, below $EWAN_OUT where that is set; - is standard output
    file: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Taps(Vec<Place>);

impl FromStr for Taps {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        serde_json::from_str(text).map(Taps)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Filter(Vec<FilterInstruction>);

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let instruction = |text: &str| {
            let words: Vec<&str> = text.split(' ').collect();
            let &[code, jump_true, jump_false, operand] = words.as_slice() else { return None };
            Some(FilterInstruction {
                code: code.parse().ok()?,
                jump_true: jump_true.parse().ok()?,
                jump_false: jump_false.parse().ok()?,
                operand: operand.parse().ok()?,
            })
        };
        let read = |text: &str| instruction(text).ok_or_else(|| format!("{text:?} is not \"code jt jf k\""));
        text.split(',').filter(|part| !part.is_empty()).map(read).collect::<std::result::Result<_, _>>().map(Filter)
    }
}

/// Why a capture ended.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
enum End {
    Signal,
    Full,
    Packets,
    Time,
    /// Nobody reads it any more.
    Reader,
}

#[derive(Serialize)]
struct Summary {
    seen: u64,
    kept: u64,
    dropped: u64,
    end: End,
}

/// Until a signal says that it is enough, or a bound is reached.
pub fn run(request: &Request) -> Result<(), String> {
    let signals = Signals::block(&END)?;
    let window = request.window()?;
    schedule::keep_to(&request.cpus)?;
    let places = request.places();
    let mut names: Vec<String> = Vec::new();
    for place in &places {
        if !names.contains(&place.name) {
            names.push(place.name.clone());
        }
    }
    let interface = |place: &Place| names.iter().position(|name| *name == place.name).expect("each is in it");
    let interfaces: Vec<usize> = places.iter().map(interface).collect();
    let home = namespace::own()?;
    let mut taps = Vec::new();
    for place in &places {
        taps.push(Tap::open(place, &request.filter.0, &home)?);
    }
    let (out, path) = request.output()?;
    let say = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut file = File::begin(out, &names, request.snap_bytes, request.most_bytes).map_err(say)?;
    let mut written = vec![0; names.len()];
    let ended = catch(request, &window, &signals, &mut taps, &interfaces, &mut file, &mut written);
    let (last_ns, end) = match ended {
        Ok(ended) => ended,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => (0, End::Reader),
        Err(error) => return Err(say(error)),
    };
    let mut counts: Vec<Counts> = written.iter().map(|&written| Counts { written, ..Counts::default() }).collect();
    for (tap, &interface) in taps.iter().zip(&interfaces) {
        let of_tap = tap.counts();
        counts[interface].seen += of_tap.seen;
        counts[interface].dropped += of_tap.dropped;
    }
    match file.end(last_ns, &counts) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(say(error)),
        _ => {}
    }
    if request.tell {
        let sum = |of: fn(&Counts) -> u64| counts.iter().map(of).sum();
        let told = Summary {
            seen: sum(|each| each.seen),
            kept: sum(|each| each.written),
            dropped: sum(|each| each.dropped),
            end,
        };
        eprintln!("{}", serde_json::to_string(&told).map_err(|error| error.to_string())?);
    }
    Ok(())
}

/// Writes what comes; gives the time of the last packet, and why it ended.
fn catch(
    request: &Request,
    window: &Range<u64>,
    signals: &Signals,
    taps: &mut [Tap],
    interfaces: &[usize],
    file: &mut File<impl Write>,
    written: &mut [u64],
) -> std::io::Result<(u64, End)> {
    let over_ns = request.longest_ns.map_or(u64::MAX, |longest_ns| now_ns().saturating_add(longest_ns));
    let over_ns = over_ns.min(window.end.saturating_add(SETTLES_NS));
    let mut space = vec![0; request.snap_bytes as usize + TAG];
    let (mut waiting, mut last_ns) = (PacketMerger::default(), 0);
    loop {
        let left = Duration::from_nanos(over_ns.saturating_sub(now_ns()));
        let mut end = signals.wait(Some(TURN.min(left))).is_some().then_some(End::Signal);
        let now = now_ns();
        if end.is_none() && now >= over_ns {
            end = Some(End::Time);
        }
        for (tap, &interface) in taps.iter_mut().zip(interfaces) {
            tap.take(window, &mut space, |came| waiting.add(interface, came))?;
        }
        // With one tap they come in order; of several, one may have what is older than what another one just had.
        let until_ns = if end.is_some() || taps.len() == 1 { u64::MAX } else { now.saturating_sub(LATEST_NS) };
        let mut full = None;
        waiting.until(until_ns, |packet: &Packet<'_>| {
            if full.is_some() {
                return Ok(());
            }
            last_ns = packet.time_ns;
            if file.packet(packet)? {
                written[packet.interface] += 1;
                let kept: u64 = written.iter().sum();
                full = request.most_packets.filter(|&most| kept >= most).map(|_| End::Packets);
            } else if request.end_when_full {
                full = Some(End::Full);
            }
            Ok(())
        })?;
        if request.marks {
            file.mark(now.saturating_sub(LATEST_NS))?;
        }
        if request.file == Path::new(PIPE) {
            file.flush()?;
        }
        if let Some(end) = full.or(end) {
            return Ok((last_ns, end));
        }
    }
}

impl Request {
    /// From when until when packets are kept, in ns since 1970.
    fn window(&self) -> Result<Range<u64>, String> {
        if self.from_ns.is_none() && self.until_ns.is_none() {
            return Ok(0..u64::MAX);
        }
        let t0: Option<u64> = std::env::var(T0).ok().and_then(|text| text.parse().ok());
        let t0 = t0.ok_or_else(|| format!("--from-ns and --until-ns need T0, in {T0}"))?;
        Ok(t0.saturating_add(self.from_ns.unwrap_or(0))..self.until_ns.map_or(u64::MAX, |ns| t0.saturating_add(ns)))
    }

    fn places(&self) -> Vec<Place> {
        let own = |interface: &String| Place {
            name: interface.clone(),
            netns: None,
            interface: interface.clone(),
            packets: TapDirection::All,
        };
        self.taps.as_ref().map_or_else(|| self.interfaces.iter().map(own).collect(), |taps| taps.0.clone())
    }

    /// Where the file goes, and its name for errors.
    fn output(&self) -> Result<(BufWriter<Box<dyn Write>>, PathBuf), String> {
        let (out, path): (Box<dyn Write>, _) = if self.file == Path::new(PIPE) {
            (Box::new(std::io::stdout()), "standard output".into())
        } else {
            let out = std::env::var_os(OUT);
            let path = out.map_or_else(|| self.file.clone(), |out| Path::new(&out).join(&self.file));
            let file = create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            (Box::new(file), path)
        };
        Ok((BufWriter::with_capacity(1 << 20, out), path))
    }
}

/// An empty file to write to; an error for a link of another user, who could have root write over any file.
fn create(path: &Path) -> std::io::Result<fs::File> {
    let own = |found: &fs::Metadata| [0, nix::unistd::geteuid().as_raw()].contains(&found.uid());
    let follows = path.symlink_metadata().is_ok_and(|found| found.is_symlink() && own(&found));
    let flags = if follows { 0 } else { libc::O_NOFOLLOW };
    fs::OpenOptions::new().write(true).create(true).truncate(true).custom_flags(flags).open(path)
}

/// The clock that stamps packets.
fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_of_another_user_leads_nowhere_and_ones_own_does() {
        let place = std::env::temp_dir().join(format!("ewan-capture-{}", std::process::id()));
        fs::create_dir(&place).expect("a directory");
        let (link, target) = (place.join("link"), place.join("target"));
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        let own = create(&link).is_ok() && target.exists();
        // Needs root.
        let given = std::os::unix::fs::lchown(&link, Some(65534), None).is_ok();
        let refused = create(&link).is_err();
        fs::remove_dir_all(&place).expect("removed");
        assert!(own && refused == given);
    }

    #[test]
    fn filters_are_read_and_wrong_ones_refused() {
        let read = "40 0 0 12,6 0 0 262144".parse::<Filter>().expect("a filter");
        assert_eq!(read.0[1], FilterInstruction { code: 6, jump_true: 0, jump_false: 0, operand: 262_144 });
        assert!("".parse::<Filter>().expect("none").0.is_empty());
        for wrong in ["40 0 0", "40 0 0 x", "40 300 0 1", "40  0 0 1"] {
            assert!(wrong.parse::<Filter>().unwrap_err().contains("is not"), "{wrong}");
        }
    }

    #[test]
    fn taps_are_read_and_unknown_keys_refused() {
        let text = r#"[{"name": "core:r1", "netns": "/run/netns/x", "interface": "eth0", "packets": "leaving"}]"#;
        let Taps(read) = text.parse().expect("a tap");
        assert_eq!((read[0].name.as_str(), read[0].packets), ("core:r1", TapDirection::Leaving));
        let error = text.replace("netns", "colour").parse::<Taps>().unwrap_err();
        assert!(error.to_string().contains("colour"), "{error}");
    }
}
