//! A live engine that speaks TLS, and clients that do it wrongly: before, during and after the handshake, and inside of it.
//!
//! None of them may disturb a canary that publishes and receives over TLS throughout, keep a connection beyond its time, hold memory, or
//! break a worker. `JETLAKE_MALFORMED_TLS_CLIENTS` sets how many clients there are, `JETLAKE_MALFORMED_SEED` the seed.

#[allow(dead_code)]
#[path = "support/process.rs"]
mod process;
#[allow(dead_code)]
#[path = "support/random.rs"]
mod random;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use jetlake_engine::common::events::Event;
use jetlake_engine::config::options::Options;
use jetlake_engine::engine::Engine;
use rcgen::{CertifiedKey, KeyPair};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use random::Random;

const CLIENTS_DEFAULT: u64 = 2_000;
const SEED_DEFAULT: u64 = 0x6a65_746c_616b_6522;
const THREADS: u64 = 4;

/// The time for a handshake; a client that is still there long afterwards was forgotten.
const TIMEOUT_MS: u64 = 1_000;
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// Memory may grow by this much between a tenth of the run and its end: the allocator keeps some of what bursts needed.
const GROWTH_BYTES_MAX: usize = 48 * 1024 * 1024;

type Session = StreamOwned<ClientConnection, TcpStream>;

struct Target {
    engine: Engine,
    client: Arc<ClientConfig>,
}

impl Target {
    fn start() -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key: KeyPair = signing_key;
        let options = serde_json::json!({
            "host": "127.0.0.1", "port": 0, "server_name": "malformed", "version": "2.15.1", "git_commit": "",
            "client_advertise": null, "max_connections": 65_536, "max_subscriptions": 0,
            "max_subscription_tokens": 0, "max_control_line_bytes": 4_096, "max_payload_bytes": 1_048_576,
            "max_pending_bytes": 67_108_864, "write_deadline_ms": 10_000, "ping_interval_ms": 10_000, "ping_max": 2,
            "auth_required": false, "auth_timeout_ms": 10_000, "handshake_timeout_ms": 10_000, "headers": true,
            "fast_producer_stall": true, "worker_threads": 2, "jetstream": false, "domain": null, "debug": false,
            "trace": false,
            "tls": {"certificate_pem": cert.pem(), "key_pem": key.serialize_pem(), "timeout_ms": TIMEOUT_MS},
        });
        let options = Options::from_json(options.to_string().as_bytes()).unwrap();
        let engine = Engine::new(options).unwrap();
        engine.start().unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            engine,
            client: Arc::new(client),
        }
    }

    fn address(&self) -> SocketAddr {
        self.engine.address()
    }

    /// A connection that has read INFO.
    fn connect(&self) -> io::Result<TcpStream> {
        let mut socket = TcpStream::connect(self.address())?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(SILENCE_MAX))?;
        socket.set_write_timeout(Some(SILENCE_MAX))?;
        let mut byte = [0];
        while byte[0] != b'\n' {
            socket.read_exact(&mut byte)?;
        }
        Ok(socket)
    }

    fn hello(&self) -> ClientConnection {
        ClientConnection::new(Arc::clone(&self.client), "localhost".try_into().unwrap()).unwrap()
    }

    fn session(&self) -> io::Result<Session> {
        let mut session = StreamOwned::new(self.hello(), self.connect()?);
        session.write_all(b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\n")?;
        session.flush()?;
        Ok(session)
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Damages bytes: flips, cuts, doubles, inserts.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..random.between(1, 4) {
        if bytes.is_empty() {
            return;
        }
        let place = random.below(bytes.len());
        match random.below(6) {
            0 => bytes[place] = random.next() as u8,
            1 => bytes[place] ^= 1 << random.below(8),
            2 => bytes.truncate(place),
            3 => {
                let count = random.between(1, 40);
                let noise = random.bytes(count);
                bytes.splice(place..place, noise);
            }
            4 => {
                let end = (place + random.between(1, 300)).min(bytes.len());
                let copy = bytes[place..end].to_vec();
                bytes.splice(place..place, copy);
            }
            _ => {
                let end = (place + random.between(1, 300)).min(bytes.len());
                bytes.drain(place..end);
            }
        }
    }
}

/// A record that may be wrong in its kind, its version, its length or its contents.
fn odd_record(random: &mut Random) -> Vec<u8> {
    let kind = [0x14, 0x15, 0x16, 0x17, 0x18, random.next() as u8][random.below(6)];
    let minor = [1, 3, 3, 4, random.next() as u8][random.below(5)];
    let length = [0, 1, 2, 17, 100, 16_384, 16_640, 18_432, 65_535][random.below(9)];
    let count = length.min(random.between(0, 20_000));
    let mut record = vec![kind, 3, minor];
    record.extend_from_slice(&(length as u16).to_be_bytes());
    record.extend(random.bytes(count));
    record
}

fn first_flight(client: &mut ClientConnection) -> Vec<u8> {
    let mut flight = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut flight).expect("a vector takes all");
    }
    flight
}

