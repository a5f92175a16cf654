// The censored beta of [C25] supp. 2 in its published parametrization: beta1 = lambda phi, beta2 =
// lambda (1 - phi); phi ~ Beta(1, 1); lambda > 0.1 with lambda ~ Pareto(0.1, 1.5). Every weighted
// term is clipped at the cap (M) on both sides; log_lik is not clipped here (their log_lik_noM).
data {
  int<lower=1> n;
  vector<lower=0, upper=1>[n] y;
  vector<lower=0, upper=1>[n] weights;
  real<lower=0> cap;
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
    target += fmax(-cap, fmin(cap, weights[i] * beta_lpdf(y[i] | beta1, beta2)));
  }
}
generated quantities {
  vector[n] log_lik;
  vector[n] y_rep;
  for (i in 1:n) {
    log_lik[i] = beta_lpdf(y[i] | beta1, beta2);
    y_rep[i] = beta_rng(beta1, beta2);
  }
}
