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
  expect_identical(stan_data(y ~ x, data, program = "poisson", cap = 1)$use_cap, 1L)
  expect_error(stan_data(y ~ x, data, program = "poisson", center = 1:4), "must be given with a cap")
  expect_error(published(y ~ x, data, cap = 1), "published/beta alone")
})

test_that("a script that is not the supplement's is refused", {
  file <- tempfile(fileext = ".R")
  writeLines("weights <- 1", file)
  expect_error(run_supplement(file, matrix(-1, 2, 3)), "it did not")
  expect_error(run_supplement(tempfile(), matrix(-1, 2, 3)), "path of")
})
