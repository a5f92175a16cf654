log_lik <- matrix(-rexp(60, 0.5), 15, dimnames = list(NULL, c("ann", "ben", "cleo", "dan")))
three_d <- aperm(array(log_lik, c(5, 3, 4)), 1:3) # 3 chains of 5

test_that("matrices, data frames and arrays of loo are read alike, and keep names", {
  expect_equal(names(lipschitz_bounds(log_lik)$by_record), colnames(log_lik))
  for (f in list(lipschitz_weights, function(x) loss_ranges(x)$by_record,
                 gaussian_mu)) {
    expect_equal(names(f(log_lik)), colnames(log_lik))
    expect_equal(f(as.data.frame(log_lik)), f(log_lik))
    expect_equal(unname(f(three_d)), unname(f(log_lik)))
  }
  expect_equal(attr(as_loglik(three_d), "chains"), 3)
})

test_that("results of bounds chain", {
  bounds <- lipschitz_bounds(log_lik)
  alpha <- weights_from_lipschitz(bounds)
  expect_equal(alpha, lipschitz_weights(log_lik))
  expect_equal(reweight(alpha, bounds), reweight(alpha, bounds$by_record))
  expect_equal(truncate_weights(alpha, bounds, 1), truncate_weights(alpha, bounds$by_record, 1))
  expect_equal(epsilon_of_bound(bounds), epsilon_of_bound(bounds$overall))
  expect_equal(as.data.frame(bounds)$record, colnames(log_lik))
})

test_that("draws of posterior in every format are the same, .chain is no record", {
  skip_if_not_installed("posterior")
  named <- three_d
  dimnames(named) <- list(NULL, NULL, paste0("log_lik[", 1:4, "]"))
  draws <- posterior::as_draws_array(named)
  more <- posterior::bind_draws(draws, posterior::as_draws_array(
    array(9e9, c(5, 3, 1), list(NULL, NULL, "lp__"))
  ))
  for (format in c("array", "df", "matrix", "list", "rvars")) {
    as_format <- getExportedValue("posterior", paste0("as_draws_", format))
    by_record <- lipschitz_bounds(as_format(draws))$by_record
    expect_equal(by_record, apply(abs(log_lik), 2, max), ignore_attr = TRUE)
    expect_equal(lipschitz_bounds(as_format(more))$overall, max(abs(log_lik)))
    expect_equal(attr(as_loglik(as_format(draws)), "chains"), 3)
  }
  expect_equal(lipschitz_bounds(posterior::as_draws_matrix(unname(log_lik)))$overall, max(abs(log_lik)))
  other <- posterior::as_draws_array(array(1, c(2, 1, 1), list(NULL, NULL, "mu")))
  expect_error(as_loglik(other), "must have a variable 'log_lik'.*found mu", class = "pyhybrid_invalid_input")
})

test_that("arrays are read as loo reads them", {
  skip_if_not_installed("loo")
  mean <- loo::relative_eff(exp(three_d))
  expect_equal(mean, loo::relative_eff(exp(unname(as_loglik(three_d))), chain_id = rep(1:3, each = 5)))
})

test_that("what is no log-likelihood is refused, with its dimension and the function", {
  refused <- function(x, message) {
    problem <- tryCatch(lipschitz_bounds(x), error = identity)
    expect_s3_class(problem, "pyhybrid_invalid_input")
    expect_match(conditionMessage(problem), message)
    expect_identical(conditionCall(problem), quote(lipschitz_bounds()))
  }
  refused(NULL, "found NULL")
  refused(1:3, "found length 3")
  refused(array(1, c(2, 2, 2, 2)), "found \\(2, 2, 2, 2\\)")
  refused(matrix(0, 0, 3), "found \\(0, 3\\)")
  refused(list(1), "found list")
  refused(data.frame(a = 1, b = "x"), "column 'b' is character")
  refused(lm(dist ~ speed, cars), "found lm")
  for (function_of_cap in c("censor", "center_and_censor", "frozen_excess")) {
    problem <- tryCatch(do.call(function_of_cap, list(log_lik)), error = identity)
    expect_match(conditionMessage(problem), "cap must be given")
  }
  expect_error(truncate_weights(1, 1), "cap must be given")
  # The call of a condition holds no data.
  problem <- tryCatch(do.call(lipschitz_bounds, list(rbind(-1, -2), 7)), error = identity)
  expect_null(conditionCall(problem))
})

test_that("one record and one draw are no special case", {
  expect_equal(lipschitz_bounds(matrix(-2))$by_record, 2)
  expect_equal(lipschitz_weights(matrix(-2)), 1)
  expect_equal(loss_ranges(matrix(c(-2, -3)))$by_record, 1)
})
