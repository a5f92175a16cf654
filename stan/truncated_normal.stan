// Normal regression within bounds, with record weights.
//
//   y_i ~ N(offset_i + X_i beta, sigma^2) given lower <= y_i <= upper,
//   sigma ~ half-t_3(0, 1) above min_sd
//   beta as in normal_regression.stan
//
// Weights, cap, frequency, log_lik and L_beta as in negative_binomial.stan; y and the bounds on the
// transformed scale.
functions {
#include functions/pseudo_log_lik.stan
#include functions/coefficients.stan
#include functions/truncation.stan
  // log probability of the interval, by row.
  vector normal_log_mass(vector mu, real sigma, int has_lower, real lower_end, int has_upper,
                         real upper_end) {
    vector[rows(mu)] mass;
    for (i in 1:rows(mu)) {
      if (has_lower == 0) {
        mass[i] = normal_lcdf(upper_end | mu[i], sigma);
      } else if (has_upper == 0) {
        mass[i] = normal_lccdf(lower_end | mu[i], sigma);
      } else {
        mass[i] = log_mass(normal_lcdf(lower_end | mu[i], sigma),
                           normal_lcdf(upper_end | mu[i], sigma),
                           normal_lccdf(lower_end | mu[i], sigma),
                           normal_lccdf(upper_end | mu[i], sigma));
      }
    }
    return mass;
  }
}
data {
  int<lower=1> n;                              // rows
  int<lower=1> K;                              // columns of the design
  vector[n] y;
  vector<lower=0>[n] frequency;
  vector<lower=0, upper=1>[n] weights;
  matrix[n, K] X;
  vector[n] offsets;                           // added to X beta; 0 without offset()
  int<lower=0, upper=1> has_lower;
  real lower_end;                              // read only if has_lower = 1
  int<lower=0, upper=1> has_upper;
  real upper_end;                              // read only if has_upper = 1
  real<lower=0> min_sd;
  int<lower=0, upper=1> normal_prior;
  vector<lower=0>[K] prior_scale;              // read only if normal_prior = 1
#include blocks/coefficients_data.stan
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
  {
    vector[n] mu = offsets + X * beta;
    vector[n] f = -log(sigma) - 0.5 * log(2 * pi()) - 0.5 * square((y - mu) / sigma)
                  - normal_log_mass(mu, sigma, has_lower, lower_end, has_upper, upper_end);
    target += pseudo_log_lik(f, frequency, weights, reference, unit, n_units, n_frozen,
                             farthest, steep, use_cap, cap_below, cap_above);
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
    vector[n] mu = offsets + X * beta;
    vector[n] mass = normal_log_mass(mu, sigma, has_lower, lower_end, has_upper, upper_end);
    for (i in 1:n) {
      log_lik[i] = normal_lpdf(y[i] | mu[i], sigma) - mass[i];
    }
  }
}
