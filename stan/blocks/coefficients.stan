  // Part of a program's transformed parameters: the coefficients, see functions/coefficients.stan.
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
