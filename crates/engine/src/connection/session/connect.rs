//! The handshake as the session sees it: CONNECT, the verdict, and the time a client has for it.

use std::sync::Arc;

use super::access::ClientAccess;
use super::{Context, Next, Session, SessionPhase};
use crate::common::events::{AuthenticationRequest, Event};
use crate::config::connection_type::ConnectionType;
use crate::connection::connect_options::Credentials;
use crate::routing::account::Account;
use crate::routing::clients::closed_reason::ClosedReason;
use crate::routing::clients::mailbox::{Admission, Verdict};
use crate::routing::monitoring::system_events;
use crate::routing::shared::Shared;

/// What a verdict led to.
pub enum Decision {
    /// Nobody had asked.
    Unasked,
    /// The client is in: go on with what it sent meanwhile.
    Opened,
    /// It was in and stays in.
    Reviewed,
    Ended(Next),
}

impl Session {
    pub(super) fn connect(&mut self, json: &[u8], context: &mut Context<'_>) -> Result<(), Next> {
        let Some((options, mut credentials)) = self.options.decode(json) else {
            return Err(Next::Close(ClosedReason::ParseError));
        };
        if let Some(cookies) = &self.cookies {
            credentials.add_cookies(cookies);
        }
        self.connection.guess_round_trip();
        let auth_required = context.shared.requires_login(&self.connection);
        // Subscriptions made as another user must not outlive that login.
        if self.connected || auth_required {
            self.drop_subscriptions();
        }
        self.options = options;
        self.said_connect = true;
        if auth_required {
            self.phase = SessionPhase::AwaitingVerdict;
            self.request_verdict(credentials, false, context);
            return Ok(());
        }
        self.keep_credentials(credentials);
        match self.open(context) {
            Some(next) => Err(next),
            None => Ok(()),
        }
    }

    /// Keeps what a client showed though nobody asked: a reload may demand a login, and then it need not go.
    pub(super) fn keep_credentials(&mut self, credentials: Credentials) {
        let shows_any = credentials != Credentials::default();
        self.credentials = shows_any.then(|| Box::new(credentials));
    }

    /// Asks Python who this is.
    pub(super) fn request_verdict(
        &mut self,
        credentials: Credentials,
        again: bool,
        context: &Context<'_>,
    ) {
        let request = AuthenticationRequest {
            connection_id: self.connection.id,
            connect: credentials.to_json(&self.options),
            nonce: self.nonce.clone(),
            remote_address: self.connection.remote_address.to_string(),
            tls: self.tls.clone(),
            connection_type: self.connection.connection_type().name(),
            again,
        };
        self.credentials = Some(Box::new(credentials));
        context.shared.events.push(Event::Authenticate(request));
    }

    /// Users or permissions have changed: asks about a client that is in.
    pub fn ask_again(&mut self, context: &Context<'_>) {
        if self.phase == SessionPhase::Open && context.shared.requires_login(&self.connection) {
            self.review_pending = true;
            let credentials = self.credentials.take().unwrap_or_default();
            self.request_verdict(*credentials, true, context);
        }
    }

    /// Python has decided. Does nothing when no verdict is awaited.
    pub fn decide(&mut self, verdict: Verdict, context: &mut Context<'_>) -> Decision {
        if self.phase != SessionPhase::AwaitingVerdict && !std::mem::take(&mut self.review_pending)
        {
            return Decision::Unasked;
        }
        let admission = match verdict {
            Verdict::Refuse(cause) => return Decision::Ended(self.refuse_login(cause, context)),
            Verdict::Admit(admission) => admission,
        };
        if self.phase == SessionPhase::Open {
            return match self.review(&admission, context) {
                Some(next) => Decision::Ended(next),
                None => Decision::Reviewed,
            };
        }
        let account = context.shared.account(&admission.account);
        if self.is_leaf() {
            return self.admit_leaf(account, &admission, context);
        }
        if self.in_account {
            self.account.leave();
        }
        self.in_account = account.enter(admission.max_account_connections);
        self.account = account;
        if !self.in_account {
            return Decision::Ended(self.refuse_account(context));
        }
        if admission.max_subscriptions == Some(0) {
            return Decision::Ended(self.refuse_subscriptions(context));
        }
        self.access = ClientAccess::new(&admission);
        self.expires_unix_ms = admission.expires_unix_ms;
        let mut identity = self.connection.identity.lock();
        identity.user.clone_from(&admission.user);
        identity.details.clone_from(&admission.details);
        drop(identity);
        match self.open(context) {
            Some(next) => Decision::Ended(next),
            None => Decision::Opened,
        }
    }

