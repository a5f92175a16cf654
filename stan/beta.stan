// Beta distribution with record weights, for outcomes in (0, 1).          [C25, supplement 2]
//
//   y_i ~ Beta(beta1, beta2),   beta1 = lambda phi,  beta2 = lambda (1 - phi)
//   phi ~ Beta(1, 1),   lambda ~ Pareto(0.1, 1.5)
//
// Pseudo posterior [S22, eq. 3] and cap [C25, sec. 3] as in negative_binomial.stan. Without a cap
// the likelihood is read from three sums over the records (total_weight, sum_log, sum_log1m), so
// that rows are needed only for a cap or for log_lik: n may be 0 otherwise.
functions {
#include functions/pseudo_log_lik.stan
}
data {
  int<lower=0> n;                              // rows
  vector<lower=0, upper=1>[n] y;
  vector<lower=0>[n] frequency;
  vector<lower=0, upper=1>[n] weights;
  real<lower=0> total_weight;                  // sum of frequency * weights
  real sum_log;                                // sum of frequency * weights * log(y)
  real sum_log1m;                              // sum of frequency * weights * log(1 - y)
  // Location and scale of the reparametrization; the posterior does not depend on them.
  vector[2] center;                            // of logit(phi), log(lambda - 0.1)
  matrix[2, 2] factor;                         // lower Cholesky factor of their covariance
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
  vector[n] log_y = log(y);
  vector[n] log1m_y = log1m(y);
}
parameters {
  vector[2] z;
}
transformed parameters {
  vector[2] u = center + factor * z;
  real phi = inv_logit(u[1]);
  real lambda = 0.1 + exp(u[2]);
  real beta1 = lambda * phi;
  real beta2 = lambda * (1 - phi);
}
model {
  // Jacobian of z -> phi, lambda, up to a constant; log(phi) + log1m(phi) without overflow.
  target += u[2] - log1p_exp(u[1]) - log1p_exp(-u[1]);
  phi ~ beta(1, 1);
  lambda ~ pareto(0.1, 1.5);
  if (use_cap == 1) {
    vector[n] f = (beta1 - 1) * log_y + (beta2 - 1) * log1m_y - lbeta(beta1, beta2);
    target += pseudo_log_lik(f, frequency, weights, reference, unit, n_units, n_frozen,
                             farthest, steep, use_cap, cap_below, cap_above);
  } else {
    target += (beta1 - 1) * sum_log + (beta2 - 1) * sum_log1m - total_weight * lbeta(beta1, beta2);
  }
}
generated quantities {
  vector[emit_log_lik == 1 ? n : 0] log_lik;
  if (emit_log_lik == 1) {
    for (i in 1:n) {
      log_lik[i] = beta_lpdf(y[i] | beta1, beta2);
    }
  }
}
