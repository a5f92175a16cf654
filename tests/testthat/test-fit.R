test_that("draws come back by variable, whatever the order of the engine", {
  names <- c("b[2]", "L[1,1]", "L[1,2]", "L[2,1]", "L[2,2]", "s", "b[1]")
  flat <- array(seq_len(2 * 3 * 7), c(3, 2, 7), list(NULL, NULL, names))
  draws <- by_variable(flat)
  expect_equal(names(draws), c("b", "L", "s"))
  expect_equal(dim(draws$s), c(2L, 3L))
  for (chain in 1:2) {
    for (draw in 1:3) {
      expect_equal(draws$b[chain, draw, 2], flat[draw, chain, "b[2]"], ignore_attr = TRUE)
      expect_equal(draws$L[chain, draw, 1, 2], flat[draw, chain, "L[1,2]"], ignore_attr = TRUE)
    }
  }
})

test_that("the inverse metric is read from rstan's text", {
  text <- "# Adaptation terminated\n# Step size = 0.9\n# Diagonal elements of inverse mass matrix:\n# 1.5, 2e-05\n"
  expect_equal(metric_in_text(text), c(1.5, 2e-05))
})

test_that("bad input is refused before anything is compiled", {
  refused <- function(...) expect_error(fit_rstan(...), class = "pyhybrid_invalid_input")
  refused("poisson", list(), chains = 0)
  refused("poisson", list(1))
  refused("poisson", list(), seed = 2^31)
  skip_if_not_installed("rstan")
  expect_error(fit_rstan("no_such_program", list()), "found 'no_such_program'")
})

test_that("what is missing is named with its remedy", {
  skip_if(nzchar(system.file(package = "cmdstanr")), "cmdstanr is installed")
  expect_error(
    fit_cmdstanr("poisson", list()), "cmdstanr must be installed: not found in this R; run",
    class = "pyhybrid_engine_unavailable"
  )
  expect_error(
    boost_folder("", tempdir()), "apt-get install libboost-dev",
    class = "pyhybrid_engine_unavailable"
  )
})

test_that("rstan samples the Poisson program; log_lik is the density at the draws", {
  skip_on_cran()
  skip_if_not_installed("rstan")
  y <- c(95, 100, 104, 88, 110, 97, 102, 99)
  program <- file.path(stan_folder(), "poisson.stan")
  fit <- fit_rstan(program, poisson_data(y), chains = 2, iter_sampling = 500, seed = 7)
  expect_equal(dim(fit$draws$beta), c(2L, 500L, 1L))
  expect_equal(dim(fit$sampler$energy), c(2L, 500L))
  eta <- c(t(fit$draws$beta[, , 1]))
  expect_equal(fit$log_lik, sapply(y, dpois, lambda = exp(eta), log = TRUE), tolerance = 1e-8)
  expect_lt(fit$diagnostics$rhat, 1.05)
  # The posterior of beta is close to normal about log(mean(y)); 5 Monte Carlo standard errors.
  se <- 1 / sqrt(sum(y)) / sqrt(fit$diagnostics$ess_bulk)
  expect_lt(abs(mean(eta) - log(mean(y))), 5 * se + 1 / sum(y))
  expect_output(print(fit), "Fit by rstan .*2 chains of 500 draws, seed 7")

  wrong <- poisson_data(y)
  wrong$y <- NULL
  utils::capture.output(
    expect_error(
      suppressWarnings(fit_rstan(program, wrong, chains = 1)), "variable does not exist",
      class = "pyhybrid_sampling_error"
    ),
    type = "message"
  )
})
