//! Where a stream gets its messages from, when it mirrors another one or has sources.
//!
//! An origin is known by its index name: the stream, what is taken of it, and what becomes of the subjects. It stands in every message that came from
//! there, with the sequence it had: so a stream knows by its own messages how far it is. Invariant: two sources of a stream have two index names.

use crate::common::random::Random;
use crate::common::short_hash::hash8;
use crate::routing::subject_transform::SubjectTransform;
use crate::wire::trusted_headers;

const EVERYTHING: &str = ">";

/// Between several filters of one origin; no subject has it.
const SEPARATOR: &str = "\x0c";

/// What is taken of an origin, and what becomes of its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    pub subject: String,
    pub transform: SubjectTransform,
}

/// Another server, or another account, that has the origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct External {
    pub api: String,
    pub deliver: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The stream.
    pub name: String,
    pub external: Option<External>,
    pub is_mirror: bool,
    /// At least one, and no message is for two of them.
    pub filters: Vec<Filter>,
    /// Nothing before this sequence is taken; 0 is from the beginning, or from the start time on.
    pub start_sequence: u64,
    pub start_time_ns: Option<i64>,
    /// The origin, the filters, and the destinations, each without a blank.
    pub index_name: [String; 3],
}

/// An origin as its configuration has it.
pub struct Parts<'a> {
    pub name: &'a str,
    pub external: Option<External>,
    pub consumer: Option<&'a str>,
    pub is_mirror: bool,
    pub filter: &'a str,
    /// Sources and destinations.
    pub transforms: Vec<(&'a str, &'a str)>,
    pub start_sequence: u64,
    pub start_time_ns: Option<i64>,
}

impl Origin {
    pub fn new(parts: Parts<'_>) -> Result<Self, String> {
        let mut transforms = parts.transforms;
        if transforms.is_empty() {
            transforms.push((parts.filter, ""));
        }
        let mut filters = Vec::with_capacity(transforms.len());
        for (source, destination) in &transforms {
            filters.push(Filter {
                subject: or_everything(source).to_owned(),
                transform: SubjectTransform::new(source, destination)
                    .map_err(|error| error.to_string())?,
            });
        }
        let mut origin = parts.name.to_owned();
        if let Some(external) = &parts.external {
            origin = format!("{origin}:{}", hash8(&external.api));
        }
        if let Some(consumer) = parts.consumer {
            origin = format!("{origin}:C={}", hash8(consumer));
        }
        let joined = |texts: Vec<&str>| texts.join(SEPARATOR);
        let sources = transforms.iter().map(|(source, _)| or_everything(source));
        let destinations = transforms.iter().map(|(_, to)| or_everything(to));
        let index_name = [
            origin,
            joined(sources.collect()),
            joined(destinations.collect()),
        ];
        Ok(Self {
            name: parts.name.to_owned(),
            external: parts.external,
            is_mirror: parts.is_mirror,
            filters,
            start_sequence: parts.start_sequence,
            start_time_ns: parts.start_time_ns,
            index_name,
        })
    }

    pub fn takes_everything(&self) -> bool {
        self.filters[0].subject == EVERYTHING
    }

    /// Whether a message with this subject is taken.
    pub fn takes(&self, subject: &[u8]) -> bool {
        let mut filters = self.filters.iter();
        filters.any(|filter| filter.transform.takes(subject))
    }

    /// Appends what a subject becomes; false, and nothing appended, if a message with this subject is not taken.
    pub fn transform(&self, subject: &[u8], random: &mut Random, out: &mut Vec<u8>) -> bool {
        let mut filters = self.filters.iter();
        filters.any(|filter| filter.transform.apply(subject, random, out))
    }

    /// Appends the value of the header that says where a message comes from.
    pub fn put_stream_source(
        &self,
        sequence: u64,
        subject: &[u8],
        identity: &str,
        out: &mut Vec<u8>,
    ) {
        let [origin, filters, destinations] = &self.index_name;
        out.extend_from_slice(origin.as_bytes());
        out.push(b' ');
        out.extend_from_slice(itoa::Buffer::new().format(sequence).as_bytes());
        for part in [filters.as_bytes(), destinations.as_bytes(), subject] {
            out.push(b' ');
            out.extend_from_slice(part);
        }
        if !identity.is_empty() {
            out.push(b' ');
            out.extend_from_slice(identity.as_bytes());
        }
    }
}

fn or_everything(subject: &str) -> &str {
    if subject.is_empty() {
        EVERYTHING
    } else {
        subject
    }
}

/// What a message says about where it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provenance<'a> {
    pub index_name: [&'a str; 3],
    pub sequence: u64,
    /// That of the origin; empty where the message does not say it.
    pub identity: &'a str,
}

