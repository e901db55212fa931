//! The JSON of CONNECT: decoded or refused, never a panic, and never a credential in the log.

#![no_main]

use jetlake_engine::connection::handshake::{redacted, ConnectOptions};
use libfuzzer_sys::fuzz_target;

/// A credential that the input does not say itself.
const SECRET: &str = "correct horse battery staple";

fuzz_target!(|json: &[u8]| {
    let defaults = ConnectOptions::default();
    let first = defaults.decode(json);

    if let Some(options) = &first {
        // What a client says twice means the same twice.
        assert_eq!(options.decode(json).as_ref(), Some(options));
    }
    let _ = redacted(json);

    if !json
        .windows(SECRET.len())
        .any(|window| window == SECRET.as_bytes())
    {
        let mut line =
            format!(r#"{{"user":"{SECRET}","PASS":"{SECRET}","auth_token":"{SECRET}","x":"#)
                .into_bytes();
        line.extend_from_slice(json);
        line.push(b'}');
        assert!(
            !redacted(&line).contains(SECRET),
            "a credential stands in the log"
        );
    }
});
