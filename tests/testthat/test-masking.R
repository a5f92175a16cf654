test_that("the closed form of a masked normal is the posterior of a grid", {
  w <- matrix(c(0.2, 1.1, 0.4), 1)
  found <- masked_normal(0.5, 0.8, w, mask_variance = 0.7)
  grid <- seq(-8, 8, length.out = 40001)
  log_density <- stats::dnorm(grid, 0.5, sqrt(0.8), log = TRUE) +
    vapply(grid, function(x) gaussian_mask_log_density(w, x, 0.7), 0)
  p <- exp(log_density - max(log_density))
  p <- p / sum(p)
  expect_equal(found$mean, sum(p * grid), tolerance = 1e-9)
  expect_equal(found$variance, sum(p * grid^2) - sum(p * grid)^2, tolerance = 1e-8)
})

test_that("levels given their mask follow Bayes' rule by enumeration", {
  prior <- rbind(c(0.2, 0.8), c(0.6, 0.4))
  w <- c(1.2, 0.3)
  logs <- cbind(
    mixture_mask_log_density(w, c(0, 0), 2), mixture_mask_log_density(w, c(1, 1), 2)
  )
  joint <- prior * cbind(stats::dnorm(w), stats::dnorm(w, 2))
  expect_equal(masked_level_probabilities(prior, logs), joint / rowSums(joint))
  matrix <- rbind(c(0.9, 0.1), c(0.3, 0.7))
  expect_equal(misclassification_log_density(c(0, 1), c(1, 1), matrix), log(c(0.3, 0.7)))
})

test_that("masks must fit", {
  expect_error(masked_normal(0, 1, matrix(1), 0), "mask_variance must be above 0: found 0",
    class = "pyhybrid_invalid_input"
  )
  expect_error(mixture_mask_log_density(matrix(0, 1, 2), 2, 1), "whole numbers from 0 to 1",
    class = "pyhybrid_invalid_input"
  )
})
