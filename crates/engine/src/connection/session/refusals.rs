//! Refusals that end a session: what is said, what is logged, and the reason that monitoring shows.

use super::{Context, Next, Session};
use crate::common::events::Level;
use crate::common::subject;
use crate::routing::clients::closed_reason::ClosedReason;
use crate::routing::clients::mailbox::RefusalCause;
use crate::wire::ProtocolViolation;

impl Session {
    /// There are too many connections; this one gets an error and is closed.
    pub fn refuse_connection(&self, context: &mut Context<'_>) {
        context.shared.events.log(
            Level::Error,
            format!("{} - maximum connections exceeded", self.connection.label()),
        );
        self.say_error(context, "maximum connections exceeded");
    }

    /// Too many begin a handshake; this client gets an error and is closed.
    pub fn refuse_handshake(&self, context: &mut Context<'_>) {
        self.say_error(
            context,
            "Connection throttling is active. Please try again later.",
        );
    }

    pub(super) fn refuse(&self, refusal: ProtocolViolation, context: &mut Context<'_>) -> Next {
        let log = |text: &str| {
            context.shared.events.log(
                Level::Error,
                format!("{} - {text}", self.connection.label()),
            );
        };
        match refusal {
            ProtocolViolation::UnknownOperation => {
                log("Client parser ERROR: unknown protocol operation");
                self.close_with_error(
                    context,
                    "Unknown Protocol Operation",
                    ClosedReason::ProtocolViolation,
                )
            }
            ProtocolViolation::ControlLineTooLong => {
                log("maximum control line exceeded");
                self.close_with_error(
                    context,
                    "maximum control line exceeded",
                    ClosedReason::MaximumControlLineExceeded,
                )
            }
            ProtocolViolation::PayloadTooLarge => {
                log("maximum payload violation");
                self.close_with_error(
                    context,
                    "Maximum Payload Violation",
                    ClosedReason::MaximumPayloadExceeded,
                )
            }
            ProtocolViolation::BadArguments => {
                log("Client parser ERROR: wrong arguments of an operation");
                Next::Close(ClosedReason::ParseError)
            }
            ProtocolViolation::HeadersNotAnnounced => {
                log("message headers not supported by this connection");
                Next::Close(ClosedReason::MessageHeaderViolation)
            }
        }
    }

    /// A publish that is not allowed: the message goes nowhere, the connection stays. Returns the error for the client.
    pub(super) fn refuse_publish(&self, subject: &[u8], context: &mut Context<'_>) -> String {
        self.log_violation("Publish", subject, context);
        let text = format!(
            "Permissions Violation for Publish to {}",
            subject::quoted(subject)
        );
        self.say_error(context, &text);
        text
    }

    pub(super) fn log_violation(&self, what: &str, subject: &[u8], context: &Context<'_>) {
        let user = self.connection.identity.lock().user.clone();
        context.shared.events.log(
            Level::Error,
            format!(
                "{} - {what} Violation - User {user:?}, Subject {}",
                self.connection.label(),
                subject::quoted(subject)
            ),
        );
    }

    pub(super) fn violate_authorization(&self, context: &mut Context<'_>) -> Next {
        let who = self
            .credentials
            .as_ref()
            .map_or(String::new(), |credentials| credentials.label());
        context.shared.events.log(
            Level::Error,
            format!("{} - authentication error{who}", self.connection.label()),
        );
        self.close_with_error(
            context,
            "Authorization Violation",
            ClosedReason::AuthenticationFailure,
        )
    }

    /// A client is not let in, or must go.
    pub(super) fn refuse_login(&self, cause: RefusalCause, context: &mut Context<'_>) -> Next {
        let (text, reason) = match cause {
            RefusalCause::Unauthorized => return self.violate_authorization(context),
            RefusalCause::Revoked => (
                "User Authentication Revoked",
                ClosedReason::CredentialsRevoked,
            ),
            RefusalCause::AccountExpired => (
                "Account Authentication Expired",
                ClosedReason::AuthenticationExpired,
            ),
        };
        context.shared.events.log(
            Level::Error,
            format!("{} - {text}", self.connection.label()),
        );
        self.close_with_error(context, text, reason)
    }

    pub(super) fn close_with_error(
        &self,
        context: &mut Context<'_>,
        text: &str,
        reason: ClosedReason,
    ) -> Next {
        self.say_error(context, text);
        Next::Close(reason)
    }
}
