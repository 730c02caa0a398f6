//! The sockets of commands whose flows are those of their own sockets: command_sockets.csv, with the columns of
//! labs/record/columns.py.
//!
//! In: commands as they come and go. Out: a row for each socket of TCP and UDP that one of them, or a process that it started,
//! had. The processes of a command have EWAN_OUT of it in their environment; a socket is a process's when it is among its
//! descriptors at a look, or came in at a port at which the process listened. The kernel notes each socket that ends, also
//! one that no look saw with its owner: it is the command's that alone ran in its node meanwhile, and where several ran,
//! nobody's, and its row says so.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ewan_lab::exec;
use ewan_plan::Plan;
use ewan_system::namespace;
use ewan_system::netlink::sockets::{KnownSocket, Sockets, TCP};
use ewan_system::process::Pidfd;
use ewan_system::socket::get_option;
use ewan_traffic::table::{add, Row, Table};
use nix::unistd::{getpgid, Pid};

use super::command::Entry;

/// From one look to the next: in the virtual clock looks take no time, in the live clock each takes about a millisecond on a
/// machine with many processes.
const VIRTUAL_LOOK_NS: u64 = 10_000_000;
const LIVE_LOOK_NS: u64 = 100_000_000;
/// A socket that had an owner at so many looks, and never a command, is somebody else's.
const FOREIGN_LOOKS: u8 = 2;
const YIELDS: usize = 3;
const OWN: &str = "EWAN_OUT=";

/// A socket of a command; of none where it is not known whose it is.
struct SocketRow {
    command: Option<usize>,
    node: String,
    name: SocketName,
    first_ns: i64,
    last_ns: i64,
}

impl Row for SocketRow {
    const COLUMNS: &'static str = "command,node,protocol,address,port,peer,peer_port,first_ns,last_ns";

    fn line(&self, line: &mut String) {
        let Self { command, node, name, first_ns, last_ns } = self;
        if let Some(command) = command {
            add(line, format_args!("{command}"));
        }
        let protocol = if name.protocol == TCP { "tcp" } else { "udp" };
        add(line, format_args!(",{node},{protocol},{},{},", name.local.ip(), name.local.port()));
        match name.peer {
            Some(peer) => add(line, format_args!("{},{}", peer.ip(), peer.port())),
            None => line.push(','),
        }
        add(line, format_args!(",{first_ns},{last_ns}"));
    }
}

/// A socket's protocol and addresses; without a peer it is all that comes and goes at its port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SocketName {
    protocol: u8,
    local: SocketAddr,
    peer: Option<SocketAddr>,
}

impl SocketName {
    fn of(socket: &KnownSocket) -> Self {
        // A socket of UDP may send to any address, whichever its peer is.
        let peer = Some(socket.peer).filter(|peer| socket.protocol == TCP && peer.port() != 0);
        SocketName { protocol: socket.protocol, local: socket.local, peer }
    }
}

/// The history of a socket: all that the looks found.
#[derive(Debug)]
struct SocketHistory {
    names: BTreeSet<SocketName>,
    /// The inode; 0 while no process has the socket, as before a connection is accepted.
    inode: u32,
    listens: bool,
    /// The time of the last look at which it was not there.
    since_ns: i64,
    first_ns: i64,
    last_ns: i64,
    owners: BTreeSet<usize>,
    /// Looks at which it was somebody's, and no command's.
    others: u8,
}

/// A node in which a command runs whose sockets are wanted.
struct WatchedNode {
    name: String,
    sockets: Sockets,
    seen: HashMap<u64, SocketHistory>,
    /// Ports at which commands listened, with the command.
    listening: BTreeMap<u16, usize>,
}

