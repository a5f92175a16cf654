// Negative binomial regression with record weights, log link.
//                                                   [V25, supplement 2 of the earlier version]
//
//   y_i ~ NB(mean mu_i, variance mu_i + mu_i^2 / phi),   log mu_i = offset_i + X_i beta
//   1/phi ~ half-Cauchy(0, 5)
//   beta ~ MVN(0, diag(sigma_beta) L L' diag(sigma_beta)),  L ~ LKJ-Cholesky(6),
//   sigma_beta ~ half-t_3(0, 1);   with normal_prior = 1:  beta_j ~ N(0, prior_scale_j^2)
//
// Pseudo posterior [S22, eq. 3]: the log-likelihood f_i of a record enters as weights_i * f_i;
// with use_cap = 1 it is clipped [C25, sec. 3]. A row may stand for frequency_i equal records.
// log_lik is UNWEIGHTED, per row; it, mu and L_beta, which nothing reads, are written if
// emit_log_lik = 1.
functions {
#include functions/pseudo_log_lik.stan
#include functions/coefficients.stan
#include functions/counts.stan
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
  real center_rphi;                            // of log(1/phi)
  real<lower=0> spread_rphi;
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
  vector[n] weighted_count = weight .* count;
  array[n] int place = places_of(y);
  int n_levels = max(place);
  matrix[n_levels, 2] levels = levels_with_weight(y, place, weight);
  // Without a cap, all that the likelihood reads of the counts but for one sum over the rows.
  row_vector[K] count_X = weighted_count' * X;
  real count_offset = dot_product(weighted_count, offsets);
  real sum_log_factorial = dot_product(weight, log_factorial);
}
parameters {
  vector[K] z;
  vector[normal_prior == 1 ? 0 : K] log_scale;
  vector[normal_prior == 1 ? 0 : 1] z_radius;
  real z_rphi;
}
transformed parameters {
  // Above 0 by construction; the published program leaves it unbounded.
  real reciprocal_phi = exp(center_rphi + spread_rphi * z_rphi);
  real phi = inv(reciprocal_phi);
#include blocks/coefficients.stan
}
model {
  target += log_prior;
  target += spread_rphi * z_rphi;              // Jacobian of z_rphi -> 1/phi, up to a constant
  reciprocal_phi ~ cauchy(0, 5);
  {
    // The log density written out over vectors: the same value as neg_binomial_2_log_lpmf, far
    // cheaper.
    vector[n] eta = offsets + X * beta;
    vector[n] softplus = log1p_exp(eta - log(phi));
    vector[n_levels] ratio = gamma_ratio(col(levels, 1), phi);
    if (use_cap == 1) {
      vector[n] f = ratio[place] - log_factorial + count .* eta - (count + phi) .* softplus;
      target += pseudo_log_lik(f, frequency, weights, reference, unit, n_units, n_frozen,
                               farthest, steep, use_cap, cap_below, cap_above);
    } else {
      target += dot_product(col(levels, 2), ratio) - sum_log_factorial + count_X * beta + count_offset
                - dot_product(weighted_count + phi * weight, softplus);
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
      log_lik[i] = neg_binomial_2_log_lpmf(y[i] | offsets[i] + X[i] * beta, phi);
    }
  }
}
