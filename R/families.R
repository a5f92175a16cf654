# Families of synthesizers: log-likelihoods and replicates at draws of a program's parameters.

# `size` is the program's name of the second parameter. Densities and draws take the mean (linear
# predictor through `mean_of`) and the size, on the program's scale.
family_in_r <- function(program, size, mean_of, density, draw, above_one = FALSE) {
  list(program = program, size = size, mean_of = mean_of, density = density, draw = draw,
       above_one = above_one)
}

beta_density <- function(y, mean, size) {
  stats::dbeta(y, size * mean, size * (1 - mean), log = TRUE)
}

beta_draw <- function(n, mean, size) stats::rbeta(n, size * mean, size * (1 - mean))

families_in_r <- list(
  poisson = family_in_r(
    "poisson", NULL, exp,
    function(y, mean, size) stats::dpois(y, mean, log = TRUE),
    function(n, mean, size) stats::rpois(n, mean)
  ),
  negative_binomial = family_in_r(
    "negative_binomial", "phi", exp,
    function(y, mean, size) stats::dnbinom(y, size = size, mu = mean, log = TRUE),
    function(n, mean, size) stats::rnbinom(n, size = size, mu = mean)
  ),
  bernoulli = family_in_r(
    "bernoulli", NULL, stats::plogis,
    function(y, mean, size) stats::dbinom(y, 1, mean, log = TRUE),
    function(n, mean, size) stats::rbinom(n, 1, mean)
  ),
  normal = family_in_r(
    "normal_regression", "sigma", identity,
    function(y, mean, size) stats::dnorm(y, mean, size, log = TRUE),
    function(n, mean, size) stats::rnorm(n, mean, size), above_one = TRUE
  ),
  beta = family_in_r("beta", "lambda", identity, beta_density, beta_draw, above_one = TRUE),
  beta_regression = family_in_r(
    "beta_regression", "lambda", stats::plogis, beta_density, beta_draw, above_one = TRUE
  )
)

# A family by its name here, or an object of stats such as poisson().
family_of <- function(family) {
  if (is.function(family)) family <- family()
  if (inherits(family, "family")) {
    links <- c(poisson = "log", binomial = "logit", gaussian = "identity")
    if (!identical(unname(links[family$family]), family$link)) {
      invalid_input(
        "family must be poisson(), binomial() or gaussian() with its default link, or one of ",
        paste(names(families_in_r), collapse = ", "), ": found ", family$family, "(", family$link, ")"
      )
    }
    family <- c(poisson = "poisson", binomial = "bernoulli", gaussian = "normal")[[family$family]]
  }
  name <- sub("^published/", "", as.character(family)[1])
  published <- !identical(name, as.character(family)[1])
  if (length(family) != 1 || !name %in% names(families_in_r) ||
        (published && name %in% c("bernoulli", "normal"))) {
    invalid_input(
      "family must be one of ", paste(names(families_in_r), collapse = ", "), ", or ",
      "published/ and a name for the papers' program: found ", show_value(family)
    )
  }
  known <- families_in_r[[name]]
  if (published) known$program <- paste0("published/", known$program)
  known
}

# Draws in rows of the parameters that densities need: coefficients, or the mean itself, and the size.
parameters_of <- function(fit, family) {
  list(
    beta = stacked_draws(fit, "beta"),
    mean = if (is.null(fit$draws$beta)) stacked_draws(fit, "phi")[, 1],
    size = if (!is.null(family$size)) stacked_draws(fit, family$size)[, 1]
  )
}

# (draws, elements), chain after chain.
stacked_draws <- function(fit, name) {
  draws <- fit$draws[[name]]
  if (is.null(draws)) {
    return(NULL)
  }
  size <- dim(draws)
  matrix(aperm(draws, c(2, 1, seq_along(size)[-(1:2)])), prod(size[1:2]))
}

# Means (S, n) of some records.
means_at <- function(parameters, family, design, rows) {
  if (is.null(parameters$beta)) {
    return(matrix(parameters$mean, length(parameters$mean), length(rows)))
  }
  linear <- tcrossprod(parameters$beta, design$X[rows, , drop = FALSE])
  family$mean_of(linear + rep(design$offset[rows], each = nrow(linear)))
}

# Unweighted log-likelihood (S, n) of some records of a design.
log_lik_at <- function(parameters, family, design, rows = seq_along(design$y)) {
  mean <- means_at(parameters, family, design, rows)
  y <- rep(as.vector(design$y)[rows], each = nrow(mean))
  log_lik <- family$density(y, mean, parameters$size)
  matrix(log_lik, nrow(mean))
}

# Sum over records of weight times log-likelihood, by draw, some records at a time.
weighted_total <- function(parameters, family, design, weights) {
  used <- which(weights != 0)
  blocks <- split(used, ceiling(seq_along(used) / 500))
  n_draws <- nrow(if (is.null(parameters$beta)) as.matrix(parameters$mean) else parameters$beta)
  total <- rep(0, n_draws)
  for (rows in blocks) {
    total <- total + drop(log_lik_at(parameters, family, design, rows) %*% weights[rows])
  }
  ifelse(is.nan(total), Inf, total)
}

# A synthetic outcome (n) of draw s on the scale of the table, within its limits.
replicate_of <- function(parameters, family, design, s) {
  one <- list(
    beta = parameters$beta[s, , drop = FALSE], mean = parameters$mean[s], size = parameters$size[s]
  )
  if (is.null(parameters$beta)) one["beta"] <- list(NULL)
  mean <- means_at(one, family, design, seq_along(design$y))[1, ]
  values <- rep(NA_real_, length(mean))
  for (attempt in 1:1000) {
    open <- which(is.na(values))
    if (length(open) == 0) break
    drawn <- to_table(family$draw(length(open), mean[open], one$size), design)
    values[open] <- ifelse(is.finite(drawn) & within_limits(drawn, design), drawn, NA)
  }
  if (anyNA(values)) {
    sampling_error("replicates must be finite and within lower and upper: 1000 tries gave none")
  }
  values
}

# From the program's scale to the table's.
to_table <- function(values, design) {
  if (startsWith(design$program, "beta")) {
    return(design$lower + (design$upper - design$lower) * values)
  }
  if (!startsWith(design$program, "normal")) {
    return(values)
  }
  design$unit * switch(design$transform,
    identity = values,
    log = exp(values),
    asinh = sinh(values)
  )
}

within_limits <- function(values, design) {
  if (startsWith(design$program, "normal")) {
    return(rep(TRUE, length(values)))
  }
  values >= design$lower & values <= design$upper
}

# Replicates in the form of the data's column: its type, and its decimals where all values keep to some.
in_form_of <- function(values, column) {
  if (is.logical(column)) {
    return(values == 1)
  }
  decimals <- decimals_of(column)
  if (!is.null(decimals)) values <- round(values, decimals)
  if (is.integer(column) && all(abs(values) <= .Machine$integer.max)) as.integer(values) else values
}

# The fewest decimals, at most 10, that all values keep to; NULL if they keep to none.
decimals_of <- function(column) {
  numbers <- as.double(column)
  Find(function(d) all(abs(round(numbers, d) - numbers) <= 1e-12 * abs(numbers)), 0:10)
}
