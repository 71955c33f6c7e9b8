//! What one call costs on a machine of eight boards with seven instances and processes each.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot set itself up has nothing to measure")]

use criterion::{Criterion, criterion_group, criterion_main};
use ent_nvml_sim::description::Description;
use ent_nvml_sim::faults::{self, When};
use ent_nvml_sim::silicon::{Clock, Device, Silicon};
use ent_nvml_sim::store::Store;
use std::hint::black_box;

const GPU: Device = Device::Gpu(0);

fn cut(silicon: &mut Silicon) {
    for gpu in (0..8).map(Device::Gpu) {
        for _ in 0..7 {
            let instance = silicon.create_gpu_instance(gpu, 19, None).unwrap();
            let device = Device::Mig(silicon.create_compute_instance(instance, 0, None).unwrap());
            silicon.attach(device, std::process::id(), "bench").unwrap();
            silicon.load(device, std::process::id(), 10.0).unwrap();
        }
    }
}

fn calls(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let mut description = Description::of("575.57.08", &[("a100-80gb-pcie", 8)]);
    description.gpu[0].mig = true;
    description.write(folder.path()).unwrap();
    let store = Store::open(folder.path()).unwrap();
    store.with_mut(cut).unwrap();

    let mut group = criterion.benchmark_group("call");
    group.sample_size(20);
    group.bench_function("read a clock", |b| {
        b.iter(|| store.with(|s| black_box(s.clock(GPU, Clock::Sm))).unwrap())
    });
    group.bench_function("read power", |b| b.iter(|| store.with(|s| black_box(s.power_usage(GPU))).unwrap()));
    group.bench_function("list processes", |b| {
        b.iter(|| store.with(|s| black_box(s.processes(GPU))).unwrap())
    });
    group.bench_function("lock clocks", |b| {
        let mut mhz = 210;
        b.iter(|| {
            mhz = if mhz == 210 { 1410 } else { 210 };
            store.with_mut(|s| s.set_gpu_locked_clocks(GPU, mhz, mhz)).unwrap().unwrap();
        });
    });
    group.bench_function("look for faults that are none", |b| {
        b.iter(|| black_box(faults::check(&store, "nvmlDeviceGetPowerUsage", When::Before)));
    });
    group.finish();
}

criterion_group!(benches, calls);
criterion_main!(benches);
