# From a data frame and a formula to the data of each program in stan/.

#' Data of the Stan programs
#'
#' Outcome, design matrix, offset and weights as the programs in `stan/` read them: the same as the
#' Python package hands over, one row per record. Rows are never dropped. The rough fit, location
#' and scale of the reparametrization (such as `information_root` and `score`), is R's own; the
#' posterior does not depend on it.
#'
#' @param formula As in [stats::glm()]: outcome, then predictors; an [offset()][stats::offset()] is
#'   added to the linear predictor. Text columns count as factors whose levels are sorted by code
#'   point, as in the Python package.
#' @param data A data frame without missing values in the columns that the formula reads.
#' @param weights Record weights alpha in \[0, 1\], a vector of length n; all 1 if `NULL`.
#' @param program Name of the program: `"bernoulli"` takes outcomes 0 and 1, `"categorical"` and
#'   `"ordinal"` text, factors, logicals and numbers, `"negative_binomial"` and `"poisson"` whole
#'   numbers >= 0,
#'   `"beta"` (without predictors) and `"beta_regression"` outcomes in \[lower, upper\],
#'   `"normal_regression"` and `"normal_mixture"` continuous ones, `"gamma_regression"` positive ones.
#'   `"published/negative_binomial"` and the others in
#'   `stan/published` are the programs as the papers print or describe them, with their names.
#' @param prior Prior on the coefficients: `"published"`, the papers', or `"normal"`, independent
#'   normals about 0; if `NULL`, `"normal"` for `"bernoulli"` and `"gamma_regression"`, and
#'   `"published"` for the others. Not
#'   for `"beta"` and `"normal_mixture"`.
#' @param prior_scale,prior_scale_intercept Standard deviations of the coefficients and of the
#'   intercept under `"normal"`; given, never read from the data.
#' @param levels Of `"categorical"` and `"ordinal"`: all values of the outcome, in their order; if
#'   `NULL` those of the factor, else those that are there, sorted.
#' @param lower,upper Smallest and largest outcome; given, never read from the data. `upper` is
#'   without a limit for counts, and 1 for the beta programs, if `NULL`. For counts and
#'   the beta programs.
#' @param edge Of the beta programs: outcomes nearer to an end are moved to this distance from it, on
#'   the unit scale.
#' @param transform,unit,min_sd Of the normal programs: the likelihood is that of the transform
#'   (`"identity"`, `"log"` or `"asinh"`) of the outcome divided by `unit`; `min_sd`
#'   is the lower end of the prior of the standard deviation.
#' @param n_components Of `"normal_mixture"`: number of components.
#' @param cap M in nats, or `c(a, b)`: each weighted term is clipped at it, as in [censor()]; not if
#'   `NULL`. Of the published programs `"published/beta"` alone is printed with one.
#' @param center With a cap: c_i in nats, a vector of length n, taken from each term before it is
#'   clipped, as in [center_and_censor()]; not for the published programs.
#' @return A named list for [fit_rstan()]. Confidential.
#' @examples
#' data <- data.frame(visits = c(0, 2, 1, 4), age = c(20, 30, 40, 50), nights = c(1, 3, 2, 5))
#' str(stan_data(visits ~ age + offset(log(nights)), data, program = "poisson"))
#' str(stan_data(age ~ 1, data, program = "normal_regression", transform = "log", unit = 10))
#' @export
stan_data <- function(formula, data, weights = NULL, program = "negative_binomial",
                      prior = NULL, prior_scale = 2.5, prior_scale_intercept = 10, levels = NULL,
                      lower = 0, upper = NULL, edge = 1e-10, transform = "identity", unit = 1,
                      min_sd = 0, n_components = 5, cap = NULL, center = NULL) {
  design <- program_design(
    formula, data, program, prior, prior_scale, prior_scale_intercept, levels, lower, upper, edge,
    transform, unit, min_sd, n_components,
    given = names(match.call())
  )
  program_data(design, check_alpha(weights, length(design$y)), cap, center)
}

