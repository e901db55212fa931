//! Operations as log lines, for `-V`. Only called when tracing is on.

use super::connect_options::redacted;
use super::Connection;
use crate::engine::Shared;
use crate::events::Level;
use crate::wire::{Operation, Publish};

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

/// One delivery.
pub fn delivery(shared: &Shared, connection: &Connection, sid: &[u8], publish: &Publish<'_>) {
    let line = format!(
        "MSG {} {}{} {}",
        text(publish.subject),
        text(sid),
        optional(publish.reply),
        publish.body.len()
    );
    log(shared, connection, &format!("->> [{line}]"));
}

fn log(shared: &Shared, connection: &Connection, line: &str) {
    shared
        .events
        .log(Level::Trace, format!("{} - {line}", connection.label()));
}

fn optional(bytes: Option<&[u8]>) -> String {
    bytes.map_or(String::new(), |bytes| format!(" {}", text(bytes)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
