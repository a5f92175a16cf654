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
  // Where the sampler looks first: a rough fit. Any values give the same posterior.
  array[n_components] matrix[K, K] information;  // of beta_k, positive semidefinite
  matrix[K, n_components] score;               // information of beta_k times where it is centred
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
  int<lower=0, upper=1> emit_log_lik;
}
transformed data {
  matrix[K, K] identity = diag_matrix(rep_vector(1, K));
  vector[K] freedom;                           // of the chi variables exp(log_diagonal)
  for (j in 1:K) {
    freedom[j] = n_components > 1 ? K + 2 - j : K;
  }
}
parameters {
  matrix[K, n_components] z;
  vector<lower=0>[K] scale_beta;               // sigma_beta; with one component see below
  // Factor A of a Wishart(K + 1, I) matrix by Bartlett's decomposition: the correlation matrix of
  // A A' has density proportional to det^0, LKJ(1). Starts anywhere near 0 are well-conditioned,
  // which those of a cholesky_factor_corr of many columns are not.
  vector[n_components > 1 ? K * (K - 1) / 2 : 0] z_below;  // entries below the diagonal
  vector[K] z_diagonal;                        // of log(diagonal)
  // With one component Omega is integrated out, as its factor has a narrow neck where few
  // coefficients are known well: rows of a matrix with Omega's distribution are random directions,
  // so that beta_j / sigma_beta_j = r cos_j, r ~ chi(K + 1), cos_j = u_j / sqrt(u_j^2 + h_j^2),
  // u_j ~ N(0, 1), h_j ~ chi(K). Then scale_beta_j = sigma_beta_j / sqrt(u_j^2 + h_j^2).
  vector[n_components > 1 ? 0 : 1] z_radius;   // of log(r)
  vector[n_components] z_sigma;
  vector[n_components - 1] z_ratio;
  vector<lower=0>[n_components > 1 ? 1 : 0] concentration;  // a
}
transformed parameters {
  vector[n_components] sigma = min_sd + exp(center_sigma + spread_sigma .* z_sigma);
  vector[n_components] proportion;
  vector[n_components] log_proportion;
  vector[K] sigma_beta = scale_beta;
  vector[K] log_diagonal = 0.5 * log(freedom) + z_diagonal ./ sqrt(2 * freedom);
  matrix[K, n_components] beta;
  real log_density_u = 0;                      // of u, beta = scale * u, given z: see below
  {
    vector[n_components] log_ratio = rep_vector(0, n_components);
    for (k in 2:n_components) {
      log_ratio[k] = center_ratio[k] + spread_ratio[k] * z_ratio[k - 1];
    }
    log_proportion = log_softmax(log_ratio);
    proportion = exp(log_proportion);
  }
  {
    matrix[K, K] scale = rep_matrix(0, K, K);  // Cholesky factor of the prior covariance of beta_k
    int place = 0;
    if (n_components == 1) {
      scale = diag_matrix(scale_beta * sqrt(K + 1) * exp(z_radius[1] / sqrt(2 * (K + 1))));
    } else {
      for (i in 1:K) {
        for (j in 1:(i - 1)) {
          place = place + 1;
          scale[i, j] = z_below[place];
        }
        scale[i, i] = exp(log_diagonal[i]);
      }
      scale = diag_pre_multiply(scale_beta ./ sqrt(rows_dot_self(scale)), scale);
    }
    // Were the likelihood of beta_k normal with `information`, then z would be standard normal and
    // independent of the prior's scales: no funnel, however weak or strong the likelihood is.
    for (k in 1:n_components) {
      matrix[K, K] root = cholesky_decompose(
        quad_form_sym(information[k], scale) + identity);
      vector[K] u = mdivide_right_tri_low(
        (mdivide_left_tri_low(root, scale' * col(score, k)) + col(z, k))', root)';
      beta[, k] = scale * u;
      if (n_components == 1) {
        sigma_beta = scale_beta .* sqrt(square(u) + exp(2 * log_diagonal));
      }
      log_density_u -= 0.5 * dot_self(u) + sum(log(diagonal(root)));
    }
  }
}
model {
  z_below ~ std_normal();
  // Chi densities of the diagonal with the Jacobian of z_diagonal -> diagonal, up to a constant.
  target += dot_product(freedom, log_diagonal) - 0.5 * sum(exp(2 * log_diagonal));
  sigma_beta ~ student_t(3, 0, 1);
  if (n_components == 1) {
    // Chi density of r likewise; Jacobian of scale_beta -> sigma_beta.
    real log_radius = z_radius[1] / sqrt(2 * (K + 1));
    target += (K + 1) * (log_radius - 0.5 * exp(2 * log_radius));
    target += sum(log(sigma_beta)) - sum(log(scale_beta));
  }
  target += log_density_u;                     // normal prior of u, Jacobian of z -> u
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
    target += pseudo_log_lik(f, frequency, weights, reference, unit, n_units,
                             use_cap, cap_below, cap_above);
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