# What a program reads of a table but for weights and cap: outcome on its scale (n), X (n, K), offset
# (n), and the settings that do not depend on the records.
program_design <- function(formula, data, program, prior = NULL, prior_scale = 2.5,
                           prior_scale_intercept = 10, levels = NULL, lower = 0, upper = NULL,
                           edge = 1e-10, transform = "identity", unit = 1, min_sd = 0,
                           n_components = 5, given = character()) {
  published <- isTRUE(startsWith(as.character(program), "published/"))
  if (published) {
    check_choice(program, "program", paste0("published/", names(published_names)))
    program <- sub("published/", "", program)
  }
  check_choice(program, "program", names(options_of_programs))
  check_options(program, given)
  if (published && !is.null(prior) && prior != "published") {
    invalid_input("prior must be \"published\" for the published programs")
  }
  if (is.null(prior)) prior <- if (program %in% normal_by_default) "normal" else "published"
  check_choice(prior, "prior", c("published", "normal"))
  scales <- c(
    check_positive(prior_scale_intercept, "prior_scale_intercept"),
    check_positive(prior_scale, "prior_scale")
  )
  many <- program %in% programs_of_levels
  design <- if (many) {
    read_design(formula, data, function(y) places_of(y, levels))
  } else {
    read_design(formula, data)
  }
  X <- design$X
  if (program == "beta" && !(identical(colnames(X), "(Intercept)") && all(design$offset == 0))) {
    invalid_input("program 'beta' takes no predictors: formula must be outcome ~ 1")
  }
  if (many && any(design$offset != 0)) invalid_input("program '", program, "' takes no offset()")
  if (published && any(design$offset != 0)) {
    invalid_input("the published programs take no offset()")
  }
  if (is.null(upper)) upper <- if (startsWith(program, "beta")) 1 else .Machine$integer.max
  if (check_finite(min_sd, "min_sd") < 0) invalid_input("min_sd must be >= 0")
  y <- outcome_of(program, design$y, lower, upper, edge, transform, unit)
  n_components <- check_count(n_components, "n_components")
  if (program == "normal_mixture" && n_components > length(y)) {
    invalid_input("n_components must be at most the number of records, ", length(y))
  }
  c(design[c("X", "offset")], list(
    y = y,
    program = program, published = published, outcome = outcome_name(formula),
    lower = lower, upper = upper, transform = transform, unit = unit, min_sd = min_sd,
    n_components = n_components, n_levels = length(attr(design$y, "levels")),
    normal_prior = prior == "normal", prior_scale = scales[2 - (colnames(X) == "(Intercept)")]
  ))
}

outcome_of <- function(program, y, lower, upper, edge, transform, unit) {
  if (program %in% programs_of_levels) {
    return(y)
  }
  if (startsWith(program, "normal")) {
    return(transformed_outcome(y, transform, unit))
  }
  if (program == "gamma_regression") {
    first_wrong(y <= 0, "be above 0")
    return(y / check_positive(unit, "unit"))
  }
  if (startsWith(program, "beta")) {
    return(unit_outcome(y, lower, upper, edge))
  }
  if (program == "bernoulli") {
    first_wrong(!y %in% c(0, 1), "be 0 or 1")
    return(y)
  }
  count_outcome(y, lower, upper)
}

# The data block of a design's program.
program_data <- function(design, weights, cap = NULL, center = NULL) {
  n <- length(design$y)
  y <- design$y
  X <- design$X
  labelled <- function(data) structure(data, coefficients = colnames(X))
  if (design$published) {
    return(labelled(as_published(design, weights, cap, center)))
  }
  rows <- list(n = n, y = array(y, n), frequency = array(1, n), weights = array(weights, n))
  linear <- list(K = ncol(X), X = unname(X), offsets = array(design$offset, n))
  priors <- list(
    normal_prior = as.integer(design$normal_prior),
    prior_scale = array(design$prior_scale, ncol(X))
  )
  own <- switch(design$program,
    categorical = ,
    ordinal = c(linear[c("K", "X")], priors["prior_scale"], list(n_levels = design$n_levels)),
    beta = beta_sums(y, weights),
    normal_regression = c(linear, priors, list(min_sd = design$min_sd)),
    normal_mixture = c(linear, design[c("min_sd", "n_components")]),
    c(linear, priors)
  )
  hints <- rough_fit(design$program, y, X, weights, design$offset, own)
  labelled(c(rows, own, hints, cap_data(n, cap, center)))
}

# A design without record i: the same columns, whatever its levels are.
without_record <- function(design, i) {
  design$y <- structure(design$y[-i], levels = attr(design$y, "levels"))
  design$X <- design$X[-i, , drop = FALSE]
  design$offset <- design$offset[-i]
  design
}

# What the papers' programs read, by its name in them.
published_names <- list(
  negative_binomial = c("n", "K", "y", "weights", "X"),
  poisson = c("n", "K", "y", "weights", "X"),
  beta = c("n", "outcome", "alpha", "M"),
  beta_regression = c("n", "K", "outcome", "alpha", "X"),
  normal_mixture = c("n", "P", "K", "y", "weights", "X")
)

