//! Texts that are never shown: keys, passwords, tokens.

use std::fmt;

use serde::Deserialize;

/// A text that is never shown.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What nobody but its receiver may see.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_empty() { "none" } else { "…" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Secret::from("hidden")), "…");
        assert_eq!(format!("{:?}", Secret::default()), "none");
        assert_eq!(Secret::from("hidden").reveal(), "hidden");
    }
}
