//! From which pages a browser may connect: `same_origin` and `allowed_origins`.
//!
//! A request without an origin comes from a program and not from a page; it is let in, as programs can say what they like.

use crate::common::error::EngineError;

#[derive(Debug, Clone, PartialEq, Eq)]
struct AllowedOrigin {
    is_secure: bool,
    /// In lower case.
    host: String,
    port: String,
}

#[derive(Debug, Default)]
pub struct Origins {
    same: bool,
    allowed: Vec<AllowedOrigin>,
}

impl Origins {
    pub fn new(same: bool, allowed: &[String]) -> Result<Self, EngineError> {
        let allowed = allowed
            .iter()
            .map(|text| {
                AllowedOrigin::read(text).ok_or_else(|| {
                    EngineError::Options(format!(
                        "websocket: the allowed origin {text:?} must be an address such as \"https://example.com\""
                    ))
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { same, allowed })
    }

    /// Whether a page of this origin may connect to `host`, which is what the browser asked for. An error says why not.
    pub fn check(
        &self,
        origin: Option<&str>,
        host: &str,
        is_secure: bool,
    ) -> Result<(), &'static str> {
        if !self.same && self.allowed.is_empty() {
            return Ok(());
        }
        let Some(origin) = origin.filter(|origin| !origin.is_empty()) else {
            return Ok(());
        };
        let origin = AllowedOrigin::read(origin).ok_or("not an origin")?;
        if self.same && AllowedOrigin::of_host(host, is_secure).as_ref() != Some(&origin) {
            return Err("not same origin");
        }
        if !self.allowed.is_empty() && !self.allowed.contains(&origin) {
            return Err("not in the allowed list");
        }
        Ok(())
    }
}

impl AllowedOrigin {
    fn read(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let is_secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let host = rest.split(['/', '?', '#']).next()?;
        Self::of_host(host, is_secure)
    }

    /// `host`, `host:port`, `[address]` or `[address]:port`.
    fn of_host(text: &str, is_secure: bool) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, after) = rest.split_once(']')?;
                let port = match after {
                    "" => None,
                    _ => Some(after.strip_prefix(':')?),
                };
                (address, port)
            }
            None => match text.split_once(':') {
                None => (text, None),
                Some((_, port)) if port.contains(':') => return None,
                Some((host, port)) => (host, Some(port)),
            },
        };
        let port = port.unwrap_or(if is_secure { "443" } else { "80" });
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        (!host.is_empty() && is_number).then(|| Self {
            is_secure,
            host: host.to_ascii_lowercase(),
            port: port.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowing(origins: &[&str]) -> Origins {
        let origins: Vec<String> = origins.iter().map(|&text| text.to_owned()).collect();
        Origins::new(false, &origins).unwrap()
    }

    #[test]
    fn without_rules_and_without_an_origin_everybody_may_connect() {
        assert!(Origins::default()
            .check(Some("http://evil"), "host", false)
            .is_ok());
        assert!(allowing(&["https://good"])
            .check(None, "host", true)
            .is_ok());
    }

    #[test]
    fn a_list_compares_scheme_host_and_port_and_nothing_else() {
        let origins = allowing(&["https://Good.example", "http://other:8080/ignored"]);
        let is_allowed = |origin| origins.check(Some(origin), "host", true).is_ok();

        assert!(is_allowed("https://good.example"));
        assert!(is_allowed("https://GOOD.example:443"));
        assert!(is_allowed("http://other:8080"));
        for origin in [
            "http://good.example",
            "https://good.example:444",
            "https://good.example.evil",
            "https://evil/good.example",
            "https://good.example@evil",
            "http://other",
            "null",
            "https://",
        ] {
            assert!(!is_allowed(origin), "{origin}");
        }
    }

    #[test]
    fn the_same_origin_is_that_of_the_host_asked_for() {
        let origins = Origins::new(true, &[]).unwrap();
        let is_same =
            |origin, host, is_secure| origins.check(Some(origin), host, is_secure).is_ok();

        assert!(is_same("http://localhost:8080", "LocalHost:8080", false));
        assert!(is_same("https://[::1]", "[::1]:443", true));
        assert!(!is_same("https://localhost:8080", "localhost:8080", false));
        assert!(!is_same("http://localhost", "localhost:8080", false));
    }

    #[test]
    fn origins_that_are_none_are_refused_at_once() {
        for text in [
            "",
            "example.com",
            "ftp://example.com",
            "http://",
            "http://a:b",
        ] {
            assert!(Origins::new(false, &[text.to_owned()]).is_err(), "{text}");
        }
    }
}
