//! Objects over HTTP/3 on one connection: the client that GETs them, and the server. The path of a request is the
//! object's size, and its body are zeros.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures_util::future::try_join_all;
use h3::client::SendRequest;
use h3::server::RequestResolver;
use h3_quinn::OpenStreams;
use http::{header, Request as Asked, Response};
use quinn::{Connection, VarInt};

use crate::arguments::Request;
use crate::clock::Clock;
use crate::config;
use crate::law::{self, Law};
use crate::record::{Object, Record, Sample, Stream};
use crate::signals::Signals;
use crate::span::Span;
use crate::tls::{self, Certificate};
use crate::volume::{CHUNK_BYTES, ZEROS};

/// RFC 9114, section 8.1: no error.
const NO_ERROR: VarInt = VarInt::from_u32(0x100);

/// What the streams of a client share.
struct Objects<'a> {
    request: &'a Request,
    clock: Clock,
    sizes: (Law, law::Stream),
    asked: u64,
    seen: Stream,
}

impl Objects<'_> {
    /// Number and size of the next object; none when as many as there are were asked for.
    fn next(&mut self) -> Option<(u64, u64)> {
        if self.request.count == Some(self.asked) {
            return None;
        }
        let (number, size) = (self.asked, self.sizes.0.draw_whole(&mut self.sizes.1).max(1));
        self.asked += 1;
        if self.request.count.is_some() {
            *self.seen.volume.get_or_insert(0) += size;
        }
        Some((number, size))
    }
}

pub async fn get(request: &Request, clock: Clock) -> Result<Record, String> {
    let mut endpoint = config::endpoint(request, None)?;
    endpoint.set_default_client_config(config::client(request, clock, 0)?);
    clock.sleep_before_work(request.begin_ns(clock));
    let mut signals = Signals::new()?;
    let span = Span::new(request, clock, signals.stop());
    let size = request.size.ok_or("--size: write the law of the sizes of objects")?;
    let seen = Stream { started_ns: Some(clock.now_ns()), ..Stream::default() };
    let sizes = (size, law::stream(request.seed, 1));
    let objects = RefCell::new(Objects { request, clock, sizes, asked: 0, seen });
    let work = async {
        let connection = match span.connecting(config::connect(&endpoint, request)).await {
            Ok(connection) => connection,
            Err(error) => {
                objects.borrow_mut().seen.error = Some(error);
                return;
            }
        };
        objects.borrow_mut().seen.connected_ns = Some(clock.now_ns());
        let ended = span.of(get_all(&connection, &objects)).await;
        objects.borrow_mut().seen.error = ended.and_then(Result::err);
        objects.borrow_mut().seen.ended_ns = Some(clock.now_ns());
        connection.close(NO_ERROR, b"");
        span.linger(endpoint.wait_idle()).await;
        objects.borrow_mut().seen.count(&connection.stats());
    };
    signals.until(work).await;
    let mut seen = objects.into_inner().seen;
    seen.objects.sort_by_key(|object| object.number);
    Ok(Record::new("receive", clock.begun_ns(), vec![seen]))
}

/// All objects, so many of them at a time.
async fn get_all(connection: &Connection, objects: &RefCell<Objects<'_>>) -> Result<(), String> {
    let said = |error: &dyn std::fmt::Display| format!("receiving: {error}");
    let parallel = objects.borrow().request.parallel;
    let quic = h3_quinn::Connection::new(connection.clone());
    let mut builder = h3::client::builder();
    let (mut driver, requests) = builder.send_grease(false).build(quic).await.map_err(|error| said(&error))?;
    let streams = (0..parallel).map(|_| get_in_turn(requests.clone(), objects));
    tokio::select! {
        ended = try_join_all(streams) => ended.map(|_| ()).map_err(|error| said(&error)),
        error = driver.wait_idle() => Err(said(&error)),
    }
}

