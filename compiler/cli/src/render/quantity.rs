//! Numbers with their units → short text for people, the same in text and in pictures.

pub(crate) use ent_picture::quantity::*;
