test_that("Pareto smoothing is that of loo", {
  skip_if_not_installed("loo")
  set.seed(1)
  for (spread in c(0.05, 1, 5)) {
    term <- spread * rnorm(1000)
    theirs <- suppressWarnings(loo::psis(matrix(-term), r_eff = 1))
    ours <- pyhybrid:::smooth_weights(-term)
    expect_equal(unname(theirs$diagnostics$pareto_k), ours$k, tolerance = 1e-8)
    constant <- log(mean(exp(ours$log_weights)))
    expect_equal(
      as.vector(weights(theirs)), ours$log_weights - constant - log(1000),
      tolerance = 1e-8
    )
  }
})

test_that("the loss of a conjugate model is found", {
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

test_that("the neighbor's deviation is that of a refit", {
  set.seed(3)
  y <- c(rpois(60, 5), 16)
  shape <- 1 + sum(y)
  rate <- 0.1 + length(y)
  term <- function(theta) 16 * log(theta) - theta
  mu <- gaussian_mu(matrix(term(rgamma(20000, shape, rate))))
  refit <- sd(term(rgamma(20000, shape - 16, rate - 1)))
  expect_lt(abs(mu$neighbor_by_record / refit - 1), 0.05)
  expect_gt(mu$neighbor_by_record, mu$by_record)
})

test_that("recomputed changes are those of leaving each record out", {
  log_lik <- rbind(c(-1, -2, -4), c(-1.5, -2, -3))
  f <- c(1.5, 2, 4)
  found <- recomputed_terms(
    log_lik, weights_without(function(kept) weights_from_lipschitz(f[kept]), 3)
  )
  expect_equal(found, rbind(c(-0.6, -1.6, -1.6), c(-1.1, -1.6, -1.6)))
  # Constant weights move nothing: the change is the record's own term.
  held <- recomputed_terms(
    log_lik, weights_without(function(kept) rep(0.5, length(kept)), 3)
  )
  expect_equal(held, 0.5 * log_lik)
  # Control: with the weights held, the riskiest record, of weight 0, seems to tell nothing.
  alpha <- weights_from_lipschitz(f)
  expect_equal(loss_ranges(log_lik, alpha)$by_record[3], 0)
  one <- recomputed_terms(log_lik[, 1, drop = FALSE], weights_without(function(kept) 1, 1))
  expect_equal(one, log_lik[, 1, drop = FALSE])
  expect_error(recomputed_terms(log_lik, 1), class = "pyhybrid_invalid_input")
  expect_error(weights_without(1, 3), class = "pyhybrid_invalid_input")
})
