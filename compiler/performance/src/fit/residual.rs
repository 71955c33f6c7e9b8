//! What the form leaves over, as two smooth random fields over batch, slices and clock.
//!
//! One is the same at every clock (how a batch fills the SMs in waves), one is not. Both in logarithms.

use nalgebra::{DMatrix, DVector};

/// Where a residual was seen, in the fields' own coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldPoint {
    pub(crate) log2_batch: f64,
    pub(crate) log2_slices: f64,
    pub(crate) ln_ghz: f64,
}

pub(crate) use ent_plan::performance::ResidualField as Field;

/// Covariance of the field at two points, noise left out.
pub(crate) fn covariance(field: &Field, a: &FieldPoint, b: &FieldPoint) -> f64 {
    let batch = (a.log2_batch - b.log2_batch).powi(2) / 2.0;
    let slices = (a.log2_slices - b.log2_slices).abs();
    let clock = (a.ln_ghz - b.ln_ghz).powi(2) / 2.0;
    let fixed =
        field.fixed_sd.powi(2) * (-batch / field.fixed_batch.powi(2) - slices / field.fixed_slices).exp();
    let moving = field.moving_sd.powi(2)
        * (-batch / field.moving_batch.powi(2)
            - slices / field.moving_slices
            - clock / field.moving_clock.powi(2))
        .exp();
    fixed + moving
}

/// Covariance between points, noise on the diagonal.
pub(crate) fn covariance_matrix(field: &Field, points: &[FieldPoint]) -> DMatrix<f64> {
    let n = points.len();
    let mut k = DMatrix::zeros(n, n);
    for i in 0..n {
        for j in 0..=i {
            let value = covariance(field, &points[i], &points[j]);
            k[(i, j)] = value;
            k[(j, i)] = value;
        }
        k[(i, i)] += field.noise_sd.powi(2);
    }
    k
}

/// Log likelihood of residuals, up to a constant; `None` when the matrix is not positive definite.
pub(crate) fn log_likelihood(field: &Field, points: &[FieldPoint], residuals: &DVector<f64>) -> Option<f64> {
    let factor = covariance_matrix(field, points).cholesky()?;
    let l = factor.l_dirty();
    let log_determinant: f64 = (0..points.len()).map(|i| l[(i, i)].ln()).sum::<f64>();
    let whitened = l.solve_lower_triangular(residuals)?;
    Some(-log_determinant - 0.5 * whitened.norm_squared())
}
