//! The program that an image, or the description, has a container run: beside the node's own, when the node is ready.
//!
//! In: words, and as whom and where, as the image says it (OCI image specification: Entrypoint, Cmd, User, WorkingDir).
//! Out: a process, with the container's environment and output. Users and groups are looked up in the image's own files.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use ewan_system::process;
use nix::unistd::{setgid, setgroups, setuid, Gid, Pid, Uid};

use super::Child;
use ewan_lab::services;
use ewan_plan::Node;

/// What to run. `user`: NAME, NUMBER, or either with `:GROUP`; "" is root. `directory`: "" is the root. `commands`: those
/// of the plan too, when all nodes are ready.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub words: Vec<String>,
    pub user: String,
    pub directory: String,
    pub commands: bool,
}

/// As whom a program runs.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    home: Option<String>,
}

impl Program {
    /// None where there is nothing to run.
    pub(super) fn start(&self, own: &Path) -> Result<Option<Child>, String> {
        let Some(first) = self.words.first() else { return Ok(None) };
        let identity = identity(&self.user, Path::new("/"))?;
        let directory = if self.directory.is_empty() { "/" } else { &self.directory };
        std::fs::create_dir_all(directory).map_err(|error| format!("{directory}: {error}"))?;
        let mut command = Command::new(first);
        command.args(&self.words[1..]).current_dir(directory).stdin(Stdio::null());
        if let (Some(home), true) = (&identity.home, identity.uid != 0) {
            command.env("HOME", home);
        }
        let groups: Vec<_> = identity.groups.iter().copied().map(Gid::from_raw).collect();
        let become_it = move || {
            process::detach();
            process::close_all();
            setgroups(&groups)?;
            setgid(Gid::from_raw(identity.gid))?;
            setuid(Uid::from_raw(identity.uid))?;
            Ok(())
        };
        // SAFETY: system calls alone, which a child of a process with threads may make.
        unsafe { command.pre_exec(become_it) };
        let process = command.spawn().map_err(|error| format!("its program {first}: {error}"))?;
        let name = format!("its program {first}");
        Ok(Some(Child { name, pid: Pid::from_raw(process.id() as i32), log: own.join("program.log"), vital: false }))
    }
}

/// Runs the node's commands one after the other, each to its end; what they write goes to exec-N.log.
pub fn run_commands(node: &Node, own: &Path) -> Result<(), String> {
    for (number, words) in node.own.iter().flat_map(|node| &node.exec).enumerate() {
        let log = own.join(format!("exec-{}.log", number + 1));
        let say = |error: std::io::Error| format!("exec {}: {error}", words.join(" "));
        let output = File::create(&log).map_err(say)?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir("/").stdin(Stdio::null());
        command.stdout(output.try_clone().map_err(say)?).stderr(output);
        // SAFETY: system calls alone, which a child of a process with threads may make.
        unsafe {
            command.pre_exec(|| {
                process::detach();
                Ok(())
            })
        };
        let status = command.status().map_err(say)?;
        if !status.success() {
            return Err(format!("exec {}: {}", words.join(" "), services::last_words(&log, &status.to_string())));
        }
    }
    Ok(())
}

/// `root`: where etc/passwd and etc/group are; a number needs neither.
fn identity(user: &str, root: &Path) -> Result<Identity, String> {
    let (user, group) = user.split_once(':').map_or((user, None), |(user, group)| (user, Some(group)));
    let user = if user.is_empty() { "0" } else { user };
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap_or_default();
    let (users, groups) = (read("etc/passwd"), read("etc/group"));
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let known = |text: &str, word: &str| {
        let lines = || text.lines().map(fields).filter(|found| found.len() > 3);
        lines().find(|found| found[0] == word).or_else(|| lines().find(|found| found[2] == word))
    };
    let found = known(&users, user);
    let number = |text: &str, what: &str| text.parse().map_err(|_| format!("its image has no {what} {text}"));
    let uid = number(found.as_ref().map_or(user, |found| &found[2]), "user")?;
    let gid = match group {
        Some(group) => number(known(&groups, group).as_ref().map_or(group, |found| &found[2]), "group")?,
        None => found.as_ref().and_then(|found| found[3].parse().ok()).unwrap_or(0),
    };
    let name = found.as_ref().map_or("", |found| &found[0]);
    let member = |found: &Vec<String>| !name.is_empty() && found[3].split(',').any(|member| member == name);
    let mut all = vec![gid];
    let lines = groups.lines().map(fields).filter(|found| found.len() > 3);
    all.extend(lines.filter(member).filter_map(|found| found[2].parse::<u32>().ok()).filter(|other| *other != gid));
    Ok(Identity { uid, gid, groups: all, home: found.and_then(|found| found.get(5).cloned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_groups_are_those_of_the_image() {
        let root = std::env::temp_dir().join(format!("ewan-program-{}", std::process::id()));
        std::fs::create_dir_all(root.join("etc")).expect("a directory");
        std::fs::write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\napp:x:1001:1002::/home/app:/bin/sh\n")
            .expect("a file");
        std::fs::write(root.join("etc/group"), "app:x:1002:\nmail:x:8:root,app\n").expect("a file");
        let of = |user: &str| identity(user, &root).map(|found| (found.uid, found.gid, found.groups));
        assert_eq!(of("app"), Ok((1001, 1002, vec![1002, 8])));
        assert_eq!(of("1001"), of("app"));
        assert_eq!(of("app:mail"), Ok((1001, 8, vec![8])));
        assert_eq!(of("5:6"), Ok((5, 6, vec![6])));
        assert_eq!(of(""), Ok((0, 0, vec![0, 8])));
        assert_eq!(of("nobody"), Err("its image has no user nobody".into()));
        assert_eq!(of("app:staff"), Err("its image has no group staff".into()));
        std::fs::remove_dir_all(&root).expect("removed");
    }
}
