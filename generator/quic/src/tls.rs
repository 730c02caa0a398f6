//! TLS by rustls with ring: a receiver makes a certificate for itself, and a sender takes any.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{ring, CryptoProvider};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use crate::arguments::{End, Request};

/// The name that a sender asks the receiver for, and that its certificate has.
pub const NAME: &str = "ewan";
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

/// The settings of a receiver.
pub fn server(request: &Request, own: &Certificate) -> Result<rustls::ServerConfig, String> {
    let tls = || -> Result<rustls::ServerConfig, rustls::Error> {
        let mut tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![own.certificate.clone()], own.key.clone_key().into())?;
        tls.alpn_protocols = protocols(request);
        Ok(tls)
    };
    tls().map_err(|error| format!("TLS: {error}"))
}

/// The settings of the sender of one stream.
pub fn client(request: &Request, stream: u32) -> Result<rustls::ClientConfig, String> {
    let tls = || -> Result<rustls::ClientConfig, rustls::Error> {
        let mut tls = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TakesAny(provider())))
            .with_no_client_auth();
        tls.alpn_protocols = vec![protocols(request).swap_remove(stream as usize)];
        Ok(tls)
    };
    tls().map_err(|error| format!("TLS: {error}"))
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