/// One object after the other.
async fn get_in_turn(
    mut requests: SendRequest<OpenStreams, Bytes>,
    objects: &RefCell<Objects<'_>>,
) -> Result<(), h3::error::StreamError> {
    let (clock, bin_ns) = (objects.borrow().clock, objects.borrow().request.bin_ns);
    loop {
        let Some((number, size)) = objects.borrow_mut().next() else { return Ok(()) };
        let start_ns = clock.now_ns();
        let mut asked = Asked::new(());
        // A number is a path, and the name is one of hosts.
        *asked.uri_mut() = format!("https://{}/{size}", tls::NAME).parse().unwrap_or_default();
        let mut stream = requests.send_request(asked).await?;
        stream.finish().await?;
        stream.recv_response().await?;
        let mut bytes = 0;
        while let Some(piece) = stream.recv_data().await? {
            let size = piece.remaining() as u64;
            bytes += size;
            objects.borrow_mut().seen.came(clock.now_ns(), bin_ns, None, size);
        }
        let duration_ns = clock.now_ns() - start_ns;
        objects.borrow_mut().seen.objects.push(Object { number, start_ns, duration_ns, bytes });
    }
}

pub async fn serve(request: &Request, clock: Clock) -> Result<Record, String> {
    let mut signals = Signals::new()?;
    let key = Certificate::new()?;
    let (own, _) = config::server(request, clock, &key, Some(0))?;
    let endpoint = config::endpoint(request, Some(own))?;
    let (stop, written) = (signals.stop(), Arc::new(AtomicU64::new(0)));
    let mut seen = Stream::default();
    let work = async {
        let incoming = tokio::select! {
            incoming = endpoint.accept() => incoming,
            () = stop.wait() => None,
        };
        let Some(incoming) = incoming else { return };
        seen.started_ns = Some(clock.now_ns());
        let connection = match async { incoming.accept()?.await }.await {
            Ok(connection) => connection,
            Err(error) => {
                seen.error = Some(format!("accepting: {error}"));
                return;
            }
        };
        seen.connected_ns = Some(clock.now_ns());
        tokio::select! {
            error = serve_all(&connection, &written) => seen.error = error,
            () = Sample::each(request.sample_ns, &connection, clock, &mut seen.samples) => (),
            () = stop.wait() => (),
        }
        seen.ended_ns = Some(clock.now_ns());
        stop.or(endpoint.wait_idle()).await;
        seen.count_accepted(&connection.stats());
    };
    signals.until(work).await;
    seen.bytes = written.load(Relaxed);
    let streams = if seen.started_ns.is_some() { vec![seen] } else { Vec::new() };
    Ok(Record::new("send", clock.begun_ns(), streams))
}

/// Until the client has closed the connection; what went wrong, if it was not that.
async fn serve_all(connection: &Connection, written: &Arc<AtomicU64>) -> Option<String> {
    let quic = h3_quinn::Connection::new(connection.clone());
    let served = async {
        let mut server = h3::server::builder().send_grease(false).build::<_, Bytes>(quic).await?;
        while let Some(request) = server.accept().await? {
            let written = written.clone();
            // What its client closed meanwhile is not answered.
            tokio::spawn(async move { answer(request, &written).await });
        }
        Ok::<(), h3::error::ConnectionError>(())
    };
    match served.await {
        Err(error) if !error.is_h3_no_error() => Some(format!("sending: {error}")),
        _ => None,
    }
}

/// As many bytes as the path says.
async fn answer(
    request: RequestResolver<h3_quinn::Connection, Bytes>,
    written: &AtomicU64,
) -> Result<(), h3::error::StreamError> {
    let (asked, mut stream) = request.resolve_request().await?;
    let mut left: u64 = asked.uri().path().trim_start_matches('/').parse().unwrap_or(0);
    let mut response = Response::new(());
    response.headers_mut().insert(header::CONTENT_LENGTH, left.into());
    stream.send_response(response).await?;
    while left > 0 {
        let size = left.min(CHUNK_BYTES as u64);
        stream.send_data(Bytes::from_static(&ZEROS[..size as usize])).await?;
        written.fetch_add(size, Relaxed);
        left -= size;
    }
    stream.finish().await
}
