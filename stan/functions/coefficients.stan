  // Regression coefficients are beta = scale .* u. Returns u and, as its last element,
  // log |du / dz|. Were the log-likelihood of beta quadratic with gradient `score` at 0 and
  // curvature information_root * information_root', and u standard normal a priori, then z would
  // be standard normal given the scales: no funnel, however weak or strong the likelihood is,
  // whatever the location, scale and correlation of the columns of X.
  vector standardized_coefficients(vector z, vector scale, matrix information_root, vector score) {
    int K = rows(z);
    matrix[K, K] information = tcrossprod(diag_pre_multiply(scale, information_root))
                               + diag_matrix(rep_vector(1, K));
    // Of many columns, rounding makes products unsymmetric by more than the 1e-8 that is let pass.
    matrix[K, K] root = cholesky_decompose(0.5 * (information + information'));
    vector[K] u = mdivide_right_tri_low((mdivide_left_tri_low(root, scale .* score) + z)', root)';
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
  // Cholesky factor of Omega given ratio = beta ./ sigma_beta = r cos. The parts of the directions
  // that are orthogonal to beta's are independent of all else, random directions in one dimension
  // less: rows of Bartlett's factor of a Wishart matrix.
  matrix correlation_factor_rng(vector ratio, real log_radius, real freedom) {
    int K = rows(ratio);
    vector[K] cosine = ratio / (sqrt(freedom) * exp(log_radius));
    matrix[K, K] across = rep_matrix(0, K, K);
    for (i in 1:K) {
      for (j in 1:(i - 1)) {
        across[i, j] = normal_rng(0, 1);
      }
      across[i, i] = sqrt(chi_square_rng(freedom - i));
    }
    across = diag_pre_multiply(sqrt((1 - square(cosine)) ./ rows_dot_self(across)), across);
    return cholesky_decompose(tcrossprod(across) + cosine * cosine');
  }
