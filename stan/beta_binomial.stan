// Beta-binomial regression with record weights, logit link, for counts from least to least + n_trials.
//
//   y_i - least ~ BetaBinomial(n_trials, lambda mu_i, lambda (1 - mu_i)),
//   logit mu_i = offset_i + X_i beta
//   lambda ~ Pareto(0.1, 1.5)
//   beta ~ MVN(0, diag(sigma_beta) L L' diag(sigma_beta)),  L ~ LKJ-Cholesky(6),
//   sigma_beta ~ half-t_3(0, 1);   with normal_prior = 1:  beta_j ~ N(0, prior_scale_j^2)
//                                                           [prior of V25, supplement 2]
//
// Weights, cap, frequency, log_lik and L_beta as in negative_binomial.stan.
functions {
#include functions/pseudo_log_lik.stan
#include functions/coefficients.stan
#include functions/designs.stan
  // log Gamma(a + k) - log Gamma(a). Both are about a log a, whose rounding errors would swamp the
  // difference where lambda is huge: there Stirling's series is subtracted term by term.
  vector log_rising(vector a, vector k) {
    vector[rows(a)] found;
    if (max(a) < 1e5) {
      return lgamma(a + k) - lgamma(a);
    }
    for (i in 1:rows(a)) {
      if (a[i] < 1e5) {
        found[i] = lgamma(a[i] + k[i]) - lgamma(a[i]);
      } else {
        found[i] = (a[i] - 0.5) * log1p(k[i] / a[i]) - k[i] + k[i] * log(a[i] + k[i])
                   - k[i] / (12 * a[i] * (a[i] + k[i]));
      }
    }
    return found;
  }
}
data {
  int<lower=1> n;                              // rows
  int<lower=1> K;                              // columns of the design
  int<lower=0> least;
  int<lower=1> n_trials;
  array[n] int<lower=least, upper=least + n_trials> y;
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
  vector[n] weight = frequency .* weights;
  vector[n] above = to_vector(y) - least;      // successes, and failures
  vector[n] below = n_trials - above;
  vector[n] log_choose = lgamma(n_trials + 1) - lgamma(above + 1) - lgamma(below + 1);
  // log Gamma(a + k) - log Gamma(a) is the sum of log(a + j), j < k. Without a cap, and with few
  // trials, all rows of equal predictors share these logarithms: each has the weight of those with
  // more successes than j, or more failures.
  array[n] int place = places_of_rows(append_col(offsets, X));
  int shared = use_cap == 0 && max(place) <= 5.0 * n / n_trials;
  int n_places = shared ? max(place) : n;
  vector[n_places] place_offsets = offsets[1:n_places];
  matrix[n_places, K] place_X = X[1:n_places];
  matrix[shared ? n_places : 0, n_trials] above_weight = rep_matrix(0, shared ? n_places : 0, n_trials);
  matrix[shared ? n_places : 0, n_trials] below_weight = above_weight;
  if (shared) {
    for (i in 1:n) {
      int k = y[i] - least;
      place_offsets[place[i]] = offsets[i];
      place_X[place[i]] = X[i];
      for (j in 1:n_trials) {
        above_weight[place[i], j] += weight[i] * (j <= k);
        below_weight[place[i], j] += weight[i] * (j <= n_trials - k);
      }
    }
  }
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
    // The log density written out over vectors: the same value as beta_binomial_lpmf.
    vector[n_places] beta1 = lambda * inv_logit(place_offsets + place_X * beta);
    vector[n_places] beta2 = lambda - beta1;
    if (shared) {
      target += dot_product(weight, log_choose)
                - sum(weight) * log_rising([lambda]', [n_trials]')[1];
      for (j in 1:n_trials) {
        target += dot_product(col(above_weight, j), log(beta1 + (j - 1)))
                  + dot_product(col(below_weight, j), log(beta2 + (j - 1)));
      }
    } else {
      vector[n] f = log_choose + log_rising(beta1, above) + log_rising(beta2, below)
                    - log_rising([lambda]', [n_trials]')[1];
      target += pseudo_log_lik(f, frequency, weights, reference, unit, n_units, n_frozen,
                               farthest, steep, use_cap, cap_below, cap_above);
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
      log_lik[i] = beta_binomial_lpmf(y[i] - least | n_trials, lambda * mu_record[i],
                                      lambda * (1 - mu_record[i]));
    }
  }
}
