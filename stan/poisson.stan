// Poisson regression with record weights, log link.                          [S22, sec. 4.4]
//
//   y_i ~ Poisson(mu_i),   log mu_i = offset_i + X_i beta
//   beta ~ MVN(0, diag(sigma_beta) L L' diag(sigma_beta)),  L ~ LKJ-Cholesky(6),
//   sigma_beta ~ half-t_3(0, 1);   with normal_prior = 1:  beta_j ~ N(0, prior_scale_j^2)
//                                                     [prior of V25, supplement 2, earlier version]
//
// Weights, cap, frequency, log_lik and L_beta as in negative_binomial.stan.
functions {
#include functions/pseudo_log_lik.stan
#include functions/coefficients.stan
}
data {
  int<lower=1> n;                              // rows
  int<lower=1> K;                              // columns of the design
  array[n] int<lower=0> y;
  vector<lower=0>[n] frequency;
  vector<lower=0, upper=1>[n] weights;
  matrix[n, K] X;
  vector[n] offsets;                           // added to X beta; 0 without offset()
  int<lower=0, upper=1> normal_prior;
  vector<lower=0>[K] prior_scale;              // read only if normal_prior = 1
#include blocks/coefficients_data.stan
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
  vector[n] count = to_vector(y);
  vector[n] log_factorial = lgamma(count + 1);
  vector[n] weight = frequency .* weights;
  row_vector[K] count_X = (weight .* count)' * X;
  real count_offset = dot_product(weight .* count, offsets);
  real sum_log_factorial = dot_product(weight, log_factorial);
}
parameters {
  vector[K] z;
  vector[normal_prior == 1 ? 0 : K] log_scale;
  vector[normal_prior == 1 ? 0 : 1] z_radius;
}
transformed parameters {
#include blocks/coefficients.stan
}
model {
  target += log_prior;
  {
    // The log density written out over vectors: the same value as poisson_log_lpmf, far cheaper.
    vector[n] eta = offsets + X * beta;
    if (use_cap == 1) {
      vector[n] f = count .* eta - exp(eta) - log_factorial;
      target += pseudo_log_lik(f, frequency, weights, reference, unit, n_units, n_frozen,
                               farthest, steep, use_cap, cap_below, cap_above);
    } else {
      target += count_X * beta + count_offset - dot_product(weight, exp(eta))
                - sum_log_factorial;
    }
  }
}
generated quantities {
  matrix[emit_log_lik == 1 && normal_prior == 0 ? K : 0, K] L_beta;
  vector[emit_log_lik == 1 ? n : 0] mu;
  vector[emit_log_lik == 1 ? n : 0] log_lik;
  if (emit_log_lik == 1 && normal_prior == 0) {
    L_beta = correlation_factor_rng(beta ./ sigma_beta,
                                    z_radius[1] / sqrt(2 * freedom), freedom);
  }
  if (emit_log_lik == 1) {
    mu = exp(offsets + X * beta);
    for (i in 1:n) {
      log_lik[i] = poisson_log_lpmf(y[i] | offsets[i] + X[i] * beta);
    }
  }
}
