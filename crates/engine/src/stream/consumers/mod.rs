//! What a stream does for its consumers: `registry` is how Python's decisions reach them, `consuming` what they ask of the stream, `removing` takes
//! many messages out at once, `dead_letters` stores what they give up.

pub mod consuming;
pub mod dead_letters;
pub mod registry;
pub mod removing;
