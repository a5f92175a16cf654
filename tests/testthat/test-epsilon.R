test_that("twice a decimal is not rounded past itself", {
  bounds <- seq_len(2000) / 100
  expect_equal(vapply(bounds, epsilon_of_bound, 0), 2 * bounds, tolerance = 1e-15)
})

test_that("anything above a step is rounded up, never down", {
  set.seed(3)
  bounds <- runif(300, 0, 20)
  epsilon <- vapply(bounds, epsilon_of_bound, 0)
  expect_true(all(epsilon >= 2 * bounds & epsilon < 2 * bounds + 0.01 + 1e-12))
  expect_equal(epsilon_of_bound(0.15 * (1 + 1e-15)), 0.31)
})

test_that("long products are exact", {
  expect_equal(ceiling_at(times(as_decimal(99999), as_decimal(99999)), 2), 9999800001)
  expect_equal(ceiling_at(times(as_decimal(1.005), as_decimal(1e-5)), 6), 1.1e-5)
  expect_equal(epsilon_of_bound(1e30), 2e30)
})

test_that("charges must be charges", {
  expect_error(compose(list(3)), "charges must be a list", class = "pyhybrid_invalid_input")
})

test_that("confint gives the same intervals in the form of stats", {
  estimates <- cbind(a = c(1.0, 1.2, 0.9), b = c(3, 5, 4))
  both <- combine_multiple_imputation(estimates, estimates / 20)
  limits <- confint(both, level = 0.9)
  expect_equal(dimnames(limits), list(c("a", "b"), c("5 %", "95 %")))
  half <- stats::qt(0.95, both$df) * sqrt(both$variance)
  expect_equal(limits[, 1], both$estimate - half)
  expect_equal(limits[, 2], both$estimate + half)
  expect_equal(confint(both, "b"), confint(both)["b", , drop = FALSE])
  expect_equal(confint(both, 2), confint(both, "b"))
  one <- combine_multiple_imputation(estimates[, "a"], estimates[, "a"] / 20)
  expect_equal(unname(confint(one)[1, ]), unname(confint(both, "a")[1, ]))
  expect_equal(colnames(confint(one)), c("2.5 %", "97.5 %"))
  expect_error(confint(both, level = 1), "level must lie in (0, 1): found 1", fixed = TRUE)
  expect_error(confint(both, "c"), "names or numbers of estimates (a, b): found c", fixed = TRUE)
})

test_that("noise that is not a number is refused", {
  expect_error(
    perturbed_probabilities(c(1, NaN), c(0, 0)), "bin 2 is not",
    class = "pyhybrid_invalid_input"
  )
})

test_that("charges by person and by record do not add", {
  record <- list(epsilon = 2, kind = "strict", relation = "remove")
  person <- c(record, list(unit = "person"))
  expect_equal(compose(list(person, person)), 4)
  expect_error(
    compose(list(record, person)), "unit: found strict, remove all records of one person; strict",
    class = "pyhybrid_invalid_input"
  )
})
