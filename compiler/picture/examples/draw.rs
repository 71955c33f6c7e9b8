//! A saved plan → its page and its picture beside it: `cargo run --example draw -- plan.json`.

use ent_picture::{Findings, plan_page, plan_svg};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for name in std::env::args().skip(1) {
        let plan = serde_json::from_str(&std::fs::read_to_string(&name)?)?;
        let stem = name.trim_end_matches(".json");
        std::fs::write(format!("{stem}.html"), plan_page(&plan, &Findings::default())?)?;
        std::fs::write(format!("{stem}.svg"), plan_svg(&plan))?;
    }
    Ok(())
}
