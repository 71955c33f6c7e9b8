//! The characters drawings are made of: Unicode, or ASCII where the locale has nothing else.

/// One set of characters.
#[derive(Debug)]
pub(crate) struct Symbols {
    /// Whether this is the Unicode set.
    pub(crate) is_unicode: bool,
    /// Horizontal and vertical strokes.
    pub(crate) horizontal: char,
    /// See `horizontal`.
    pub(crate) vertical: char,
    /// Left corner, tee and right corner of the top edge.
    pub(crate) top: [char; 3],
    /// Left corner, tee and right corner of the bottom edge.
    pub(crate) bottom: [char; 3],
    /// Fills what is free.
    pub(crate) shade: char,
    /// Stands for cut text.
    pub(crate) ellipsis: char,
    /// Between facts.
    pub(crate) dot: char,
    /// "This many".
    pub(crate) times: &'static str,
    /// Before an error band.
    pub(crate) plus_minus: &'static str,
    /// Between a prediction and the promise it keeps.
    pub(crate) at_most: &'static str,
    /// From – to.
    pub(crate) dash: char,
}

/// For locales with UTF-8.
pub(crate) static UNICODE: Symbols = Symbols {
    is_unicode: true,
    horizontal: '─',
    vertical: '│',
    top: ['┌', '┬', '┐'],
    bottom: ['└', '┴', '┘'],
    shade: '░',
    ellipsis: '…',
    dot: '·',
    times: "×",
    plus_minus: "±",
    at_most: "≤",
    dash: '–',
};

/// For all others.
pub(crate) static ASCII: Symbols = Symbols {
    is_unicode: false,
    horizontal: '-',
    vertical: '|',
    top: ['+', '+', '+'],
    bottom: ['+', '+', '+'],
    shade: '.',
    ellipsis: '~',
    dot: ',',
    times: "x",
    plus_minus: "+-",
    at_most: "<=",
    dash: '-',
};
