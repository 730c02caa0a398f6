//! Fetches bytes over QUIC: `fetch serve PORT` sends as many as it is asked for, `fetch get HOST PORT BYTES` asks.

use std::error::Error;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, ServerConfig};

type Outcome = Result<(), Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", port] => serve(port.parse()?).await,
        ["get", host, port, bytes] => get(host, port.parse()?, bytes.parse()?).await,
        _ => Err("write: fetch serve PORT, or fetch get HOST PORT BYTES".into()),
    }
}

async fn serve(port: u16) -> Outcome {
    let made = rcgen::generate_simple_self_signed(vec!["fetch".into()])?;
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)?;
    tls.alpn_protocols = vec![b"fetch".to_vec()];
    let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    let endpoint = Endpoint::server(config, SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            if let Ok(connection) = incoming.await {
                while let Ok((mut sender, mut receiver)) = connection.accept_bi().await {
                    let asked = receiver.read_to_end(20).await.unwrap_or_default();
                    let bytes: usize = String::from_utf8_lossy(&asked).parse().unwrap_or(0);
                    let _ = sender.write_all(&vec![0; bytes]).await;
                    let _ = sender.finish();
                }
            }
        });
    }
    Ok(())
}

async fn get(host: &str, port: u16, bytes: usize) -> Outcome {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust::Any))
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"fetch".to_vec()];
    let mut endpoint = Endpoint::client(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)))?;
    endpoint.set_default_client_config(ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?)));
    let address = tokio::net::lookup_host((host, port)).await?.next().ok_or("the host has no address")?;
    let connection = endpoint.connect(address, "fetch")?.await?;
    let (mut sender, mut receiver) = connection.open_bi().await?;
    sender.write_all(bytes.to_string().as_bytes()).await?;
    sender.finish()?;
    let received = receiver.read_to_end(bytes).await?.len();
    println!("{received}");
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    if received == bytes { Ok(()) } else { Err(format!("{bytes} bytes were asked for").into()) }
}

/// The server's certificate is of its own making: this program takes any.
mod trust {
    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{DigitallySignedStruct, Error, SignatureScheme};

    #[derive(Debug)]
    pub struct Any;

    impl ServerCertVerifier for Any {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519, SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::RSA_PSS_SHA256]
        }
    }
}
