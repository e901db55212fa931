//! Requests that are accepted, and every one that is refused with its status.

use std::net::{Ipv4Addr, SocketAddr};

use super::*;
use crate::config::options::WebSocketOptions;

fn settings(change: impl FnOnce(&mut WebSocketOptions)) -> WebSocketSettings {
    let mut options = WebSocketOptions::default();
    change(&mut options);
    WebSocketSettings {
        address: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 80),
        tls: None,
        origins: crate::transport::websocket::origins::Origins::new(
            options.same_origin,
            &options.allowed_origins,
        )
        .unwrap(),
        header_lines: String::new(),
        options,
    }
}

fn request(changes: &[(&str, &str)]) -> Vec<u8> {
    let mut headers = vec![
        ("Host", "localhost:8080"),
        ("Upgrade", "WebSocket"),
        ("Connection", "keep-alive, Upgrade"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Sec-WebSocket-Version", "13"),
    ];
    for &(name, value) in changes {
        headers.retain(|(known, _)| *known != name);
        headers.push((name, value));
    }
    let mut text = "GET /nats?x=1 HTTP/1.1\r\n".to_owned();
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.into_bytes()
}

fn accepted(bytes: &[u8], settings: &WebSocketSettings) -> Accepted {
    match read(bytes, settings) {
        Upgrade::Accepted(accepted) => *accepted,
        Upgrade::Refused(refusal) => panic!("{}", refusal.reason),
        Upgrade::Incomplete => panic!("incomplete"),
    }
}

fn refused(bytes: &[u8], settings: &WebSocketSettings) -> (String, String) {
    match read(bytes, settings) {
        Upgrade::Refused(refusal) => {
            let answer = String::from_utf8(refusal.answer).unwrap();
            let line = answer.lines().next().unwrap_or_default().to_owned();
            (line, refusal.reason)
        }
        _ => panic!("it was not refused"),
    }
}

#[test]
fn the_example_of_the_rfc_is_answered_as_there() {
    let settings = settings(|_| {});
    let bytes = request(&[]);

    for end in 0..bytes.len() {
        assert!(matches!(
            read(&bytes[..end], &settings),
            Upgrade::Incomplete
        ));
    }
    let answer = String::from_utf8(accepted(&bytes, &settings).answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 101 Switching Protocols\r\n"));
    assert!(answer.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    assert!(answer.ends_with("\r\n\r\n") && !answer.contains("Extensions"));
}

#[test]
fn a_server_is_known_by_its_path() {
    let settings = settings(|_| {});
    let leaf = String::from_utf8(request(&[]))
        .unwrap()
        .replacen("/nats", "/below/leafnode", 1);

    assert!(accepted(leaf.as_bytes(), &settings).is_leaf);
    assert!(!accepted(&request(&[]), &settings).is_leaf);
    assert!(refuse_leaf().answer.starts_with(b"HTTP/1.1 404 "));
}

#[test]
fn requests_that_ask_for_something_else_are_refused_with_a_status() {
    let settings = settings(|_| {});
    for (changes, line, reason) in [
        (("Host", ""), "HTTP/1.1 400 Bad Request", "'Host' missing"),
        (("Upgrade", "h2c"), "HTTP/1.1 400 Bad Request", "'Upgrade'"),
        (
            ("Connection", "close"),
            "HTTP/1.1 400 Bad Request",
            "'Connection'",
        ),
        (
            ("Sec-WebSocket-Key", "AAAA"),
            "HTTP/1.1 400 Bad Request",
            "invalid websocket key",
        ),
        (
            ("Sec-WebSocket-Version", "8"),
            "HTTP/1.1 400 Bad Request",
            "invalid version",
        ),
    ] {
        let (answer, why) = refused(&request(&[changes]), &settings);
        assert_eq!(answer, line);
        assert!(why.contains(reason), "{why}");
    }
    let post = String::from_utf8(request(&[]))
        .unwrap()
        .replacen("GET", "POST", 1);
    assert!(refused(post.as_bytes(), &settings).0.contains(" 405 "));
    let mqtt = String::from_utf8(request(&[]))
        .unwrap()
        .replacen("/nats", "/mqtt", 1);
    assert!(refused(mqtt.as_bytes(), &settings).0.contains(" 404 "));
    assert!(refused(b"SSH-2.0-x\r\n\r\n", &settings).0.contains(" 400 "));
    let long = vec![b'a'; REQUEST_BYTES_MAX];
    assert!(refused(&[b"GET /".to_vec(), long].concat(), &settings)
        .0
        .contains(" 431 "));
}

#[test]
fn who_goes_on_before_the_answer_is_sent_away_without_one() {
    let bytes = [request(&[]), b"x".to_vec()].concat();
    let (answer, reason) = refused(&bytes, &settings(|_| {}));

    assert_eq!(answer, "");
    assert!(reason.contains("before handshake"));
}

#[test]
fn compression_and_masks_are_agreed_on_only_where_both_want_it() {
    let offer = [
        (
            "Sec-WebSocket-Extensions",
            "x-other, permessage-deflate; client_max_window_bits",
        ),
        ("Nats-No-Masking", "true"),
    ];
    let without = accepted(&request(&offer), &settings(|_| {}));
    assert!(!without.compresses && without.unmasked);

    let with = accepted(
        &request(&offer),
        &settings(|options| options.compress = true),
    );
    assert!(with.compresses);
    let answer = String::from_utf8(with.answer).unwrap();
    assert!(answer.contains("permessage-deflate; server_no_context_takeover"));
    assert!(answer.contains("Nats-No-Masking: true"));
}

#[test]
fn cookies_by_the_configured_names_are_credentials() {
    let settings = settings(|options| {
        options.user_cookie = "u".to_owned();
        options.password_cookie = "p".to_owned();
    });
    let bytes = request(&[("Cookie", "x=1; u=ada; p=\"se=cret\"; t=token")]);

    let cookies = accepted(&bytes, &settings).cookies;

    assert_eq!(
        (cookies.user.as_str(), cookies.password.as_str()),
        ("ada", "se=cret")
    );
    assert_eq!((cookies.token.as_str(), cookies.jwt.as_str()), ("", ""));
}

#[test]
fn a_page_of_another_origin_is_refused() {
    let settings = settings(|options| options.same_origin = true);

    accepted(&request(&[("Origin", "http://localhost:8080")]), &settings);
    accepted(&request(&[]), &settings);
    let (line, reason) = refused(&request(&[("Origin", "http://evil")]), &settings);
    assert_eq!(line, "HTTP/1.1 403 Forbidden");
    assert!(reason.contains("not same origin"));
}
