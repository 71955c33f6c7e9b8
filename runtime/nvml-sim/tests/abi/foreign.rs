//! NVIDIA's own Python binding, nvidia-ml-py, takes the library for the real one.
//!
//! It is fetched once into the target folder. Where there is no Python, no pip or no network, these tests
//! say that they looked at nothing.

use ent_nvml_sim::description::{DescribedInstance, Description};
use ent_nvml_sim::machine::SimulatedMachine;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const BINDING: &str = "nvidia-ml-py==13.615.71";

/// The folder with `pynvml.py`, fetched if need be.
fn binding() -> Option<PathBuf> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(fetch).clone()
}

fn fetch() -> Option<PathBuf> {
    let executable = std::env::current_exe().unwrap();
    // target/release/deps/abi-…
    let target = executable.ancestors().nth(3).unwrap();
    let folder = target.join(BINDING.replace("==", "-"));
    if folder.join("pynvml.py").is_file() {
        return Some(folder);
    }
    // Complete or not there: others may be fetching it too.
    let begun = tempfile::tempdir_in(target).unwrap();
    let pip = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--target"])
        .args([begun.path().as_os_str(), BINDING.as_ref()])
        .stdin(Stdio::null())
        .output();
    match pip {
        Ok(output) if output.status.success() => {
            if std::fs::rename(begun.path(), &folder).is_err() {
                assert!(folder.join("pynvml.py").is_file(), "cannot keep {BINDING}");
            }
            Some(folder)
        }
        Ok(output) => {
            println!("not tested: {BINDING} cannot be had: {}", String::from_utf8_lossy(&output.stderr));
            None
        }
        Err(error) => {
            println!("not tested: no python3: {error}");
            None
        }
    }
}

fn machine() -> SimulatedMachine {
    let mut description = Description::of("575.57.08", &[("a100-80gb-pcie", 1), ("h100-80gb-sxm", 1)]);
    description.gpu[0].mig = true;
    description.gpu[1].idle_power_w = Some(71.5);
    description.gpu[0].instances =
        vec![DescribedInstance { profile: "3g.40gb".to_owned(), start: Some(4), compute: true }];
    SimulatedMachine::new(&description).unwrap()
}

#[test]
fn nvidias_python_binding_sees_the_machine_and_changes_it() {
    let Some(binding) = binding() else { return };
    let machine = machine();
    let output = Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/foreign_client.py"))
        .env("PYTHONPATH", binding)
        .env("LD_LIBRARY_PATH", machine.library().parent().unwrap())
        .env("ENTC_SIM_STATE", machine.state())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();

    assert_eq!(seen["before_init"], "Uninitialized");
    assert_eq!((&seen["driver"], &seen["cuda"]), (&json!("575.57.08"), &json!(12090)));
    assert_eq!(seen["absent"], "Function Not Found");
    assert_eq!(seen["temperature"], "Not Supported");
    let [a100, h100] = seen["devices"].as_array().unwrap().as_slice() else { panic!("{seen}") };
    assert_eq!(a100["name"], "NVIDIA A100 80GB PCIe");
    assert!(h100["name"].as_str().unwrap().contains("H100"), "{h100}");
    assert!(a100["bus"].as_str().unwrap().starts_with("00000000:"), "{a100}");
    assert_eq!((&a100["mig"], &h100["mig"]), (&json!([1, 1]), &json!([0, 0])));
    assert_eq!((&a100["memory"], &a100["memory_v2"]), (&json!(81920_u64 << 20), &a100["memory"]));
    assert_eq!(a100["graphics_clocks"], json!([1410, 210, 81]));
    assert_eq!(a100["memory_clocks"], json!([1512]));
    assert_eq!(a100["power_limits"], json!([150_000, 300_000]));
    assert_eq!((&a100["power_limit"], &a100["energy_return"]), (&json!(300_000), &json!(0)));
    assert!(a100["power"].as_u64().unwrap() > 10_000, "{a100}");
    let place = |instance: &Value| {
        (instance["profile"].clone(), instance["start"].as_u64(), instance["size"].as_u64())
    };
    let places = |device: &Value| -> Vec<_> {
        let mut places: Vec<_> = device["instances"].as_array().unwrap().iter().map(place).collect();
        places.sort_by_key(|(_, start, _)| *start);
        places
    };
    let three = (json!("MIG 3g.40gb"), Some(4), Some(4));
    assert_eq!(places(a100), std::slice::from_ref(&three));
    assert_eq!(a100["mig_devices"][0]["parent"], a100["uuid"]);
    assert_eq!((&a100["mig_devices"][0]["sms"], &a100["mig_devices"][0]["is_mig"]), (&json!(42), &json!(1)));

    let after = &seen["after"];
    assert_eq!(places(after), [(json!("MIG 2g.20gb"), Some(2), Some(2)), three]);
    assert_eq!(after["mig_devices"].as_array().unwrap().len(), 2);
    assert_eq!(after["sm_clock"], 1050);
    let refusal = seen["mig_clock"].as_str().unwrap();
    assert!(["Not Supported", "Invalid Argument"].contains(&refusal), "{refusal}");
    // What Python did is there for everybody.
    let ids = machine.look(|silicon| {
        let gpu = silicon.gpu_by_index(0).unwrap();
        (silicon.gpu_instances(gpu, 14).unwrap().len(), silicon.gpu_instances(gpu, 9).unwrap().len())
    });
    assert_eq!(ids.unwrap(), (1, 1));
}

/// Parts of function names, for what the library claims to answer.
const CLAIMED: &[&str] = &[
    "Mig",
    "GpuInstance",
    "ComputeInstance",
    "LockedClocks",
    "SupportedMemoryClocks",
    "SupportedGraphicsClocks",
    "ClockInfo",
    "ClocksEventReasons",
    "ClocksThrottleReasons",
    "PowerManagementLimit",
    "PowerManagementDefaultLimit",
    "EnforcedPowerLimit",
    "PowerUsage",
    "TotalEnergy",
    "GetFieldValues",
    "MemoryInfo",
    "PersistenceMode",
    "RunningProcesses",
    "DeviceGetHandleBy",
    "DeviceGetUUID",
    "DeviceGetPciInfo",
    "DeviceGetAttributes",
    "nvmlInit",
    "nvmlShutdown",
    "nvmlErrorString",
];

/// Of those, what belongs to features that are not simulated.
const UNCLAIMED: &[&str] =
    &["Vgpu", "Gpm", "BAR1", "AdaptiveClock", "HandleByUUIDV", "PciInfoExt", "SupportedClocks"];

#[test]
fn every_function_that_nvidias_python_binding_calls_for_what_we_claim_is_there() {
    let Some(binding) = binding() else { return };
    let text = std::fs::read_to_string(binding.join("pynvml.py")).unwrap();
    let called = text.split("_nvmlGetFunctionPointer(\"").skip(1).filter_map(|rest| rest.split('"').next());
    let claimed: Vec<&str> = called
        .filter(|name| CLAIMED.iter().any(|part| name.contains(part)))
        .filter(|name| !UNCLAIMED.iter().any(|part| name.contains(part)))
        .collect();
    assert!(claimed.len() > 50, "{} functions: {claimed:?}", claimed.len());
    let library = crate::client::library(&machine().library());
    let missing: Vec<&&str> = claimed.iter().filter(|name| !crate::client::has(&library, name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(!crate::client::has(&library, "nvmlDeviceGetFanSpeed"));
}
