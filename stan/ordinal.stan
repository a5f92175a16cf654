// Cumulative logistic regression with record weights, for levels in an order.
//
//   P(y_i > k) = 1 / (1 + exp(threshold_k - X_i[2:K] beta[2:K])),  k = 1, ..., C - 1
//   beta_j ~ N(0, prior_scale_j^2), j > 1
//   threshold ~ independent N(0, prior_scale_1^2), given that they increase
//
// The first column of X is 1, and beta_1 = -threshold_1: log odds of a level above the first.
// Weights, cap, frequency and log_lik as in negative_binomial.stan.
functions {
#include functions/pseudo_log_lik.stan
}
data {
  int<lower=1> n;                              // rows
  int<lower=1> K;                              // columns of the design
  int<lower=2> n_levels;                       // C
  array[n] int<lower=1, upper=n_levels> y;     // place of the level
  vector<lower=0>[n] frequency;
  vector<lower=0, upper=1>[n] weights;
  matrix[n, K] X;
  vector<lower=0>[K] prior_scale;
  // Location and scale of the reparametrization; the posterior does not depend on them.
  // Coordinates: logs of the levels' shares at the predictors `middle`, up to one constant; beta_2 ...
  vector[n_levels + K - 1] center;
  matrix[n_levels + K - 1, n_levels + K - 2] factor;
  vector[K] middle;                            // its first element is 0
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
  array[n] int above;                          // threshold above the level, below it
  array[n] int below;
  vector[n] has_above;
  vector[n] has_below;
  array[n_levels] int reverse;
  for (k in 1:n_levels) {
    reverse[k] = n_levels + 1 - k;
  }
  for (i in 1:n) {
    above[i] = min(y[i], n_levels - 1);
    below[i] = max(y[i] - 1, 1);
    has_above[i] = y[i] < n_levels;
    has_below[i] = y[i] > 1;
  }
}
parameters {
  vector[n_levels + K - 2] z;
}
transformed parameters {
  vector[n_levels] log_share;
  vector[n_levels - 1] log_below;              // logs of sums of shares below and above thresholds
  vector[n_levels - 1] log_above;
  vector[n_levels - 1] threshold;
  vector[K] beta;
  {
    vector[n_levels + K - 1] own = center + factor * z;
    vector[n_levels] share;
    log_share = own[1:n_levels] - log_sum_exp(own[1:n_levels]);
    share = exp(log_share);
    log_below = log(cumulative_sum(share)[1:(n_levels - 1)]);
    log_above = log(cumulative_sum(share[reverse])[reverse][2:n_levels]);
    beta = append_row(0, own[(n_levels + 1):(n_levels + K - 1)]);
    threshold = log_below - log_above + dot_product(middle, beta);
    beta[1] = -threshold[1];
  }
}
model {
  // Normal priors; Jacobian of the coordinates -> threshold.
  target += -0.5 * dot_self(threshold / prior_scale[1])
            - 0.5 * dot_self(beta[2:K] ./ prior_scale[2:K])
            + sum(log_share) - sum(log_below) - sum(log_above);
  {
    // log(F(b) - F(a)) = log F(b) + log(1 - F(a)) + log(1 - exp(a - b)) for the logistic F, and
    // exp(a - b) is that of the shares whatever the predictors are.
    vector[n] eta = X * beta + threshold[1];
    vector[n_levels] log_gap = log_share - append_row(log_below, 0) - append_row(0, log_above);
    vector[n] f = log_gap[y] - has_above .* log1p_exp(eta - threshold[above])
                  - has_below .* log1p_exp(threshold[below] - eta);
    target += pseudo_log_lik(f, frequency, weights, reference, unit, n_units, n_frozen,
                             farthest, steep, use_cap, cap_below, cap_above);
  }
}
generated quantities {
  vector[emit_log_lik == 1 ? n : 0] log_lik;
  if (emit_log_lik == 1) {
    for (i in 1:n) {
      log_lik[i] = ordered_logistic_lpmf(y[i] | X[i] * beta + threshold[1], threshold);
    }
  }
}