pub struct SocketWatch {
    table: Table<SocketRow>,
    nodes: Vec<WatchedNode>,
    /// Directories of the commands of those nodes, by which their processes know them: number in the list of commands.
    directories: HashMap<PathBuf, usize>,
    /// The processes of the last look, and whose they are.
    processes: HashMap<i32, Option<usize>>,
    /// The number of the process that was made last, at the last look.
    newest: Option<String>,
    /// Sockets that were in a list of the kernel, or will be in none, by their inodes.
    listed: HashSet<u32>,
    /// When a command last had a process.
    alive_ns: HashMap<usize, i64>,
    interval_ns: u64,
    due_ns: Option<u64>,
    last_ns: i64,
}

impl SocketWatch {
    /// None where no command's sockets are wanted. `live`: whether it is the live clock.
    pub fn open(entries: &[Entry], plan: &Plan, out: &Path, live: bool) -> Result<Option<Self>, String> {
        let names: BTreeSet<&str> =
            entries.iter().filter(|entry| entry.own_sockets).map(|entry| &*entry.node).collect();
        if names.is_empty() {
            return Ok(None);
        }
        let home = namespace::own()?;
        let mut nodes = Vec::new();
        for name in &names {
            namespace::enter(exec::namespace_of(plan, name)?)?;
            let sockets = Sockets::open();
            namespace::enter(&home).expect("return to the own network namespace");
            let sockets = sockets.map_err(|error| format!("{name}: {error}"))?;
            nodes.push(WatchedNode {
                name: (*name).to_owned(),
                sockets,
                seen: HashMap::new(),
                listening: BTreeMap::new(),
            });
        }
        let there = entries.iter().enumerate().filter(|(_, entry)| names.contains(&*entry.node));
        Ok(Some(SocketWatch {
            table: Table::create(&out.join("command_sockets.csv"))?,
            nodes,
            directories: there.map(|(place, entry)| (out.join(&entry.files), place)).collect(),
            processes: HashMap::new(),
            newest: None,
            listed: HashSet::new(),
            alive_ns: HashMap::new(),
            interval_ns: if live { LIVE_LOOK_NS } else { VIRTUAL_LOOK_NS },
            due_ns: None,
            last_ns: i64::MIN,
        }))
    }

    /// When the next look is due, from T0; none: no command has begun.
    pub fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// A command begins: what is there already is not its own.
    pub fn begins(&mut self, place: usize, entries: &[Entry], now_ns: i64) -> Result<(), String> {
        if self.nodes.iter().any(|node| node.name == entries[place].node) {
            self.look(entries, now_ns, true)?;
        }
        Ok(())
    }

    /// Looks if it is time.
    pub fn look_if_due(&mut self, entries: &[Entry], now_ns: i64) -> Result<(), String> {
        if self.due_ns.is_some_and(|due_ns| due_ns as i64 <= now_ns) {
            self.look(entries, now_ns, false)?;
        }
        Ok(())
    }

    /// The kernel's list takes long to read, and is read where a command has a socket that was in none so far, or where it is
    /// `wanted`.
    fn look(&mut self, entries: &[Entry], now_ns: i64, wanted: bool) -> Result<(), String> {
        let last_ns = self.last_ns;
        let mut owners = self.owners(entries, now_ns);
        let mut lists = Vec::new();
        if wanted || owners.keys().any(|inode| !self.listed.contains(inode)) {
            for node in &self.nodes {
                lists.push(node.sockets.all().map_err(|error| format!("{}: {error}", node.name))?);
            }
            self.listed.extend(lists.iter().flatten().map(|socket| socket.inode));
            // One that is in the list, and no command's afterwards, is not a command's, unless it has just been closed.
            owners = self.owners(entries, now_ns);
        }
        // A thread of the kernel writes the notices.
        (0..YIELDS).for_each(|_| std::thread::yield_now());
        for (place, node) in self.nodes.iter_mut().enumerate() {
            // Those that ended are asked for last: one that is in neither list has not begun.
            let ended = node.sockets.ended().map_err(|error| format!("{}: {error}", node.name))?;
            if let Some(open) = lists.get(place) {
                node.see(open, last_ns, now_ns);
            }
            node.own(&owners);
            for socket in ended {
                let gone = SocketName::of(&socket);
                let seen = node.seen.remove(&socket.cookie);
                let mut seen = seen.unwrap_or_else(|| SocketHistory::new(last_ns, now_ns));
                if gone.local.port() != 0 {
                    seen.names.insert(gone);
                }
                seen.last_ns = now_ns;
                node.tell(&self.table, &seen, entries, &self.alive_ns)?;
            }
        }
        self.last_ns = now_ns;
        self.due_ns = Some((now_ns.max(0) as u64 / self.interval_ns + 1) * self.interval_ns);
        Ok(())
    }