fn send_in_pieces(socket: &mut TcpStream, bytes: &[u8], random: &mut Random) -> io::Result<()> {
    let piece = [1_000_000, 1_000, 100, 7][random.below(4)];
    for part in bytes.chunks(piece).take(200) {
        socket.write_all(part)?;
    }
    Ok(())
}

/// Reads until the server is done with this client, or leaves it alone with its time running.
fn leave(mut socket: TcpStream, random: &mut Random) -> io::Result<()> {
    if random.percent(20) {
        return Ok(());
    }
    socket.shutdown(std::net::Shutdown::Write)?;
    let mut rest = [0; 4096];
    while socket.read(&mut rest)? > 0 {}
    Ok(())
}

/// One client that does something wrong. Socket errors are not failures: the server may close at any time. `inputs`
/// counts what was wrong: flights, records and lines.
fn attack(target: &Target, random: &mut Random, inputs: &AtomicU64) -> io::Result<()> {
    let count_input = || inputs.fetch_add(1, Ordering::Relaxed);
    match random.below(6) {
        0 => {
            let mut socket = target.connect()?;
            let count = random.between(1, 3_000);
            let noise = random.bytes(count);
            count_input();
            send_in_pieces(&mut socket, &noise, random)?;
            leave(socket, random)
        }
        1 => {
            let mut socket = target.connect()?;
            let mut flight = first_flight(&mut target.hello());
            damage(&mut flight, random);
            count_input();
            send_in_pieces(&mut socket, &flight, random)?;
            leave(socket, random)
        }
        2 => {
            let mut socket = target.connect()?;
            for _ in 0..random.between(1, 8) {
                let mut record = odd_record(random);
                record[0] = 0x16;
                count_input();
                send_in_pieces(&mut socket, &record, random)?;
            }
            leave(socket, random)
        }
        3 => {
            // The second flight is damaged: the server has sent its own.
            let mut socket = target.connect()?;
            let mut client = target.hello();
            socket.write_all(&first_flight(&mut client))?;
            client.read_tls(&mut socket)?;
            if client.process_new_packets().is_ok() {
                let mut flight = first_flight(&mut client);
                damage(&mut flight, random);
                count_input();
                send_in_pieces(&mut socket, &flight, random)?;
            }
            leave(socket, random)
        }
        4 => {
            let mut session = target.session()?;
            session.write_all(b"SUB odd.* 1\r\nPUB odd.1 2\r\nhi\r\n")?;
            session.flush()?;
            let mut records = Vec::new();
            for _ in 0..random.between(1, 4) {
                count_input();
                if random.percent(50) {
                    records.extend(odd_record(random));
                } else {
                    session.conn.writer().write_all(b"PING\r\n")?;
                    let mut flight = first_flight(&mut session.conn);
                    damage(&mut flight, random);
                    records.extend(flight);
                }
            }
            let mut socket = session.sock;
            send_in_pieces(&mut socket, &records, random)?;
            leave(socket, random)
        }
        _ => {
            // TLS is right, what it carries is not.
            let mut session = target.session()?;
            for _ in 0..random.between(1, 30) {
                let count = random.between(1, 200);
                let noise = random.bytes(count);
                session.write_all(b"PING\r\n")?;
                count_input();
                session.write_all(&noise)?;
                if random.percent(10) {
                    session.conn.refresh_traffic_keys().ok();
                }
            }
            session.flush()?;
            leave(session.sock, random)
        }
    }
}

