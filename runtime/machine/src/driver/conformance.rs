//! Driver and catalogue → where they agree and where not. Reads only.
//!
//! The catalogue (`specs/devices`) is for planning offline; a real driver decides. This compares the two
//! fact by fact, so that a wrong row is found before a plan rests on it. What either side does not know
//! is said to be unknown and is no disagreement.

use super::observe::supported_sm_clocks;
use super::profiles::{self, Entry};
use super::raw::{RawDevice, wrapped};
use super::{Driver, optional, refusal};
use crate::error::DeviceError;
use crate::observed::GpuUuid;
use ent_plan::device::{Board, GpuInstanceProfile};
use nvml_wrapper::Device;

/// How far a profile's memory may be off (MiB): drivers report it differently by half a GiB (A100: 9.50
/// or 9.75 GiB for one profile, 78.50 or 79.00 for another; `nvidia-smi mig -lgip` of several drivers).
const MEMORY_TOLERANCE_MIB: u64 = 512;

/// Bytes in a mebibyte, the driver's unit of memory.
const MEBIBYTE: f64 = 1_048_576.0;

/// Whether catalogue and driver say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They do.
    Agrees,
    /// They do not: the driver is right.
    Differs,
    /// One of them does not say.
    Unknown,
}

/// One fact of one GPU, as the catalogue has it and as its driver says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The GPU.
    pub gpu: GpuUuid,
    /// Its index for NVML at this moment.
    pub index: u32,
    /// The catalogue's id of its board; `None` when it is not in the catalogue.
    pub board: Option<String>,
    /// Which fact: `SMs of 1g.10gb`, `power limits (W)`.
    pub fact: String,
    /// What the catalogue says; `None` when it does not.
    pub catalogue: Option<String>,
    /// What the driver says; `None` when it does not.
    pub driver: Option<String>,
    /// Whether they agree.
    pub verdict: Verdict,
    /// Whether the catalogue itself marks the fact as not captured.
    pub is_unverified: bool,
}

/// Compares the catalogue's row of every GPU with its driver's answers: the menu of profiles with ids,
/// slices, SMs, counts and memory; placements, where this process may ask for them; the ladder of SM
/// clocks; power limits. A GPU that is not in the catalogue gets one finding that says so.
///
/// # Errors
/// When a GPU cannot be read.
pub fn conformance(driver: &Driver) -> Result<Vec<Finding>, DeviceError> {
    let observed = driver.observe()?;
    let mut findings = Vec::new();
    for gpu in &observed.gpus {
        let mut sheet =
            Sheet { gpu: &gpu.uuid, index: gpu.index, board: gpu.board.as_deref(), findings: Vec::new() };
        let Some(board) = driver.board(&gpu.pci_device_id) else {
            sheet.note("board", None, Some(format!("{} ({})", gpu.name, gpu.pci_device_id)), false);
            findings.append(&mut sheet.findings);
            continue;
        };
        let refused = |refused| refusal(Some(&gpu.uuid), "compare with the catalogue", refused);
        let opened = driver.nvml.device_by_uuid(gpu.uuid.0.as_str());
        let device = wrapped("nvmlDeviceGetHandleByUUID", opened).map_err(refused)?;
        let raw = RawDevice::of(&driver.nvml, &device);
        // The names are not compared with the catalogue's help, or they would always agree.
        let menu = profiles::menu(&raw, None).map_err(refused)?;
        compare_menu(&mut sheet, board, &menu, &raw);
        compare_clocks(&mut sheet, board, &supported_sm_clocks(&device, &raw).map_err(refused)?);
        compare_power(&mut sheet, board, &device).map_err(refused)?;
        findings.append(&mut sheet.findings);
    }
    Ok(findings)
}

/// The findings of one GPU.
struct Sheet<'a> {
    gpu: &'a GpuUuid,
    index: u32,
    board: Option<&'a str>,
    findings: Vec<Finding>,
}

impl Sheet<'_> {
    /// Compares as texts.
    fn note(
        &mut self,
        fact: impl Into<String>,
        catalogue: Option<String>,
        driver: Option<String>,
        is_unverified: bool,
    ) {
        let verdict = match (&catalogue, &driver) {
            (Some(catalogue), Some(driver)) if catalogue == driver => Verdict::Agrees,
            (Some(_), Some(_)) => Verdict::Differs,
            _ => Verdict::Unknown,
        };
        self.judge(fact, catalogue, driver, verdict, is_unverified);
    }

    fn judge(
        &mut self,
        fact: impl Into<String>,
        catalogue: Option<String>,
        driver: Option<String>,
        verdict: Verdict,
        is_unverified: bool,
    ) {
        self.findings.push(Finding {
            gpu: self.gpu.clone(),
            index: self.index,
            board: self.board.map(str::to_owned),
            fact: fact.into(),
            catalogue,
            driver,
            verdict,
            is_unverified,
        });
    }
}

fn compare_menu(sheet: &mut Sheet<'_>, board: &Board, menu: &[Entry], raw: &RawDevice<'_>) {
    if menu.is_empty() {
        // Drivers from before 2023 tell no menu while MIG mode is off.
        sheet.note("profiles", Some(names(board.profiles.iter().map(|p| p.name.clone()))), None, false);
        return;
    }
    if menu.iter().any(|entry| entry.profile.name.is_some()) {
        let of_catalogue = names(board.profiles.iter().map(|p| p.name.clone()));
        let of_driver = names(menu.iter().map(|entry| entry.name.clone()));
        sheet.note("profiles", Some(of_catalogue), Some(of_driver), false);
    }
    for known in &board.profiles {
        let by_name = menu.iter().find(|entry| entry.profile.name.is_some() && entry.name == known.name);
        let by_id = || menu.iter().find(|entry| Some(entry.profile.id) == known.gi_profile_id);
        if let Some(entry) = by_name.or_else(by_id) {
            compare_profile(sheet, known, entry, raw);
        } else {
            let fact = format!("profile {}", known.name);
            let id = known.gi_profile_id.map(|id| format!("id {id}"));
            sheet.note(fact, id, Some("no such".to_owned()), is_unverified(known, "gi_profile_id"));
        }
    }
}

