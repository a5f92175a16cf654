// Weighted beta regression, logit mean, as described.                              [C25, sec. 5]
//
//   outcome_i ~ Beta(lambda mu_i, lambda (1 - mu_i)),   logit mu_i = X_i beta
//   lambda ~ Pareto(0.1, 1.5), lambda > 0.1
//   beta ~ MVN(0, diag(sigma_beta) L L' diag(sigma_beta)),  L ~ LKJ-Cholesky(6),
//   sigma_beta ~ half-t_3(0, 1)
//
// The paper prints no program and no priors for it: lambda's is that of published/beta.stan, beta's
// that of [V25, supplement 2, earlier version]. A record's log-likelihood enters times its weight
// alpha; log_lik is weighted. stan/beta_regression.stan has the same posterior and is faster: rows
// collapsed, coefficients standardized, L integrated out.
data {
  int<lower=1> n;
  int<lower=1> K;
  vector<lower=0, upper=1>[n] outcome;
  vector<lower=0>[n] alpha;
  matrix[n, K] X;
}
parameters {
  vector[K] beta;
  vector<lower=0>[K] sigma_beta;
  cholesky_factor_corr[K] L_beta;
  real<lower=0.1> lambda;
}
transformed parameters {
  vector[n] mu = inv_logit(X * beta);
  vector[n] beta1 = lambda * mu;
  vector[n] beta2 = lambda * (1 - mu);
}
model {
  lambda ~ pareto(0.1, 1.5);
  L_beta ~ lkj_corr_cholesky(6);
  sigma_beta ~ student_t(3, 0, 1);
  beta ~ multi_normal_cholesky(rep_vector(0, K), diag_pre_multiply(sigma_beta, L_beta));
  for (i in 1:n) {
    target += alpha[i] * beta_lpdf(outcome[i] | beta1[i], beta2[i]);
  }
}
generated quantities {
  vector[n] log_lik;
  vector[n] y_rep;
  for (i in 1:n) {
    log_lik[i] = alpha[i] * beta_lpdf(outcome[i] | beta1[i], beta2[i]);
    y_rep[i] = beta_rng(beta1[i], beta2[i]);
  }
}