/// Sings over TLS until told to stop; says how often.
fn sing(target: &Target, stop: &AtomicBool) -> u64 {
    let mut session = target.session().expect("the canary connects");
    session
        .write_all(b"SUB canary.sings 1\r\n")
        .expect("the canary subscribes");
    let mut sung = 0;
    while !stop.load(Ordering::Relaxed) {
        let song = format!("{sung:08}");
        write!(session, "PUB canary.sings 8\r\n{song}\r\n").expect("the canary sings");
        session.flush().expect("the canary sings");
        let expected = format!("MSG canary.sings 1 8\r\n{song}\r\n");
        let mut heard = Vec::new();
        while heard.len() < expected.len() {
            let mut byte = [0];
            session.read_exact(&mut byte).expect("the canary hears");
            heard.push(byte[0]);
            if heard == b"PING\r\n" {
                session.write_all(b"PONG\r\n").expect("the canary answers");
                heard.clear();
            }
        }
        assert_eq!(String::from_utf8_lossy(&heard), expected);
        sung += 1;
        thread::sleep(Duration::from_millis(1));
    }
    sung
}

#[test]
fn clients_that_speak_tls_wrongly_leave_nothing_behind() {
    let clients = setting("JETLAKE_MALFORMED_TLS_CLIENTS", CLIENTS_DEFAULT);
    let seed = setting("JETLAKE_MALFORMED_SEED", SEED_DEFAULT);
    let target = Target::start();
    let stop = AtomicBool::new(false);
    let done = AtomicU64::new(0);
    let inputs = AtomicU64::new(0);
    let resident_early = AtomicU64::new(0);

    let songs = thread::scope(|scope| {
        let canary = scope.spawn(|| sing(&target, &stop));
        let attackers: Vec<_> = (0..THREADS)
            .map(|number| {
                let (target, done, inputs, resident_early) =
                    (&target, &done, &inputs, &resident_early);
                scope.spawn(move || {
                    let mut random = Random::seeded(seed + number);
                    for _ in 0..clients / THREADS {
                        // A closed socket is an answer too.
                        let _ = attack(target, &mut random, inputs);
                        if done.fetch_add(1, Ordering::Relaxed) == clients / 10 {
                            let bytes = process::resident_bytes() as u64;
                            resident_early.store(bytes, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        for attacker in attackers {
            attacker.join().expect("an attacker broke off");
        }
        stop.store(true, Ordering::Relaxed);
        canary.join().expect("the canary fell silent")
    });
    assert!(songs > 0);

    let started = Instant::now();
    while target.engine.shared().connection_count() > 0 {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{} connections were forgotten (seed {seed})",
            target.engine.shared().connection_count()
        );
        thread::sleep(Duration::from_millis(20));
    }
    let growth =
        process::resident_bytes().saturating_sub(resident_early.load(Ordering::Relaxed) as usize);
    assert!(growth < GROWTH_BYTES_MAX, "{growth} bytes (seed {seed})");
    println!(
        "{clients} clients, {} malformed inputs, {songs} messages of the canary, memory grew by {} KB",
        inputs.load(Ordering::Relaxed),
        growth / 1024
    );
    for event in target
        .engine
        .shared()
        .events
        .next(usize::MAX, Duration::ZERO)
    {
        if let Event::Stopped { failure } = event {
            panic!("{failure} (seed {seed})");
        }
    }
}
