# The shared Stan programs: installed with the package, or beside it in a checkout.
stan_folder <- function() {
  installed <- system.file("stan", package = "pyhybrid")
  if (nzchar(installed)) installed else testthat::test_path("..", "..", "stan")
}

poisson_data <- function(y) stan_data(y ~ 1, data.frame(y = y), program = "poisson")
