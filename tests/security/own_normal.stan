data { int<lower=0> n; vector[n] y; vector<lower=0, upper=1>[n] weights; }
parameters { real mu; real<lower=0> s; }
model { for (i in 1:n) { target += weights[i] * normal_lpdf(y[i] | mu, s); } }
generated quantities {
  vector[n] log_lik; vector[n] rep;
  for (i in 1:n) { log_lik[i] = normal_lpdf(y[i] | mu, s); rep[i] = normal_rng(mu, s); }
}
