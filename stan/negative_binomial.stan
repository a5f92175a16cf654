// Negative binomial regression with record weights, log link.            [V25, supplement 2]
//
//   y_i ~ NB(mean mu_i, variance mu_i + mu_i^2 / phi),   log mu_i = X_i beta
//   1/phi ~ half-Cauchy(0, 5)
//   beta ~ MVN(0, diag(sigma_beta) L L' diag(sigma_beta)),  L ~ LKJ-Cholesky(6),
//   sigma_beta ~ half-t_3(0, 1)
//
// Pseudo posterior [S22, eq. 3]: the log-likelihood f_i of a record enters as weights_i * f_i;
// with use_cap = 1 it is clipped [C25, sec. 3]. A row may stand for
// frequency_i equal records. log_lik is UNWEIGHTED, per row, and written if emit_log_lik = 1.
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
  real center_rphi;                            // of log(1/phi)
  real<lower=0> spread_rphi;
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
  real z_rphi;
}
transformed parameters {
  // Above 0 by construction; the published program leaves it unbounded.
  real reciprocal_phi = exp(center_rphi + spread_rphi * z_rphi);
  real phi = inv(reciprocal_phi);
  vector[K] shrink;
  vector[K] beta;
  for (k in 1:K) {
    shrink[k] = sigma_beta[k] / hypot(sigma_beta[k], sqrt(dot_self(factor[k])));
  }
  beta = square(shrink) .* center + shrink .* (factor * z);
}
model {
  vector[n] eta = X * beta;
  target += spread_rphi * z_rphi;              // Jacobian of z_rphi -> 1/phi, up to a constant
  reciprocal_phi ~ cauchy(0, 5);
  L_beta ~ lkj_corr_cholesky(6);
  sigma_beta ~ student_t(3, 0, 1);
  target += sum(log(shrink));                  // Jacobian of z -> beta, up to a constant
  beta ~ multi_normal_cholesky(rep_vector(0, K), diag_pre_multiply(sigma_beta, L_beta));
  {
    // The log density written out over vectors: the same value as neg_binomial_2_log_lpmf, far
    // cheaper. For large phi the difference of log gammas is Stirling's, which loses no digits.
    vector[n] log_odds = eta - log(phi);
    vector[n] f;
    if (phi < 1e4) {
      f = lgamma(count + phi) - lgamma(phi);
    } else {
      f = (phi - 0.5) * log1p(count / phi) + count .* log(count + phi) - count
          + (inv(count + phi) - inv(phi)) / 12;
    }
    f = f - log_factorial - count .* log1p_exp(-log_odds) - phi * log1p_exp(log_odds);
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
      log_lik[i] = neg_binomial_2_log_lpmf(y[i] | X[i] * beta, phi);
    }
  }
}
