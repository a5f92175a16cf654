# Clipped scores: noisy Fisher scoring with bounded influence, as functions of arrays and given noise.
# R has no audited noise: strict releases are made by the Python package.

#' Clipped scores
#'
#' At a public point each record has a score, the gradient of its log-likelihood. Scores are whitened
#' by the information of all records, shortened to a norm of at most `clip`, and summed; the sum gets
#' Gaussian noise of deviation `clip` / mu (twice that where a record is replaced), and a step is
#' made from it. `scoring_design()` has all that a round knows before it looks at an outcome, from
#' scores of simulated outcomes. `record_scores()` are the scores of a family.
#'
#' These are for teaching, and to hold the Python package to: its noise is exact, made of whole numbers and
#' audited, and R's is not. A release is made there ([synthesize()] says how).
#'
#' @param y,X,offset Outcomes (n), design matrix (n, K), and offset (n) or 0.
#' @param family `"poisson"`, `"negative_binomial"`, `"bernoulli"` or `"normal"`.
#' @param scores For `clip_scores()` a matrix, one row for each record; a row that is not finite
#'   becomes 0. For `scoring_design()` an array of repetitions, records and coordinates: scores of
#'   simulated outcomes.
#' @param whitening Matrix W with W' I W = 1.
#' @param clip C, above 0.
#' @param precision P, minus the second derivative of the log prior, a matrix.
#' @param mu Of the round, above 0.
#' @param clips Multiples of sqrt(d / n) that are tried.
#' @param sensitivity 1, or 2 where a record is replaced.
#' @param theta The round's point; for `record_scores()` the coefficients, then the logarithm of phi
#'   (negative binomial) or sigma (normal).
#' @param noisy_sum Sum of clipped scores with noise.
#' @param design What `scoring_design()` returns.
#' @param prior_gradient Gradient of the log prior at `theta`.
#' @param noise_sd Of the noise of each coordinate of `noisy_sum`: C / mu, or 2 C / mu where a record is
#'   replaced.
#' @param predictors Derivative of the linear predictor by the coordinates, (n, d), such as X and a column
#'   of 0: no linear predictor has a deviation above .75 in the step, and it is shortened until it moves the linear predictor by at most `largest` (root mean
#'   square), and a coordinate that the linear predictor does not have by as much; not if `NULL`.
#' @param largest Above 0.
#' @return `record_scores()` a matrix, (n, d); `clip_scores()` a matrix as `scores`; `scoring_design()` a
#'   list of `whitening`, `clip`,
#'   `information`, `jacobian` (G + W'P), `center` (b) and `variance`; `scoring_step()` the next point.
#' @references Kuensch, Stefanski, Carroll (1989), JASA 84. Dong, Roth, Su (2022), JRSS B 84:3-37.
#' @examples
#' clip_scores(rbind(c(3, 4), c(0.3, 0.4)), diag(2), 1)
#' record_scores(c(0, 3), cbind(1, c(0, 1)), theta = c(0.5, 0.2), family = "poisson")
#' @rdname clip_scores
#' @export
record_scores <- function(y, X, theta, family, offset = 0) {
  check_choice(family, "family", c("poisson", "negative_binomial", "bernoulli", "normal"))
  y <- check_vector(y, "y")
  if (!is.numeric(X) || length(dim(X)) != 2 || nrow(X) != length(y)) {
    invalid_input("X must be a matrix with ", length(y), " rows: found ", show_shape(X))
  }
  second <- family %in% c("negative_binomial", "normal")
  theta <- check_vector(theta, "theta", ncol(X) + second)
  linear <- drop(X %*% theta[seq_len(ncol(X))]) + offset
  size <- if (second) exp(theta[length(theta)])
  switch(family,
    poisson = X * (y - exp(linear)),
    bernoulli = X * (y - stats::plogis(linear)),
    normal = cbind(X * (y - linear) / size^2, ((y - linear) / size)^2 - 1),
    negative_binomial = {
      mu <- exp(linear)
      of_size <- digamma(y + size) - digamma(size) - log1p(mu / size) + 1 - (y + size) / (mu + size)
      cbind(X * (y - mu) / (1 + mu / size), size * of_size)
    }
  )
}

