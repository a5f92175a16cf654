// Weighted finite mixture of normal regressions, as described for incomes.      [S22, appendix B]
//
//   y_i | z_i = k ~ N(X_i beta_k, sigma_k^2),   P(z_i = k) = pi_k, z_i summed out
//   pi ~ Dirichlet(a/K, ..., a/K),   a ~ Gamma(1, 1);   sigma_k ~ half-t_3(0, 1)
//   beta_k ~ MVN(0, diag(s) Omega diag(s)),   Omega ~ LKJ(1),   s ~ half-t_3(0, 1)
//
// The paper prints no program, and no a and b of the gamma prior: both are 1 here. A record's
// log-likelihood enters times its weight; equal weights are the scalar form. log_lik is weighted.
// Replicates draw z_i from pi: the paper draws it from its full conditional given y_i, which would
// tell of y_i beyond any bound. stan/normal_mixture.stan has the same posterior and is faster: Omega
// integrated out, coefficients standardized about an EM fit.
data {
  int<lower=1> n;
  int<lower=1> P;
  int<lower=1> K;                              // components, more than are needed
  vector[n] y;
  vector<lower=0>[n] weights;
  matrix[n, P] X;
}
parameters {
  simplex[K] pi;
  real<lower=0> a;
  array[K] vector[P] beta_k;
  vector<lower=0>[P] s;
  cholesky_factor_corr[P] L_Omega;
  vector<lower=0>[K] sigma;
}
transformed parameters {
  vector[n] f;
  matrix[P, K] beta;
  vector[K] log_proportion = log(pi);
  for (k in 1:K) {
    beta[, k] = beta_k[k];
  }
  {
    matrix[n, K] eta = X * beta;
    for (i in 1:n) {
      vector[K] terms = log_proportion;
      for (k in 1:K) {
        terms[k] += normal_lpdf(y[i] | eta[i, k], sigma[k]);
      }
      f[i] = log_sum_exp(terms);
    }
  }
}
model {
  a ~ gamma(1, 1);
  pi ~ dirichlet(rep_vector(a / K, K));
  L_Omega ~ lkj_corr_cholesky(1);
  s ~ student_t(3, 0, 1);
  beta_k ~ multi_normal_cholesky(rep_vector(0, P), diag_pre_multiply(s, L_Omega));
  sigma ~ student_t(3, 0, 1);
  target += dot_product(weights, f);
}
generated quantities {
  vector[n] log_lik = weights .* f;
  vector[n] y_rep;
  for (i in 1:n) {
    int z = categorical_rng(pi);
    y_rep[i] = normal_rng(X[i] * beta[, z], sigma[z]);
  }
}
