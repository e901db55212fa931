//! What is known in memory of everything committed: `messages` are in `segments`, `subjects` have `subject_names` and `postings`; `lookup` is the
//! questions it answers. `bits` is a growing row of bits.

pub mod bits;
pub mod lookup;
pub mod messages;
pub mod postings;
pub mod segments;
pub mod subject_names;
pub mod subjects;
