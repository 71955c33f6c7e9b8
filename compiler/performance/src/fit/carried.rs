//! A residual field on its support points → its value and its standard error anywhere, quickly.
//!
//! The covariance is a product over batch, slices and clock. A planner asks at a few batches and many sizes
//! and clocks, so the batch's factors are kept.

use super::residual::{Field, FieldPoint, covariance_matrix};
use nalgebra::{DMatrix, DVector};

/// A field and the weights that carry it.
#[derive(Clone, Debug)]
pub(crate) struct Carried {
    field: Field,
    support: Vec<FieldPoint>,
    weights: Vec<f64>,
    /// Lower factor of the support's covariance.
    factor: DMatrix<f64>,
    /// By batch asked about, by support point: factors of the fixed and the moving part.
    by_batch: Vec<Vec<(f64, f64)>>,
}

/// A size and clock: the factors of both parts, by support point.
pub(crate) struct Place(Vec<(f64, f64)>);

impl Carried {
    /// `None` when the support's covariance is not positive definite.
    pub(crate) fn new(
        field: Field,
        support: &[FieldPoint],
        weights: Vec<f64>,
        log2_batches: &[f64],
    ) -> Option<Self> {
        let of = |log2_batch: &f64| -> Vec<(f64, f64)> {
            support
                .iter()
                .map(|s| {
                    let batch = (log2_batch - s.log2_batch).powi(2) / 2.0;
                    ((-batch / field.fixed_batch.powi(2)).exp(), (-batch / field.moving_batch.powi(2)).exp())
                })
                .collect()
        };
        Some(Self {
            factor: covariance_matrix(&field, support).cholesky()?.unpack(),
            by_batch: log2_batches.iter().map(of).collect(),
            support: support.to_vec(),
            weights,
            field,
        })
    }

    /// Turns to a size and clock.
    pub(crate) fn place(&self, log2_slices: f64, ln_ghz: f64) -> Place {
        let f = &self.field;
        let factors = self.support.iter().map(|s| {
            let slices = (log2_slices - s.log2_slices).abs();
            let clock = (ln_ghz - s.ln_ghz).powi(2) / 2.0;
            let fixed = f.fixed_sd.powi(2) * (-slices / f.fixed_slices).exp();
            let moving =
                f.moving_sd.powi(2) * (-slices / f.moving_slices - clock / f.moving_clock.powi(2)).exp();
            (fixed, moving)
        });
        Place(factors.collect())
    }

    /// The field's value at a place and a batch (index into those given to [`Carried::new`]).
    pub(crate) fn value(&self, place: &Place, batch: usize) -> f64 {
        self.covariances(place, batch).zip(&self.weights).map(|(k, w)| k * w).sum()
    }

    /// The standard error that the support leaves there.
    pub(crate) fn error(&self, place: &Place, batch: usize) -> f64 {
        let k = DVector::from_iterator(self.support.len(), self.covariances(place, batch));
        let explained = self.factor.solve_lower_triangular(&k).map_or(0.0, |w| w.norm_squared());
        let own = self.field.fixed_sd.powi(2) + self.field.moving_sd.powi(2);
        (own - explained).max(0.0).sqrt()
    }

    fn covariances<'a>(&'a self, place: &'a Place, batch: usize) -> impl Iterator<Item = f64> + 'a {
        let factors = self.by_batch.get(batch).into_iter().flatten();
        factors.zip(&place.0).map(|((a, b), (fixed, moving))| a * fixed + b * moving)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::residual::covariance;

    #[test]
    fn factors_multiply_to_the_covariance() {
        let field = Field {
            fixed_sd: 0.03,
            fixed_batch: 0.7,
            fixed_slices: 2.0,
            moving_sd: 0.06,
            moving_batch: 1.1,
            moving_slices: 3.0,
            moving_clock: 0.5,
            noise_sd: 0.01,
        };
        let at = |log2_batch, log2_slices, ln_ghz| FieldPoint { log2_batch, log2_slices, ln_ghz };
        let support = [at(0.0, 1.0, 0.1), at(3.0, 0.0, -0.4), at(5.0, 2.8, 0.3)];
        let weights = vec![0.5, -0.2, 0.1];
        let carried = Carried::new(field, &support, weights.clone(), &[1.0, 4.0]).unwrap();
        let place = carried.place(1.58, -0.1);
        for (i, log2_batch) in [1.0, 4.0].into_iter().enumerate() {
            let here = at(log2_batch, 1.58, -0.1);
            let plain: f64 =
                support.iter().zip(&weights).map(|(s, w)| w * covariance(&field, &here, s)).sum();
            assert!((carried.value(&place, i) - plain).abs() < 1e-15);
            assert!(carried.error(&place, i) > 0.0 && carried.error(&place, i) < 0.0671);
        }
    }
}
