data <- data.frame(y = c(0, 2, 1, 4), x = c(1, 0, 1, 0), s = c(0.1, 0.4, 0.5, 0.9))

test_that("published programs get the papers' names", {
  counts <- stan_data(y ~ x, data, program = "published/negative_binomial")
  expect_named(counts, c("n", "K", "y", "weights", "X"))
  shares <- stan_data(s ~ 1, data, weights = c(1, 0.5, 1, 0), program = "published/beta")
  expect_named(shares, c("n", "outcome", "alpha", "M"))
  expect_identical(as.vector(shares$alpha), c(1, 0.5, 1, 0))
  expect_identical(shares$M, 1e300)
  expect_identical(stan_data(s ~ 1, data, program = "published/beta", cap = 2)$M, 2)
})

test_that("what the published programs do not take is named", {
  published <- function(...) stan_data(program = "published/poisson", ...)
  expect_error(published(y ~ offset(x), data), "no offset")
  expect_error(published(y ~ x, data, prior = "normal"), "published")
  expect_error(stan_data(y ~ x, data, program = "published/ordinal"), "published/poisson")
  expect_error(stan_data(y ~ x, data, program = "poisson", cap = 1), "published/beta alone")
  expect_error(published(y ~ x, data, cap = 1), "published/beta alone")
})

test_that("a script that is not the supplement's is refused", {
  file <- tempfile(fileext = ".R")
  writeLines("weights <- 1", file)
  expect_error(run_supplement(file, matrix(-1, 2, 3)), "it did not")
  expect_error(run_supplement(tempfile(), matrix(-1, 2, 3)), "path of")
})

# Draws of no posterior, under the names of a program; `found` is what is said of the chains.
drawn <- function(found) {
  function(program, data, seed, ...) {
    set.seed(seed)
    draws <- list(mu = array(rnorm(4 * 50 * data$n), c(4, 50, data$n)), phi = array(2, c(4, 50)))
    list(draws = draws, diagnostics = found)
  }
}
release <- function(program, found, ...) {
  pseudo_posterior(y ~ x, data, program = program, seed = 1, delta = 0.1, fit = drawn(found), ...)
}
good <- list(rhat = 1.001, ess_bulk = 900, ess_tail = 800, divergences = 0)

test_that("chains that did not converge are refused, and the other program is named", {
  expect_length(release("published/negative_binomial", good)$epsilon, 3)
  for (bad in list(list(rhat = 1.02), list(ess_tail = 399), list(divergences = 1), list(rhat = NaN))) {
    found <- utils::modifyList(good, bad)
    expect_error(
      release("published/negative_binomial", found),
      "did not converge.*program = \"negative_binomial\" samples the same posterior",
      class = "pyhybrid_sampling_error"
    )
    expect_match(capture_warnings(
      release("published/negative_binomial", found, on_not_converged = "warn")
    ), "did not converge")
  }
  problem <- tryCatch(release("poisson", utils::modifyList(good, list(rhat = 2))), error = identity)
  expect_no_match(conditionMessage(problem), "same posterior")
})

test_that("an engine that fails names the other program", {
  failing <- function(...) stop(structure(
    class = c("pyhybrid_sampling_error", "error", "condition"), list(message = "no chain", call = NULL)
  ))
  expect_error(
    pseudo_posterior(y ~ x, data, program = "published/poisson", delta = 0.1, fit = failing),
    "no chain; program = \"poisson\" samples the same posterior"
  )
})
