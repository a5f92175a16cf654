# The shared Stan programs: installed with the package, or beside it in a checkout.
stan_folder <- function() {
  installed <- system.file("stan", package = "pyhybrid")
  if (nzchar(installed)) installed else testthat::test_path("..", "..", "stan")
}

poisson_data <- function(y) {
  n <- length(y)
  information <- n * mean(y)
  list(
    n = n, K = 1, y = array(y, n), frequency = array(1, n), weights = array(1, n),
    X = matrix(1, n, 1), normal_prior = 0, prior_scale = array(1, 1),
    information_root = matrix(sqrt(information)), score = array(information * log(mean(y)), 1),
    emit_log_lik = 1, use_cap = 0, cap_below = 0,
    cap_above = 0, reference = array(0, n), n_units = 0, unit = array(0L, n)
  )
}