    /// Another server is who it says: the link is open.
    fn admit_leaf(
        &mut self,
        account: Arc<Account>,
        admission: &Admission,
        context: &mut Context<'_>,
    ) -> Decision {
        self.account = account;
        self.access = ClientAccess::new(admission);
        self.expires_unix_ms = admission.expires_unix_ms;
        self.connection
            .identity
            .lock()
            .user
            .clone_from(&admission.user);
        let leafs_max = admission.max_account_connections;
        if leafs_max.is_some_and(|max| self.account.leaf_count() >= max) {
            return Decision::Ended(self.refuse_account(context));
        }
        self.grant_leaf(admission);
        match self.open_leaf(context) {
            Some(next) => Decision::Ended(next),
            None => Decision::Opened,
        }
    }

    /// Its account has as many clients as it may.
    fn refuse_account(&self, context: &mut Context<'_>) -> Next {
        self.close_with_error(
            context,
            "maximum account active connections exceeded",
            ClosedReason::MaximumAccountConnectionsExceeded,
        )
    }

    /// It may not have any subscription: nothing could ever be delivered to it, replies included.
    fn refuse_subscriptions(&self, context: &mut Context<'_>) -> Next {
        self.close_with_error(
            context,
            "maximum subscriptions exceeded",
            ClosedReason::MaximumSubscriptionsExceeded,
        )
    }

    /// The client stays who it is, but may be allowed other things than before.
    fn review(&mut self, admission: &Admission, context: &mut Context<'_>) -> Option<Next> {
        if admission.account != self.account.name {
            return Some(Next::Close(ClosedReason::AuthenticationFailure));
        }
        if self.is_leaf() {
            self.access = ClientAccess::new(admission);
            self.review_leaf(admission, context);
            return None;
        }
        if self.in_account
            && self
                .account
                .leave_if_over(admission.max_account_connections)
        {
            self.in_account = false;
            return Some(self.refuse_account(context));
        }
        if admission.max_subscriptions == Some(0) {
            return Some(self.refuse_subscriptions(context));
        }
        self.access.renew(admission);
        let mut identity = self.connection.identity.lock();
        // It may have come in when nobody asked who it is.
        identity.user.clone_from(&admission.user);
        identity.details.clone_from(&admission.details);
        drop(identity);
        self.expires_unix_ms = admission.expires_unix_ms;
        self.apply_options(context.shared);
        self.review_subscriptions(context);
        None
    }

    /// Milliseconds until what it was let in with ends, if it does.
    pub fn expires_in_ms(&self, shared: &Shared) -> Option<u64> {
        let now_ms = u64::try_from(shared.clock.wall_ns() / 1_000_000).unwrap_or(0);
        Some(self.expires_unix_ms?.saturating_sub(now_ms))
    }

    /// What it was let in with has ended, and so does the session.
    pub fn expire(&self, context: &mut Context<'_>) -> ClosedReason {
        let reason = ClosedReason::AuthenticationExpired;
        self.close_with_error(context, "User Authentication Expired", reason);
        reason
    }

    /// The end of the session: its account has one client less.
    pub fn leave(&mut self, reason: ClosedReason) {
        self.leave_leaf(reason);
        self.end_subscriptions();
        if std::mem::take(&mut self.in_account) {
            self.account.leave();
        }
    }

    /// The client is who it says: apply what it asked for.
    fn open(&mut self, context: &mut Context<'_>) -> Option<Next> {
        if self.options.names_account {
            return Some(self.violate_authorization(context));
        }
        if !(0..=1).contains(&self.options.protocol) {
            return Some(self.close_with_error(
                context,
                "invalid client protocol",
                ClosedReason::BadClientProtocolVersion,
            ));
        }
        let headers = self.options.headers && context.shared.options().headers;
        if self.options.no_responders && !headers {
            return Some(self.close_with_error(
                context,
                "no responders requires headers support",
                ClosedReason::NoRespondersRequiresHeaders,
            ));
        }
        self.phase = SessionPhase::Open;
        self.connected = self.said_connect;
        self.limits.headers = headers;
        self.apply_options(context.shared);
        self.connection.set_takes_headers(headers);
        let mut identity = self.connection.identity.lock();
        identity.name.clone_from(&self.options.name);
        identity.language.clone_from(&self.options.language);
        identity.version.clone_from(&self.options.version);
        identity.account.clone_from(&self.account.name);
        drop(identity);
        if self.said_connect {
            self.acknowledge(context);
        }
        if self.connection.connection_type() != ConnectionType::Internal {
            system_events::connected(context.shared, &self.connection);
        }
        None
    }

    /// The handshake timer has come: a client that said nothing useful by now is sent away.
    pub fn handshake_due(&self, context: &mut Context<'_>) -> Option<ClosedReason> {
        let done = if self.is_leaf() {
            self.is_link_open() || self.phase == SessionPhase::AwaitingVerdict
        } else if context.shared.requires_login(&self.connection) {
            // Python answers within limits of its own.
            matches!(
                self.phase,
                SessionPhase::Open | SessionPhase::AwaitingVerdict
            )
        } else {
            self.spoke
        };
        if done {
            return None;
        }
        let reason = ClosedReason::AuthenticationTimeout;
        self.close_with_error(context, "Authentication Timeout", reason);
        Some(reason)
    }
}
