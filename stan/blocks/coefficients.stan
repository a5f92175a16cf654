  // Part of a program's transformed parameters: the coefficients, see functions/coefficients.stan.
  vector[normal_prior == 1 ? 0 : n_plain] sigma_beta;
  vector[n_group_terms] tau = exp(center_tau + spread_tau .* z_tau);
  vector[K] beta;                              // the intercepts of groups are the last ones
  real log_prior;                              // of beta and its scales, Jacobian included
  {
    real log_radius = normal_prior == 1 ? 0 : z_radius[1] / sqrt(2 * freedom);
    vector[K] scale = prior_scale;
    vector[K + 1] standardized;
    vector[K] own;
    if (normal_prior == 0) {
      scale[1:n_plain] = exp(log_scale + log_radius);
    }
    if (n_grouped > 0) {
      scale[(n_plain + 1):K] = tau[group_term];
    }
    standardized = standardized_coefficients(z, scale, information_root, apart_root, score);
    own = head(standardized, K);
    beta = scale .* own;
    log_prior = standardized[K + 1];
    if (normal_prior == 1) {
      log_prior += -0.5 * dot_self(own);
    } else {
      vector[n_plain] plain = head(own, n_plain);
      log_prior += published_prior(plain, log_scale, log_radius, freedom);
      log_prior += -0.5 * dot_self(tail(own, n_grouped));
      sigma_beta = exp(log_scale) .* sqrt(1 + square(plain) / freedom);
    }
    // Of tau, with the Jacobian of z_tau -> tau, up to a constant.
    log_prior += dot_product(spread_tau, z_tau)
                 - 2 * sum(log1p(square(tau / prior_scale_groups) / 3));
  }
