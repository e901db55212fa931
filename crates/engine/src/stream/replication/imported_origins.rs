//! Origins in another account of this server, which imports lead to.
//!
//! `external` names where the origin's API is in the stream's account, and where its messages are delivered. On nats-server a consumer is created through the one import and
//! delivers through the other. Here the stream is read directly, if imports of the account allow both. Invariant: nothing is read that such a consumer could not deliver.

use super::origin::{External, Origin};
use crate::routing::shared::Shared;

/// Where the API is in the account of the origin.
const API: &str = "$JS.API";

/// Where consumers for mirrors and sources deliver, if `external` says nothing.
const DELIVER_DEFAULT: &str = "$JS";

/// Stands for the names that nats-server makes up.
const MADE_UP: &str = "x";

/// The account that has the origin; none if no imports of the stream's account lead there.
pub fn account_of(shared: &Shared, account: &str, origin: &Origin) -> Option<String> {
    let external = origin.external.as_ref()?;
    let importer = shared.account(account);
    let wanted = request_of(origin);
    let (exporter, request) =
        importer.request_destination(format!("{}{wanted}", api_of(external)).as_bytes())?;
    let domain = shared.options().domain.clone();
    let own = domain.map(|domain| format!("$JS.{domain}.API{wanted}"));
    let is_api = request == format!("{API}{wanted}").as_bytes()
        || own.is_some_and(|own| request == own.as_bytes());
    let delivered = delivered_to(external, origin.is_mirror);
    (is_api && importer.hears(&exporter, delivered.as_bytes())).then(|| exporter.name.clone())
}

fn api_of(external: &External) -> &str {
    external.api.trim_end_matches('.')
}

/// The request for a consumer that delivers what is taken of an origin.
fn request_of(origin: &Origin) -> String {
    let name = &origin.name;
    match origin.filters.as_slice() {
        [filter] if !origin.takes_everything() => {
            format!(".CONSUMER.CREATE.{name}.{MADE_UP}.{}", filter.subject)
        }
        _ => format!(".CONSUMER.CREATE.{name}"),
    }
}

fn delivered_to(external: &External, is_mirror: bool) -> String {
    let prefix = match external.deliver.trim_end_matches('.') {
        "" => DELIVER_DEFAULT,
        prefix => prefix,
    };
    let kind = if is_mirror { "M" } else { "S" };
    format!("{prefix}.{kind}.{MADE_UP}")
}
