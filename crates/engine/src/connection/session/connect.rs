//! The handshake as the session sees it: CONNECT, the verdict, and the time a client has for it.

use super::{Context, Next, Phase, Session};
use crate::connection::closed_reason::ClosedReason;
use crate::connection::mailbox::Verdict;
use crate::events::{AuthenticationRequest, Event};

impl Session {
    pub(super) fn connect(&mut self, json: &[u8], context: &mut Context<'_>) -> Result<(), Next> {
        let Some(options) = self.options.decode(json) else {
            return Err(Next::Close(ClosedReason::ParseError));
        };
        if self.connected {
            self.drop_subscriptions();
        }
        self.options = options;
        if context.shared.options.auth_required {
            self.phase = Phase::AwaitingVerdict;
            context
                .shared
                .events
                .push(Event::Authenticate(AuthenticationRequest {
                    connection_id: self.connection.id,
                    connect: json.to_vec(),
                    nonce: self.nonce.clone(),
                    remote_address: self.connection.remote_address.to_string(),
                }));
            return Ok(());
        }
        match self.open(context) {
            Some(next) => Err(next),
            None => Ok(()),
        }
    }

    /// Python has decided.
    pub fn decide(&mut self, verdict: Verdict, context: &mut Context<'_>) -> Option<Next> {
        match verdict {
            Verdict::Refuse => Some(self.violate_authorization(context)),
            Verdict::Admit(admission) => {
                self.account = context.shared.account(&admission.account);
                self.connection.identity.lock().user = admission.user;
                self.open(context)
            }
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
        let headers = self.options.headers && context.shared.options.headers;
        if self.options.no_responders && !headers {
            return Some(self.close_with_error(
                context,
                "no responders requires headers support",
                ClosedReason::NoRespondersRequiresHeaders,
            ));
        }
        self.phase = Phase::Open;
        self.connected = true;
        self.limits.headers = headers;
        self.limits.payload_bytes_max = context.shared.options.max_payload_bytes;
        self.connection.set_takes_headers(headers);
        let mut identity = self.connection.identity.lock();
        identity.name.clone_from(&self.options.name);
        identity.language.clone_from(&self.options.language);
        identity.version.clone_from(&self.options.version);
        identity.account.clone_from(&self.account.name);
        drop(identity);
        self.acknowledge(context);
        None
    }

    /// The handshake timer has come: a client that said nothing useful by now is sent away.
    pub fn handshake_due(&self, context: &mut Context<'_>) -> Option<ClosedReason> {
        let done = if context.shared.options.auth_required {
            self.connected
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
