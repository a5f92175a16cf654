// Finite mixture of normal regressions with record weights; one component is normal regression.
//                                                                              [S22, app. B]
//   y_i ~ sum_k proportion_k N(offset_i + X_i beta_k, sigma_k^2)          (components summed out)
//   proportion ~ Dirichlet(a/C, ..., a/C),   a ~ Gamma(1, 1),  C = n_components
//   beta_k ~ MVN(0, diag(sigma_beta) Omega diag(sigma_beta)),   Omega ~ LKJ(1),
//   sigma_beta ~ half-t_3(0, 1),   sigma_k ~ half-t_3(0, 1) above min_sd
//
// Weights, cap, frequency and log_lik as in negative_binomial.stan; y on the transformed scale.
functions {
#include functions/pseudo_log_lik.stan
  // A point u and, as its last element, log |du / dz|, for coefficients scale * u, u standard normal
  // a priori: were their log-likelihood quadratic with `gradient` at u = 0 and curvature
  // `information`, then z would be standard normal. No funnel, however weak or strong that is.
  vector standardized(vector z, matrix scale, matrix information, vector gradient) {
    int K = rows(z);
    matrix[K, K] root = cholesky_decompose(
      quad_form_sym(information, scale) + diag_matrix(rep_vector(1, K)));
    vector[K] u = mdivide_right_tri_low(
      (mdivide_left_tri_low(root, scale' * gradient) + z)', root)';
    return append_row(u, -sum(log(diagonal(root))));
  }
}
data {
  int<lower=1> n;                              // rows
  int<lower=1> K;                              // columns of the design
  int<lower=1> n_components;
  vector[n] y;
  vector<lower=0>[n] frequency;
  vector<lower=0, upper=1>[n] weights;
  matrix[n, K] X;
  vector[n] offsets;                           // added to X beta; 0 without offset()
  real<lower=0> min_sd;                        // 0: the prior of S22
  // Location and scale of the reparametrization; the posterior does not depend on them.
  array[n_components] matrix[K, K] information;  // of beta_k, positive semidefinite
  matrix[K, n_components] score;               // information of beta_k times where it is centered
  vector[n_components] center_sigma;           // of log(sigma - min_sd)
  vector<lower=0>[n_components] spread_sigma;
  vector[n_components] center_ratio;           // of log(proportion / proportion[1])
  vector<lower=0>[n_components] spread_ratio;
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
  int T = min(K, n_components);
  int narrow = n_components <= K;
  vector[T] freedom;                           // of the chi variables exp(log_diagonal)
  for (j in 1:T) {
    freedom[j] = K + 2 - j;
  }
}
parameters {
  // Omega is the correlation matrix of G G', G a K x (K + 1) matrix of standard normals, so that
  // beta = diag(scale) G V, V standard normal, scale_j = sigma_beta_j / |row j of G|. Only a
  // triangular factor of the smaller of G and V is drawn (Bartlett's decomposition), the K x
  // n_components matrix u that is left is standardized:
  //   n_components > K:   beta = diag(scale) A u,  A lower triangular, A A' = G G';
  //   n_components <= K:  beta = diag(scale) u A', A A' = V' V; what G has beside u is integrated
  //                       out, so that the rows of u are from a multivariate t distribution.
  // Without the K (K - 1) / 2 correlations chains take steps many times as long.
  matrix[K, n_components] z;
  vector[K] log_scale;                         // of sigma_beta, or see below
  vector[T * (T - 1) / 2] z_below;             // of A, below the diagonal
  vector[T] z_diagonal;                        // of log(diagonal)
  vector[n_components] z_sigma;
  vector[n_components - 1] z_ratio;
  vector<lower=0>[n_components > 1 ? 1 : 0] concentration;  // a
}
transformed parameters {
  vector[n_components] sigma = min_sd + exp(center_sigma + spread_sigma .* z_sigma);
  vector[n_components] proportion;
  vector[n_components] log_proportion;
  vector[K] sigma_beta = exp(log_scale);
  vector[T] log_diagonal = 0.5 * log(freedom) + z_diagonal ./ sqrt(2 * freedom);
  matrix[K, n_components] beta;
  real log_density_u = 0;                      // of u, with the Jacobian of z -> u
  {
    vector[n_components] log_ratio = rep_vector(0, n_components);
    for (k in 2:n_components) {
      log_ratio[k] = center_ratio[k] + spread_ratio[k] * z_ratio[k - 1];
    }
    log_proportion = log_softmax(log_ratio);
    proportion = exp(log_proportion);
  }
  {
    matrix[T, T] A = rep_matrix(0, T, T);
    matrix[K, K] scale;
    matrix[K, n_components] u;
    int place = 0;
    for (i in 1:T) {
      for (j in 1:(i - 1)) {
        place = place + 1;
        A[i, j] = z_below[place];
      }
      A[i, i] = exp(log_diagonal[i]);
    }
    scale = diag_matrix(sigma_beta / sqrt(K + 1));
    if (narrow == 0) {
      scale = diag_pre_multiply(sigma_beta ./ sqrt(rows_dot_self(A)), A);
    }
    for (k in 1:n_components) {
      vector[K] before = rep_vector(0, K);     // of beta_k, from the components before
      matrix[K, K] own = scale;
      vector[K + 1] found;
      if (narrow == 1) {
        for (j in 1:(k - 1)) {
          before += A[k, j] * (scale * col(u, j));
        }
        own = A[k, k] * scale;
      }
      found = standardized(col(z, k), own, information[k], col(score, k) - information[k] * before);
      u[, k] = head(found, K);
      beta[, k] = before + own * head(found, K);
      log_density_u += found[K + 1];
    }
    if (narrow == 1) {
      vector[K] stretch = log1p(rows_dot_self(u) / (K + 1));
      log_density_u -= 0.5 * (K + 1) * sum(stretch);
      sigma_beta = exp(log_scale + 0.5 * stretch);
    } else {
      log_density_u -= 0.5 * sum(square(to_vector(u)));
    }
  }
}
model {
  z_below ~ std_normal();
  // Chi densities of the diagonal with the Jacobian of z_diagonal -> diagonal, up to a constant.
  target += dot_product(freedom, log_diagonal) - 0.5 * sum(exp(2 * log_diagonal));
  sigma_beta ~ student_t(3, 0, 1);
  target += sum(log(sigma_beta)) + log_density_u;  // Jacobian of log_scale; u
  target += dot_product(spread_sigma, z_sigma);  // Jacobian of z_sigma -> sigma, up to a constant
  sigma ~ student_t(3, 0, 1);
  if (n_components > 1) {
    // Dirichlet density times the Jacobian of z_ratio -> proportion, up to a constant.
    real share = concentration[1] / n_components;
    concentration ~ gamma(1, 1);
    target += lgamma(concentration[1]) - n_components * lgamma(share) + share * sum(log_proportion);
  }
  {
    // The mixture's log density over vectors, one component after the other: the same value as
    // log_sum_exp record by record, far cheaper.
    matrix[n, n_components] eta = rep_matrix(offsets, n_components) + X * beta;
    vector[n_components] constant = log_proportion - log(sigma) - 0.5 * log(2 * pi());
    vector[n] f = constant[1] - 0.5 * square((y - col(eta, 1)) / sigma[1]);
    for (k in 2:n_components) {
      vector[n] own = constant[k] - 0.5 * square((y - col(eta, k)) / sigma[k]);
      f = f + log1p_exp(own - f);
    }
    target += pseudo_log_lik(f, frequency, weights, reference, unit, n_units, n_frozen,
                             farthest, steep, use_cap, cap_below, cap_above);
  }
}
generated quantities {
  vector[emit_log_lik == 1 ? n : 0] log_lik;
  if (emit_log_lik == 1) {
    for (i in 1:n) {
      vector[n_components] own;
      for (k in 1:n_components) {
        own[k] = log_proportion[k]
                 + normal_lpdf(y[i] | offsets[i] + dot_product(X[i], col(beta, k)), sigma[k]);
      }
      log_lik[i] = log_sum_exp(own);
    }
  }
}
