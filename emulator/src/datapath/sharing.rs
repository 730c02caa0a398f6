//! Who else spins on this CPU. Each spinner writes a file beside its control socket; another one of a live process
//! on the same CPU, of whichever lab below the same state root, means that both give way when idle.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    pid: u32,
    /// Field 22 of /proc/PID/stat, so that a process that got the number later is not taken for this one.
    start_time: u64,
    cpu: u32,
}

/// Our own entry; removed when dropped.
pub struct Registration {
    path: PathBuf,
    cpu: u32,
}

impl Registration {
    /// `socket` is `<state root>/<lab>/spinner-<k>.sock`; the file is `spinner-<k>.json` beside it.
    pub fn new(socket: &Path, cpu: u32) -> Result<Registration, String> {
        let path = socket.with_extension("json");
        let pid = std::process::id();
        let entry = Entry { pid, start_time: start_time(pid).unwrap_or(0), cpu };
        let text = serde_json::to_vec(&entry).map_err(|error| error.to_string())?;
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Registration { path, cpu })
    }

    /// Does another live spinner use this CPU?
    pub fn is_shared(&self) -> bool {
        let root = self.path.parent().and_then(Path::parent);
        let labs = root.and_then(|root| std::fs::read_dir(root).ok()).into_iter().flatten().flatten();
        let files = labs.filter_map(|lab| std::fs::read_dir(lab.path()).ok()).flatten().flatten();
        files.map(|file| file.path()).filter(|path| *path != self.path && is_entry(path)).any(|path| {
            let entry = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Entry>(&text).ok());
            entry.is_some_and(|entry| entry.cpu == self.cpu && start_time(entry.pid) == Some(entry.start_time))
        })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // It may be gone with the whole state directory.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn is_entry(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    name.starts_with("spinner-") && name.ends_with(".json")
}

fn start_time(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; the fields after it do not.
    text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_a_live_one_on_the_same_cpu_and_no_dead_one() {
        let root = std::env::temp_dir().join(format!("ewan-sharing-{}", std::process::id()));
        let socket = |lab: &str| root.join(lab).join("spinner-0.sock");
        for lab in ["one", "two"] {
            std::fs::create_dir_all(root.join(lab)).unwrap();
        }
        let one = Registration::new(&socket("one"), 1).unwrap();
        assert!(!one.is_shared());
        let two = Registration::new(&socket("two"), 2).unwrap();
        assert!(!one.is_shared(), "another CPU");
        drop(two);
        let two = Registration::new(&socket("two"), 1).unwrap();
        assert!(one.is_shared() && two.is_shared());
        std::fs::write(&two.path, r#"{"pid":1,"start_time":12345678901,"cpu":1}"#).unwrap();
        assert!(!one.is_shared(), "the process with that number is another one");
        std::fs::remove_dir_all(&root).unwrap();
    }
}
