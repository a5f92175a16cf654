// Multinomial logistic regression with record weights.
//
//   P(y_i = c) proportional to exp(X_i beta[, c - 1]),  c = 2, ..., C;  to 1 for the first level
//   beta[k, c] - beta[k, c'] ~ N(0, prior_scale_k^2) for any two levels, 0 for the first: the
//   contrasts of C independent N(0, prior_scale_k^2 / 2), so that no level is a special one
//
// Weights, cap, frequency and log_lik as in negative_binomial.stan. Rows with the same predictors
// share one linear predictor if they follow each other.
functions {
#include functions/pseudo_log_lik.stan
#include functions/designs.stan
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
  matrix[K, n_levels - 1] center_beta;
  matrix<lower=0>[K, n_levels - 1] spread_beta;
  matrix[K, K] column_basis;
  matrix[n_levels - 1, n_levels - 1] level_basis;
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
  array[n] int design = run_of(X);             // distinct row of X of each row
  int n_designs = design[n];
  matrix[K, n_designs] predictors;             // a column for each of them
  row_vector[n_designs] total_weight = rep_row_vector(0, n_designs);
  matrix[K, n_levels] weighted_X = rep_matrix(0, K, n_levels);
  row_vector[n_designs] first_level = rep_row_vector(0, n_designs);
  vector[K] precision = inv_square(prior_scale);
  vector[n_levels - 1] ones = rep_vector(1, n_levels - 1);
  for (i in 1:n) {
    real weight = frequency[i] * weights[i];
    predictors[, design[i]] = X[i]';
    total_weight[design[i]] += weight;
    weighted_X[, y[i]] += weight * X[i]';
  }
}
parameters {
  matrix[K, n_levels - 1] z;
}
transformed parameters {
  matrix[K, n_levels - 1] beta = center_beta
                                 + column_basis * (spread_beta .* z) * level_basis';
}
model {
  target += -dot_product(precision, rows_dot_self(beta) - square(beta * ones) / n_levels);
  {
    matrix[n_levels, n_designs] eta = append_row(first_level, beta' * predictors);
    row_vector[n_designs] total;
    for (d in 1:n_designs) {
      total[d] = log_sum_exp(eta[, d]);
    }
    if (use_cap == 1) {
      vector[n] f;
      for (i in 1:n) {
        f[i] = eta[y[i], design[i]] - total[design[i]];
      }
      target += pseudo_log_lik(f, frequency, weights, reference, unit, n_units, n_frozen,
                               farthest, steep, use_cap, cap_below, cap_above);
    } else {
      target += sum(weighted_X[, 2:n_levels] .* beta) - dot_product(total_weight, total);
    }
  }
}
generated quantities {
  vector[emit_log_lik == 1 ? n : 0] log_lik;
  if (emit_log_lik == 1) {
    for (i in 1:n) {
      log_lik[i] = categorical_logit_lpmf(y[i] | append_row(0, (X[i] * beta)'));
    }
  }
}
