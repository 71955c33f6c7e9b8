//! One thing at a time: what a command says, leaves behind and refuses.