impl<'a> Provenance<'a> {
    /// Reads the value of the header. Of its older forms only the one with an origin and a sequence is understood.
    pub fn read(value: &'a [u8]) -> Option<Self> {
        let mut fields = value.split(|byte| *byte == b' ');
        // The subject is one of them, and need not be text.
        let text = |field: &'a [u8]| std::str::from_utf8(field).ok();
        let origin = text(fields.next()?)?;
        let sequence = text(fields.next()?)?.parse().ok()?;
        let filters = fields.next().map_or(Some(EVERYTHING), text)?;
        let destinations = fields.next().map_or(Some(EVERYTHING), text)?;
        let identity = fields.nth(1).map_or(Some(""), text)?;
        // A restored archive may say anything, but the highest number is never given: every sequence has a successor.
        (sequence < u64::MAX).then_some(Self {
            index_name: [origin, filters, destinations],
            sequence,
            identity,
        })
    }
}

/// Headers that speak of the origin alone: what its publisher expected, and the batch or the commit it came in.
pub fn stays_behind(name: &[u8], is_mirror: bool) -> bool {
    name.starts_with(b"Nats-Expected-")
        || name.starts_with(b"Nats-Batch-")
        || !is_mirror && (name == trusted_headers::STREAM_SOURCE || name == trusted_headers::BATCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(name: &str) -> Parts<'_> {
        Parts {
            name,
            external: None,
            consumer: None,
            is_mirror: false,
            filter: "",
            transforms: Vec::new(),
            start_sequence: 0,
            start_time_ns: None,
        }
    }

    #[test]
    fn an_origin_has_the_index_name_of_nats_server() {
        let plain = Origin::new(parts("O")).unwrap();
        let filtered = Origin::new(Parts {
            transforms: vec![("o.1", "tr.one"), ("o.4", "")],
            ..parts("O")
        });
        let elsewhere = Origin::new(Parts {
            external: Some(External {
                api: "$JS.hub.API".to_owned(),
                deliver: String::new(),
            }),
            consumer: Some("A"),
            filter: "o.*",
            ..parts("OR")
        });

        assert_eq!(plain.index_name.join(" "), "O > >");
        assert!(plain.takes_everything());
        let filtered = filtered.unwrap();
        assert_eq!(filtered.index_name.join(" "), "O o.1\x0co.4 tr.one\x0c>");
        let index_name = elsewhere.unwrap().index_name.join(" ");
        assert_eq!(index_name, "OR:bTMUkJQk:C=NUmM6cRx o.* >");
    }

    #[test]
    fn a_message_says_where_it_came_from() {
        let origin = Origin::new(Parts {
            transforms: vec![("o.1", "tr.one"), ("o.4", "")],
            ..parts("O")
        })
        .unwrap();
        let mut value = Vec::new();

        origin.put_stream_source(2, b"o.1", "jDREDxh5", &mut value);

        assert_eq!(value, b"O 2 o.1\x0co.4 tr.one\x0c> o.1 jDREDxh5");
        let provenance = Provenance::read(&value).unwrap();
        assert_eq!(
            provenance.index_name,
            origin.index_name.each_ref().map(String::as_str)
        );
        assert_eq!((provenance.sequence, provenance.identity), (2, "jDREDxh5"));
        let older = Provenance::read(b"O 7").unwrap();
        assert_eq!((older.index_name, older.sequence), (["O", ">", ">"], 7));
        assert_eq!(Provenance::read(b"$JS.ACK.O.x.1.2.3.4.5"), None);
    }

    #[test]
    fn the_subject_a_message_had_need_not_be_text() {
        let provenance = Provenance::read(b"O 7 > > o.\xff jDREDxh5").unwrap();

        assert_eq!((provenance.sequence, provenance.identity), (7, "jDREDxh5"));
    }

    #[test]
    fn the_highest_number_is_not_the_sequence_of_a_message() {
        assert_eq!(Provenance::read(b"O 18446744073709551615 > >"), None);
        assert!(Provenance::read(b"O 18446744073709551614 > >").is_some());
    }

    #[test]
    fn subjects_become_what_the_first_filter_makes_of_them() {
        let origin = Origin::new(Parts {
            transforms: vec![("o.*", "x.{{wildcard(1)}}"), ("p.>", "")],
            ..parts("O")
        })
        .unwrap();
        let mut random = Random::seeded(1);
        let mut transformed = |subject: &[u8]| {
            let mut out = Vec::new();
            origin
                .transform(subject, &mut random, &mut out)
                .then_some(out)
        };
        assert!(origin.takes(b"o.1") && !origin.takes(b"q.1") && !origin.takes(b"o.*"));

        assert_eq!(transformed(b"o.1"), Some(b"x.1".to_vec()));
        assert_eq!(transformed(b"p.1.2"), Some(b"p.1.2".to_vec()));
        assert_eq!(transformed(b"q.1"), None);
    }
}
