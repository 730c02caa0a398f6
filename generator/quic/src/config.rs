//! The settings of quinn: sockets, TLS, flow control, congestion control, qlog.

use std::fs::File;
use std::io::BufWriter;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;

use quinn::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Endpoint, EndpointConfig, QlogConfig, QlogStream, ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{ring, CryptoProvider};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use socket2::{Domain, Protocol, Socket, Type};

use crate::arguments::{End, Request};
use crate::clock::Clock;

/// The name that a sender asks the receiver for, and that its certificate has.
pub const NAME: &str = "ewan";
/// Where the environment says which folder files go to.
const OUT: &str = "EWAN_OUT";

/// The protocol of a stream of a transfer: by this name the receiver knows which connection is which.
fn protocol(stream: u32) -> Vec<u8> {
    format!("ewan-bulk-{stream}").into_bytes()
}

/// The protocols of all streams.
fn protocols(request: &Request) -> Vec<Vec<u8>> {
    match request.end {
        End::Send | End::Receive => (0..request.streams).map(protocol).collect(),
        End::Serve | End::Get => vec![b"h3".to_vec()],
    }
}

/// The stream of a protocol's name.
pub fn stream_of(protocol: &[u8]) -> Option<u32> {
    std::str::from_utf8(protocol).ok()?.strip_prefix("ewan-bulk-")?.parse().ok()
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// A socket of its own; its buffer is as large as is asked for, or as this user may have.
pub fn endpoint(request: &Request, server: Option<ServerConfig>) -> Result<Endpoint, String> {
    let any = match request.address {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let at = match request.end {
        End::Send => any,
        End::Get => SocketAddr::new(any.ip(), request.address.port()),
        End::Receive | End::Serve => request.address,
    };
    let open = || -> std::io::Result<UdpSocket> {
        let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
        buffer(&socket, request.buffer_bytes);
        socket.bind(&at.into())?;
        Ok(socket.into())
    };
    let socket = open().map_err(|error| format!("opening {at}: {error}"))?;
    Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime))
        .map_err(|error| format!("opening {at}: {error}"))
}

/// Packets wait for a receiver that has no time; what a sender may queue in its host stays as the kernel has it, so that a
/// full queue there holds it up instead of dropping what it sends.
fn buffer(socket: &Socket, bytes: usize) {
    use std::os::fd::AsRawFd;
    let size = i32::try_from(bytes).unwrap_or(i32::MAX / 2);
    for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
        // SAFETY: the descriptor is open, and the value is an int, as these options take it.
        let set = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                std::ptr::from_ref(&size).cast(),
                size_of::<i32>() as libc::socklen_t,
            )
        };
        if set == 0 {
            break;
        }
    }
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

/// A receiver's certificate, which it makes for itself.
pub struct Certificate {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl Certificate {
    /// Its keys and signatures have the same sizes each time.
    pub fn new() -> Result<Self, String> {
        let make = || -> Result<Self, rcgen::Error> {
            let key = KeyPair::generate_for(&PKCS_ED25519)?;
            let mut parameters = CertificateParams::new([NAME.to_owned()])?;
            parameters.serial_number = Some(1.into());
            let certificate = parameters.self_signed(&key)?.der().clone();
            Ok(Certificate { certificate, key: key.serialize_der().into() })
        };
        make().map_err(|error| format!("a certificate: {error}"))
    }
}

/// The settings of a receiver, or of its connection that came as this one, with the qlog of that.
pub fn server(
    request: &Request,
    clock: Clock,
    own: &Certificate,
    come: Option<usize>,
) -> Result<(ServerConfig, Option<Qlog>), String> {
    let tls = || -> Result<rustls::ServerConfig, rustls::Error> {
        let mut tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![own.certificate.clone()], own.key.clone_key().into())?;
        tls.alpn_protocols = protocols(request);
        Ok(tls)
    };
    let tls = tls().map_err(|error| format!("TLS: {error}"))?;
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
    let tls = || -> Result<rustls::ClientConfig, rustls::Error> {
        let mut tls = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TakesAny(provider())))
            .with_no_client_auth();
        tls.alpn_protocols = vec![protocols(request).swap_remove(stream as usize)];
        Ok(tls)
    };
    let tls = tls().map_err(|error| format!("TLS: {error}"))?;
    let crypto = QuicClientConfig::try_from(tls).map_err(|error| format!("TLS: {error}"))?;
    let mut client = ClientConfig::new(Arc::new(crypto));
    let end = if request.end == End::Get { "receive" } else { "send" };
    let qlog = request.qlog.then(|| Qlog::of(&format!("{end}-{stream}")));
    let log = qlog.map_or(Ok(None), |qlog| qlog.open(clock))?;
    client.transport_config(Arc::new(transport(request, log)));
    Ok(client)
}

/// Takes any certificate: both ends are this program, in a lab that has no other.
#[derive(Debug)]
struct TakesAny(Arc<CryptoProvider>);

impl ServerCertVerifier for TakesAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
