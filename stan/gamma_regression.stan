// Gamma regression of positive outcomes with record weights, log link.
//
//   y_i ~ Gamma(shape, rate shape / mu_i),   log mu_i = offset_i + X_i beta
//   shape ~ exponential(1)                                         [rstanarm's default for Gamma]
//   with normal_prior = 1:  beta_j ~ N(0, prior_scale_j^2);   with normal_prior = 0:
//   beta ~ MVN(0, diag(sigma_beta) L L' diag(sigma_beta)),  L ~ LKJ-Cholesky(6),
//   sigma_beta ~ half-t_3(0, 1)                       [prior of V25, supplement 2, earlier version]
//
// Weights, cap, frequency, log_lik and L_beta as in negative_binomial.stan.
functions {
#include functions/pseudo_log_lik.stan
#include functions/coefficients.stan
}
data {
  int<lower=1> n;                              // rows
  int<lower=1> K;                              // columns of the design
  vector<lower=0>[n] y;
  vector<lower=0>[n] frequency;
  vector<lower=0, upper=1>[n] weights;
  matrix[n, K] X;
  vector[n] offsets;                           // added to X beta; 0 without offset()
  int<lower=0, upper=1> normal_prior;
  vector<lower=0>[K] prior_scale;              // read only if normal_prior = 1
#include blocks/coefficients_data.stan
  real center_shape;                           // of log(shape)
  real<lower=0> spread_shape;
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
  real freedom = K + 11;                       // K - 1 + 2 eta, eta = 6
  vector[n] log_y = log(y);
  vector[n] weight = frequency .* weights;
  vector[n] weighted_y = weight .* y;
  row_vector[K] weight_X = weight' * X;
  real weight_offset = dot_product(weight, offsets);
  real sum_weight = sum(weight);
  real sum_log_y = dot_product(weight, log_y);
}
parameters {
  vector[K] z;
  vector[normal_prior == 1 ? 0 : K] log_scale;
  vector[normal_prior == 1 ? 0 : 1] z_radius;
  real z_shape;
}
transformed parameters {
  real shape = exp(center_shape + spread_shape * z_shape);
#include blocks/coefficients.stan
}
model {
  target += log_prior;
  target += spread_shape * z_shape;            // Jacobian of z_shape -> shape, up to a constant
  shape ~ exponential(1);
  {
    // The gamma log density written out over vectors: the same value as gamma_lpdf, far cheaper.
    vector[n] eta = offsets + X * beta;
    real constant = shape * log(shape) - lgamma(shape);
    if (use_cap == 1) {
      vector[n] f = constant + (shape - 1) * log_y - shape * (eta + y .* exp(-eta));
      target += pseudo_log_lik(f, frequency, weights, reference, unit, n_units, n_frozen,
                               farthest, steep, use_cap, cap_below, cap_above);
    } else {
      target += sum_weight * constant + (shape - 1) * sum_log_y
                - shape * (weight_X * beta + weight_offset + dot_product(weighted_y, exp(-eta)));
    }
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
    vector[n] eta = offsets + X * beta;
    for (i in 1:n) {
      log_lik[i] = gamma_lpdf(y[i] | shape, shape * exp(-eta[i]));
    }
  }
}
