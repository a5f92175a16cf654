# Location and scale of the reparametrization, by program; the posterior does not depend on them.

# The hints that a program's data block names. `own` has the settings it reads (min_sd, n_components).
rough_fit <- function(program, y, X, weights, offset, own) {
  switch(program,
    poisson = log_linear_fit(y, X, weights, offset),
    negative_binomial = c(
      log_linear_fit(y, X, weights, offset), list(center_rphi = 0, spread_rphi = 1)
    ),
    bernoulli = logit_fit(y, X, weights, offset)[c("information_root", "score")],
    categorical = categorical_fit(y, X, weights, own),
    beta_binomial = logit_fit(
      (y - own$least) / own$n_trials, X, weights * own$n_trials, offset
    ),
    ordinal = ordinal_fit(y, X, weights, own),
    beta = rough_beta(y, weights),
    beta_regression = logit_fit(y, X, weights, offset),
    normal_regression = normal_fit(y - offset, X, weights, own$min_sd),
    truncated_normal = normal_fit(y - offset, X, weights, own$min_sd)[-3],
    gamma_regression = c(
      log_linear_fit(y, X, weights, offset), list(center_shape = 0, spread_shape = 1)
    ),
    normal_mixture = mixture_fit(y - offset, X, weights, own$min_sd, own$n_components)
  )
}

# A quadratic approximation as the programs take it: the Cholesky factor of its information, and its
# gradient at 0; zeros where there is none.
quadratic_about <- function(center, information) {
  none <- list(
    information_root = diag(0, length(center)), score = array(0, length(center))
  )
  tryCatch(
    {
      root <- unname(t(chol(information)))
      score <- drop(information %*% center)
      if (!all(is.finite(score))) stop("no quadratic")
      list(information_root = root, score = array(unname(score), length(center)))
    },
    error = function(problem) none
  )
}

# A fit by glm or lm, or NULL where it fails.
attempted <- function(fit) {
  found <- tryCatch(suppressWarnings(fit), error = function(problem) NULL)
  if (is.null(found) || !all(is.finite(found$coefficients))) NULL else found
}

nothing_known <- function(K) quadratic_about(rep(NA, K), diag(0, K))

log_linear_fit <- function(y, X, weights, offset) {
  fit <- attempted(
    stats::glm.fit(X, y, weights, offset = offset, family = stats::quasipoisson())
  )
  if (is.null(fit)) {
    return(nothing_known(ncol(X)))
  }
  quadratic_about(fit$coefficients, crossprod(X * sqrt(weights * fit$fitted.values)))
}

# Quasi-binomial; the dispersion of a beta distribution of size lambda is 1 / (1 + lambda).
logit_fit <- function(y, X, weights, offset) {
  size <- list(center_lambda = 0, spread_lambda = 1)
  fit <- attempted(
    stats::glm.fit(X, y, weights, offset = offset, family = stats::quasibinomial())
  )
  if (is.null(fit)) {
    return(c(nothing_known(ncol(X)), size))
  }
  mu <- fit$fitted.values
  dispersion <- sum(weights * (y - mu)^2 / (mu * (1 - mu))) / sum(weights)
  dispersion <- min(max(dispersion, 1e-6), 0.8)
  information <- crossprod(X * sqrt(weights * mu * (1 - mu))) / dispersion
  size$center_lambda <- log(1 / dispersion - 1.1)
  size$spread_lambda <- 1 / sqrt(sum(weights) / 2 + 1)
  c(quadratic_about(fit$coefficients, information), size)
}

# Moments, for logit(phi) and log(lambda - 0.1).
rough_beta <- function(y, weights) {
  total <- sum(weights)
  if (total == 0) {
    return(list(center = array(0, 2), factor = diag(2)))
  }
  mean <- sum(weights * y) / total
  spread <- max(sum(weights * (y - mean)^2) / total, 1e-12)
  size <- max(mean * (1 - mean) / spread - 1, 0.2)
  error <- sqrt(spread / total) / (mean * (1 - mean))
  list(
    center = array(c(stats::qlogis(mean), log(size - 0.1)), 2),
    factor = diag(c(min(error, 1), 1 / sqrt(total / 2 + 1)))
  )
}

# Standard deviation of residuals, above 0.
residual_sd <- function(residuals, weights) {
  max(sqrt(sum(weights * residuals^2) / max(sum(weights), 1)), 1e-6)
}

normal_fit <- function(y, X, weights, min_sd) {
  K <- ncol(X)
  fit <- attempted(stats::lm.wfit(X, y, weights))
  center <- if (is.null(fit)) rep(0, K) else fit$coefficients
  sd <- residual_sd(y - drop(X %*% center), weights)
  hints <- quadratic_about(
    if (is.null(fit)) rep(NA, K) else center, crossprod(X * sqrt(weights)) / sd^2
  )
  c(hints, list(
    near = array(unname(center), K), center_sigma = log(max(sd - min_sd, 0.1 * sd)),
    spread_sigma = 1 / sqrt(2 * sum(weights) + 2)
  ))
}

# One component for each group of residuals about one fit, from low to high.
mixture_fit <- function(y, X, weights, min_sd, n_components) {
  K <- ncol(X)
  center <- normal_fit(y, X, weights, min_sd)$near
  widest <- residual_sd(y - drop(X %*% center), weights)
  residual <- y - drop(X %*% center)
  group <- ceiling(rank(residual, ties.method = "first") * n_components / length(y))
  information <- array(0, c(n_components, K, K))
  score <- matrix(0, K, n_components)
  sd <- rep(1, n_components)
  for (k in seq_len(n_components)) {
    own <- weights * (group == k)
    fit <- attempted(stats::lm.wfit(X, y, own))
    if (is.null(fit)) next
    sd[k] <- max(residual_sd(y - drop(X %*% fit$coefficients), own), 0.1 * widest)
    information[k, , ] <- crossprod(X * sqrt(own)) / sd[k]^2
    score[, k] <- matrix(information[k, , ], K) %*% fit$coefficients
  }
  size <- pmax(tabulate(group, n_components), 1)
  list(
    information = information, score = score,
    center_sigma = array(log(pmax(sd - min_sd, 0.1 * sd)), n_components),
    spread_sigma = array(1 / sqrt(2 * size + 2), n_components),
    center_ratio = array(0, n_components), spread_ratio = array(1, n_components)
  )
}
