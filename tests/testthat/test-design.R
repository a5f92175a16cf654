test_that("stan_data is the design matrix of R's own formula", {
  data <- data.frame(y = c(3, 0, 2, 5), x = c(1, 2, 3, 5), g = c("b", "a", "b", "a"))
  got <- stan_data(y ~ x * g, data, weights = c(0, 0.5, 1, 1))
  expect_equal(got$X, unname(model.matrix(y ~ x * g, data)), ignore_attr = TRUE)
  expect_equal(c(got$y), data$y)
  expect_equal(c(got$weights), c(0, 0.5, 1, 1))
  expect_equal(c(got$offsets), rep(0, 4))
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

test_that("offsets are those of R's own formula", {
  data <- data.frame(y = c(3, 0, 2, 5), x = c(1, 2, 3, 5), nights = c(1, 4, 2, 8))
  got <- stan_data(y ~ x + offset(log(nights)) + offset(x / 10), data, program = "poisson")
  expect_equal(c(got$offsets), log(data$nights) + data$x / 10)
  expect_equal(dim(got$X), c(4L, 2L))
  # The hints are glm's fit: the gradient of the quadratic vanishes at its coefficients.
  fit <- glm(y ~ x + offset(log(nights)) + offset(x / 10), poisson, data)
  information <- tcrossprod(got$information_root)
  expect_equal(solve(information, got$score), unname(coef(fit)), tolerance = 1e-6)
  expect_equal(solve(information), unname(vcov(fit)), tolerance = 1e-4)
})

test_that("every program gets the data that its block declares", {
  y <- c(3, 1, 2, 5, 7, 4)
  data <- data.frame(y = y, share = y / 10, x = c(1, 2, 3, 5, 4, 9))
  for (program in names(options_of_programs)) {
    outcome <- if (program %in% c("beta", "beta_regression")) "share" else "y"
    if (program == "bernoulli") outcome <- "I(y > 3)"
    terms <- if (program == "beta") "1" else "x + offset(x / 7)"
    if (program %in% programs_of_levels) terms <- "x"
    options <- switch(program, normal_mixture = list(n_components = 2), list())
    formula <- paste(outcome, "~", terms)
    for (weights in list(rep(1, 6), rep(0, 6))) {
      given <- c(list(formula, data, weights, program = program), options)
      got <- do.call(stan_data, given)
      lines <- strsplit(program_text(program), "\n")[[1]]
      inside <- cumsum(grepl("^data \\{", lines)) - cumsum(grepl("^transformed data", lines)) == 1
      stated <- sub("//.*", "", lines[inside])
      declared <- regmatches(stated, regexpr("\\w+(?=;)", stated, perl = TRUE))
      expect_setequal(names(got), declared)
      expect_true(all(is.finite(unlist(got))), label = program)
    }
  }
})

test_that("levels are those of the factor, those given, or those that are there", {
  data <- data.frame(x = 1:4, way = c("b", "a", "B", "a"))
  of <- function(way, ...) {
    data$way <- way
    c(stan_data(way ~ x, data, program = "categorical", ...)[c("n_levels", "y")], recursive = TRUE)
  }
  expect_equal(unname(of(data$way)), c(3, 3, 2, 1, 2)) # by code point
  expect_equal(unname(of(data$way, levels = c("a", "b", "B", "z"))), c(4, 2, 1, 3, 1))
  expect_equal(unname(of(factor(data$way, c("b", "a", "B", "z")))), c(4, 1, 2, 3, 2))
  expect_equal(unname(of(c(TRUE, FALSE, TRUE, TRUE))), c(2, 2, 1, 2, 2))
  expect_equal(unname(of(c(5, 2, 2, 5))), c(2, 2, 1, 1, 2))
  refused <- function(message, ...) expect_error(of(...), message, class = "pyhybrid_invalid_input")
  refused("must be one of its levels: record 3 is not", data$way, levels = c("a", "b"))
  refused("at least 2 different values: found 2", data$way, levels = c("a", "a"))
  refused("must be finite: record 2 is not", c("a", NA, "b", "a"))
  expect_error(
    stan_data(way ~ offset(x), data, program = "categorical"), "takes no offset",
    class = "pyhybrid_invalid_input"
  )
})

test_that("the hints of an ordinal fit are the shares of the levels", {
  data <- data.frame(way = factor(rep(c("a", "b", "c"), c(5, 3, 2))), x = c(1:9, 2), z = 4)
  got <- stan_data(way ~ x, data, program = "ordinal")
  expect_equal(c(got$center), c(log(c(5, 3, 2) + 0.5), 0))
  expect_equal(got$factor[1, ], c(0, 0, 0)) # the most common level is held
  expect_equal(c(got$middle), c(0, 4.7))
  expect_equal(dim(stan_data(way ~ 1, data, program = "ordinal")$factor), c(3L, 2L))
  expect_error(
    stan_data(way ~ 0 + x, data, program = "ordinal"), "must have an intercept",
    class = "pyhybrid_invalid_input"
  )
})

test_that("the hints of a categorical fit make prior and information diagonal", {
  data <- data.frame(way = rep(c("a", "b", "c"), c(5, 3, 2)), x = c(1:9, 2))
  got <- stan_data(way ~ x, data, program = "categorical")
  basis <- kronecker(got$level_basis, got$column_basis)
  prior <- kronecker(2 * (diag(2) - 1 / 3), diag(1 / c(10, 2.5)^2))
  expect_equal(crossprod(basis, prior %*% basis), diag(4))
  shares <- (c(5, 3, 2) + 0.5) / 11.5
  curvature <- (diag(shares) - outer(shares, shares))[-1, -1]
  known <- crossprod(basis, kronecker(curvature, crossprod(got$X)) %*% basis)
  expect_equal(known, diag(1 / c(got$spread_beta)^2 - 1))
})

test_that("outcomes are put on the scale of the program", {
  data <- data.frame(y = c(20, 55, 100, 120), x = 1:4)
  scaled <- stan_data(y ~ x, data, program = "beta_regression", lower = 20, upper = 120)
  expect_equal(c(scaled$y), c(1e-10, 0.35, 0.8, 1 - 1e-10), tolerance = 1e-15)
  of <- function(...) c(stan_data(y ~ x, data, program = "normal_regression", ...)$y)
  expect_equal(of(), data$y)
  expect_equal(of(transform = "log", unit = 10), log(data$y / 10))
  expect_equal(of(transform = "asinh"), asinh(data$y))
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
  refused(y ~ z, "must be one of negative_binomial, poisson", program = "nb")
  refused(z ~ 1, "takes lower, upper, edge: found prior", program = "beta", prior = "normal")
  refused(z ~ y, "takes no predictors", program = "beta", upper = 2)
  refused(y ~ 1, "be in \\[0, 1\\]: record 1 is not", program = "beta")
  refused(y ~ 1, "be in \\[0, 2\\]: record 1 is not", upper = 2)
  refused(y ~ 1, "above 0 for transform 'log': record 2", program = "normal_mixture",
          transform = "log")
  refused(y ~ 1, "at most the number of records, 3", program = "normal_mixture")
  refused(y ~ z + offset(log(y)), "must be finite: record 2 is not")
  expect_error(stan_data(y ~ 1, list()), "data must be a data.frame: found list")
})
