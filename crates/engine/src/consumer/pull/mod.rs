//! Pull requests: `request` reads one, `pulling` admits it and chooses the next, and those that wait are in `waiting`.

pub mod pulling;
pub mod request;
pub mod waiting;
