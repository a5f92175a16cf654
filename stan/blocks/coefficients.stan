  // Part of a program's transformed parameters: the coefficients, see functions/coefficients.stan.
  vector[normal_prior == 1 ? 0 : K] sigma_beta;
  vector[K] beta;
  real log_prior;                              // of beta and its scales, Jacobian included
  {
    real log_radius = normal_prior == 1 ? 0 : z_radius[1] / sqrt(2 * freedom);
    vector[K] scale = prior_scale;
    vector[K + 1] standardized;
    vector[K] u;
    if (normal_prior == 0) {
      scale = exp(log_scale + log_radius);
    }
    standardized = standardized_coefficients(z, scale, information_root, score);
    u = head(standardized, K);
    beta = scale .* u;
    log_prior = standardized[K + 1];
    if (normal_prior == 1) {
      log_prior += -0.5 * dot_self(u);
    } else {
      log_prior += published_prior(u, log_scale, log_radius, freedom);
      sigma_beta = exp(log_scale) .* sqrt(1 + square(u) / freedom);
    }
  }
