//! The manifest: what a lab is going to create, written before any of it exists; `down` removes exactly that.
//!
//! In: a plan and the state directory. Out: DIR/manifest.json, complete or absent, never half of one.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ewan_system::fault;
use nix::fcntl::{renameat2, RenameFlags, AT_FDCWD};
use serde::{Deserialize, Serialize};

use crate::cards::LabCards;
use ewan_plan::{NodeKind, Plan};

pub const FORMAT: &str = "ewan-manifest/1";
pub const NAME: &str = "manifest.json";
/// A manifest that was being written when its writer died; nothing else existed then.
const UNFINISHED: &str = ".manifest.json.new";
const PER_NAMESPACE_FILES: &str = "/etc/netns";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub format: String,
    pub lab: String,
    /// Random; the lab's spinners carry it on their command line.
    pub id: String,
    pub created_unix_ns: u64,
    /// Names below /run/netns.
    pub namespaces: Vec<String>,
    /// Files outside the state directory, in order of creation; their directories, when empty, go with them.
    pub paths: Vec<PathBuf>,
    /// Directories to remove once they are empty.
    pub directories: Vec<PathBuf>,
    /// How many spinners the plan has.
    pub spinners: usize,
    /// The host's cards, as they were before the lab touched them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cards: Option<LabCards>,
}

impl Manifest {
    pub fn of(plan: &Plan) -> Result<Self, String> {
        let named = plan.nodes.iter().filter(|node| node.kind != NodeKind::Emulator);
        let per_namespace: Vec<_> =
            named.map(|node| Path::new(PER_NAMESPACE_FILES).join(plan.namespace(&node.name))).collect();
        let mut directories = per_namespace.clone();
        if only_labs_use(Path::new(PER_NAMESPACE_FILES)) {
            directories.push(PER_NAMESPACE_FILES.into());
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Ok(Manifest {
            format: FORMAT.into(),
            lab: plan.lab.clone(),
            id: random_id()?,
            created_unix_ns: now.map_or(0, |since| since.as_nanos() as u64),
            namespaces: plan.nodes.iter().map(|node| plan.namespace(&node.name)).collect(),
            paths: per_namespace.iter().map(|directory| directory.join("hosts")).collect(),
            directories,
            spinners: plan.spinners.len(),
            cards: None,
        })
    }

    /// The manifest of a state directory; none if there is no such file.
    pub fn read(state: &Path) -> Result<Option<Self>, String> {
        let path = state.join(NAME);
        let text = match ewan_system::reading::regular(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        if manifest.format != FORMAT {
            return Err(format!("{}: format is {:?}, not {FORMAT:?}", path.display(), manifest.format));
        }
        let harmless = |name: &String| name.starts_with("ewan-") && !name.contains('/');
        if let Some(name) = manifest.namespaces.iter().find(|name| !harmless(name)) {
            return Err(format!("{}: {name:?} is not the name of a lab's namespace", path.display()));
        }
        Ok(Some(manifest))
    }

    /// How long ago it was made; nothing where the clock was set back since.
    pub fn age(&self) -> Duration {
        let then = SystemTime::UNIX_EPOCH + Duration::from_nanos(self.created_unix_ns);
        SystemTime::now().duration_since(then).unwrap_or_default()
    }

    /// Writes the manifest so that it survives whatever happens next; fails if there is one already.
    pub fn create(&self, state: &Path) -> Result<(), String> {
        fault::step();
        std::fs::create_dir_all(state).map_err(|error| format!("{}: {error}", state.display()))?;
        self.write(state, RenameFlags::RENAME_NOREPLACE)
    }

    /// Replaces the manifest of the same lab.
    pub fn replace(&self, state: &Path) -> Result<(), String> {
        self.write(state, RenameFlags::empty())
    }

    fn write(&self, state: &Path, rename_flags: RenameFlags) -> Result<(), String> {
        let (unfinished, path) = (state.join(UNFINISHED), state.join(NAME));
        let attempt = || -> std::io::Result<()> {
            fault::step();
            let mut file = File::create(&unfinished)?;
            serde_json::to_writer_pretty(&mut file, self)?;
            file.write_all(b"\n")?;
            fault::step();
            file.sync_all()?;
            renameat2(AT_FDCWD, &unfinished, AT_FDCWD, &path, rename_flags)?;
            File::open(state)?.sync_all()
        };
        attempt().map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => exists(&self.lab),
            _ => format!("{}: {error}", path.display()),
        })
    }
}

/// What to say when the lab is already there, whole or in part.
pub fn exists(lab: &str) -> String {
    format!("lab {lab} exists already, or what is left of it: remove it with `ewan down {lab}`")
}

/// Refuses a state directory that holds a lab, or anything that is not a lab's.
pub fn check_absent(state: &Path, lab: &str) -> Result<(), String> {
    let Ok(entries) = std::fs::read_dir(state) else { return Ok(()) };
    let names: HashSet<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    if names.contains(std::ffi::OsStr::new(NAME)) {
        return Err(exists(lab));
    }
    match names.iter().find(|name| *name != UNFINISHED) {
        None => Ok(()),
        Some(_) => Err(format!("{} holds files but no lab: name another --state", state.display())),
    }
}

fn random_id() -> Result<String, String> {
    let mut bytes = [0u8; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| format!("/dev/urandom: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A directory that labs made: absent, or with nothing but labs' entries in it.
fn only_labs_use(directory: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else { return true };
    let mut names = entries.flatten().map(|entry| entry.file_name()).peekable();
    names.peek().is_some() && names.all(|name| name.to_string_lossy().starts_with("ewan-"))
}

/// Removes a state directory, the manifest last, so that an interrupted removal can be taken up again.
pub fn remove_state(state: &Path) -> Result<(), String> {
    let fail = |path: &Path, error: std::io::Error| format!("removing {}: {error}", path.display());
    let entries = match std::fs::read_dir(state) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(fail(state, error)),
    };
    for entry in entries.flatten().filter(|entry| entry.file_name() != NAME) {
        fault::step();
        let path = entry.path();
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let removed = if is_directory { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        removed.map_err(|error| fail(&path, error))?;
    }
    fault::step();
    match std::fs::remove_file(state.join(NAME)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(fail(state, error)),
        _ => {}
    }
    fault::step();
    std::fs::remove_dir(state).map_err(|error| fail(state, error))
}

/// A directory whose writer died before there was a manifest.
pub fn remove_unfinished(state: &Path) -> Result<bool, String> {
    let Ok(entries) = std::fs::read_dir(state) else { return Ok(false) };
    let names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    if names.iter().any(|name| name != UNFINISHED) {
        return Err(format!("{} holds files but no manifest: this is no lab, nothing was removed", state.display()));
    }
    remove_state(state).map(|()| true)
}
