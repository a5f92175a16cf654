test_that("stan_data is the design matrix of R's own formula", {
  data <- data.frame(y = c(3, 0, 2, 5), x = c(1, 2, 3, 5), g = c("b", "a", "b", "a"))
  got <- stan_data(y ~ x * g, data, weights = c(0, 0.5, 1, 1))
  expect_equal(got$X, unname(model.matrix(y ~ x * g, data)), ignore_attr = TRUE)
  expect_equal(c(got$y), data$y)
  expect_equal(c(got$weights), c(0, 0.5, 1, 1))
  expect_equal(dim(got$information_root), c(4L, 4L))
  expect_equal(dim(stan_data(y ~ 1, data)$score), 1L)
  expect_equal(got$normal_prior, 0L)
  normal <- stan_data(y ~ x, data, prior = "normal", prior_scale = 1.5, prior_scale_intercept = 4)
  expect_equal(normal$normal_prior, 1L)
  expect_equal(c(normal$prior_scale), c(4, 1.5))
  # Levels by code point, whatever the locale.
  upper <- transform(data, g = c("b", "B", "b", "B"))
  expect_equal(stan_data(y ~ g, upper)$X[, 2], c(1, 0, 1, 0))
})

test_that("the rough fit is glm's", {
  data <- data.frame(y = c(3, 0, 2, 5, 7), x = 1:5)
  fit <- glm(y ~ x, poisson, data)
  got <- stan_data(y ~ x, data)
  information <- tcrossprod(got$information_root)
  expect_equal(information, solve(vcov(fit)), tolerance = 1e-4, ignore_attr = TRUE)
  expect_equal(c(solve(information, got$score)), unname(coef(fit)), tolerance = 1e-4)
})

test_that("stan_data refuses what the programs cannot take", {
  data <- data.frame(y = c(3, 0, 2), x = c(1, NA, 3), z = c(0.5, 1, 2))
  refused <- function(formula, message, ...) {
    expect_error(stan_data(formula, data, ...), message, class = "pyhybrid_invalid_input")
  }
  refused(y ~ x, "must be finite: record 2 is not")
  refused(z ~ 1, "must be a count >= 0: record 1 is not")
  refused(y ~ nothing, "R cannot evaluate y ~ nothing: .*nothing")
  refused(~y, "formula must be of the form outcome ~ predictors")
  refused(y ~ 1, "prior must be one of", prior = "flat")
  refused(y ~ 1, "prior_scale must be", prior = "normal", prior_scale = 0)
  refused(y ~ 1, "alpha must have 3 elements", weights = 1)
  expect_error(stan_data(y ~ 1, list()), "data must be a data.frame: found list")
})
