//! The settings of quinn: its endpoint, flow control, congestion control, qlog.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::Arc;

use quinn::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, QlogConfig, QlogStream, ServerConfig, TokioRuntime,
    TransportConfig, VarInt,
};

use crate::arguments::{End, Request};
use crate::clock::Clock;
use crate::socket;
use crate::tls::{self, Certificate};

/// Where the environment says which folder files go to.
const OUT: &str = "EWAN_OUT";

/// A socket of its own.
pub fn endpoint(request: &Request, server: Option<ServerConfig>) -> Result<Endpoint, String> {
    let runtime = Arc::new(TokioRuntime);
    Endpoint::new(EndpointConfig::default(), server, socket::open(request)?, runtime)
        .map_err(|error| format!("{}: {error}", request.address))
}

pub async fn connect(endpoint: &Endpoint, request: &Request) -> Result<Connection, String> {
    let connecting = endpoint.connect(request.address, tls::NAME).map_err(|error| error.to_string())?;
    connecting.await.map_err(|error| error.to_string())
}

/// The file of a connection's qlog, which the environment's folder has. A receiver knows the stream's number only later.
pub struct Qlog(PathBuf);

impl Qlog {
    fn of(name: &str) -> Self {
        Qlog(PathBuf::from(std::env::var_os(OUT).unwrap_or_default()).join(format!("{name}.sqlog")))
    }

    fn open(&self, clock: Clock) -> Result<Option<QlogStream>, String> {
        let file = File::create(&self.0).map_err(|error| format!("{}: {error}", self.0.display()))?;
        let mut qlog = QlogConfig::default();
        qlog.writer(Box::new(BufWriter::with_capacity(1 << 20, file)))
            .title(Some("ewan-quic".into()))
            .start_time(clock.instant(clock.begun_ns()));
        Ok(qlog.into_stream())
    }

    /// Gives it the name of a receiver's stream.
    pub fn name(&self, stream: u32) -> Result<(), String> {
        let named = Qlog::of(&format!("receive-{stream}")).0;
        std::fs::rename(&self.0, &named).map_err(|error| format!("{}: {error}", named.display()))
    }
}

/// Flow control does not limit a transfer but by `window`; the rest is quinn's own default.
fn transport(request: &Request, qlog: Option<QlogStream>) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let window = VarInt::from_u64(request.window_bytes).unwrap_or(VarInt::MAX);
    // The end that has the shorter time decides. An application that limits its sender may be silent for long.
    if !request.end.connects() || request.writes.is_some() {
        transport.max_idle_timeout(None);
    }
    transport.stream_receive_window(window).receive_window(window).send_window(u64::from(VarInt::MAX));
    match request.congestion.as_str() {
        "bbr" => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
        "newreno" => transport.congestion_controller_factory(Arc::new(NewRenoConfig::default())),
        _ => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
    };
    transport.qlog_stream(qlog);
    transport
}

/// The settings of a receiver, or of its connection that came as this one, with the qlog of that.
pub fn server(
    request: &Request,
    clock: Clock,
    own: &Certificate,
    come: Option<usize>,
) -> Result<(ServerConfig, Option<Qlog>), String> {
    let tls = tls::server(request, own)?;
    let crypto = QuicServerConfig::try_from(tls).map_err(|error| format!("TLS: {error}"))?;
    let qlog = come.filter(|_| request.qlog).map(|come| match request.end {
        End::Serve => Qlog::of("send-0"),
        _ => Qlog::of(&format!("receive-unnamed-{come}")),
    });
    let stream = qlog.as_ref().map_or(Ok(None), |qlog| qlog.open(clock))?;
    let mut server = ServerConfig::with_crypto(Arc::new(crypto));
    server.transport_config(Arc::new(transport(request, stream)));
    Ok((server, qlog))
}

/// The settings of the sender of one stream.
pub fn client(request: &Request, clock: Clock, stream: u32) -> Result<ClientConfig, String> {
    let tls = tls::client(request, stream)?;
    let crypto = QuicClientConfig::try_from(tls).map_err(|error| format!("TLS: {error}"))?;
    let mut client = ClientConfig::new(Arc::new(crypto));
    let end = if request.end == End::Get { "receive" } else { "send" };
    let qlog = request.qlog.then(|| Qlog::of(&format!("{end}-{stream}")));
    let log = qlog.map_or(Ok(None), |qlog| qlog.open(clock))?;
    client.transport_config(Arc::new(transport(request, log)));
    Ok(client)
}
