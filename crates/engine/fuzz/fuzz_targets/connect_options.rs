//! The JSON of CONNECT: decoded or refused, never a panic, and never a credential in the log.

#![no_main]

use jetlake_engine::connection::connect_options::{redacted, ConnectOptions};
use libfuzzer_sys::fuzz_target;

/// A credential that the input does not say itself.
const SECRET: &str = "correct horse battery staple";

fuzz_target!(|json: &[u8]| {
    let defaults = ConnectOptions::default();
    let first = defaults.decode(json);

    if let Some((options, credentials)) = &first {
        // What a client says twice means the same twice.
        let (again, shown) = options.decode(json).expect("it was decoded before");
        assert_eq!(&again, options);
        assert!(shown == *credentials);
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
