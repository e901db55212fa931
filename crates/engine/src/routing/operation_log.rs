//! Deliveries as log lines, for `-V`, and what the lines of all operations are made of. Only called when tracing is on.

use super::clients::connection::Connection;
use super::shared::Shared;
use crate::common::events::Level;
use crate::wire::Publish;

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

pub fn log(shared: &Shared, connection: &Connection, line: &str) {
    shared
        .events
        .log(Level::Trace, format!("{} - {line}", connection.label()));
}

pub fn optional(bytes: Option<&[u8]>) -> String {
    bytes.map_or(String::new(), |bytes| format!(" {}", text(bytes)))
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
