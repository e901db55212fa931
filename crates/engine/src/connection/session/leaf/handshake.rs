//! From two sockets to a link.
//!
//! The side that was connected to begins with INFO. The other one begins TLS if that is demanded, agrees on compression by an INFO of its own, and says CONNECT;
//! the first side answers with a second INFO, which says what may pass. Then each announces to the other what it wants.

use std::sync::Arc;

use super::{leaf_line_bytes_max, LeafPhase, LeafState, UrlCredentials, LONG_PAUSE, VERSION_PAUSE};
use crate::config::leaf::{LeafCompression, LeafUrl};
use crate::connection::session::{Context, Next, Session, SessionPhase};
use crate::routing::clients::closed_reason::ClosedReason;
use crate::routing::clients::connection::Connection;
use crate::routing::leaf::remote::url_text;
use crate::routing::leaf::reporting;
use crate::routing::leaf::LeafRemote;
use crate::routing::shared::Shared;
use crate::wire::leaf_information::{LeafConnect, LeafInformation, LEAF_PROTOCOL};

/// A second after INFO, and one after CONNECT: what the other side may take for its part of the handshake.
const ADMISSION_TIMEOUT_MS: u64 = 2_000;

impl LeafState {
    /// The state of a connection that another server has made.
    pub fn accepted() -> Box<Self> {
        Box::new(Self {
            remote: None,
            is_solicited: false,
            url: String::new(),
            host: String::new(),
            credentials: UrlCredentials::default(),
            wants_tls: false,
            websocket: None,
            phase: LeafPhase::AwaitingConnect,
            is_secured: true,
            is_compression_settled: false,
            compression: LeafCompression::Off,
            information: LeafInformation::default(),
            connect: LeafConnect::default(),
            granted: None,
            link: None,
            failure: String::new(),
            pause: None,
        })
    }

    /// The state of a connection to this address of a remote.
    pub fn solicited(remote: Arc<LeafRemote>, url: &LeafUrl) -> Box<Self> {
        let mut state = Self::accepted();
        state.is_solicited = true;
        state.url = url_text(url);
        state.host.clone_from(&url.host);
        state.credentials = UrlCredentials {
            user: url.user.clone(),
            password: url.password.reveal().to_owned(),
            token: url.token.reveal().to_owned(),
        };
        state.websocket = url.websocket.then(|| url.clone());
        state.wants_tls = url.tls || remote.options.tls.is_some();
        state.is_secured = false;
        state.phase = LeafPhase::AwaitingInformation;
        state.remote = Some(remote);
        state
    }
}

impl Session {
    /// A session with a server that this one has connected to.
    pub fn solicited(
        connection: Arc<Connection>,
        shared: &Shared,
        remote: Arc<LeafRemote>,
        url: &LeafUrl,
    ) -> Self {
        let account = shared.account(&remote.options.account);
        let mut session = Self::new(connection, shared, String::new());
        session.account = account;
        session.leaf = Some(LeafState::solicited(remote, url));
        session
    }

    /// What every session with another server begins with.
    pub(in crate::connection::session) fn prepare_leaf(&mut self, shared: &Shared) {
        self.phase = SessionPhase::Closed;
        self.limits.control_line_bytes_max = leaf_line_bytes_max(&shared.options());
        self.leaf = Some(LeafState::accepted());
    }

    /// The time for the handshake with another server.
    pub fn leaf_timeout_ms(&self) -> Option<u64> {
        let remote = self.leaf.as_ref()?.remote.as_ref()?;
        let first_ms = remote.options.first_info_timeout_ms;
        Some(first_ms.saturating_add(ADMISSION_TIMEOUT_MS))
    }

    /// The first thing that is sent to a server that has connected.
    pub(in crate::connection::session) fn greet_leaf(&self, context: &mut Context<'_>) {
        let mut information = reporting::information(context.shared, &self.connection);
        information.nonce.clone_from(&self.nonce);
        if let Some(leaf) = self
            .leaf
            .as_ref()
            .filter(|leaf| !leaf.is_compression_settled)
        {
            let wanted = leaf.wanted_compression(context.shared);
            wanted.name().clone_into(&mut information.compression);
        }
        information.write(context.staging.entry(&self.connection).line());
    }

