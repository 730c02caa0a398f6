//! Why the services of a node cannot be, or were not, started: the node, the service, and what is wrong with it.

use std::path::PathBuf;

use crate::exec::MissingNode;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The lab's node is not there to be entered.
    #[error(transparent)]
    MissingNode(#[from] MissingNode),
    #[error("node {node}: {why}")]
    Node { node: String, why: Why },
}

impl Error {
    /// `why`, of the node with this name.
    pub fn of(node: &str, why: impl Into<Why>) -> Self {
        Error::Node { node: node.to_owned(), why: why.into() }
    }

    /// `fault`, of a service of that node.
    pub fn of_service(node: &str, service: &str, fault: impl Into<Fault>) -> Self {
        Error::of(node, Why::Service { service: service.to_owned(), fault: fault.into() })
    }
}

impl From<Error> for String {
    fn from(error: Error) -> String {
        error.to_string()
    }
}

/// What is wrong with a node's services together, or with one of them.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    /// A Unix socket's path has a limit.
    #[error(
        "its services' sockets lie in {}, which is {over} bytes too long for them: choose shorter names for lab and node",
        .run.display()
    )]
    TooLong { run: PathBuf, over: usize },
    #[error("{}: a name that is no text", .0.display())]
    NoText(PathBuf),
    #[error(transparent)]
    System(#[from] ewan_system::Error),
    #[error("service {service}: {fault}")]
    Service { service: String, fault: Fault },
}

/// What one service failed by. `said`: the last line that it wrote, or how it ended.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("there is no program {program} here: {remedy}")]
    NoProgram { program: String, remedy: String },
    #[error(transparent)]
    System(#[from] ewan_system::Error),
    /// A step of the set-up.
    #[error("{said}")]
    Failed { said: String },
    /// A daemon.
    #[error("it ended: {said}")]
    Ended { said: String },
    #[error("it is not ready: {said}")]
    NotReady { said: String },
}
