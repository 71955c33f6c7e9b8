//! The torch executor on the CPU, with networks that are made here, and one that ships in a package.

use crate::gateway::{Worker, start};
use ent_wire::{Configure, Datatype, Model};
use std::path::{Path, PathBuf};
use tch::{CModule, Device, Kind, Tensor};

/// y = 2x + 1, traced and saved, with the file beside it. (Tracing makes networks of one result only.)
fn network(folder: &Path, description: &str) -> String {
    let path = folder.join("line.pt");
    let mut forward = |inputs: &[Tensor]| {
        let x = &inputs[0];
        vec![x * 2.0 + 1.0]
    };
    let example = Tensor::zeros([1, 3], (Kind::Float, Device::Cpu));
    let module = CModule::create_by_tracing("Line", "forward", &[example], &mut forward).unwrap();
    module.save(&path).unwrap();
    if !description.is_empty() {
        std::fs::write(folder.join("line.pt.json"), description).unwrap();
    }
    path.to_str().unwrap().to_owned()
}

const DESCRIPTION: &str = r#"{
    "inputs": [{ "name": "x", "datatype": "FP32", "shape": [-1, 3] }],
    "outputs": [{ "name": "y", "datatype": "FP32", "shape": [-1, 3] }]
}"#;

fn torch(artifact: &str, batch: u32) -> Worker {
    let model = Model { name: "line".to_owned(), artifact: Some(artifact.to_owned()), signature: None };
    let configure =
        Configure { batch, batch_times_ms: vec![1.0; batch as usize], batch_energy_j: Vec::new() };
    start(&["--executor", "torch", "--device", "cpu"], model, configure)
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn a_traced_network_answers_batches_with_its_own_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = torch(&network(folder.path(), DESCRIPTION), 4);
    let warm = worker.warm().unwrap();
    assert_eq!(warm.signature.unwrap().outputs[0].name, "y");
    let x = bytes(&[1.0, 2.0, 3.0, 10.0, 20.0, 30.0]);
    let outputs = worker.run(2, &[("x", Datatype::Fp32, &[2, 3], &x)]).unwrap();
    assert_eq!(outputs, [("y".to_owned(), vec![2, 3], bytes(&[3.0, 5.0, 7.0, 21.0, 41.0, 61.0]))]);
}

#[test]
fn a_network_without_a_description_runs_and_numbers_its_output() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = torch(&network(folder.path(), ""), 1);
    assert_eq!(worker.warm().unwrap().signature, None);
    let outputs = worker.run(1, &[("anything", Datatype::Fp32, &[1, 3], &bytes(&[1.0; 3]))]).unwrap();
    assert_eq!(outputs, [("output0".to_owned(), vec![1, 3], bytes(&[3.0; 3]))]);
}

#[test]
fn a_batch_that_the_network_does_not_take_is_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = torch(&network(folder.path(), DESCRIPTION), 1);
    worker.warm().unwrap();
    let missing = worker.run(1, &[("z", Datatype::Fp32, &[1, 3], &bytes(&[1.0; 3]))]).unwrap_err();
    assert_eq!(missing, "input `x` is missing");
    let strings = worker.run(1, &[("x", Datatype::Bytes, &[1, 1], &[0; 4])]).unwrap_err();
    assert_eq!(strings, "torch takes no BYTES");
    let short = worker.run(1, &[("x", Datatype::Fp32, &[1, 4], &bytes(&[1.0; 3]))]).unwrap_err();
    assert!(short.contains("which is not its shape"), "{short}");
    assert!(worker.run(1, &[("x", Datatype::Fp32, &[1, 3], &bytes(&[1.0; 3]))]).is_ok());
}

#[test]
fn a_network_that_cannot_be_loaded_ends_the_worker_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let corrupt = folder.path().join("corrupt.pt");
    std::fs::write(&corrupt, b"PK\x03\x04 and then nothing").unwrap();
    let absent = folder.path().join("absent.pt");
    for (path, reason) in [(&corrupt, "corrupt.pt"), (&absent, "No such file")] {
        let mut worker = torch(path.to_str().unwrap(), 1);
        assert!(worker.warm().is_none());
        let (code, said) = worker.ended();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(reason) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn a_description_that_does_not_fit_is_refused_before_any_request() {
    let folder = tempfile::tempdir().unwrap();
    for (description, reason) in [
        (
            r#"{ "inputs": [{ "name": "x", "datatype": "FP32", "shape": [-1, 3] }], "arguments": ["y"] }"#,
            "`y`",
        ),
        (r#"{ "inputs": [], "outputs": [], "shape": 3 }"#, "unknown field `shape`"),
        (
            r#"{ "inputs": [{ "name": "x", "datatype": "FP32", "shape": [-1, 3] }], "arguments": ["x", 2] }"#,
            "does not take a batch of 1",
        ),
    ] {
        let mut worker = torch(&network(folder.path(), description), 1);
        assert!(worker.warm().is_none());
        let (code, said) = worker.ended();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(reason), "{said}");
    }
}

/// silero-vad (PyPI) ships its network as TorchScript. Its `forward` takes audio and the sampling rate.
#[test]
fn a_network_that_ships_in_a_package_hears_no_speech_in_silence() {
    let Some(artifact) = packaged() else { return };
    let description = r#"{
        "inputs": [{ "name": "audio", "datatype": "FP32", "shape": [-1, 512] }],
        "outputs": [{ "name": "speech", "datatype": "FP32", "shape": [-1, 1] }],
        "arguments": ["audio", 16000]
    }"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("silero_vad.jit");
    std::fs::copy(artifact, &path).unwrap();
    std::fs::write(folder.path().join("silero_vad.jit.json"), description).unwrap();
    let mut worker = torch(path.to_str().unwrap(), 2);
    worker.warm().unwrap();
    let silence = bytes(&[0.0; 1024]);
    let outputs = worker.run(2, &[("audio", Datatype::Fp32, &[2, 512], &silence)]).unwrap();
    assert_eq!((outputs[0].0.as_str(), outputs[0].1.as_slice()), ("speech", [2, 1].as_slice()));
    let speech: Vec<f32> =
        outputs[0].2.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    assert!(speech.iter().all(|p| (0.0..0.5).contains(p)), "{speech:?}");
}

/// The network, where `setup/torch.sh` has put it.
fn packaged() -> Option<PathBuf> {
    let path = std::env::var_os("ENT_SILERO").map(PathBuf::from).filter(|path| path.is_file());
    if path.is_none() {
        println!("skipped: ENT_SILERO does not name silero_vad.jit; `sh setup/torch.sh test` does");
    }
    path
}
