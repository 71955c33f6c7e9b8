//! The modelled executor: a batch takes its predicted time and gives zeros.
//!
//! It stands where there is no GPU, and says so in every answer's parameters (the gateway adds them).

use crate::executor::Answer;
use ent_wire::{Configure, Datatype, Execute, Signature, Tensor, TensorSpec};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// An executor that computes nothing.
pub(crate) struct Modelled {
    signature: Option<Signature>,
    times: Vec<Duration>,
    energies_j: Vec<f64>,
}

impl Modelled {
    /// An executor without batch sizes yet.
    pub(crate) fn new(signature: Option<Signature>) -> Self {
        // Sleeping is rounded up by the thread's timer slack, 50 µs unless asked otherwise: as long as
        // the batches of small networks differ by.
        let _ignored = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        Self { signature, times: Vec::new(), energies_j: Vec::new() }
    }

    pub(crate) fn configure(&mut self, configure: Configure) {
        let milliseconds = configure.batch_times_ms.iter();
        self.times =
            milliseconds.map(|ms| Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default()).collect();
        self.energies_j = configure.batch_energy_j;
    }

    pub(crate) fn signature(&self) -> Option<&Signature> {
        self.signature.as_ref()
    }

    pub(crate) fn run(&self, batch: &Execute<'_>) -> Result<Answer, String> {
        let started = Instant::now();
        let index = (batch.rows as usize).saturating_sub(1);
        let Some(time) = self.times.get(index) else {
            return Err(format!("a batch of {} is larger than planned: {}", batch.rows, self.times.len()));
        };
        let answer = self.zeros(batch.rows, self.energies_j.get(index).copied());
        std::thread::sleep(time.saturating_sub(started.elapsed()));
        Ok(answer)
    }

    fn zeros(&self, rows: u32, energy_j: Option<f64>) -> Answer {
        let one = TensorSpec { name: "output".to_owned(), datatype: Datatype::Fp32, shape: vec![-1, 1] };
        let outputs = self.signature.as_ref().map_or(std::slice::from_ref(&one), |s| s.outputs.as_slice());
        let mut tensors = Vec::with_capacity(outputs.len());
        let mut bytes = Vec::with_capacity(outputs.len());
        for output in outputs {
            let others = output.shape.iter().skip(1).map(|n| (*n).max(1));
            let shape: Vec<i64> = std::iter::once(i64::from(rows)).chain(others).collect();
            let elements: i64 = shape.iter().product();
            // An element of BYTES is its length, four bytes, and then nothing.
            let size = output.datatype.size().unwrap_or(4);
            let zeros = vec![0; usize::try_from(elements).unwrap_or(0) * size];
            tensors.push(Tensor {
                name: Cow::Owned(output.name.clone()),
                datatype: output.datatype,
                shape: Cow::Owned(shape),
                bytes: zeros.len() as u64,
            });
            bytes.push(zeros);
        }
        Answer { tensors, bytes, energy_j }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(rows: u32) -> Execute<'static> {
        Execute { batch: 7, rows, inputs: Vec::new() }
    }

    #[test]
    fn a_batch_gives_one_row_a_request_and_the_energy_of_its_size() {
        let mut modelled = Modelled::new(None);
        modelled.configure(Configure {
            batch: 2,
            batch_times_ms: vec![0.1, 0.2],
            batch_energy_j: vec![3.0, 5.0],
        });
        let answer = modelled.run(&batch(2)).unwrap();
        assert_eq!(answer.tensors.len(), 1);
        assert_eq!(answer.tensors[0].shape.as_ref(), [2, 1]);
        assert_eq!((answer.bytes[0].len(), answer.energy_j), (8, Some(5.0)));
    }

    #[test]
    fn a_batch_that_was_not_planned_is_refused() {
        let mut modelled = Modelled::new(None);
        modelled.configure(Configure { batch: 1, batch_times_ms: vec![0.1], batch_energy_j: Vec::new() });
        assert!(modelled.run(&batch(2)).err().unwrap().contains("larger than planned"));
        assert!(modelled.run(&batch(0)).is_ok());
    }

    #[test]
    fn outputs_follow_the_signature() {
        let outputs = vec![
            TensorSpec { name: "scores".to_owned(), datatype: Datatype::Fp16, shape: vec![-1, 10] },
            TensorSpec { name: "label".to_owned(), datatype: Datatype::Bytes, shape: vec![-1, -1] },
        ];
        let mut modelled = Modelled::new(Some(Signature { inputs: Vec::new(), outputs }));
        modelled.configure(Configure { batch: 3, batch_times_ms: vec![0.0; 3], batch_energy_j: Vec::new() });
        let answer = modelled.run(&batch(3)).unwrap();
        assert_eq!(answer.tensors.iter().map(|t| t.bytes).collect::<Vec<_>>(), [60, 12]);
        assert_eq!(answer.energy_j, None);
    }
}