fn compare_profile(sheet: &mut Sheet<'_>, known: &GpuInstanceProfile, entry: &Entry, raw: &RawDevice<'_>) {
    let told = &entry.profile;
    let name = &known.name;
    let number = |number: u32| Some(number.to_string());
    let unverified = |field| is_unverified(known, field);
    sheet.note(
        format!("id of {name}"),
        known.gi_profile_id.map(|id| id.to_string()),
        number(told.id),
        unverified("gi_profile_id"),
    );
    sheet.note(
        format!("compute slices of {name}"),
        number(known.n_compute_slices),
        number(told.n_slices),
        unverified("compute_slices"),
    );
    sheet.note(
        format!("SMs of {name}"),
        known.n_sms.map(|sms| sms.to_string()),
        number(told.n_sms),
        unverified("sms"),
    );
    // NVML's own count is wrong on some boards (A30: NVIDIA/mig-parted bd7160f, pkg/mig/discovery); it is
    // compared all the same, because a plan rests on the catalogue's.
    sheet.note(
        format!("most instances of {name}"),
        number(known.max_instances),
        number(told.max_instances),
        unverified("max_instances"),
    );
    compare_memory(sheet, known, told.memory_mib);
    let placements = optional(raw.placements(told.id)).ok().flatten();
    let as_text = |pairs: Vec<(u32, u32)>| {
        let starts: Vec<String> = pairs.iter().map(|(start, size)| format!("{start}:{size}")).collect();
        starts.join(" ")
    };
    let of_catalogue = known.starts.iter().map(|start| (*start, known.n_memory_slices)).collect();
    let of_driver = placements.map(|placements| {
        let mut pairs: Vec<(u32, u32)> = placements.iter().map(|p| (p.start, p.size)).collect();
        pairs.sort_unstable();
        as_text(pairs)
    });
    sheet.note(
        format!("placements of {name}"),
        Some(as_text(of_catalogue)),
        of_driver,
        unverified("placements"),
    );
}

fn compare_memory(sheet: &mut Sheet<'_>, known: &GpuInstanceProfile, told_mib: u64) {
    // A whole number of MiB in the catalogue's file.
    let known_mib = known.memory.map(|memory| (memory.get() / MEBIBYTE).round() as u64);
    let verdict = match known_mib {
        None => Verdict::Unknown,
        Some(mib) if mib.abs_diff(told_mib) <= MEMORY_TOLERANCE_MIB => Verdict::Agrees,
        Some(_) => Verdict::Differs,
    };
    sheet.judge(
        format!("memory of {} (MiB)", known.name),
        known_mib.map(|mib| mib.to_string()),
        Some(told_mib.to_string()),
        verdict,
        is_unverified(known, "memory"),
    );
}

fn compare_clocks(sheet: &mut Sheet<'_>, board: &Board, told: &[u32]) {
    let known: Vec<u32> = board.clocks.iter().map(|clock| clock.0).collect();
    let is_unverified = board.unverified.iter().any(|field| field == "clocks");
    let (of_catalogue, of_driver) = (ladder(&known), ladder(told));
    let verdict = match (of_catalogue.is_some(), of_driver.is_some()) {
        (true, true) if known == told => Verdict::Agrees,
        (true, true) => Verdict::Differs,
        _ => Verdict::Unknown,
    };
    sheet.judge("SM clocks (MHz)", of_catalogue, of_driver, verdict, is_unverified);
}

/// A ladder of clocks in words: `210..1410, 81 of them`. Which differ is for a closer look.
fn ladder(clocks: &[u32]) -> Option<String> {
    let (first, last) = (clocks.first()?, clocks.last()?);
    Some(format!("{first}..{last}, {} of them", clocks.len()))
}

fn compare_power(sheet: &mut Sheet<'_>, board: &Board, device: &Device<'_>) -> super::Answer<()> {
    let range = optional(wrapped(
        "nvmlDeviceGetPowerManagementLimitConstraints",
        device.power_management_limit_constraints(),
    ))?;
    let default = optional(wrapped(
        "nvmlDeviceGetPowerManagementDefaultLimit",
        device.power_management_limit_default(),
    ))?;
    let is_unverified = board.unverified.iter().any(|field| field == "power_limits");
    let watts = |milliwatts: u32| (f64::from(milliwatts) / 1000.0).to_string();
    let limits = board.power_limits;
    let known = |watts: Option<ent_plan::units::Watts>| watts.map(|watts| watts.get().to_string());
    sheet.note(
        "least power limit (W)",
        known(limits.and_then(|limits| limits.min)),
        range.as_ref().map(|range| watts(range.min_limit)),
        is_unverified,
    );
    sheet.note(
        "default power limit (W)",
        known(limits.map(|limits| limits.default)),
        default.map(watts),
        is_unverified,
    );
    sheet.note(
        "highest power limit (W)",
        known(limits.map(|limits| limits.max)),
        range.as_ref().map(|range| watts(range.max_limit)),
        is_unverified,
    );
    Ok(())
}

/// Whether the catalogue says that nobody captured this fact of a profile.
fn is_unverified(profile: &GpuInstanceProfile, field: &str) -> bool {
    profile.unverified.iter().any(|unverified| unverified == field)
}

/// Names in a fixed order.
fn names(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.join(", ")
}
