//! What one client may publish and subscribe.
//!
//! Rules: without an allow list everything is allowed, with one only what it covers; deny beats allow. A subscription must lie inside an
//! allowed pattern as a whole. Where a denied pattern covers only a part of it, it is accepted and that part is kept back at delivery, by
//! the concrete subject of each message.

use serde::Deserialize;

use super::error::EngineError;
use super::subject;

/// As Python hands them over.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PermissionLists {
    pub publish: RuleLists,
    pub subscribe: RuleLists,
    pub responses: Option<ResponseLimits>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleLists {
    /// `None` allows everything.
    pub allow: Option<Vec<String>>,
    pub deny: Vec<String>,
}

/// How often and how long a client may publish to the reply subject of a message it got. Negative is without limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponseLimits {
    pub count_max: i64,
    pub expires_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    publish: Rules,
    subscribe: Rules,
    responses: Option<ResponseLimits>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rules {
    allow: Option<Vec<Rule>>,
    deny: Vec<Rule>,
}

/// A pattern, for subscriptions perhaps bound to queue groups.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    pattern: Box<[u8]>,
    queue: Option<Box<[u8]>>,
}

/// What became of the wish to subscribe.
#[derive(Debug, PartialEq, Eq)]
pub enum SubscribeVerdict {
    Allowed,
    /// Allowed, but messages on these patterns are kept back.
    Filtered(Vec<Box<[u8]>>),
    Denied,
}

impl Permissions {
    pub fn new(lists: &PermissionLists) -> Self {
        let mut publish = Rules::new(&lists.publish);
        if lists.responses.is_some() && publish.allow.is_none() {
            // Who may only answer may not publish anything else.
            publish.allow = Some(Vec::new());
        }
        Self {
            publish,
            subscribe: Rules::new(&lists.subscribe),
            responses: lists.responses,
        }
    }

    /// Reads the lists as Python hands them over.
    pub fn from_json(lists: &[u8]) -> Result<Self, EngineError> {
        let lists = serde_json::from_slice(lists);
        let lists = lists.map_err(|error| EngineError::Options(error.to_string()))?;
        Ok(Self::new(&lists))
    }

    pub fn responses(&self) -> Option<ResponseLimits> {
        self.responses
    }

    pub fn allows_publish(&self, subject: &[u8]) -> bool {
        let covered = |rule: &Rule| subject::matches(&rule.pattern, subject);
        self.publish
            .allow
            .as_ref()
            .is_none_or(|allow| allow.iter().any(covered))
            && !self.publish.deny.iter().any(covered)
    }

    /// Whether every subject of a pattern may be published to.
    pub fn covers_publish(&self, pattern: &[u8]) -> bool {
        self.publish.covers(pattern)
    }

    /// Whether every subject of a pattern may be subscribed to, without a queue group.
    pub fn covers_subscribe(&self, pattern: &[u8]) -> bool {
        self.subscribe.covers(pattern)
    }

    /// Whether some subject of a pattern may be subscribed to. For servers, which keep back the others before they send.
    pub fn overlaps_subscribe(&self, pattern: &[u8]) -> bool {
        let Rules { allow, deny } = &self.subscribe;
        let is_allowed = allow.as_ref().is_none_or(|allow| {
            let mut allow = allow.iter();
            allow.any(|rule| subject::overlaps(&rule.pattern, pattern))
        });
        let mut deny = deny.iter();
        is_allowed && !deny.any(|rule| subject::covers(&rule.pattern, pattern))
    }

    /// Whether any subject of a pattern is denied to be published to.
    pub fn denies_publish(&self, pattern: &[u8]) -> bool {
        let meets = |rule: &Rule| subject::overlaps(&rule.pattern, pattern);
        self.publish.deny.iter().any(meets)
    }

    /// Whether there is a list of what may be subscribed to.
    pub fn lists_subscriptions(&self) -> bool {
        self.subscribe.allow.is_some()
    }

    pub fn subscribe(&self, subject: &[u8], queue: Option<&[u8]>) -> SubscribeVerdict {
        if !self.allows_subscribe(subject, queue) {
            return SubscribeVerdict::Denied;
        }
        let concerned = |rule: &&Rule| rule.concerns(queue);
        let mut kept_back = Vec::new();
        for rule in self.subscribe.deny.iter().filter(concerned) {
            if subject::covers(&rule.pattern, subject) {
                return SubscribeVerdict::Denied;
            }
            if subject::overlaps(&rule.pattern, subject) {
                kept_back.push(rule.pattern.clone());
            }
        }
        if kept_back.is_empty() {
            SubscribeVerdict::Allowed
        } else {
            SubscribeVerdict::Filtered(kept_back)
        }
    }

    fn allows_subscribe(&self, subject: &[u8], queue: Option<&[u8]>) -> bool {
        let Some(allow) = &self.subscribe.allow else {
            return true;
        };
        let covering = || {
            allow
                .iter()
                .filter(|rule| subject::covers(&rule.pattern, subject))
        };
        if queue.is_some() && covering().any(|rule| rule.queue.is_some()) {
            // Where groups are named for a subject, only those may form on it.
            return covering().any(|rule| rule.queue.is_some() && rule.concerns(queue));
        }
        covering().any(|rule| rule.queue.is_none())
    }
}

impl Rules {
    fn new(lists: &RuleLists) -> Self {
        let rules = |texts: &Vec<String>| texts.iter().map(|text| Rule::new(text)).collect();
        Self {
            allow: lists.allow.as_ref().map(rules),
            deny: rules(&lists.deny),
        }
    }
}

impl Rules {
    /// Whether all subjects of a pattern are allowed and none of them is denied. A rule that names a queue group allows nothing here, and
    /// denies as much as one without: a server that sends on a user's behalf forms no group.
    fn covers(&self, pattern: &[u8]) -> bool {
        let allows = |rule: &Rule| rule.queue.is_none() && subject::covers(&rule.pattern, pattern);
        self.allow
            .as_ref()
            .is_none_or(|allow| allow.iter().any(allows))
            && !self
                .deny
                .iter()
                .any(|rule| subject::overlaps(&rule.pattern, pattern))
    }
}

impl Rule {
    /// `subject` or `subject queue`.
    fn new(text: &str) -> Self {
        let mut parts = text.split_ascii_whitespace();
        let mut next = || parts.next().map(|part| part.as_bytes().into());
        Self {
            pattern: next().unwrap_or_default(),
            queue: next(),
        }
    }

    /// Whether the rule is about this queue group; one without a group is about all and about none.
    fn concerns(&self, queue: Option<&[u8]>) -> bool {
        match (&self.queue, queue) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(pattern), Some(queue)) => subject::matches(pattern, queue),
        }
    }
}

#[cfg(test)]
#[path = "permissions_tests.rs"]
mod tests;
