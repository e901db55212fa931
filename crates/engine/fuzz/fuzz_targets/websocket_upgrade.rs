//! The HTTP request of a WebSocket client: accepted, refused or incomplete, never a panic; what is accepted has an answer that is HTTP.

#![no_main]

use jetlake_engine::config::options::WebSocketOptions;
use jetlake_engine::transport::websocket::origins::Origins;
use jetlake_engine::transport::websocket::upgrade::{read, Upgrade, REQUEST_BYTES_MAX};
use jetlake_engine::transport::websocket::WebSocketSettings;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let settings = WebSocketSettings {
        address: ([127, 0, 0, 1], 80).into(),
        tls: None,
        origins: Origins::new(true, &["https://example.com".to_owned()]).expect("it is one"),
        header_lines: String::new(),
        options: WebSocketOptions {
            compress: true,
            jwt_cookie: "j".to_owned(),
            user_cookie: "u".to_owned(),
            password_cookie: "p".to_owned(),
            token_cookie: "t".to_owned(),
            ..WebSocketOptions::default()
        },
    };
    match read(bytes, &settings) {
        Upgrade::Incomplete => assert!(bytes.len() < REQUEST_BYTES_MAX),
        Upgrade::Refused(refusal) => {
            assert!(!refusal.reason.is_empty());
            assert!(refusal.answer.is_empty() || refusal.answer.starts_with(b"HTTP/1.1 4"));
        }
        Upgrade::Accepted(accepted) => {
            assert!(bytes.starts_with(b"GET ") || bytes[0].is_ascii_whitespace());
            assert!(accepted.answer.starts_with(b"HTTP/1.1 101 "));
            assert!(accepted.answer.ends_with(b"\r\n\r\n"));
        }
    }
});
