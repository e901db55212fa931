//! What a message has a stream do elsewhere than on its own subject, and whether its sender may: a schedule publishes to its target and reads its source, the end of one
//! removes it, and the acknowledgement goes to the reply subject.
//!
//! Clients that may do everything, and the server itself, are not asked. Invariant: nothing is changed here.

use super::acknowledgement::Refusal;
use super::checks::refusal;
use super::headers::PublishHeaders;
use crate::common::permissions::Permissions;
use crate::common::subject;
use crate::routing::own_requests;
use crate::routing::targets::{self, Target};
use crate::stream::settings::StreamSettings;
use crate::wire::Publish;

const TARGET_ERROR: u16 = 10190;
const SOURCE_ERROR: u16 = 10203;
const SCHEDULER_ERROR: u16 = 10212;

/// The reply subject that may be answered to; empty if there is none.
pub fn reply_of<'a>(permissions: Option<&Permissions>, publish: &Publish<'a>) -> &'a [u8] {
    let reply = publish.reply.unwrap_or_default();
    match own_requests::allows_reply(permissions, reply) {
        true => reply,
        false => b"",
    }
}

/// Refuses what the sender of a message could not do by itself.
pub fn check(
    permissions: &Permissions,
    settings: &StreamSettings,
    headers: &[u8],
) -> Result<(), Refusal> {
    if headers.is_empty() || !settings.allow_schedules {
        return Ok(());
    }
    let headers = PublishHeaders::read(headers);
    let may_send = |subject: &[u8]| targets::allows(Some(permissions), Target::Schedule, subject);
    if let Some(target) = given(headers.schedule).and(given(headers.schedule_target)) {
        if !may_send(target) {
            let what = "schedule target";
            return Err(violation(
                TARGET_ERROR,
                what,
                target,
                "publish is not allowed",
            ));
        }
    }
    if let Some(source) = given(headers.schedule).and(given(headers.schedule_source)) {
        if !may_read(permissions, &settings.name, source) {
            let what = "schedule source";
            return Err(violation(
                SOURCE_ERROR,
                what,
                source,
                "subscribe is not allowed",
            ));
        }
    }
    if let Some(scheduler) = given(headers.scheduler) {
        if !may_send(scheduler) {
            let what = "scheduler";
            return Err(violation(
                SCHEDULER_ERROR,
                what,
                scheduler,
                "publish is not allowed",
            ));
        }
    }
    Ok(())
}

fn given(value: Option<&[u8]>) -> Option<&[u8]> {
    value.filter(|value| !value.is_empty())
}

/// Whether the last message of a subject could be read: by listening, or by asking the stream.
fn may_read(permissions: &Permissions, stream: &str, source: &[u8]) -> bool {
    let asking = format!("$JS.API.STREAM.MSG.GET.{stream}");
    let directly = [format!("$JS.API.DIRECT.GET.{stream}.").as_bytes(), source].concat();
    permissions.covers_subscribe(source)
        || permissions.allows_publish(asking.as_bytes())
        || permissions.allows_publish(&directly)
}

fn violation(error_code: u16, what: &str, named: &[u8], needed: &str) -> Refusal {
    let text = format!(
        "permissions violation for {what} {}: {needed}",
        subject::quoted(named)
    );
    refusal(403, error_code, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &[u8] =
        b"NATS/1.0\r\nNats-Schedule: @every 1s\r\nNats-Schedule-Target: jobs.run\r\nNats-Schedule-Source: jobs.secret\r\n\r\n";

    fn permissions(publish: &[&str], subscribe: &[&str]) -> Permissions {
        let lists = serde_json::json!({
            "publish": {"allow": publish, "deny": []},
            "subscribe": {"allow": subscribe, "deny": []},
            "responses": null,
        });
        Permissions::new(&serde_json::from_value(lists).unwrap())
    }

    fn refused(publish: &[&str], subscribe: &[&str], headers: &[u8]) -> Option<u16> {
        let settings = StreamSettings {
            name: "JOBS".to_owned(),
            allow_schedules: true,
            ..StreamSettings::default()
        };
        let checked = check(&permissions(publish, subscribe), &settings, headers);
        checked.err().map(|refusal| refusal.error_code)
    }

    #[test]
    fn a_schedule_needs_the_rights_to_its_target_and_its_source() {
        assert_eq!(refused(&["jobs.later"], &[], BLOCK), Some(TARGET_ERROR));
        assert_eq!(refused(&["jobs.*"], &[], BLOCK), Some(SOURCE_ERROR));
        assert_eq!(refused(&["jobs.*"], &["jobs.*"], BLOCK), None);
        let reading = ["jobs.*", "$JS.API.DIRECT.GET.JOBS.jobs.secret"];
        assert_eq!(refused(&reading, &[], BLOCK), None);
    }

    #[test]
    fn the_end_of_a_schedule_needs_the_right_to_its_subject() {
        let block = b"NATS/1.0\r\nNats-Schedule-Next: purge\r\nNats-Scheduler: jobs.other\r\n\r\n";

        assert_eq!(refused(&["jobs.own"], &[], block), Some(SCHEDULER_ERROR));
        assert_eq!(refused(&["jobs.>"], &[], block), None);
    }
}
