// Weighted Poisson regression, log link, as described.                       [S22, sec. 4.4, eq. 3]
//
//   y_i ~ Poisson(mu_i),   log mu_i = X_i beta
//   beta ~ MVN(0, diag(sigma_beta) L L' diag(sigma_beta)),  L ~ LKJ-Cholesky(6),
//   sigma_beta ~ half-t_3(0, 1)
//
// The paper prints no program and no priors for it: these are those of the negative binomial
// program, [V25, supplement 2, earlier version]. A record's log-likelihood enters times its weight;
// equal weights are the scalar form. log_lik is weighted. stan/poisson.stan has the same posterior
// and is faster: rows collapsed, coefficients standardized, L integrated out.
data {
  int<lower=1> n;
  int<lower=1> K;
  array[n] int<lower=0> y;
  vector<lower=0>[n] weights;
  matrix[n, K] X;
}
parameters {
  vector[K] beta;
  vector<lower=0>[K] sigma_beta;
  cholesky_factor_corr[K] L_beta;
}
transformed parameters {
  vector[n] mu = X * beta;                     // on the log scale, as the papers name it
}
model {
  L_beta ~ lkj_corr_cholesky(6);
  sigma_beta ~ student_t(3, 0, 1);
  beta ~ multi_normal_cholesky(rep_vector(0, K), diag_pre_multiply(sigma_beta, L_beta));
  for (i in 1:n) {
    target += weights[i] * poisson_log_lpmf(y[i] | mu[i]);
  }
}
generated quantities {
  vector[n] log_lik;
  array[n] int y_rep;
  for (i in 1:n) {
    log_lik[i] = weights[i] * poisson_log_lpmf(y[i] | mu[i]);
    y_rep[i] = poisson_log_rng(fmin(mu[i], 20));   // the generator ends at exp(20.79)
  }
}