    /// The commands that have a socket, by its inode; looks which processes are theirs.
    fn owners(&mut self, entries: &[Entry], now_ns: i64) -> HashMap<u32, BTreeSet<usize>> {
        let newest = std::fs::read_to_string("/proc/loadavg")
            .ok()
            .and_then(|text| text.split(' ').next_back().map(str::to_owned));
        if newest.is_none() || newest != self.newest {
            let there = numbers(Path::new("/proc")).into_iter();
            let found = there.map(|process| {
                let of = || self.command_of(process, entries);
                (process, self.processes.get(&process).copied().unwrap_or_else(of))
            });
            (self.processes, self.newest) = (found.collect(), newest);
        }
        let mut owners: HashMap<u32, BTreeSet<usize>> = HashMap::new();
        for (process, command) in self.processes.iter().filter_map(|(process, command)| Some((*process, (*command)?))) {
            let descriptors = PathBuf::from(format!("/proc/{process}/fd"));
            // One that has ended, and that nobody waited for, has none.
            for number in numbers(&descriptors) {
                self.alive_ns.insert(command, now_ns);
                let inode = std::fs::read_link(descriptors.join(number.to_string())).ok().and_then(|to| inode(&to));
                let Some(inode) = inode else { continue };
                if !self.listed.contains(&inode) && !may_be_of_ip(process, number) {
                    self.listed.insert(inode);
                }
                owners.entry(inode).or_default().insert(command);
            }
        }
        owners
    }

    /// The command of a process that was not there at the last look, by its group or the directory in its environment.
    fn command_of(&self, process: i32, entries: &[Entry]) -> Option<usize> {
        let group = getpgid(Some(Pid::from_raw(process))).ok();
        let watched = |command: &&usize| entries[**command].process.is_some() && entries[**command].process == group;
        self.directories.values().find(watched).copied().or_else(|| {
            let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            let directory = environment.split(|byte| *byte == 0).find_map(|word| word.strip_prefix(OWN.as_bytes()))?;
            self.directories.get(Path::new(OsStr::from_bytes(directory))).copied()
        })
    }

    /// The last look, and the rows of sockets that have not ended.
    pub fn finish(&mut self, entries: &[Entry], now_ns: i64) -> Result<(), String> {
        let looked = if self.due_ns.is_some() { self.look(entries, now_ns, true) } else { Ok(()) };
        for seen in self.nodes.iter_mut().flat_map(|node| node.seen.values_mut()) {
            seen.last_ns = now_ns;
        }
        let told = self.nodes.iter().try_for_each(|node| {
            node.seen.values().try_for_each(|seen| node.tell(&self.table, seen, entries, &self.alive_ns))
        });
        looked.and(told).and(self.table.flush())
    }
}

impl WatchedNode {
    /// `open`: the kernel's list.
    fn see(&mut self, open: &[KnownSocket], last_ns: i64, now_ns: i64) {
        for socket in open.iter().filter(|socket| socket.local.port() != 0) {
            let seen = self.seen.entry(socket.cookie).or_insert_with(|| SocketHistory::new(last_ns, now_ns));
            seen.names.insert(SocketName::of(socket));
            (seen.inode, seen.listens) = (socket.inode, socket.listens);
            if last_ns == i64::MIN {
                // What is there before the first command is nobody's of them.
                seen.others = FOREIGN_LOOKS;
            }
        }
    }

