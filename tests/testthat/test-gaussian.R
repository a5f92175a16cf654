test_that("the loss of a conjugate model is found", {
  skip_if_not_installed("loo")
  set.seed(2)
  y <- c(rpois(60, 5), 14)
  shape <- 1 + sum(y)
  rate <- 0.1 + length(y)
  theta <- rgamma(20000, shape, rate)
  loss <- leave_one_out_loss(outer(log(theta), y) - theta)
  for (i in c(1, 61)) {
    exact <- dgamma(theta, shape, rate, log = TRUE) -
      dgamma(theta, shape - y[i], rate - 1, log = TRUE)
    expect_lt(abs(loss$by_record[i] - max(abs(exact))), 0.05)
  }
  expect_true(all(loss$by_record <= loss_ranges(outer(log(theta), y) - theta)$by_record))
})

test_that("no number is below its exact value, and what is exact stays", {
  set.seed(4)
  for (i in 1:300) {
    x <- signif(rgamma(1, 2), sample(3:15, 1))
    m <- sample(1:50, 1)
    expect_gte(rho_of_range(x, m, "replace") / (m * 4 * x^2 / 8), 1 - 1e-15)
    expect_false(pyhybrid:::is_below(
      pyhybrid:::as_decimal(rho_of_range(x, m)),
      Reduce(pyhybrid:::times, lapply(c(x, x, m, 0.125), pyhybrid:::as_decimal))
    ))
    expect_gte(mu_of_release(x, m)^2, x^2 * m)
  }
  expect_identical(rho_of_range(0.5, 20), 0.625)
  expect_identical(epsilon_of_censoring(c(0.5, 0.5000000000000002)), 1.000001)
  expect_identical(epsilon_of_censoring(c(0.1, 0.2)), 0.3)
  charge <- function(epsilon) list(epsilon = epsilon, kind = "strict", relation = "remove")
  expect_identical(compose(lapply(c(1e9, 1e-6), charge)), 1000000000.000001)
  expect_identical(compose(lapply(c(0.1, 0.1, 0.1), charge)), 0.3)
  expect_identical(compose(list()), 0)
})
