# From a data frame and a formula to the data of the count programs.

#' Data of the count programs
#'
#' Outcome, design matrix and weights as `stan/negative_binomial.stan` and `stan/poisson.stan` read
#' them. Rows are never dropped. The rough fit that tells the sampler where to look first
#' (`information_root`, `score`, `center_rphi`, `spread_rphi`) does not move the posterior.
#'
#' @param formula As in [stats::glm()]: outcome, then predictors. Text columns count as factors whose
#'   levels are sorted by code point, as in the Python package.
#' @param data A data frame without missing values in the columns that the formula reads; whole
#'   numbers >= 0 as outcome.
#' @param weights Record weights alpha in \[0, 1\], length n; all 1 if `NULL`.
#' @param prior Prior on the coefficients: `"published"`, the papers', or `"normal"`, independent
#'   normals about 0.
#' @param prior_scale,prior_scale_intercept Standard deviations of the coefficients and of the
#'   intercept under `"normal"`; given, never read from the data.
#' @return A named list for [fit_rstan()]. Confidential.
#' @examples
#' data <- data.frame(visits = c(0, 2, 1, 4), age = c(20, 30, 40, 50))
#' str(stan_data(visits ~ age, data))
#' @export
stan_data <- function(formula, data, weights = NULL, prior = "published", prior_scale = 2.5,
                      prior_scale_intercept = 10) {
  check_choice(prior, "prior", c("published", "normal"))
  check_positive(prior_scale, "prior_scale")
  check_positive(prior_scale_intercept, "prior_scale_intercept")
  design <- read_design(formula, data)
  y <- design$y
  wrong <- which(y < 0 | y != floor(y))
  if (length(wrong) > 0) {
    invalid_input("the outcome must be a count >= 0: record ", wrong[1], " is not")
  }
  n <- length(y)
  K <- ncol(design$X)
  weights <- check_alpha(weights, n)
  rough <- rough_fit(y, design$X, weights)
  list(
    n = n, K = K, y = array(y, n), frequency = array(1, n), weights = array(weights, n),
    X = unname(design$X), normal_prior = as.integer(prior == "normal"),
    prior_scale = array(
      ifelse(colnames(design$X) == "(Intercept)", prior_scale_intercept, prior_scale), K
    ),
    information_root = rough$root, score = array(rough$score, K),
    center_rphi = 0, spread_rphi = 1, emit_log_lik = 1, use_cap = 0, cap_below = 0, cap_above = 0,
    reference = array(0, n), n_units = 0, unit = array(0L, n)
  )
}

# Outcome y (n,) and design matrix X (n, K) of a formula, or of its text.
read_design <- function(formula, data) {
  formula <- tryCatch(stats::as.formula(formula, env = terms_home()), error = function(problem) {
    invalid_input("formula must be of the form outcome ~ predictors: ", conditionMessage(problem))
  })
  if (length(formula) != 3) {
    invalid_input("formula must be of the form outcome ~ predictors: found ", deparse1(formula))
  }
  if (!is.data.frame(data)) {
    invalid_input("data must be a data.frame: found ", class(data)[1])
  }
  data[] <- lapply(data, function(column) {
    if (is.character(column)) factor(column, sort(unique(column), method = "radix")) else column
  })
  frame <- tryCatch(
    stats::model.frame(formula, data, na.action = stats::na.pass),
    error = function(problem) {
      invalid_input("R cannot evaluate ", deparse1(formula), ": ", conditionMessage(problem))
    }
  )
  y <- check_vector(stats::model.response(frame), "the outcome")
  X <- stats::model.matrix(formula, frame)
  missing <- which(!is.finite(y) | !is.finite(rowSums(X)))
  if (length(missing) > 0) {
    invalid_input(
      "outcome and predictors must be finite: record ", missing[1], " is not; ",
      "drop or impute such records before synthesis"
    )
  }
  list(y = unname(y), X = X)
}

# Where the terms of a formula given as text are looked up: splines are at hand, as in Python.
terms_home <- function() {
  list2env(list(bs = splines::bs, ns = splines::ns), parent = globalenv())
}

# A Poisson fit as the programs take it: the Cholesky factor of its information, and the gradient
# that its quadratic approximation has at 0; zeros where there is none.
rough_fit <- function(y, X, weights) {
  none <- list(root = diag(0, ncol(X)), score = rep(0, ncol(X)))
  tryCatch(
    {
      fit <- suppressWarnings(
        stats::glm.fit(X, y, weights, family = stats::quasipoisson())
      )
      information <- crossprod(X * sqrt(weights * fit$fitted.values))
      root <- unname(t(chol(information)))
      score <- drop(information %*% fit$coefficients)
      if (all(is.finite(score))) list(root = root, score = unname(score)) else none
    },
    error = function(problem) none
  )
}

# Versions of R, its platform and packages, for the record; "" for what is not installed.
versions <- function(packages) {
  version <- function(name) {
    tryCatch(as.character(utils::packageVersion(name)), error = function(missing) "")
  }
  c(
    list(R = as.character(getRversion()), platform = R.version$platform),
    sapply(packages, version, simplify = FALSE)
  )
}