as_published <- function(design, weights, cap, center) {
  if (!is.null(center) || (!is.null(cap) && design$program != "beta")) {
    invalid_input("cap must be given for published/beta alone, and center for no published program")
  }
  n <- length(design$y)
  y <- as.vector(design$y)
  P <- ncol(design$X)
  all <- list(
    n = n, P = P, K = if (design$program == "normal_mixture") design$n_components else P,
    X = unname(design$X), y = array(y, n), outcome = array(y, n), weights = array(weights, n),
    alpha = array(weights, n), M = if (is.null(cap)) 1e300 else check_positive(cap, "cap")
  )
  all[published_names[[design$program]]]
}

programs_of_levels <- c("categorical", "ordinal")

normal_by_default <- c("bernoulli", "gamma_regression")

# What each program takes beside formula, data and weights.
options_of_programs <- local({
  prior <- c("prior", "prior_scale", "prior_scale_intercept")
  normal <- c("transform", "unit", "min_sd")
  list(
    negative_binomial = c(prior, "lower", "upper"),
    poisson = c(prior, "lower", "upper"),
    bernoulli = prior,
    categorical = c("prior_scale", "prior_scale_intercept", "levels"),
    ordinal = c("prior_scale", "prior_scale_intercept", "levels"),
    beta = c("lower", "upper", "edge"),
    beta_regression = c(prior, "lower", "upper", "edge"),
    normal_regression = c(prior, normal),
    gamma_regression = c(prior, "unit"),
    normal_mixture = c(normal, "n_components")
  )
})

check_options <- function(program, given) {
  known <- options_of_programs[[program]]
  wrong <- setdiff(intersect(given, unlist(options_of_programs)), known)
  if (length(wrong) > 0) {
    invalid_input(
      "program '", program, "' takes ", paste(known, collapse = ", "), ": found ", wrong[1]
    )
  }
}

first_wrong <- function(wrong, must) {
  if (any(wrong)) invalid_input("the outcome must ", must, ": record ", which(wrong)[1], " is not")
}

count_outcome <- function(y, lower, upper) {
  check_count(lower, "lower", at_least = 0)
  if (check_count(upper, "upper") <= lower) invalid_input("upper must be above lower")
  first_wrong(y < 0 | y != floor(y), "be a count >= 0")
  first_wrong(y < lower | y > upper, paste0("be in [", short(lower), ", ", short(upper), "]"))
  y
}

# Scaled to the unit interval, at least `edge` from its ends.
unit_outcome <- function(y, lower, upper, edge) {
  if (check_finite(upper, "upper") <= check_finite(lower, "lower")) {
    invalid_input("upper must be above lower")
  }
  if (check_positive(edge, "edge") >= 0.1) invalid_input("edge must lie in (0, 0.1)")
  first_wrong(y < lower | y > upper, paste0("be in [", short(lower), ", ", short(upper), "]"))
  pmin(pmax((y - lower) / (upper - lower), edge), 1 - edge)
}

transformed_outcome <- function(y, transform, unit) {
  check_choice(transform, "transform", c("identity", "log", "asinh"))
  v <- y / check_positive(unit, "unit")
  first_wrong(abs(y) > 2^53, "be at most 2^53 in size")
  if (transform == "log") first_wrong(y <= 0, "be above 0 for transform 'log'")
  switch(transform,
    identity = v,
    log = log(v),
    asinh = asinh(v)
  )
}

# The sums that stand for the records where nothing is clipped.
beta_sums <- function(y, weights) {
  list(
    total_weight = sum(weights), sum_log = sum(weights * log(y)),
    sum_log1m = sum(weights * log1p(-y))
  )
}

# Terms are clipped if there is a cap, about a center if there is one; log_lik is written.
cap_data <- function(n, cap, center) {
  caps <- if (is.null(cap)) c(0, 0) else check_caps(cap)
  if (is.null(cap) && !is.null(center)) invalid_input("center must be given with a cap: found none")
  center <- if (is.null(center)) rep(0, n) else check_vector(center, "center", n)
  list(
    emit_log_lik = 1, use_cap = as.integer(!is.null(cap)), cap_below = caps[1],
    cap_above = caps[2], reference = array(center, n), n_units = 0, unit = array(0L, n),
    n_frozen = 0, farthest = 0, steep = 0
  )
}
