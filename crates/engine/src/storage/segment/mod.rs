//! One segment: `segment_file` reads and writes it, `scan` reads it record by record over damage, `loading` finds out what it holds, `sealing` ends it.

pub mod loading;
pub mod scan;
pub mod sealing;
pub mod segment_file;
