//! The settings of s2n-quic: socket, TLS, flow control, congestion control.

use std::time::Duration;

use s2n_quic::client::Connect;
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::io::tokio::{Builder, Provider as Io};
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls;
use s2n_quic::{Client, Connection, Server};

use crate::arguments::Request;
use crate::events::Adds;
use crate::socket;
use crate::tls::{self, Certificate};

const IDLE: Duration = Duration::from_secs(30);
/// The end that has the shorter time decides. An application that limits its sender may be silent for long.
const LONG: Duration = Duration::from_secs(86_400);
/// Bytes that a stream keeps until they are acknowledged: flow control does not limit a transfer but by the window.
const SEND_BYTES: u32 = u32::MAX;

fn limits(request: &Request) -> Result<Limits, String> {
    let window = request.window_bytes.min(u32::MAX.into());
    let idle = if request.end.connects() && request.writes.is_none() { IDLE } else { LONG };
    let make = || {
        Limits::new()
            .with_data_window(window)?
            .with_unidirectional_data_window(window)?
            .with_max_send_buffer_size(SEND_BYTES)?
            .with_max_idle_timeout(idle)
    };
    make().map_err(|error| format!("limits: {error}"))
}

fn io(request: &Request) -> Result<Io, String> {
    let make = |socket| Builder::default().with_rx_socket(socket)?.build();
    make(socket::open(request)?).map_err(|error| format!("opening {}: {error}", request.address))
}

/// The client of the sender of one stream.
pub fn client(request: &Request, stream: u32) -> Result<Client, String> {
    let said = |error: &dyn std::fmt::Display| format!("starting: {error}");
    let tls = rustls::Client::from(tls::client(request, stream)?);
    let builder = Client::builder()
        .with_tls(tls)
        .map_err(|error| said(&error))?
        .with_io(io(request)?)
        .map_err(|error| said(&error))?
        .with_limits(limits(request)?)
        .map_err(|error| said(&error))?
        .with_event(Adds)
        .map_err(|error| said(&error))?;
    match request.congestion.as_str() {
        "bbr" => builder.with_congestion_controller(Bbr::default()).map_err(|error| said(&error))?.start(),
        _ => builder.with_congestion_controller(Cubic::default()).map_err(|error| said(&error))?.start(),
    }
    .map_err(|error| said(&error))
}

pub async fn connect(client: &Client, request: &Request) -> Result<Connection, String> {
    let connect = Connect::new(request.address).with_server_name(tls::NAME);
    client.connect(connect).await.map_err(|error| error.to_string())
}

pub fn server(request: &Request) -> Result<Server, String> {
    let said = |error: &dyn std::fmt::Display| format!("starting: {error}");
    let tls = rustls::Server::from(tls::server(request, &Certificate::new()?)?);
    Server::builder()
        .with_tls(tls)
        .map_err(|error| said(&error))?
        .with_io(io(request)?)
        .map_err(|error| said(&error))?
        .with_limits(limits(request)?)
        .map_err(|error| said(&error))?
        .with_event(Adds)
        .map_err(|error| said(&error))?
        .start()
        .map_err(|error| said(&error))
}
