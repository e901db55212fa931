//! Operations as log lines, for `-V`. Only called when tracing is on.

use super::connect_options::redacted;
use crate::routing::clients::connection::Connection;
use crate::routing::operation_log::{log, optional, text};
use crate::routing::shared::Shared;
use crate::wire::Operation;

/// One operation that a client sent.
pub fn operation(shared: &Shared, connection: &Connection, operation: &Operation<'_>) {
    let line = match operation {
        Operation::Connect(json) => format!("CONNECT {}", redacted(json)),
        Operation::Publish(publish) => {
            let name = if publish.header_len > 0 {
                "HPUB"
            } else {
                "PUB"
            };
            format!(
                "{name} {}{} {}",
                text(publish.subject),
                optional(publish.reply),
                publish.body.len()
            )
        }
        Operation::Subscribe {
            subject,
            queue,
            sid,
        } => format!("SUB {}{} {}", text(subject), optional(*queue), text(sid)),
        Operation::Unsubscribe { sid, delivered_max } => {
            let max = delivered_max.map_or(String::new(), |max| format!(" {max}"));
            format!("UNSUB {}{max}", text(sid))
        }
        Operation::Ping => "PING".to_owned(),
        Operation::Pong => "PONG".to_owned(),
        Operation::Acknowledged => "+OK".to_owned(),
        Operation::Information(_) => "INFO".to_owned(),
        Operation::Failed => "-ERR".to_owned(),
    };
    log(shared, connection, &format!("<<- [{line}]"));
    if let Operation::Publish(publish) = operation {
        let payload = text(publish.payload());
        log(
            shared,
            connection,
            &format!("<<- MSG_PAYLOAD: [{payload:?}]"),
        );
    }
}
