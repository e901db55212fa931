//! Deadlines as far away as a number can say: no configuration makes the clock of a worker run over.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::config::options::{Options, TlsOptions, WebSocketOptions};
use crate::engine::Engine;
use crate::transport::tls::test_certificates::Authority;

const NEVER_MS: u64 = u64::MAX;

fn options() -> Options {
    let options = serde_json::json!({
        "host": "127.0.0.1", "port": 0, "server_name": "never", "version": "2.15.1", "git_commit": "",
        "client_advertise": null, "max_connections": 100, "max_subscriptions": 0,
        "max_subscription_tokens": 0, "max_control_line_bytes": 4_096,
        "max_payload_bytes": 1_048_576, "max_pending_bytes": 67_108_864, "write_deadline_ms": NEVER_MS,
        "ping_interval_ms": NEVER_MS, "ping_max": 2, "auth_required": false, "auth_timeout_ms": NEVER_MS,
        "handshake_timeout_ms": NEVER_MS, "headers": true, "fast_producer_stall": true, "worker_threads": 1,
        "jetstream": false, "domain": null, "debug": false, "trace": false,
    });
    Options::from_json(options.to_string().as_bytes()).unwrap()
}

/// Starts an engine, and returns the two lines that a client gets who says this.
fn answers(
    options: Options,
    address: impl Fn(&Engine) -> SocketAddr,
    words: &[&str],
) -> Vec<String> {
    let engine = Engine::new(options).unwrap();
    engine.start().unwrap();
    let socket = TcpStream::connect(address(&engine)).unwrap();
    let timeout = Duration::from_secs(60);
    socket.set_read_timeout(Some(timeout)).unwrap();
    let mut lines = BufReader::new(&socket);
    let mut heard = Vec::new();
    for word in words {
        (&socket).write_all(word.as_bytes()).unwrap();
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        heard.push(line);
    }
    drop(socket);
    engine.shutdown();
    heard
}

#[test]
fn clients_are_served_though_no_deadline_ever_comes() {
    let encrypted = TlsOptions {
        timeout_ms: NEVER_MS,
        allow_non_tls: true,
        ..Authority::new().options()
    };
    let open = options();
    let mut closed = options();
    closed.auth_required = true;
    let mut with_tls = options();
    with_tls.tls = Some(encrypted);

    for (options, answer) in [
        (open, "PONG\r\n"),
        (closed, "-ERR 'Authorization Violation'\r\n"),
        (with_tls, "PONG\r\n"),
    ] {
        let heard = answers(options, Engine::address, &["", "PING\r\n"]);

        assert!(heard[0].starts_with("INFO "), "{heard:?}");
        assert_eq!(heard[1], answer);
    }
}

#[test]
fn an_upgrade_may_take_any_time() {
    let mut options = options();
    options.websocket = Some(WebSocketOptions {
        host: "127.0.0.1".to_owned(),
        handshake_timeout_ms: NEVER_MS,
        ..WebSocketOptions::default()
    });
    let request = "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Key: MDAwMDAwMDAwMDAwMDAwMA==\r\nSec-WebSocket-Version: 13\r\n\r\n";

    let address = |engine: &Engine| engine.websocket_address().unwrap();
    let heard = answers(options, address, &[request]);

    assert_eq!(heard, ["HTTP/1.1 101 Switching Protocols\r\n"]);
}
