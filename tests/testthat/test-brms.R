test_that("fits of brms are read, weights divided out", {
  skip_if_not_installed("brms")
  fits <- readRDS(test_path("stored", "brms.rds"))
  data <- fits$plain$data
  for (fit in fits) {
    draws <- posterior::as_draws_matrix(fit)
    eta <- tcrossprod(as.matrix(draws[, c("b_Intercept", "b_x")]), cbind(1, data$x))
    by_hand <- matrix(dpois(rep(data$y, each = nrow(eta)), exp(eta), log = TRUE), nrow(eta))
    expect_equal(unname(as_loglik(fit)), by_hand, tolerance = 1e-6, ignore_attr = TRUE)
    expect_equal(attr(as_loglik(fit), "chains"), 2)
    expect_equal(lipschitz_bounds(fit)$overall, max(abs(by_hand)), tolerance = 1e-6)
  }
  # brms::log_lik() has the weights in it: taken as it is, they would count twice.
  weighted <- brms::log_lik(fits$weighted)
  alpha <- fits$weighted$data$w
  expect_equal(unname(as_loglik(fits$weighted)) * rep(alpha, each = nrow(weighted)), unname(weighted),
               ignore_attr = TRUE)
  lost <- fits$weighted
  lost$data$w[5] <- 0
  expect_error(as_loglik(lost), "weights above 0.*record 5 has 0", class = "pyhybrid_invalid_input")
})
