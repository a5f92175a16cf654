// The weighted negative binomial of [V25] supp. 2 in its published parametrization: log link, mean
// mu and variance mu + mu^2 / phi; 1/phi ~ half-Cauchy(0, 5); beta ~ MVN(0, diag(sigma_beta) L L'
// diag(sigma_beta)) with L ~ LKJ-Cholesky(6) and sigma_beta ~ half-t_3(0, 1). Its log_lik is weighted.
// The published program leaves 1/phi unbounded; bounded at 0 the posterior is the same.
data {
  int<lower=1> n;
  int<lower=1> K;
  array[n] int<lower=0> y;
  vector<lower=0, upper=1>[n] weights;
  matrix[n, K] X;
}
parameters {
  vector[K] beta;
  vector<lower=0>[K] sigma_beta;
  cholesky_factor_corr[K] L_beta;
  real<lower=0> reciprocal_phi;
}
transformed parameters {
  real phi = inv(reciprocal_phi);
  vector[n] mu = exp(X * beta);
}
model {
  reciprocal_phi ~ cauchy(0, 5);
  sigma_beta ~ student_t(3, 0, 1);
  L_beta ~ lkj_corr_cholesky(6);
  beta ~ multi_normal_cholesky(rep_vector(0, K), diag_pre_multiply(sigma_beta, L_beta));
  for (i in 1:n) {
    target += weights[i] * neg_binomial_2_lpmf(y[i] | mu[i], phi);
  }
}
generated quantities {
  vector[n] log_lik;
  vector[n] y_rep;
  for (i in 1:n) {
    log_lik[i] = weights[i] * neg_binomial_2_lpmf(y[i] | mu[i], phi);
    y_rep[i] = neg_binomial_2_rng(fmin(mu[i], 1e8), phi);
  }
}
