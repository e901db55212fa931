//! How a client says who it is: the CONNECT line, with a signature of the server's nonce where there is a key.

use super::remotes::Remote;

/// The line that a client begins with.
pub fn connect_line(remote: &Remote, name: &str, nonce: &str, is_secure: bool) -> Vec<u8> {
    let options = &remote.options;
    let mut connect = serde_json::json!({
        "verbose": false, "pedantic": false, "protocol": 1, "headers": true, "no_responders": true, "echo": false,
        "tls_required": is_secure, "name": name, "lang": "jetlake", "version": env!("CARGO_PKG_VERSION"),
    });
    for (key, value) in [
        ("user", options.user.as_str()),
        ("pass", options.password.reveal()),
        ("auth_token", options.token.reveal()),
        ("jwt", options.jwt.reveal()),
    ] {
        if !value.is_empty() {
            connect[key] = value.into();
        }
    }
    if let Some(key) = remote.key.as_ref().filter(|_| !nonce.is_empty()) {
        connect["sig"] = key.sign(nonce).into();
        if options.jwt.is_empty() {
            connect["nkey"] = key.public().into();
        }
    }
    format!("CONNECT {connect}\r\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::stream::replication::remote::options::RemoteOptions;
    use crate::stream::replication::remote::remotes::Remotes;

    /// A pair that the reference library made.
    const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

    #[test]
    fn the_line_has_what_was_configured_and_nothing_else() {
        let line = |options: RemoteOptions| {
            let remotes = Remotes::new(&[RemoteOptions {
                name: "x".to_owned(),
                addresses: vec!["h:1".to_owned()],
                ..options
            }])
            .unwrap();
            let remote = remotes.find("A", "$JS.x.API").unwrap();
            let line = String::from_utf8(connect_line(remote, "n", "nonce", false)).unwrap();
            let json = line.trim_end().strip_prefix("CONNECT ").unwrap();
            serde_json::from_str::<serde_json::Value>(json).unwrap()
        };

        let nobody = line(RemoteOptions::default());
        let user = line(RemoteOptions {
            user: "u".to_owned(),
            password: "p".into(),
            ..RemoteOptions::default()
        });
        let key = line(RemoteOptions {
            seed: SEED.into(),
            ..RemoteOptions::default()
        });
        let bearer = line(RemoteOptions {
            seed: SEED.into(),
            jwt: "j".into(),
            ..RemoteOptions::default()
        });

        assert_eq!(nobody.get("user"), None);
        assert_eq!(nobody.get("sig"), None);
        assert_eq!((&user["user"], &user["pass"]), (&"u".into(), &"p".into()));
        assert_eq!(key["nkey"], PUBLIC);
        assert!(key["sig"].as_str().unwrap().len() > 80);
        assert_eq!((bearer.get("nkey"), &bearer["jwt"]), (None, &"j".into()));
    }
}
