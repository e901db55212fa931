//! A live engine and millions of frames that are wrong in every way that could be thought of.
//!
//! Each connection sends a script of valid, odd and broken operations. Every one must be answered exactly as the oracle says: a refused
//! operation with its own `-ERR`, or with a silent close where the protocol wants that. Meanwhile a canary must not miss a message. At
//! the end nothing may be left behind: no connection, no subscription, no memory, no worker that broke off.
//!
//! `JETLAKE_MALFORMED_FRAMES` sets the number of frames, `JETLAKE_MALFORMED_SEED` the seed. `JETLAKE_MALFORMED_SERVER` (host:port) sends
//! the same frames to another server instead, without a look inside: so the oracle itself is checked against the reference server.

mod support;

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};
use support::canary::Canary;
use support::live_engine::{self, LiveEngine};
use support::oracle::{self, Judgement, Rules};
use support::random::Random;
use support::{answers, frames, process};

/// Names another server to attack instead.
const REFERENCE: &str = "JETLAKE_MALFORMED_SERVER";

const FRAMES_DEFAULT: u64 = 200_000;
const SEED_DEFAULT: u64 = 0x6a65_746c_616b_6521;

/// Connections at the same time.
const THREADS: u64 = 4;

/// A server that is silent for this long hangs.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Of each side of a conversation that failed.
const SHOWN_CHARACTERS_MAX: usize = 6_000;

/// Memory may grow by this much between a tenth of the run and its end: the allocator keeps some of what bursts needed.
const GROWTH_BYTES_MAX: usize = 48 * 1024 * 1024;

/// How long clients that were refused stay, without closing their side.
const LINGERING: Duration = Duration::from_secs(1);

/// Memory and processor time are those of the whole process, so the tests take turns.
static ALONE: Mutex<()> = Mutex::new(());

/// What a run has seen so far.
#[derive(Default)]
struct Tally {
    frames: AtomicU64,
    connections: AtomicU64,
    refused: AtomicU64,
    uncertain: AtomicU64,
    abrupt: AtomicU64,
    failed: AtomicBool,
    failures: Mutex<Vec<String>>,
}

#[test]
fn malformed_frames_are_refused_and_leave_nothing_behind() {
    run(
        false,
        setting("JETLAKE_MALFORMED_FRAMES", FRAMES_DEFAULT) / 10 * 8,
    );
}

#[test]
fn malformed_frames_before_authentication_are_refused_and_leave_nothing_behind() {
    if std::env::var(REFERENCE).is_err() {
        run(
            true,
            setting("JETLAKE_MALFORMED_FRAMES", FRAMES_DEFAULT) / 10 * 2,
        );
    }
}

#[test]
fn refused_clients_that_linger_cost_no_processor_time() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if std::env::var(REFERENCE).is_ok() {
        return;
    }
    let engine = LiveEngine::start(false);
    let before = process::processor_time();
    let begun = Instant::now();

    let mut sockets = Vec::new();
    while begun.elapsed() < LINGERING {
        let mut socket = connect(engine.address(), 0).expect("the engine accepts");
        socket.write_all(b"nonsense\r\n").expect("the engine reads");
        sockets.push(socket);
        thread::sleep(LINGERING / 20);
    }

    let used = process::processor_time() - before;
    engine.stop(SEED_DEFAULT);
    assert!(
        used < LINGERING / 4,
        "{used:?} of processor time in {LINGERING:?}"
    );
}

/// The server that is attacked.
struct Target {
    address: SocketAddr,
    rules: Rules,
    /// Not an engine of this process.
    is_reference: bool,
    seed: u64,
}

fn run(auth_required: bool, frames: u64) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let seed = setting("JETLAKE_MALFORMED_SEED", SEED_DEFAULT);
    let reference: Option<SocketAddr> = std::env::var(REFERENCE).ok().map(|text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{REFERENCE} is {text}"))
    });
    let engine = reference
        .is_none()
        .then(|| LiveEngine::start(auth_required));
    let target = Target {
        address: reference
            .or(engine.as_ref().map(LiveEngine::address))
            .expect("there is one of them"),
        rules: live_engine::rules(auth_required, reference.is_none()),
        is_reference: reference.is_some(),
        seed,
    };
    let canary = Canary::start(target.address);
    let tally = Tally::default();
    let begun = Instant::now();

    // The first tenth warms up: buffers reach their size, allocators keep what they will keep.
    attack(&target, frames / 10, &tally, &canary);
    let resident_warm = process::resident_bytes();
    attack(&target, frames, &tally, &canary);

    let seconds = begun.elapsed().as_secs_f64();
    let failures = tally.failures.lock().unwrap();
    assert!(
        failures.is_empty(),
        "seed {seed:#x}:\n{}",
        failures.join("\n")
    );
    if let Some(engine) = &engine {
        engine.expect_calm(seed);
    }
    let growth = process::resident_bytes().saturating_sub(resident_warm);
    let sung = canary.stop();
    let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
    println!(
        "{} frames on {} connections in {seconds:.1} s: {} refused, {} not judged to the end, {} cut off by the client; \
         {sung} messages of the canary; memory grew by {} KiB; seed {seed:#x}",
        count(&tally.frames),
        count(&tally.connections),
        count(&tally.refused),
        count(&tally.uncertain),
        count(&tally.abrupt),
        growth / 1024,
    );
    assert!(
        growth < GROWTH_BYTES_MAX,
        "memory grew by {growth} bytes; seed {seed:#x}"
    );
    if let Some(engine) = engine {
        engine.stop(seed);
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| {
        let digits = text.strip_prefix("0x");
        digits
            .map_or(text.parse(), |digits| u64::from_str_radix(digits, 16))
            .unwrap_or_else(|_| panic!("{name} is {text}"))
    })
}

