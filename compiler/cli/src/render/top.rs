//! What happens → a screen, or the same as text.

use crate::commands::{BoardRow, ServiceRow, View};
use crate::render::quantity::{digits, few_watts, millis};
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use ratatui::{DefaultTerminal, Frame, Terminal};
use std::io;
use std::time::{Duration, Instant};

/// The terminal, as a screen of ours; given back when dropped.
pub(crate) struct Screen(DefaultTerminal);

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn open() -> io::Result<Self> {
        ratatui::try_init().map(Self)
    }

    /// Draws.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(crate) fn draw(&mut self, view: &View, trouble: Option<&str>) -> io::Result<()> {
        self.0.draw(|frame| draw(frame, view, trouble)).map(|_| ())
    }

    /// Whether the user leaves within this time.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(crate) fn is_left(&mut self, within: Duration) -> io::Result<bool> {
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if !event::poll(left)? {
                return Ok(false);
            }
            if let Event::Key(key) = event::read()?
                && key.kind == KeyEventKind::Press
            {
                let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers == KeyModifiers::CONTROL;
                if is_interrupt || [KeyCode::Char('q'), KeyCode::Esc].contains(&key.code) {
                    return Ok(true);
                }
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Columns that both tables need; in less, which of them is cut would be chance.
const LEAST: u16 = 104;

/// The same as text.
pub(crate) fn text(view: &View, width: u16) -> String {
    let height = u16::try_from(view.boards.len() + view.services.len() + 7).unwrap_or(u16::MAX);
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width.max(LEAST), height));
    let Ok(frame) = terminal.draw(|frame| draw(frame, view, None));
    let buffer = frame.buffer;
    let mut text = String::new();
    for row in buffer.area.rows() {
        let line: String =
            row.columns().filter_map(|at| buffer.cell((at.x, at.y)).map(|c| c.symbol())).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn draw(frame: &mut Frame<'_>, view: &View, trouble: Option<&str>) {
    let boards = u16::try_from(view.boards.len()).unwrap_or(u16::MAX).saturating_add(2);
    let [head, upper, lower] =
        Layout::vertical([Constraint::Length(2), Constraint::Length(boards), Constraint::Min(3)])
            .areas(frame.area());
    let watts: Option<f64> = view.boards.iter().map(|b| b.mean_watts.or(b.watts)).sum();
    let rate: f64 = view.services.iter().map(|s| s.rate).sum();
    let watts = watts.filter(|_| !view.boards.is_empty());
    let mut words = vec![format!("{} requests/s", digits(rate, 4))];
    words.extend(watts.map(|watts| format!("{} W", few_watts(watts))));
    words.extend(watts.filter(|_| rate > 0.0).map(|watts| format!("{} J/request", digits(watts / rate, 3))));
    words
        .extend(view.plan.as_ref().map(|plan| format!("plan {}", plan.chars().take(19).collect::<String>())));
    let line = match trouble {
        Some(trouble) => Line::from(trouble.to_owned()).red(),
        None => Line::from(words.join("   ")).bold(),
    };
    frame.render_widget(Paragraph::new(line), head);
    frame.render_widget(boards_table(&view.boards), upper);
    frame.render_widget(services_table(&view.services), lower);
}

fn heading(titles: &[&str]) -> Row<'static> {
    Row::new(titles.iter().map(|title| Cell::from((*title).to_owned())))
        .style(Style::new().fg(Color::DarkGray))
}

fn shown(value: Option<f64>, how: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), how)
}

fn boards_table(boards: &[BoardRow]) -> Table<'static> {
    let row = |board: &BoardRow| {
        Row::new([
            Cell::from(format!("gpu {}", board.index)),
            Cell::from(board.name.clone()),
            Cell::from(shown(board.mhz, |mhz| format!("{mhz:.0} MHz"))),
            Cell::from(shown(board.watts, few_watts)),
            Cell::from(shown(board.mean_watts, few_watts)),
            Cell::from(shown(board.predicted_watts, few_watts)),
            Cell::from(board.source.clone()),
        ])
    };
    let widths = [
        Constraint::Length(7),
        Constraint::Min(18),
        Constraint::Length(9),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(11),
        Constraint::Length(10),
    ];
    Table::new(boards.iter().map(row), widths).header(heading(&[
        "gpu",
        "board",
        "SM clock",
        "W now",
        "W mean",
        "W predicted",
        "watts are",
    ]))
}

fn services_table(services: &[ServiceRow]) -> Table<'static> {
    let row = |service: &ServiceRow| {
        let is_late = service.p99_ms.zip(service.promise_ms).is_some_and(|(p99, promise)| p99 > promise);
        let late = if is_late { Style::new().red() } else { Style::new().green() };
        let name = if service.is_ready { Style::new() } else { Style::new().red() };
        let refused = if service.refused > 0.0 { Style::new().red() } else { Style::new() };
        Row::new([
            Cell::from(service.name.clone()).style(name),
            Cell::from(format!("{} {}", service.workers, service.executor)),
            Cell::from(digits(service.rate, 4)),
            Cell::from(digits(service.refused, 3)).style(refused),
            Cell::from(shown(service.p50_ms, millis)),
            Cell::from(shown(service.p99_ms, millis)).style(late),
            Cell::from(shown(service.promise_ms, millis)),
            Cell::from(shown(service.attainment, |share| format!("{:.2} %", share * 100.0))),
            Cell::from(shown(service.batch, |batch| format!("{batch:.1}"))),
            Cell::from(format!("{:.0}", service.queued)),
        ])
    };
    let widths = [
        Constraint::Min(16),
        Constraint::Length(12),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(6),
        Constraint::Length(6),
    ];
    Table::new(services.iter().map(row), widths).header(heading(&[
        "service", "workers", "served/s", "not/s", "p50", "p99", "promise", "within", "batch", "queued",
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_text_of_any_width() {
        let board = BoardRow {
            index: "0".into(),
            name: "A100 80GB PCIe".into(),
            source: "simulated".into(),
            watts: Some(81.0),
            mean_watts: Some(80.25),
            predicted_watts: Some(82.6),
            mhz: Some(960.0),
        };
        let service = ServiceRow {
            name: "resnet50".into(),
            executor: "modelled".into(),
            is_ready: true,
            workers: 2.0,
            rate: 345.6,
            p50_ms: Some(12.0),
            p99_ms: Some(44.0),
            promise_ms: Some(47.58),
            attainment: Some(0.9951),
            batch: Some(8.3),
            ..ServiceRow::default()
        };
        let view = View { source: "here".into(), plan: None, boards: vec![board], services: vec![service] };
        for width in [40, 120, 300] {
            let text = text(&view, width);
            for word in
                ["345.6 requests/s", "gpu 0", "960 MHz", "simulated", "resnet50", "2 modelled", "99.51 %"]
            {
                assert!(text.contains(word), "{word} is not in:\n{text}");
            }
        }
    }
}