    /// Notes the commands that have the known sockets.
    fn own(&mut self, owners: &HashMap<u32, BTreeSet<usize>>) {
        let open = self.seen.values_mut().filter(|seen| seen.inode != 0 && seen.others < FOREIGN_LOOKS);
        for seen in open {
            let Some(commands) = owners.get(&seen.inode) else {
                seen.others += u8::from(seen.owners.is_empty());
                continue;
            };
            seen.owners.extend(commands);
            if seen.listens {
                let ports = seen.names.iter().map(|name| name.local.port());
                self.listening.extend(ports.flat_map(|port| commands.iter().map(move |command| (port, *command))));
            }
        }
    }

    /// Writes what is known of a socket, if it is, or may be, of a command whose sockets are wanted.
    fn tell(
        &self,
        table: &Table<SocketRow>,
        seen: &SocketHistory,
        entries: &[Entry],
        alive_ns: &HashMap<usize, i64>,
    ) -> Result<(), String> {
        let wanted = |command: &usize| entries[*command].own_sockets;
        let listener = || seen.names.iter().find_map(|name| self.listening.get(&name.local.port())).copied();
        let mut owners = seen.owners.clone();
        if owners.is_empty() {
            owners.extend(listener());
        }
        if owners.is_empty() {
            if seen.others >= FOREIGN_LOOKS {
                return Ok(());
            }
            let there = entries.iter().enumerate().filter(|(_, entry)| entry.node == self.name);
            let there = there.filter(|(place, entry)| lived(entry, alive_ns.get(place), seen));
            owners.extend(there.map(|(place, _)| place));
        }
        if !owners.iter().any(wanted) {
            return Ok(());
        }
        let command = owners.first().filter(|_| owners.len() == 1).map(|command| entries[*command].number);
        let SocketHistory { first_ns, last_ns, .. } = *seen;
        seen.names
            .iter()
            .cloned()
            .try_for_each(|name| table.add(&SocketRow { command, node: self.name.clone(), name, first_ns, last_ns }))
    }
}

/// Whether a command may have had a socket when it began.
fn lived(entry: &Entry, alive_ns: Option<&i64>, seen: &SocketHistory) -> bool {
    let ended_ns = if entry.runs() { i64::MAX } else { entry.ended_ns.unwrap_or(i64::MIN) };
    let last_ns = ended_ns.max(alive_ns.copied().unwrap_or(i64::MIN));
    entry.started_ns.is_some_and(|started_ns| started_ns < seen.first_ns) && last_ns > seen.since_ns
}

/// The numbers that are names in a directory.
fn numbers(directory: &Path) -> Vec<i32> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a descriptor of a process is a socket of IPv4 or IPv6, or that cannot be told.
fn may_be_of_ip(process: i32, number: i32) -> bool {
    let domain = Pidfd::open(process)
        .and_then(|process| process.descriptor(number))
        .and_then(|socket| get_option::<libc::c_int>(&socket, libc::SOL_SOCKET, libc::SO_DOMAIN));
    !domain.is_ok_and(|domain| domain != libc::AF_INET && domain != libc::AF_INET6)
}

/// The inode that the target of a descriptor names, as `socket:[1234]`.
fn inode(target: &Path) -> Option<u32> {
    target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

impl SocketHistory {
    fn new(since_ns: i64, now_ns: i64) -> Self {
        let owners = BTreeSet::new();
        let (first_ns, last_ns) = (now_ns, now_ns);
        SocketHistory {
            names: BTreeSet::new(),
            inode: 0,
            listens: false,
            since_ns,
            first_ns,
            last_ns,
            owners,
            others: 0,
        }
    }
}
