random_log_lik <- function(draws, n) matrix(-rexp(draws * n, 0.4), draws)

test_that("the leave-one-out loop and the identity give the same bounds", {
  set.seed(1)
  for (q in c(1, 0.9)) {
    log_lik <- random_log_lik(40, 25)
    alpha <- runif(25)
    fast <- lipschitz_bounds(log_lik, alpha, q)
    loop <- lipschitz_bounds_loo(log_lik, alpha, q)
    # The loop subtracts sums of 25 terms: it loses about two digits.
    expect_equal(loop$by_record, fast$by_record, tolerance = 1e-12)
    expect_equal(loop$overall, fast$overall, tolerance = 1e-12)
    expect_equal(loop$kept_draws, fast$kept_draws)
  }
})

test_that("the loop refuses what it cannot do, naming record and draw", {
  log_lik <- rbind(c(-1, -2), c(-1, -Inf))
  expect_error(
    lipschitz_bounds_loo(log_lik), "record 2, draw 2 is -Inf; use lipschitz_bounds()",
    class = "pyhybrid_invalid_input", fixed = TRUE
  )
})

test_that("missing values count as NaN, data frames as matrices", {
  expect_equal(lipschitz_bounds(rbind(c(NA, -1)))$by_record, c(Inf, 1))
  expect_equal(lipschitz_bounds(data.frame(a = c(-1, -3), b = -2))$by_record, c(a = 3, b = 2))
})

test_that("risks are those of a double loop over records", {
  set.seed(2)
  y <- round(rnorm(60, 5, 3), 1)
  group <- sample(c("a", NA, "b"), 60, TRUE)
  for (kind in c("relative", "absolute")) {
    radius <- radius_risk(y, 0.3, kind, group)
    pair <- pairwise_risk(y, 0.3, kind, group)
    for (i in seq_along(y)) {
      among <- which(group %in% group[i])
      outside <- function(j) {
        abs(y[among] - y[j]) > if (kind == "relative") 0.3 * abs(y[j]) else 0.3
      }
      expect_equal(radius[i], mean(outside(i)), tolerance = 1e-14)
      others <- vapply(setdiff(among, i), function(j) mean(outside(i) & outside(j)), 0)
      expect_equal(pair[i], mean(others), tolerance = 1e-13)
    }
  }
})

test_that("results print what they are", {
  expect_output(print(lipschitz_bounds(rbind(c(-1, -4)))), "overall bound:  4 .*epsilon of one draw: 8")
  expect_output(print(lipschitz_bounds(rbind(-1, -4), draw_quantile = 0.5)), "1 of 2 .*draw_quantile 0.5")
  expect_output(print(combine_nested(rbind(c(-3, 3), c(3, -3)), matrix(0.01, 2, 2))), "replaced in 1")
})

test_that("efficiency is 1 without slack and takes nothing but bounds", {
  expect_equal(efficiency(lipschitz_bounds(rbind(c(-2, -2)))), 1)
  expect_equal(efficiency(lipschitz_bounds(rbind(c(0, 0)))), 1)
  expect_equal(efficiency(lipschitz_bounds(rbind(c(-1, -4)))), 0.625)
  expect_error(efficiency(3), "bounds must be a result of", class = "pyhybrid_invalid_input")
})
