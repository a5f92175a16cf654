  // Part of a program's data: group intercepts, and where the sampler looks first.
  int<lower=0> n_group_terms;                  // terms (1 | g): intercepts N(0, tau^2) by level of g
  int<lower=0, upper=K> n_grouped;             // their columns in X, indicators, the last ones
  array[n_grouped] int<lower=1, upper=n_group_terms> group_term;
  real<lower=0> prior_scale_groups;            // tau ~ half-t_3(0, prior_scale_groups)
  // Location and scale of the reparametrization; the posterior does not depend on them. The columns
  // of the last term stand apart: no row is in two of them, so that they share no information.
  int<lower=0, upper=n_grouped> n_apart;
  matrix[K - n_apart, K] information_root;
  vector<lower=0>[n_apart] apart_root;
  vector[K] score;
  vector[n_group_terms] center_tau;            // of log(tau)
  vector<lower=0>[n_group_terms] spread_tau;
