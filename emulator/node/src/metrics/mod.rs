//! `ewan-node metrics`: what the links of a lab do, for Prometheus.
//!
//! In: a lab's state directory, an address to listen at, perhaps one link. Out: a page over HTTP, or once on standard
//! output. The spinners are asked at most once a second, however many ask here, and never from their own CPUs.

mod http;
pub mod joint;
mod read;
mod text;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ewan_system::schedule;

use ewan_lab::links;
use ewan_plan::Plan;
use read::SampleScope;
use text::Exposition;

/// A page is at least this old before the spinners are asked again.
const KEPT: Duration = Duration::from_secs(1);

/// Where the page goes.
pub enum Destination {
    /// An address with its port; port 0 takes any.
    Listen(String),
    /// Once.
    StandardOutput,
}

/// Serves until it is ended; one line on standard output says where. Errors: one line, before anybody is served.
pub fn run(state: &Path, link: Option<String>, destination: &Destination) -> Result<(), String> {
    let plan = ewan_plan::read(&state.join("plan.json"))?;
    if let Some(link) = &link {
        links::find(&plan, link, "forward")?;
    }
    // In a container these CPUs may not be there to be had; the spinner goes before everybody else all the same.
    let _ = schedule::keep_to(&plan.host_cpus);
    let lab = Lab { state: state.to_owned(), link, known: Mutex::new((written(state), plan)) };
    match destination {
        Destination::StandardOutput => {
            print!("{}", lab.exposition().text());
            Ok(())
        }
        Destination::Listen(address) => serve(address, move || lab.exposition()),
    }
}

/// A page at this address, made at most once a second.
fn serve(address: &str, exposition: impl Fn() -> Exposition + Send + Sync + 'static) -> Result<(), String> {
    let listener = http::listen(address)?;
    let bound = listener.local_addr().map_err(|error| format!("{address}: {error}"))?;
    println!("http://{bound}/metrics");
    let server = Arc::new(http::Server::default());
    let counted = server.clone();
    let page = Page::default();
    server.serve(&listener, move || page.now(counted.refused.load(Relaxed), &exposition));
    Ok(())
}

/// A page as it was last made.
#[derive(Default)]
struct Page(Mutex<Option<(Instant, Arc<str>)>>);

impl Page {
    /// Whoever comes while the spinners are asked waits for that answer, and asks no more.
    fn now(&self, refused: u64, exposition: &impl Fn() -> Exposition) -> Arc<str> {
        let Ok(mut page) = self.0.lock() else { return "".into() };
        if let Some((at, text)) = &*page {
            if at.elapsed() < KEPT {
                return text.clone();
            }
        }
        let mut exposition = exposition();
        exposition.add("ewan_metrics_refused_connections_total", &text::Labels::default(), refused);
        let text: Arc<str> = exposition.text().into();
        *page = Some((Instant::now(), text.clone()));
        text
    }
}

/// Which file the plan is, by inode and time of writing.
type FileVersion = (u64, i64, i64);

fn written(state: &Path) -> Option<FileVersion> {
    let file = std::fs::metadata(state.join("plan.json")).ok()?;
    Some((file.ino(), file.mtime(), file.mtime_nsec()))
}

struct Lab {
    state: PathBuf,
    link: Option<String>,
    /// As it was last there, and which file that was: of a lab that is gone it says which links are down.
    known: Mutex<(Option<FileVersion>, Plan)>,
}

impl Lab {
    /// The lab may have gone since, or another one of its name may have come.
    fn exposition(&self) -> Exposition {
        let Ok(mut known) = self.known.lock() else { return Exposition::default() };
        let now = written(&self.state);
        if now.is_some() && now != known.0 {
            if let Ok(plan) = ewan_plan::read(&self.state.join("plan.json")) {
                *known = (now, plan);
            }
        }
        read::exposition(&known.1, &self.state, SampleScope { link: self.link.as_deref(), ..SampleScope::default() })
    }
}
