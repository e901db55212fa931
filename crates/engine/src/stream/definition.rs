//! The definition of a stream as it is kept on disk: the configuration in JetStream's JSON, of which the engine reads what matters to messages.
//!
//! What is legal was decided before it came here, so a value that makes no sense is refused and not repaired.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::replication::origin::{External, Origin, Parts};
use super::settings::{Discard, Republish, Retention, Storage, StreamSettings};
use crate::common::short_hash::hash8;
use crate::common::timestamp;
use crate::routing::subject_transform::SubjectTransform;
use crate::storage::message::{Counting, Limits};
use crate::wire::dialect::Dialect;

/// In the metadata of a stream: every message carries a digest of all before it.
const CHAIN_KEY: &str = "jetlake.chain";
const DEAD_LETTERS_KEY: &str = "jetlake.dead_letters";

#[derive(Deserialize)]
struct StreamDefinition {
    config: StreamConfig,
    #[serde(default)]
    created: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct StreamConfig {
    name: String,
    subjects: Option<Vec<String>>,
    retention: String,
    max_msgs: i64,
    max_bytes: i64,
    max_age: i64,
    max_msgs_per_subject: i64,
    max_msg_size: i64,
    discard: String,
    discard_new_per_subject: bool,
    storage: String,
    no_ack: bool,
    duplicate_window: i64,
    mirror: Option<SourceDefinition>,
    sources: Option<Vec<SourceDefinition>>,
    compression: String,
    first_seq: u64,
    subject_transform: Option<Transform>,
    republish: Option<Transform>,
    allow_direct: bool,
    mirror_direct: bool,
    sealed: bool,
    deny_delete: bool,
    deny_purge: bool,
    allow_rollup_hdrs: bool,
    allow_msg_ttl: bool,
    subject_delete_marker_ttl: i64,
    allow_msg_counter: bool,
    allow_atomic: bool,
    allow_batched: bool,
    allow_msg_schedules: bool,
    persist_mode: String,
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SourceDefinition {
    name: String,
    opt_start_seq: u64,
    opt_start_time: Option<String>,
    filter_subject: String,
    subject_transforms: Option<Vec<Transform>>,
    external: Option<Prefixes>,
    consumer: Option<NamedSource>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Prefixes {
    api: String,
    deliver: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NamedSource {
    name: String,
}

impl SourceDefinition {
    fn origin(&self, is_mirror: bool) -> Result<Origin, String> {
        let transforms = self.subject_transforms.iter().flatten();
        let start_time = self.opt_start_time.as_deref();
        Origin::new(Parts {
            name: &self.name,
            external: self.external.as_ref().map(|external| External {
                api: external.api.clone(),
                deliver: external.deliver.clone(),
            }),
            consumer: self.consumer.as_ref().map(|consumer| &*consumer.name),
            is_mirror,
            filter: &self.filter_subject,
            transforms: transforms
                .map(|transform| (&*transform.src, &*transform.dest))
                .collect(),
            start_sequence: self.opt_start_seq,
            start_time_ns: start_time
                .map(|text| timestamp::read(text).ok_or_else(|| format!("{text:?} is not a valid time: use RFC 3339, such as 2026-01-01T00:00:00Z")))
                .transpose()?,
        })
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Transform {
    src: String,
    dest: String,
    headers_only: bool,
}

impl Transform {
    fn compiled(&self) -> Result<SubjectTransform, String> {
        SubjectTransform::new(&self.src, &self.dest).map_err(|error| error.to_string())
    }
}

/// What the server adds to every definition.
#[derive(Debug, Clone, Default)]
pub struct ServerFacts {
    pub domain: String,
    pub payload_bytes_max: usize,
}

/// The origins of a stream that may not be served: those of them that can be read. One that names a stream, and of which
/// nothing else makes sense, is taken to take everything of it.
pub fn origins(definition: &[u8]) -> Vec<Origin> {
    let Ok(read) = serde_json::from_slice::<serde_json::Value>(definition) else {
        return Vec::new();
    };
    let config = &read["config"];
    let mirror = Some(&config["mirror"]).filter(|mirror| mirror.is_object());
    let sources = config["sources"].as_array().into_iter().flatten();
    let all = mirror.into_iter().map(|mirror| (mirror, true));
    let all = all.chain(sources.map(|source| (source, false)));
    let origin = |(value, is_mirror): (&serde_json::Value, bool)| {
        let source: Result<SourceDefinition, _> = serde_json::from_value(value.clone());
        let origin = source
            .map_err(drop)
            .and_then(|source| source.origin(is_mirror).map_err(drop));
        origin.ok().or_else(|| {
            let name = value["name"].as_str()?.to_owned();
            let whole = SourceDefinition {
                name,
                ..SourceDefinition::default()
            };
            whole.origin(is_mirror).ok()
        })
    };
    all.filter_map(origin)
        .filter(|origin| !origin.name.is_empty())
        .collect()
}

/// Reads what a definition means for messages.
pub fn read(definition: &[u8], server: &ServerFacts) -> Result<StreamSettings, String> {
    let StreamDefinition { config, created } =
        serde_json::from_slice(definition).map_err(|error| error.to_string())?;
    if config.name.is_empty() {
        return Err("it has no name".to_owned());
    }
    let storage = match config.storage.as_str() {
        "memory" => Storage::Memory,
        "file" | "" => Storage::File,
        other => return Err(format!("unknown storage {other:?}: use file or memory")),
    };
    let retention = match config.retention.as_str() {
        "limits" | "" => Retention::Limits,
        "interest" => Retention::Interest,
        "workqueue" => Retention::WorkQueue,
        other => {
            return Err(format!(
                "unknown retention {other:?}: use limits, interest or workqueue"
            ))
        }
    };
    let discard = match config.discard.as_str() {
        "old" | "" => Discard::Old,
        "new" => Discard::New,
        other => return Err(format!("unknown discard policy {other:?}: use old or new")),
    };
    let option = |key| {
        config
            .metadata
            .as_ref()
            .and_then(|metadata| metadata.get(key))
    };
    let chained = option(CHAIN_KEY).is_some_and(|value| value == "true");
    let dead_letters = option(DEAD_LETTERS_KEY).cloned();
    let dialect = Dialect::of(config.metadata.as_ref());
    let mirror = config.mirror.iter().map(|mirror| mirror.origin(true));
    let sources = config.sources.iter().flatten();
    let origins = mirror.chain(sources.map(|source| source.origin(false)));
    let origins = origins.collect::<Result<Vec<_>, _>>()?;
    Ok(StreamSettings {
        origins: origins.into_iter().map(Arc::new).collect(),
        identity: hash8(&created),
        domain: (!server.domain.is_empty()).then(|| server.domain.clone()),
        payload_bytes_max: server.payload_bytes_max,
        subjects: config.subjects.unwrap_or_default(),
        storage,
        retention,
        counting: match storage {
            Storage::File => Counting::File,
            Storage::Memory => Counting::Memory,
        },
        limits: Limits {
            messages_max: limit(config.max_msgs),
            bytes_max: limit(config.max_bytes),
            age_ns_max: (config.max_age > 0).then_some(config.max_age),
            per_subject_max: limit(config.max_msgs_per_subject),
        },
        message_bytes_max: limit(config.max_msg_size),
        discard,
        discard_new_per_subject: config.discard_new_per_subject,
        duplicate_window_ns: config.duplicate_window,
        first_sequence: config.first_seq.max(1),
        compressed: !matches!(config.compression.as_str(), "none" | ""),
        chained,
        dead_letters,
        dialect,
        asynchronous: config.persist_mode == "async",
        sealed: config.sealed,
        deny_delete: config.deny_delete,
        deny_purge: config.deny_purge,
        allow_rollup: config.allow_rollup_hdrs,
        allow_direct: config.allow_direct,
        mirror_direct: config
            .mirror_direct
            .then_some(config.mirror.as_ref())
            .flatten()
            .map(|mirror| mirror.name.clone()),
        is_mirror: config.mirror.is_some(),
        allow_time_to_live: config.allow_msg_ttl,
        delete_marker_ttl_ns: config.subject_delete_marker_ttl,
        allow_counter: config.allow_msg_counter,
        allow_atomic_batch: config.allow_atomic,
        allow_fast_batch: config.allow_batched,
        allow_schedules: config.allow_msg_schedules,
        no_acknowledgement: config.no_ack,
        subject_transform: config
            .subject_transform
            .map(|transform| transform.compiled())
            .transpose()?,
        republish: config
            .republish
            .filter(|republish| !republish.dest.is_empty())
            .map(|republish| {
                republish.compiled().map(|transform| Republish {
                    transform,
                    headers_only: republish.headers_only,
                })
            })
            .transpose()?,
        name: config.name,
    })
}

/// Zero and negative values mean no limit.
fn limit(value: i64) -> Option<u64> {
    u64::try_from(value).ok().filter(|value| *value > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_to_messages_is_read() {
        let definition = br#"{"config":{"name":"S","subjects":["a.>"],"retention":"limits","max_msgs":-1,"max_bytes":1024,
            "max_age":0,"max_msgs_per_subject":3,"max_msg_size":-1,"discard":"new","storage":"memory","num_replicas":1,
            "duplicate_window":120000000000,"compression":"s2","metadata":{"jetlake.chain":"true","jetlake.dialect":"2020"},"republish":{"src":">","dest":""},
            "mirror":null,"sealed":false},"created":"2026-01-01T00:00:00Z"}"#;

        let server = ServerFacts {
            domain: "hub".to_owned(),
            payload_bytes_max: 1024,
        };
        let settings = read(definition, &server).unwrap();

        let limits = Limits {
            bytes_max: Some(1024),
            per_subject_max: Some(3),
            ..Limits::default()
        };
        assert_eq!(settings.limits, limits);
        assert_eq!(settings.discard, Discard::New);
        assert_eq!(settings.counting, Counting::Memory);
        assert_eq!(settings.domain.as_deref(), Some("hub"));
        assert_eq!(settings.subjects, ["a.>"]);
        assert!(settings.chained && settings.compressed);
        assert_eq!(settings.republish, None);
        assert_eq!(settings.first_sequence, 1);
        assert_eq!(settings.dialect, Some(Dialect::Of2020));
    }

    #[test]
    fn origins_are_known_of_a_stream_that_may_not_be_served() {
        let definition = br#"{"config":{"name":"S","storage":"tape","mirror":null,"sources":[
            {"name":"A","filter_subject":"a.*"},{"name":"B","opt_start_time":"yesterday","filter_subject":"b"},{"name":7},{}]}}"#;

        let found = origins(definition);

        let taken = |at: usize| (&*found[at].name, &*found[at].filters[0].subject);
        assert_eq!(found.len(), 2);
        assert_eq!((taken(0), taken(1)), (("A", "a.*"), ("B", ">")));
        let mirror = br#"{"config":{"mirror":{"name":"M"}}}"#;
        assert!(origins(mirror)[0].is_mirror);
        assert!(origins(b"{").is_empty() && origins(b"{}").is_empty());
    }

    #[test]
    fn nonsense_is_refused() {
        for definition in [
            &b""[..],
            b"{}",
            b"{\"config\":{}}",
            b"{\"config\":{\"name\":\"S\",\"storage\":\"tape\"}}",
            b"{\"config\":{\"name\":\"S\",\"retention\":\"x\"}}",
            b"{\"config\":{\"name\":\"S\",\"discard\":\"x\"}}",
        ] {
            assert!(read(definition, &ServerFacts::default()).is_err());
        }
    }
}
