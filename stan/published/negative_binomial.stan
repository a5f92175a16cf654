// Weighted negative binomial regression, log link, as printed.
//                                                     [V25, supplement 2 of the earlier version]
//
//   y_i ~ NB(mean exp(mu_i), variance exp(mu_i) + exp(mu_i)^2 / phi),   mu_i = X_i beta
//   1/phi ~ Cauchy(0, 5), unbounded in the program; phi < 0 has no density
//   beta ~ MVN(0, diag(sigma_beta) L L' diag(sigma_beta)),  L ~ LKJ-Cholesky(6),
//   sigma_beta ~ half-t_3(0, 1)
//
// The printed data, parameters and names, so that the supplement's own data list runs; its functions
// wt_NB and wt_NBi are written out, and y_rep is added. A record's log-likelihood enters times its
// weight; equal weights are the scalar form. log_lik is weighted. stan/negative_binomial.stan has
// the same posterior and is faster: rows collapsed, coefficients standardized, L integrated out.
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
  real reciprocal_phi;
}
transformed parameters {
  vector[n] mu = X * beta;                     // on the log scale, as the papers name it
  real phi = inv(reciprocal_phi);
}
model {
  reciprocal_phi ~ cauchy(0, 5);
  L_beta ~ lkj_corr_cholesky(6);
  sigma_beta ~ student_t(3, 0, 1);
  beta ~ multi_normal_cholesky(rep_vector(0, K), diag_pre_multiply(sigma_beta, L_beta));
  for (i in 1:n) {
    target += weights[i] * neg_binomial_2_log_lpmf(y[i] | mu[i], phi);
  }
}
generated quantities {
  vector[n] log_lik;
  array[n] int y_rep;
  for (i in 1:n) {
    log_lik[i] = weights[i] * neg_binomial_2_log_lpmf(y[i] | mu[i], phi);
    y_rep[i] = neg_binomial_2_log_rng(fmin(mu[i], 15), phi);   // the generator ends near exp(20)
  }
}
