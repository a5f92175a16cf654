// Beta regression with record weights, logit link, for outcomes in (0, 1).    [C25, sec. 5]
//
//   y_i ~ Beta(lambda mu_i, lambda (1 - mu_i)),   logit mu_i = offset_i + X_i beta
//   lambda ~ Pareto(0.1, 1.5)
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
  vector<lower=0, upper=1>[n] y;
  vector<lower=0>[n] frequency;
  vector<lower=0, upper=1>[n] weights;
  matrix[n, K] X;
  vector[n] offsets;                           // added to X beta; 0 without offset()
  int<lower=0, upper=1> normal_prior;
  vector<lower=0>[K] prior_scale;              // read only if normal_prior = 1
#include blocks/coefficients_data.stan
  real center_lambda;                          // of log(lambda - 0.1)
  real<lower=0> spread_lambda;
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
  vector[n] log1m_y = log1m(y);
  vector[n] logit_y = log(y) - log1m_y;
  vector[n] weight = frequency .* weights;
  vector[n] weighted_logit = weight .* logit_y;
  real sum_weight = sum(weight);
  real sum_log_y = dot_product(weight, log(y));
  real sum_log1m = dot_product(weight, log1m_y);
}
parameters {
  vector[K] z;
  vector[normal_prior == 1 ? 0 : K] log_scale;
  vector[normal_prior == 1 ? 0 : 1] z_radius;
  real z_lambda;
}
transformed parameters {
  real lambda = 0.1 + exp(center_lambda + spread_lambda * z_lambda);
#include blocks/coefficients.stan
}
model {
  target += log_prior;
  target += spread_lambda * z_lambda;          // Jacobian of z_lambda -> lambda, up to a constant
  lambda ~ pareto(0.1, 1.5);
  {
    // The beta log density written out over vectors: the same value as beta_lpdf, far cheaper.
    vector[n] mu = inv_logit(offsets + X * beta);
    vector[n] beta1 = lambda * mu;
    vector[n] log_gammas = lgamma(beta1) + lgamma(lambda - beta1);
    if (use_cap == 1) {
      vector[n] f = (beta1 - 1) .* logit_y + (lambda - 2) * log1m_y + lgamma(lambda) - log_gammas;
      target += pseudo_log_lik(f, frequency, weights, reference, unit, n_units, n_frozen,
                               farthest, steep, use_cap, cap_below, cap_above);
    } else {
      target += dot_product(weighted_logit, beta1) + lambda * sum_log1m - sum_log_y - sum_log1m
                + sum_weight * lgamma(lambda) - dot_product(weight, log_gammas);
    }
  }
}
generated quantities {
  matrix[emit_log_lik == 1 && normal_prior == 0 ? K : 0, K] L_beta;
  vector[emit_log_lik == 1 ? n : 0] mu_record;
  vector[emit_log_lik == 1 ? n : 0] log_lik;
  if (emit_log_lik == 1 && normal_prior == 0) {
    L_beta = correlation_factor_rng(beta ./ sigma_beta,
                                    z_radius[1] / sqrt(2 * freedom), freedom);
  }
  if (emit_log_lik == 1) {
    mu_record = inv_logit(offsets + X * beta);
    for (i in 1:n) {
      log_lik[i] = beta_lpdf(y[i] | lambda * mu_record[i], lambda * (1 - mu_record[i]));
    }
  }
}
