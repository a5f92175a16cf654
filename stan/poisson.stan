// Poisson regression with record weights, log link.                          [S22, sec. 4.4]
//
//   y_i ~ Poisson(mu_i),   log mu_i = X_i beta
//   beta ~ MVN(0, diag(sigma_beta) L L' diag(sigma_beta)),  L ~ LKJ-Cholesky(6),
//   sigma_beta ~ half-t_3(0, 1);   with normal_prior = 1:  beta_j ~ N(0, prior_scale_j^2)
//                                                           [prior of V25, supplement 2]
//
// Weights, cap, frequency, log_lik and L_beta as in negative_binomial.stan.
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
  int<lower=0, upper=1> use_cap;
  real<lower=0> cap;                           // read only if use_cap = 1
  int<lower=0, upper=1> emit_log_lik;
}
transformed data {
  real freedom = K + 11;                       // K - 1 + 2 eta, eta = 6
  vector[n] count = to_vector(y);
  vector[n] log_factorial = lgamma(count + 1);
  vector[n] weight = frequency .* weights;
  row_vector[K] count_X = (weight .* count)' * X;
  real sum_log_factorial = dot_product(weight, log_factorial);
}
parameters {
  vector[K] z;
  vector[normal_prior == 1 ? 0 : K] log_scale;
  vector[normal_prior == 1 ? 0 : 1] z_radius;
}
transformed parameters {
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
  {
    // The log density written out over vectors: the same value as poisson_log_lpmf, far cheaper.
    vector[n] eta = X * beta;
    if (use_cap == 1) {
      vector[n] f = count .* eta - exp(eta) - log_factorial;
      for (i in 1:n) {
        if (weights[i] > 0) {
          target += frequency[i] * fmax(-cap, fmin(cap, weights[i] * f[i]));
        }
      }
    } else {
      target += count_X * beta - dot_product(weight, exp(eta)) - sum_log_factorial;
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
      log_lik[i] = poisson_log_lpmf(y[i] | X[i] * beta);
    }
  }
}
