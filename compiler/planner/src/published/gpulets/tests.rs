//! Small inputs whose answers are made by hand.
