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
    outcome <- if (startsWith(program, "beta")) "share" else "y"
    if (program == "bernoulli") outcome <- "I(y > 3)"
    terms <- if (program == "beta") "1" else "x + offset(x / 7)"
    options <- if (program == "normal_mixture") list(n_components = 2) else list()
    formula <- paste(outcome, "~", terms)
    for (weights in list(rep(1, 6), rep(0, 6))) {
      given <- c(list(formula, data, weights, program = program), options)
      got <- do.call(stan_data, given)
      lines <- readLines(file.path(stan_folder(), paste0(program, ".stan")))
      inside <- cumsum(grepl("^data \\{", lines)) - cumsum(grepl("^transformed data", lines)) == 1
      stated <- sub("//.*", "", lines[inside])
      declared <- regmatches(stated, regexpr("\\w+(?=;)", stated, perl = TRUE))
      expect_setequal(names(got), declared)
      expect_true(all(is.finite(unlist(got))), label = program)
    }
  }
})

test_that("outcomes are put on the scale of the program", {
  data <- data.frame(y = c(20, 55, 100, 120), x = 1:4)
  scaled <- stan_data(y ~ x, data, program = "beta_regression", lower = 20, upper = 120)
  expect_equal(c(scaled$y), c(1e-10, 0.35, 0.8, 1 - 1e-10), tolerance = 1e-15)
  of <- function(...) c(stan_data(y ~ x, data, program = "normal_regression", ...)$y)
  expect_equal(of(), data$y)
  expect_equal(of(transform = "log", unit = 10), log(data$y / 10))
  expect_equal(of(transform = "signed_log"), log1p(data$y))
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
