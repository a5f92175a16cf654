// Normal regression with record weights.                       [S22, app. B, with one component]
//
//   y_i ~ N(offset_i + X_i beta, sigma^2),   sigma ~ half-t_3(0, 1) above min_sd
//   beta ~ MVN(0, diag(sigma_beta) L L' diag(sigma_beta)),  L ~ LKJ-Cholesky(1),
//   sigma_beta ~ half-t_3(0, 1);   with normal_prior = 1:  beta_j ~ N(0, prior_scale_j^2)
//
// Weights, cap, frequency, log_lik and L_beta as in negative_binomial.stan; y on the transformed
// scale. Without a cap the likelihood is read from sums over the rows.
functions {
#include functions/pseudo_log_lik.stan
#include functions/coefficients.stan
}
data {
  int<lower=1> n;                              // rows
  int<lower=1> K;                              // columns of the design
  vector[n] y;
  vector<lower=0>[n] frequency;
  vector<lower=0, upper=1>[n] weights;
  matrix[n, K] X;
  vector[n] offsets;                           // added to X beta; 0 without offset()
  real<lower=0> min_sd;                        // 0: the prior of S22
  int<lower=0, upper=1> normal_prior;
  vector<lower=0>[K] prior_scale;              // read only if normal_prior = 1
#include blocks/coefficients_data.stan
  vector[K] near;                              // sums are taken about it, to lose no digits
  real center_sigma;                           // of log(sigma - min_sd)
  real<lower=0> spread_sigma;
  // Censoring, see functions/pseudo_log_lik.stan; read only if use_cap = 1.
  int<lower=0, upper=1> use_cap;
  real<lower=0> cap_below;
  real<lower=0> cap_above;
  vector[n] reference;                         // f_i at a frozen theta; 0 without a center
  int<lower=0> n_units;                        // 0: every row on its own
  array[n] int<lower=0> unit;                  // unit of each row, 1 to n_units
  int<lower=0> n_frozen;                       // the last rows, of a frozen reference
  real<lower=0> farthest;                      // where its region ends, nats
  real<lower=0> steep;                         // how fast the density falls beyond
  int<lower=0, upper=1> emit_log_lik;
}
transformed data {
  real freedom = K + 1;                        // K - 1 + 2 eta, eta = 1
  vector[n] weight = frequency .* weights;
  vector[n] residual = y - offsets - X * near;
  real sum_weight = sum(weight);
  real sum_squares = dot_product(weight, square(residual));
  row_vector[K] residual_X = (weight .* residual)' * X;
  matrix[K, K] X_X = crossprod(diag_pre_multiply(sqrt(weight), X));
}
parameters {
  vector[K] z;
  vector[normal_prior == 1 ? 0 : K] log_scale;
  vector[normal_prior == 1 ? 0 : 1] z_radius;
  real z_sigma;
}
transformed parameters {
  real sigma = min_sd + exp(center_sigma + spread_sigma * z_sigma);
#include blocks/coefficients.stan
}
model {
  target += log_prior;
  target += spread_sigma * z_sigma;            // Jacobian of z_sigma -> sigma, up to a constant
  sigma ~ student_t(3, 0, 1);
  if (use_cap == 1) {
    vector[n] f = -log(sigma) - 0.5 * log(2 * pi()) - 0.5 * square((y - offsets - X * beta) / sigma);
    target += pseudo_log_lik(f, frequency, weights, reference, unit, n_units, n_frozen,
                             farthest, steep, use_cap, cap_below, cap_above);
  } else {
    vector[K] shift = beta - near;
    real squares = sum_squares - 2 * residual_X * shift + dot_product(shift, X_X * shift);
    target += -sum_weight * (log(sigma) + 0.5 * log(2 * pi())) - 0.5 * squares / square(sigma);
  }
}
generated quantities {
  matrix[emit_log_lik == 1 && normal_prior == 0 ? K : 0, K] L_beta;
  vector[emit_log_lik == 1 ? n : 0] log_lik;
  if (emit_log_lik == 1 && normal_prior == 0) {
    L_beta = correlation_factor_rng(beta ./ sigma_beta,
                                    z_radius[1] / sqrt(2 * freedom), freedom);
  }
  if (emit_log_lik == 1) {
    for (i in 1:n) {
      log_lik[i] = normal_lpdf(y[i] | offsets[i] + X[i] * beta, sigma);
    }
  }
}
