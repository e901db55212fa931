//! What an account makes of the subjects its clients publish to: each mapping has a source and destinations, one of which is chosen by its weight.
//!
//! Invariant: the weights of a mapping add up to at most a hundred. Where they are less, the rest stays on the subject it was published to, unless the source is
//! a destination itself: then the rest is lost, for those who want to see what their clients make of that.

use super::subject_transform::SubjectTransform;
use crate::common::error::EngineError;
use crate::common::random::Random;
use crate::common::subject;
use crate::config::mappings::MappingOptions;

const PERCENT_MAX: u8 = 100;

/// What became of a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mapped {
    /// No mapping is for it.
    Unchanged,
    /// It stands where it was asked for.
    Changed,
    /// The message goes nowhere.
    Lost,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Mappings {
    /// The first whose source matches is the one.
    mappings: Vec<Mapping>,
}

#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    source: Box<[u8]>,
    destinations: Vec<Destination>,
}

#[derive(Debug, PartialEq, Eq)]
struct Destination {
    transform: SubjectTransform,
    /// A random number below it, and not below those before, chooses this one.
    percent_end: u8,
}

impl Mappings {
    pub fn new(options: &[MappingOptions]) -> Result<Self, EngineError> {
        let mappings = options.iter().map(Mapping::new).collect::<Result<_, _>>()?;
        Ok(Self { mappings })
    }

    pub fn is_empty(&self) -> bool {
        self.mappings.is_empty()
    }

    /// Appends what a subject becomes to `out`, if it becomes another.
    pub fn apply(&self, published: &[u8], random: &mut Random, out: &mut Vec<u8>) -> Mapped {
        let mut mappings = self.mappings.iter();
        let Some(mapping) = mappings.find(|one| subject::matches(&one.source, published)) else {
            return Mapped::Unchanged;
        };
        let percent = match mapping.destinations.as_slice() {
            [only] if only.percent_end == PERCENT_MAX => 0,
            _ => random.below(usize::from(PERCENT_MAX)) as u8,
        };
        let mut destinations = mapping.destinations.iter();
        match destinations.find(|one| percent < one.percent_end) {
            Some(destination) if destination.transform.apply(published, random, out) => {
                Mapped::Changed
            }
            Some(_) => Mapped::Unchanged,
            None => Mapped::Lost,
        }
    }
}

impl Mapping {
    fn new(options: &MappingOptions) -> Result<Self, EngineError> {
        let MappingOptions {
            source,
            destinations,
        } = options;
        let refuse = |why: String| {
            EngineError::Options(format!("the mapping of {source:?} is not possible: {why}"))
        };
        let mut read = Vec::new();
        let mut total = 0;
        for (position, wanted) in destinations.iter().enumerate() {
            let subject = &wanted.subject;
            let before = &destinations[..position];
            if before.iter().any(|other| other.subject == *subject) {
                return Err(refuse(format!("duplicate entry for {subject:?}")));
            }
            total += u32::from(wanted.weight_percent);
            if total > u32::from(PERCENT_MAX) {
                return Err(refuse("total weight needs to be <= 100".to_owned()));
            }
            let transform = SubjectTransform::new(source, subject)
                .map_err(|error| refuse(error.to_string()))?;
            read.push((wanted.weight_percent, transform));
        }
        let names_itself = destinations.iter().any(|one| one.subject == *source);
        if total < u32::from(PERCENT_MAX) && !names_itself {
            let unchanged =
                SubjectTransform::new(source, "").map_err(|error| refuse(error.to_string()))?;
            read.push((PERCENT_MAX - total as u8, unchanged));
        }
        let mut percent_end = 0;
        let destinations = read
            .into_iter()
            .map(|(weight_percent, transform)| {
                percent_end += weight_percent;
                Destination {
                    transform,
                    percent_end,
                }
            })
            .collect();
        Ok(Self {
            source: source.as_bytes().into(),
            destinations,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::mappings::MappingDestination;

    fn mapping(source: &str, destinations: &[(&str, u8)]) -> MappingOptions {
        MappingOptions {
            source: source.to_owned(),
            destinations: destinations
                .iter()
                .map(|&(subject, weight_percent)| MappingDestination {
                    subject: subject.to_owned(),
                    weight_percent,
                })
                .collect(),
        }
    }

    fn applied(mappings: &Mappings, published: &str, random: &mut Random) -> Option<String> {
        let mut out = Vec::new();
        match mappings.apply(published.as_bytes(), random, &mut out) {
            Mapped::Unchanged => Some(published.to_owned()),
            Mapped::Changed => Some(String::from_utf8(out).unwrap()),
            Mapped::Lost => None,
        }
    }

    #[test]
    fn the_first_mapping_that_matches_decides() {
        let mappings = Mappings::new(&[
            mapping("a.b", &[("x", 100)]),
            mapping("a.*", &[("y.$1", 100)]),
            mapping("a.>", &[("z.>", 100)]),
        ])
        .unwrap();
        let mut random = Random::seeded(1);

        for (published, expected) in [
            ("a.b", "x"),
            ("a.c", "y.c"),
            ("a.c.d", "z.c.d"),
            ("b", "b"),
            ("a", "a"),
        ] {
            let found = applied(&mappings, published, &mut random);
            assert_eq!(found.as_deref(), Some(expected));
        }
    }

    #[test]
    fn weights_divide_messages_and_the_rest_stays_where_it_was() {
        let mappings = Mappings::new(&[mapping("a.*", &[("b.$1", 20), ("c.$1", 30)])]).unwrap();
        let mut random = Random::seeded(7);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..10_000 {
            *counts
                .entry(applied(&mappings, "a.1", &mut random).unwrap())
                .or_insert(0) += 1;
        }

        assert!((1_700..2_300).contains(&counts["b.1"]), "{counts:?}");
        assert!((2_700..3_300).contains(&counts["c.1"]), "{counts:?}");
        assert!((4_700..5_300).contains(&counts["a.1"]), "{counts:?}");
    }

    #[test]
    fn a_source_that_names_itself_loses_the_rest() {
        let mappings = Mappings::new(&[mapping("a", &[("a", 50)])]).unwrap();
        let mut random = Random::seeded(7);
        let lost = (0..1_000)
            .filter(|_| applied(&mappings, "a", &mut random).is_none())
            .count();

        assert!((400..600).contains(&lost), "{lost}");
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_reason() {
        let refused = |options: MappingOptions| Mappings::new(&[options]).unwrap_err().to_string();

        assert!(refused(mapping("a", &[("b", 60), ("c", 50)])).contains("total weight"));
        assert!(refused(mapping("a", &[("b", 10), ("b", 10)])).contains("duplicate"));
        assert!(refused(mapping("a.*", &[("b.$2", 100)])).contains("out of range"));
        assert!(refused(mapping("a..b", &[("b", 100)])).contains("invalid subject"));
    }
}