/// Connects, sends and compares until this many frames were judged or something failed.
fn attack(target: &Target, frames: u64, tally: &Tally, canary: &Canary) {
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while tally.frames.load(Ordering::Relaxed) < frames
                    && !tally.failed.load(Ordering::Relaxed)
                {
                    let number = tally.connections.fetch_add(1, Ordering::Relaxed);
                    let failure = match one_connection(target, number, tally) {
                        Err(failure) => format!("connection {number}: {failure}"),
                        Ok(()) if !canary.lives() => "the canary missed a message".to_owned(),
                        Ok(()) => continue,
                    };
                    tally.failed.store(true, Ordering::Relaxed);
                    tally.failures.lock().unwrap().push(failure);
                }
            });
        }
    });
}

fn one_connection(target: &Target, number: u64, tally: &Tally) -> Result<(), String> {
    let mut random = Random::seeded(target.seed ^ number.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let script = frames::script(&mut random);
    let mut judgement = oracle::judge(&script.bytes, target.rules);
    if target.is_reference {
        judgement.join_repeats();
    }
    let explain = |what: String| {
        format!(
            "{what}\nsent: {}\nexpected: {judgement:?}",
            shown(&script.bytes)
        )
    };
    let mut socket = connect(target.address, number)
        .map_err(|error| explain(format!("cannot connect: {error}")))?;

    send(&mut socket, &script).map_err(|error| explain(format!("cannot send: {error}")))?;
    let judged = script
        .frames
        .iter()
        .filter(|start| **start <= judgement.position)
        .count() as u64;
    tally.frames.fetch_add(judged, Ordering::Relaxed);
    if script.abrupt {
        tally.abrupt.fetch_add(1, Ordering::Relaxed);
        return Ok(());
    }
    let (received, was_reset) =
        receive(&mut socket, &judgement).map_err(|error| explain(format!("no end: {error}")))?;

    tally
        .refused
        .fetch_add(u64::from(judgement.closes), Ordering::Relaxed);
    tally
        .uncertain
        .fetch_add(u64::from(!judgement.certain), Ordering::Relaxed);
    let compared = answers::split(&received).and_then(|mut answers| {
        if target.is_reference {
            if was_reset || answers.is_cut_off {
                // The reference server may close before everything is read or written; then its last words are lost.
                return Ok(());
            }
            answers.join_repeats();
        }
        answers.compare(&judgement.answers, judgement.certain)
    });
    compared.map_err(|reason| explain(format!("{reason}\nreceived: {}", shown(&received))))
}

/// Closing resets the connection, and the source address changes, so that no run is short of ports.
fn connect(address: SocketAddr, number: u64) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    if address.ip().is_loopback() {
        let source = Ipv4Addr::new(127, 0, 0, 2 + (number % 200) as u8);
        socket.bind(&SocketAddrV4::new(source, 0).into())?;
    }
    socket.connect(&address.into())?;
    socket.set_linger(Some(Duration::ZERO))?;
    socket.set_tcp_nodelay(true)?;
    socket.set_read_timeout(Some(SILENCE_MAX))?;
    socket.set_write_timeout(Some(SILENCE_MAX))?;
    Ok(socket.into())
}

/// A server may close before it has read everything; that is not a failure.
fn send(socket: &mut TcpStream, script: &frames::Script) -> io::Result<()> {
    let mut start = 0;
    for end in script.splits.iter().copied().chain([script.bytes.len()]) {
        match socket.write_all(&script.bytes[start..end]) {
            Err(error) if !is_reset(&error) => return Err(error),
            Err(_) => return Ok(()),
            Ok(()) => thread::yield_now(),
        }
        start = end;
    }
    Ok(())
}

/// Reads to the end, and returns whether that was a reset. A server that should close by itself is waited for; for any
/// other, the write side is shut down first.
fn receive(socket: &mut TcpStream, judgement: &Judgement) -> io::Result<(Vec<u8>, bool)> {
    if !judgement.closes {
        match socket.shutdown(Shutdown::Write) {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => return Err(error),
            _ => {}
        }
    }
    let mut received = Vec::new();
    match socket.read_to_end(&mut received) {
        Ok(_) => Ok((received, false)),
        Err(error) if is_reset(&error) => Ok((received, true)),
        Err(error) => Err(error),
    }
}

fn is_reset(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    )
}

/// Bytes for a failure's text: long runs of one byte are cut short, and so is the whole.
fn shown(bytes: &[u8]) -> String {
    let mut text = String::new();
    for run in bytes.chunk_by(|one, next| one == next) {
        if run.len() > 16 {
            text += &format!("<{} times {}>", run.len(), run[..1].escape_ascii());
        } else {
            text += &run.escape_ascii().to_string();
        }
        if text.len() > SHOWN_CHARACTERS_MAX {
            return text + "...";
        }
    }
    text
}
