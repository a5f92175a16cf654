// Weighted, censored beta distribution, after the printed program             [C25, supplement 2],
// whose text is not at hand here, so that no golden number of it holds this one.
//
//   outcome_i ~ Beta(beta1, beta2),   beta1 = lambda phi,   beta2 = lambda (1 - phi)
//   phi ~ Beta(1, 1),   lambda ~ Pareto(0.1, 1.5), lambda > 0.1
//
// The weighted term of a record is clipped at M on both sides [C25, sec. 3]: log_lik; log_lik_noM
// is not clipped. The printed functions betawt, betawt_i and betawt_i_noM are written out, and y_rep
// is added. Equal weights alpha are the scalar form. stan/beta.stan has the same posterior and is
// faster: without a cap three sums stand for all records.
data {
  int<lower=1> n;
  vector<lower=0, upper=1>[n] outcome;
  vector<lower=0>[n] alpha;
  real<lower=0> M;                             // 1e300: no term reaches it
}
parameters {
  real<lower=0, upper=1> phi;
  real<lower=0.1> lambda;
}
transformed parameters {
  real beta1 = lambda * phi;
  real beta2 = lambda * (1 - phi);
}
model {
  phi ~ beta(1, 1);
  lambda ~ pareto(0.1, 1.5);
  for (i in 1:n) {
    target += fmax(-M, fmin(M, alpha[i] * beta_lpdf(outcome[i] | beta1, beta2)));
  }
}
generated quantities {
  vector[n] log_lik_noM;
  vector[n] log_lik;
  vector[n] y_rep;
  for (i in 1:n) {
    log_lik_noM[i] = alpha[i] * beta_lpdf(outcome[i] | beta1, beta2);
    log_lik[i] = fmax(-M, fmin(M, log_lik_noM[i]));
    y_rep[i] = beta_rng(beta1, beta2);
  }
}