#' @rdname clip_scores
#' @export
clip_scores <- function(scores, whitening, clip) {
  check_positive(clip, "clip")
  scores[!is.finite(rowSums(scores^2)), ] <- 0
  white <- scores %*% whitening
  white * pmin(1, clip / pmax(sqrt(rowSums(white^2)), 1e-300))
}

#' @rdname clip_scores
#' @export
scoring_design <- function(scores, precision, mu, clips = 0.5 * 2^((0:24) / 2), sensitivity = 1) {
  check_positive(mu, "mu")
  n <- dim(scores)[2]
  d <- dim(scores)[3]
  rows <- matrix(scores, ncol = d)
  share <- n / nrow(rows)
  information <- share * crossprod(rows) + precision
  whitening <- whitening_of(information)
  white <- rows %*% whitening
  enough <- sqrt(max(rowSums(white^2)))
  half <- solve(whitening)
  designs <- list()
  errors <- numeric(0)
  for (multiple in clips) {
    clip <- multiple * sqrt(d / n)
    psi <- clip_scores(rows, whitening, clip)
    jacobian <- share * crossprod(psi, rows) + crossprod(whitening, precision)
    variance <- share * crossprod(psi)
    left <- half %*% solve(jacobian)
    spread <- left %*% (variance + diag((sensitivity * clip / mu)^2, d)) %*% t(left)
    errors <- c(errors, sum(diag(spread)))
    designs[[length(errors)]] <- list(
      whitening = whitening, clip = clip, information = information, jacobian = jacobian,
      center = share * colSums(psi - white), variance = variance
    )
    if (clip > enough) break
  }
  designs[[max(which(errors <= max(1.15 * min(errors), 2 * d)))]]
}

#' @rdname clip_scores
#' @export
scoring_step <- function(theta, noisy_sum, design, prior_gradient, precision, noise_sd,
                         predictors = NULL, largest = 1.5) {
  plain <- design$jacobian - crossprod(design$whitening, precision)
  weighted <- t(solve(design$variance + diag(noise_sd^2 + 1e-12, length(theta)), plain))
  right <- drop(weighted %*% (noisy_sum - design$center)) + as.vector(prior_gradient)
  covariance <- solve(weighted %*% plain + precision)
  covariance <- (covariance + t(covariance)) / 2
  if (!is.null(predictors)) {
    covariance <- narrowed(covariance, predictors)
  }
  step <- drop(covariance %*% right)
  if (!is.null(predictors)) {
    moved <- sqrt(mean((predictors %*% step)^2))
    others <- max(abs(step[colSums(predictors != 0) == 0]), 0)
    step <- step * min(1, check_positive(largest, "largest") / max(moved, others, 1e-300))
  }
  theta + step
}

# Conditioned on the row whose linear predictor is known worst, until none has a deviation above `largest`.
narrowed <- function(covariance, predictors, largest = 0.75) {
  alone <- diag(nrow(covariance))[colSums(predictors != 0) == 0, , drop = FALSE]
  rows <- rbind(predictors, alone)
  for (k in seq_len(10 * nrow(covariance))) {
    along <- rows %*% covariance
    variance <- rowSums(along * rows)
    worst <- which.max(variance)
    if (variance[worst] <= largest^2 * (1 + 1e-9)) break
    excess <- (variance[worst] - largest^2) / variance[worst]^2
    covariance <- covariance - excess * tcrossprod(along[worst, ])
  }
  covariance
}

whitening_of <- function(information) {
  size <- 1 / sqrt(diag(information))
  parts <- eigen(information * outer(size, size), symmetric = TRUE)
  root <- sweep(parts$vectors, 2, sqrt(pmax(parts$values, 1e-12 * max(parts$values))), "/")
  size * (root %*% t(parts$vectors))
}