    /// INFO has come: the first one begins the handshake, and later ones announce changes.
    pub(super) fn hear_information(
        &mut self,
        json: &[u8],
        context: &mut Context<'_>,
    ) -> Result<(), Next> {
        let Some(information) = LeafInformation::read(json) else {
            return Err(Next::Close(ClosedReason::ParseError));
        };
        let Some(leaf) = &mut self.leaf else {
            return Ok(());
        };
        if !leaf.is_solicited {
            return self.hear_compression(&information.compression, context);
        }
        if let (Some(remote), Some(addresses)) = (&leaf.remote, &information.leafnode_urls) {
            remote.discover(addresses);
        }
        match leaf.phase {
            LeafPhase::AwaitingInformation => {
                if information.client_id == 0 || information.leafnode_urls.is_none() {
                    let text = "the address is not a port for leaf nodes: use the one that the other server's leafnodes block listens on";
                    self.log_link(context, text);
                    self.fail_link(text, None);
                    return Err(Next::Close(ClosedReason::WrongPort));
                }
                if information.cluster.contains(' ') {
                    return Err(self.refuse_spaces(context));
                }
                leaf.wants_tls |= information.tls_required && leaf.websocket.is_none();
                leaf.information = information;
                self.continue_handshake(context)
            }
            LeafPhase::AwaitingAdmission if information.connect_info => {
                leaf.information.import = information.import;
                leaf.information.export = information.export;
                leaf.information.remote_account = information.remote_account;
                self.open_leaf(context).map_or(Ok(()), Err)
            }
            LeafPhase::Open if information.connect_info || information.import.is_some() => {
                leaf.information.import = information.import;
                leaf.information.export = information.export;
                let rules = self.link_rules(context.shared);
                if let Some(link) = self.leaf.as_ref().and_then(|leaf| leaf.link.clone()) {
                    link.set_rules(rules, &self.account);
                    self.account.outdate_routes();
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The next step after INFO, TLS or compression.
    pub fn continue_handshake(&mut self, context: &mut Context<'_>) -> Result<(), Next> {
        let Some(leaf) = &mut self.leaf else {
            return Ok(());
        };
        if leaf.phase != LeafPhase::AwaitingInformation || leaf.information.server_id.is_empty() {
            return Ok(());
        }
        if leaf.wants_tls && !leaf.is_secured {
            return Err(Next::Secure);
        }
        if !std::mem::replace(&mut leaf.is_compression_settled, true) {
            let theirs = LeafCompression::read(&leaf.information.compression);
            let own = leaf.wanted_compression(context.shared);
            let agreed = own.agree(theirs.unwrap_or_default());
            if agreed.is_framed() {
                leaf.compression = leaf.level_of(agreed, &self.connection, context.shared);
                self.tell_compression(own, context);
                // The other side answers with an INFO that is compressed.
                if let Some(leaf) = &mut self.leaf {
                    leaf.information = LeafInformation::default();
                }
                return Err(Next::Compress(self.agreed_compression()));
            }
        }
        self.introduce(context)
    }

    /// Says CONNECT.
    fn introduce(&mut self, context: &mut Context<'_>) -> Result<(), Next> {
        let Some(leaf) = &mut self.leaf else {
            return Ok(());
        };
        let Some(remote) = &leaf.remote else {
            return Ok(());
        };
        let own = context.shared.server_information();
        let (options, nonce) = (&remote.options, &leaf.information.nonce);
        let deny_imports = &options.deny_imports;
        let mut connect = LeafConnect {
            version: own.version,
            server_id: own.server_id,
            domain: own.domain.unwrap_or_default(),
            cluster: own.server_name.clone(),
            name: own.server_name,
            is_hub: options.hub,
            headers: own.headers && leaf.information.headers,
            jetstream: own.jetstream,
            denied_publishes: (!deny_imports.is_empty()).then(|| deny_imports.clone()),
            isolate: options.request_isolation,
            compression: leaf.compression.name().to_owned(),
            remote_account: options.account.clone(),
            protocol: i64::from(LEAF_PROTOCOL),
            user: leaf.credentials.user.clone(),
            password: leaf.credentials.password.clone(),
            token: leaf.credentials.token.clone(),
            jwt: options.jwt.reveal().to_owned(),
            ..LeafConnect::default()
        };
        if let Some(key) = remote.key.as_ref().filter(|_| !nonce.is_empty()) {
            connect.signature = key.sign(nonce);
            if connect.jwt.is_empty() {
                key.public().clone_into(&mut connect.nkey);
            }
        }
        leaf.phase = LeafPhase::AwaitingAdmission;
        let answers_connect = leaf.information.info_on_connect;
        connect.write(context.staging.entry(&self.connection).line());
        if answers_connect {
            return Ok(());
        }
        self.open_leaf(context).map_or(Ok(()), Err)
    }

    /// CONNECT of a server that has connected.
    pub(super) fn connect_leaf(
        &mut self,
        json: &[u8],
        context: &mut Context<'_>,
    ) -> Result<(), Next> {
        let (Some(connect), Some((options, credentials))) =
            (LeafConnect::read(json), self.options.decode(json))
        else {
            return Err(Next::Close(ClosedReason::ParseError));
        };
        let Some(leaf) = &mut self.leaf else {
            return Ok(());
        };
        if leaf.phase != LeafPhase::AwaitingConnect {
            return Err(Next::Close(ClosedReason::ProtocolViolation));
        }
        leaf.is_compression_settled = true;
        leaf.connect = connect.clone();
        let refused = |session: &mut Self, text: &str, reason, pause, context: &mut Context<'_>| {
            Err(session.refuse_link(text, reason, pause, context))
        };
        if !options.language.is_empty() {
            let text = "attempted to connect to leaf node port";
            return refused(self, text, ClosedReason::WrongPort, None, context);
        }
        if connect.cluster.contains(' ') {
            return Err(self.refuse_spaces(context));
        }
        if !connect.gateway.is_empty() {
            let text = format!(
                "Rejecting connection from gateway {:?} on the leafnode port",
                connect.gateway
            );
            return refused(self, &text, ClosedReason::WrongPort, None, context);
        }
        let shared_options = context.shared.options();
        let wanted_version = shared_options
            .leaf_listener()
            .map_or("", |listener| &listener.min_version);
        if !is_version_at_least(&connect.version, wanted_version) {
            let text = format!(
                "connection rejected since minimum version required is \"{wanted_version}\""
            );
            let reason = ClosedReason::MinimumVersionRequired;
            return refused(self, &text, reason, Some(VERSION_PAUSE), context);
        }
        let own = context.shared.server_information();
        let is_own_cluster =
            context.shared.has_leaf_remotes() && connect.cluster == own.server_name;
        if is_own_cluster {
            let text = "remote leafnode has same cluster name";
            let reason = ClosedReason::ClusterNamesIdentical;
            return refused(self, text, reason, Some(LONG_PAUSE), context);
        }
        self.connection.guess_round_trip();
        self.options = options;
        self.said_connect = true;
        if context.shared.requires_login(&self.connection) {
            self.phase = SessionPhase::AwaitingVerdict;
            self.request_verdict(credentials, false, context);
            return Ok(());
        }
        self.keep_credentials(credentials);
        self.open_leaf(context).map_or(Ok(()), Err)
    }

    fn refuse_spaces(&mut self, context: &mut Context<'_>) -> Next {
        let text = "cluster name cannot contain spaces or new lines";
        self.refuse_link(text, ClosedReason::ProtocolViolation, None, context)
    }
}

/// Whether a version such as `2.10.4-RC.1` is at least another; an empty requirement is always met.
fn is_version_at_least(version: &str, wanted: &str) -> bool {
    if wanted.is_empty() {
        return true;
    }
    numbers_of(version) >= numbers_of(wanted)
}

fn numbers_of(version: &str) -> Vec<u64> {
    let release = version.trim_start_matches('v');
    let release = release.split(['-', '+']).next().unwrap_or_default();
    let number = |text: &str| text.parse().unwrap_or(0);
    release.split('.').map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (version, wanted, is_enough) in [
            ("2.15.1", "2.9.0", true),
            ("2.9.0", "2.9.0", true),
            ("2.8.4", "2.9.0", false),
            ("v2.10.0-beta.1", "2.10.0", true),
            ("", "2.8.0", false),
            ("", "", true),
        ] {
            assert_eq!(is_version_at_least(version, wanted), is_enough, "{version}");
        }
    }
}
