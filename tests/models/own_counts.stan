data {
  int<lower=1> n;
  array[n] int y;
  vector[n] weights;
}
parameters { real<lower=0> rate; }
model {
  rate ~ gamma(2, 1);
  for (i in 1:n) target += weights[i] * poisson_lpmf(y[i] | rate);
}
generated quantities {
  vector[n] log_lik;
  array[n] int y_rep;
  for (i in 1:n) {
    log_lik[i] = poisson_lpmf(y[i] | rate);
    y_rep[i] = poisson_rng(rate);
  }
}
