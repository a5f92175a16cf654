// Poisson regression with record weights, log link.                          [S22, sec. 4.4]
//
//   y_i ~ Poisson(mu_i),   log mu_i = X_i beta
//   beta ~ MVN(0, diag(sigma_beta) L L' diag(sigma_beta)),  L ~ LKJ-Cholesky(6),
//   sigma_beta ~ half-t_3(0, 1)                           [prior of V25, supplement 2]
//
// Weights, cap, frequency and log_lik as in negative_binomial.stan.
functions {
#include functions/pseudo_log_lik.stan
}
data {
  int<lower=1> n;                              // rows
  int<lower=1> K;                              // columns of the design
  array[n] int<lower=0> y;
  vector<lower=0>[n] frequency;
  vector<lower=0, upper=1>[n] weights;
  matrix[n, K] X;
  // Where the sampler looks first: a rough fit. Any values give the same posterior.
  vector[K] center;                            // of beta
  matrix[K, K] factor;                         // lower Cholesky factor of its covariance
  // Censoring, see functions/pseudo_log_lik.stan; read only if use_cap = 1.
  int<lower=0, upper=1> use_cap;
  real<lower=0> cap_below;
  real<lower=0> cap_above;
  vector[n] reference;                         // f_i at a frozen theta; 0 without a center
  int<lower=0> n_units;                        // 0: every row on its own
  array[n] int<lower=0> unit;                  // unit of each row, 1 to n_units
  int<lower=0, upper=1> emit_log_lik;
}
transformed data {
  vector[n] count = to_vector(y);
  vector[n] log_factorial = lgamma(count + 1);
}
parameters {
  vector[K] z;
  vector<lower=0>[K] sigma_beta;
  cholesky_factor_corr[K] L_beta;
}
transformed parameters {
  vector[K] shrink;
  vector[K] beta;
  for (k in 1:K) {
    shrink[k] = sigma_beta[k] / hypot(sigma_beta[k], sqrt(dot_self(factor[k])));
  }
  beta = square(shrink) .* center + shrink .* (factor * z);
}
model {
  vector[n] eta = X * beta;
  L_beta ~ lkj_corr_cholesky(6);
  sigma_beta ~ student_t(3, 0, 1);
  target += sum(log(shrink));                  // Jacobian of z -> beta, up to a constant
  beta ~ multi_normal_cholesky(rep_vector(0, K), diag_pre_multiply(sigma_beta, L_beta));
  {
    // The log density written out over vectors: the same value as poisson_log_lpmf, far cheaper.
    vector[n] f = count .* eta - exp(eta) - log_factorial;
    target += pseudo_log_lik(f, frequency, weights, reference, unit, n_units,
                             use_cap, cap_below, cap_above);
  }
}
generated quantities {
  vector[emit_log_lik == 1 ? n : 0] mu;
  vector[emit_log_lik == 1 ? n : 0] log_lik;
  if (emit_log_lik == 1) {
    mu = exp(X * beta);
    for (i in 1:n) {
      log_lik[i] = poisson_log_lpmf(y[i] | X[i] * beta);
    }
  }
}
