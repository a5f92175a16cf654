// Negative binomial regression with record weights, log link.            [V25, supplement 2]
//
//   y_i ~ NB(mean mu_i, variance mu_i + mu_i^2 / phi),   log mu_i = X_i beta
//   1/phi ~ half-Cauchy(0, 5)
//   beta ~ MVN(0, diag(sigma_beta) L L' diag(sigma_beta)),  L ~ LKJ-Cholesky(6),
//   sigma_beta ~ half-t_3(0, 1);   with normal_prior = 1:  beta_j ~ N(0, prior_scale_j^2)
//
// Pseudo posterior [S22, eq. 3]: the log-likelihood f_i of a record enters as weights_i * f_i;
// with use_cap = 1 as max(-cap, min(cap, weights_i * f_i)) [C25, sec. 3]. A row may stand for
// frequency_i equal records. log_lik is UNWEIGHTED, per row; it, mu and L_beta, which nothing else
// reads, are written if emit_log_lik = 1.
functions {
  // Regression coefficients are beta = scale .* u. Returns u and, as its last element,
  // log |du / dz|. Were the log-likelihood of beta quadratic with gradient `score` at 0 and
  // curvature information_root * information_root', and u standard normal a priori, then z would
  // be standard normal given the scales: no funnel, however weak or strong the likelihood is,
  // whatever the location, scale and correlation of the columns of X.
  vector standardized_coefficients(vector z, vector scale, matrix information_root, vector score) {
    int K = rows(z);
    matrix[K, K] root = cholesky_decompose(
      tcrossprod(diag_pre_multiply(scale, information_root)) + diag_matrix(rep_vector(1, K)));
    vector[K] u = mdivide_right_tri_low(
      (mdivide_left_tri_low(root, scale .* score) + z)', root)';
    return append_row(u, -sum(log(diagonal(root))));
  }
  // Log density, up to a constant, of u, log_scale and log_radius under the published prior
  //   beta ~ MVN(0, diag(sigma_beta) Omega diag(sigma_beta)),  Omega ~ LKJ(eta),
  //   sigma_beta ~ half-t_3(0, 1)
  // with Omega integrated out. An LKJ(eta) matrix is the correlation matrix of a Wishart matrix of
  // freedom = K - 1 + 2 eta: cosines between independent random directions. So beta_j =
  // sigma_beta_j r cos_j, r ~ chi(freedom), cos_j one coordinate of a random direction. With
  // cos_j = u_j / sqrt(freedom + u_j^2): beta_j = r / sqrt(freedom) exp(log_scale_j) u_j,
  // sigma_beta_j = exp(log_scale_j) sqrt(1 + u_j^2 / freedom), log_radius = log(r / sqrt(freedom)).
  real published_prior(vector u, vector log_scale, real log_radius, real freedom) {
    vector[rows(u)] stretch = log1p(square(u) / freedom);
    return freedom * (log_radius - 0.5 * exp(2 * log_radius))
           + sum(log_scale) - 0.5 * (freedom - 1) * sum(stretch)
           - 2 * sum(log1p(exp(2 * log_scale + stretch) / 3));
  }
  // Cholesky factor of Omega given ratio = beta ./ sigma_beta = r cos: the parts of the directions
  // that are orthogonal to beta's are independent of all else.
  matrix correlation_factor_rng(vector ratio, real log_radius, real freedom) {
    int K = rows(ratio);
    vector[K] cosine = ratio / (sqrt(freedom) * exp(log_radius));
    vector[K] sine = sqrt(1 - square(cosine));
    matrix[K, K] across = lkj_corr_cholesky_rng(K, (freedom - K) / 2);
    return cholesky_decompose(
      tcrossprod(diag_pre_multiply(sine, across)) + cosine * cosine');
  }
  // log[gamma(count + phi) / (gamma(phi) phi^count)]; for large phi by Stirling's formula, as the
  // difference of log gammas would lose all digits.
  vector gamma_ratio(vector count, real phi) {
    return phi < 1e4
      ? lgamma(count + phi) - lgamma(phi) - count * log(phi)
      : (count + phi - 0.5) .* log1p(count / phi) - count + (inv(count + phi) - inv(phi)) / 12;
  }
  int number_of_levels(array[] int y) {
    array[size(y)] int sorted = sort_asc(y);
    int found = 1;
    for (i in 2:size(y)) {
      found += sorted[i] != sorted[i - 1];
    }
    return found;
  }
  // The distinct values of y, and the sum of the weights of each.
  matrix levels_with_weight(array[] int y, vector weight, int n_levels) {
    array[size(y)] int order = sort_indices_asc(y);
    matrix[n_levels, 2] found = rep_matrix(0, n_levels, 2);
    int level = 0;
    for (i in 1:size(y)) {
      if (level == 0 || y[order[i]] != found[level, 1]) {
        level += 1;
        found[level, 1] = y[order[i]];
      }
      found[level, 2] += weight[order[i]];
    }
    return found;
  }
}
data {
  int<lower=1> n;                              // rows
  int<lower=1> K;                              // columns of the design
  array[n] int<lower=0> y;
  vector<lower=0>[n] frequency;
  vector<lower=0, upper=1>[n] weights;
  matrix[n, K] X;
  int<lower=0, upper=1> normal_prior;
  vector<lower=0>[K] prior_scale;              // read only if normal_prior = 1
  // Where the sampler looks first: a rough fit. Any values give the same posterior.
  matrix[K, K] information_root;
  vector[K] score;
  real center_rphi;                            // of log(1/phi)
  real<lower=0> spread_rphi;
  int<lower=0, upper=1> use_cap;
  real<lower=0> cap;                           // read only if use_cap = 1
  int<lower=0, upper=1> emit_log_lik;
}
transformed data {
  real freedom = K + 11;                       // K - 1 + 2 eta, eta = 6
  vector[n] count = to_vector(y);
  vector[n] log_factorial = lgamma(count + 1);
  vector[n] weight = frequency .* weights;
  vector[n] weighted_count = weight .* count;
  // Without a cap, all that the likelihood reads of the counts but for one sum over the rows.
  int n_levels = number_of_levels(y);
  matrix[n_levels, 2] levels = levels_with_weight(y, weight, n_levels);
  row_vector[K] count_X = weighted_count' * X;
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
  vector[normal_prior == 1 ? 0 : K] sigma_beta;
  vector[K] beta;
  real log_prior;                              // of beta and its scales, Jacobian included
  {
    vector[K + 1] u;
    if (normal_prior == 1) {
      u = standardized_coefficients(z, prior_scale, information_root, score);
      beta = prior_scale .* head(u, K);
      log_prior = u[K + 1] - 0.5 * dot_self(head(u, K));
    } else {
      real log_radius = z_radius[1] / sqrt(2 * freedom);
      vector[K] scale = exp(log_scale + log_radius);
      u = standardized_coefficients(z, scale, information_root, score);
      beta = scale .* head(u, K);
      sigma_beta = exp(log_scale) .* sqrt(1 + square(head(u, K)) / freedom);
      log_prior = u[K + 1] + published_prior(head(u, K), log_scale, log_radius, freedom);
    }
  }
}
model {
  target += log_prior;
  target += spread_rphi * z_rphi;              // Jacobian of z_rphi -> 1/phi, up to a constant
  reciprocal_phi ~ cauchy(0, 5);
  {
    // The log density written out over vectors: the same value as neg_binomial_2_log_lpmf, far
    // cheaper.
    vector[n] eta = X * beta;
    vector[n] softplus = log1p_exp(eta - log(phi));
    if (use_cap == 1) {
      vector[n] f = gamma_ratio(count, phi) - log_factorial + count .* eta
                    - (count + phi) .* softplus;
      for (i in 1:n) {
        if (weights[i] > 0) {
          target += frequency[i] * fmax(-cap, fmin(cap, weights[i] * f[i]));
        }
      }
    } else {
      target += dot_product(col(levels, 2), gamma_ratio(col(levels, 1), phi)) - sum_log_factorial
                + count_X * beta - dot_product(weighted_count + phi * weight, softplus);
    }
  }
}
generated quantities {
  matrix[emit_log_lik == 1 && normal_prior == 0 ? K : 0, K] L_beta;
  vector[emit_log_lik == 1 ? n : 0] mu;
  vector[emit_log_lik == 1 ? n : 0] log_lik;
  if (emit_log_lik == 1 && normal_prior == 0) {
    L_beta = correlation_factor_rng(beta ./ sigma_beta, z_radius[1] / sqrt(2 * freedom), freedom);
  }
  if (emit_log_lik == 1) {
    mu = exp(X * beta);
    for (i in 1:n) {
      log_lik[i] = neg_binomial_2_log_lpmf(y[i] | X[i] * beta, phi);
    }
  }
}
