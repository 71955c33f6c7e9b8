//! Every kind of diagnostic, by its word.
//!
//! Each has a page `specs/diagnostics/<word>.md`, which is executed as a test.

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $word:literal),* $(,)?) => {
        /// The kind of a diagnostic. Words, not numbers: `entc explain <word>` prints its page.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $($(#[$doc])* $name),* }

        impl Code {
            /// All codes, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The word the user sees.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }

            /// The page that explains it.
            #[must_use]
            pub fn page(self) -> &'static str {
                match self { $(Self::$name => include_str!(concat!("../../../diagnostics/", $word, ".md"))),* }
            }

            /// The code with this word.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|c| c.word() == word)
            }
        }
    };
}

codes! {
    /// The text does not follow the grammar.
    Syntax = "syntax",
    /// A file is not text that entc can read: binary, UTF-16, empty, too large.
    UnreadableFile = "unreadable-file",
    /// A file does not exist or cannot be opened.
    MissingFile = "missing-file",
    /// Imports form a cycle.
    ImportCycle = "import-cycle",
    /// A name that nothing declares.
    UnknownName = "unknown-name",
    /// A block kind the language does not have.
    UnknownBlock = "unknown-block",
    /// An attribute the block does not have.
    UnknownAttribute = "unknown-attribute",
    /// A unit the language does not have.
    UnknownUnit = "unknown-unit",
    /// A board the catalogue does not have.
    UnknownBoard = "unknown-board",
    /// A MIG profile the board does not have.
    UnknownProfile = "unknown-profile",
    /// A param given with `--set` that the program does not declare.
    UnknownParam = "unknown-param",
    /// Two declarations of one name, or one attribute given twice.
    Duplicate = "duplicate",
    /// A quantity of the wrong kind.
    UnitMismatch = "unit-mismatch",
    /// A value of the wrong kind.
    TypeMismatch = "type-mismatch",
    /// A number outside what makes sense: negative, zero, not finite, absurdly large.
    OutOfRange = "out-of-range",
    /// A `let` or `param` that depends on itself.
    CyclicDefinition = "cyclic-definition",
    /// A required attribute or block is absent.
    MissingAttribute = "missing-attribute",
    /// A clock the board's ladder does not have.
    ClockOffLadder = "clock-off-ladder",
    /// A fact about a board that the plan needs and nobody has supplied.
    MissingBoardFact = "missing-board-fact",
    /// A catalogue fact that was never captured from a real board is used.
    UnverifiedBoardFact = "unverified-board-fact",
    /// A model or board whose numbers are invented for illustration.
    IllustrativeData = "illustrative-data",
    /// A service has no performance model or measurement to plan with.
    SloWithoutMeasurement = "slo-without-measurement",
    /// A measurements file lacks a column, or has one that cannot be read.
    MeasurementColumn = "measurement-column",
    /// A row of a measurements file cannot be right.
    MeasurementRow = "measurement-row",
    /// Throughput, batch and latency of a row contradict each other: a unit is wrong.
    MeasurementUnits = "measurement-units",
    /// Two rows measure the same operating point.
    DuplicateMeasurement = "duplicate-measurement",
    /// Too few measurements to fit a model.
    TooFewMeasurements = "too-few-measurements",
    /// No operating point of the service meets its latency.
    LatencyOutOfReach = "latency-out-of-reach",
    /// No operating point of the service fits in memory.
    MemoryOutOfReach = "memory-out-of-reach",
    /// The pinned operating point cannot be used.
    PinOutOfReach = "pin-out-of-reach",
    /// Requirements that cannot hold together.
    ConflictingRequirements = "conflicting-requirements",
    /// The chosen planner cannot express something the program asks for.
    PlannerLimitation = "planner-limitation",
    /// A board's predicted power exceeds its power limit.
    PowerLimitExceeded = "power-limit-exceeded",
    /// A plan file is not one, or is of another version, or was changed.
    InvalidPlan = "invalid-plan",
    /// A plan file's checksum is not that of its contents, or is absent.
    PlanChecksum = "plan-checksum",
    /// A plan does not keep what it must: geometry, memory, rates, limits, sums.
    PlanCheckFailed = "plan-check-failed",
}
