//! Parts of the malformed-input run: `frames` invents the input, `oracle` says what a right server answers to it, `answers` reads what
//! it did answer, `live_engine` is the one attacked, `canary` watches that other clients notice nothing, `process`
//! measures memory.

pub mod answers;
pub mod canary;
pub mod frames;
pub mod live_engine;
pub mod oracle;
pub mod process;
pub mod random;
