test_that("scores are slopes of the log density", {
  data <- survey()
  X <- cbind(1, data$age / 50)
  densities <- list(
    poisson = list(data$visits, c(1, 0.3), function(t, eta) dpois(data$visits, exp(eta), log = TRUE)),
    bernoulli = list(data$voted, c(-0.5, 0.2), function(t, eta) {
      dbinom(data$voted, 1, plogis(eta), log = TRUE)
    }),
    normal = list(data$income / 10, c(2, 0.4, -0.2), function(t, eta) {
      dnorm(data$income / 10, eta, exp(t[3]), log = TRUE)
    }),
    negative_binomial = list(data$visits, c(1, 0.3, 0.7), function(t, eta) {
      dnbinom(data$visits, size = exp(t[3]), mu = exp(eta), log = TRUE)
    })
  )
  for (family in names(densities)) {
    y <- densities[[family]][[1]]
    theta <- densities[[family]][[2]]
    log_density <- function(t) densities[[family]][[3]](t, drop(X %*% t[1:2]) + 0.1)
    slopes <- vapply(seq_along(theta), function(k) {
      h <- replace(0 * theta, k, 1e-5)
      (log_density(theta + h) - log_density(theta - h)) / 2e-5
    }, numeric(60))
    expect_equal(record_scores(y, X, theta, family, offset = 0.1), slopes, tolerance = 1e-7,
                 ignore_attr = TRUE, label = family)
  }
  expect_error(record_scores(1:3, diag(2), 1:2, "poisson"), "X must be a matrix with 3 rows")
  expect_error(record_scores(1:2, diag(2), 1, "poisson"), "theta must have 2 elements")
})

test_that("rounds without noise end at the estimate of maximum likelihood, and steps are shortened", {
  data <- survey()
  X <- cbind(1, data$age / 50)
  theta <- c(1, 0)
  simulated <- function(theta) {
    with_randomness(1, aperm(simplify2array(lapply(1:200, function(r) {
      record_scores(rpois(60, exp(drop(X %*% theta))), X, theta, "poisson")
    })), c(3, 1, 2)))
  }
  flat <- diag(1e-8, 2)
  for (round in 1:6) {
    design <- scoring_design(simulated(theta), flat, mu = 1e6, clips = 1e6)
    total <- colSums(clip_scores(record_scores(data$visits, X, theta, "poisson"), design$whitening, 1e6))
    theta <- scoring_step(theta, total, design, -flat %*% theta, flat, 0, predictors = X)
  }
  expect_equal(theta, unname(coef(glm.fit(X, data$visits, family = poisson()))), tolerance = 0.02)
  far <- scoring_step(c(0, 0), c(1e4, 1e4), design, c(0, 0), flat, 0, predictors = X)
  expect_equal(sqrt(mean((X %*% far)^2)), 1.5)
})
