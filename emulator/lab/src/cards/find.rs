//! Where a card is, by its mark: at home, in its node, or wherever else the kernel has put it.

use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ewan_system::namespace;
use ewan_system::netlink::interfaces::{interfaces, Interface};
use ewan_system::netlink::Socket;

use super::Record;

/// Runs `action` in a namespace, by a thread of its own: the caller stays where it is.
pub fn inside<T: Send>(namespace: &File, action: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            namespace::enter(namespace)?;
            action()
        });
        thread.join().expect("no thread panicked")
    })
}

/// Every network namespace of this machine that a name or a process leads to, each once; the first process's first.
fn all() -> Vec<File> {
    let below = |directory: &str| std::fs::read_dir(directory).into_iter().flatten().flatten();
    let named = below("/run/netns").map(|entry| entry.path());
    let number = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().parse::<u32>().is_ok());
    let processes = below("/proc").map(|entry| entry.path()).filter(|path| number(path));
    let paths =
        [PathBuf::from("/proc/1/ns/net")].into_iter().chain(named).chain(processes.map(|path| path.join("ns/net")));
    let mut seen = HashSet::new();
    let new = paths.filter_map(|path| namespace::open(&path).filter(|_| seen.insert(namespace::identity(&path))));
    new.collect()
}

/// The namespace with this device and inode; None where there is none any more.
pub fn with_identity(wanted: [u64; 2]) -> Option<File> {
    let is = |file: &File| file.metadata().is_ok_and(|file| [file.dev(), file.ino()] == wanted);
    namespace::own().ok().filter(is).or_else(|| all().into_iter().find(is))
}

fn marked(card: &Record) -> Result<Option<Interface>, String> {
    let found = interfaces(&Socket::open()?)?;
    Ok(found.into_iter().find(|interface| interface.other_names.contains(&card.mark)))
}

/// In the calling thread's namespace.
pub fn here(card: &Record) -> Result<Option<Interface>, String> {
    marked(card)
}

/// In another namespace than the calling thread's: the node's first, then any.
pub fn elsewhere(card: &Record) -> Result<Option<(File, Interface)>, String> {
    let node = namespace::open(&namespace::path(&card.namespace));
    for namespace in node.into_iter().chain(all()) {
        // One that ends meanwhile has nothing in it.
        if let Ok(Some(found)) = inside(&namespace, || marked(card)) {
            return Ok(Some((namespace, found)));
        }
    }
    Ok(None)
}
