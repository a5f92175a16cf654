# Gaussian accounting: mu from the draws, and (epsilon, delta) of mu.

#' Gaussian mu from a log-likelihood matrix
#'
#' As n grows, releasing one draw is mu_i-GDP for record i, with mu_i the standard deviation of its
#' own term \eqn{g_i = \alpha_i f_i} over the posterior. What leaves with a record beside its own term,
#' refits show ([refit_loss()]).
#'
#' @param log_lik As in [lipschitz_bounds()]. A record that is not finite in any draw has an infinite
#'   mu.
#' @param alpha Record weights in \[0, 1\], a vector of length n; all 1 if `NULL`.
#' @return A vector of length n. Confidential.
#' @references Dong, Roth, Su (2022), Gaussian differential privacy, JRSS B 84:3-37. Savitsky,
#'   Williams, Hu (2022), JMLR 23:1-37, sec. 4.
#' @examples
#' log_lik <- matrix(stats::rnorm(400, sd = 0.1), 200)
#' max(gaussian_mu(log_lik))
#' @export
gaussian_mu <- function(log_lik, alpha = NULL) {
  terms <- weighted_terms(log_lik, alpha)
  mu <- matrixStats::colSds(terms - rep(terms[1, ], each = nrow(terms)), useNames = FALSE)
  mu[!is.finite(mu)] <- Inf
  if (nrow(terms) == 1) mu[] <- ifelse(is.finite(terms[1, ]), 0, Inf)
  stats::setNames(mu, colnames(terms))
}

#' Delta, epsilon and mu of Gaussian differential privacy
#'
#' A mu-GDP release is (epsilon, delta)-DP with
#' \eqn{\delta = \Phi(-\epsilon/\mu + \mu/2) - e^\epsilon \Phi(-\epsilon/\mu - \mu/2)}.
#' `epsilon_of_mu()` is its inverse in epsilon, rounded up, and `mu_of_epsilon()` the largest mu that
#' keeps to both. `compose_mu()` is the root of a sum of squares; `mu_of_release()` is mu of m released
#' draws, mu sqrt(m), and twice that where a record is replaced.
#'
#' @param mu Finite and at least 0; of a release the largest of [gaussian_mu()].
#' @param epsilon At least 0, in nats.
#' @param delta In (0, 1); public, and below 1/n for n records.
#' @param mus Each >= 0, of releases from the same data.
#' @param n_draws_released Posterior draws released.
#' @param relation `"remove"` or `"replace"`.
#' @return A number.
#' @references Dong, Roth, Su (2022), Gaussian differential privacy, JRSS B 84:3-37, sec. 2.4,
#'   cor. 3.3, thm. 2.14.
#' @examples
#' epsilon_of_mu(0.207, 1e-6)
#' delta_of_mu(1, 1)
#' compose_mu(c(3, 4))
#' @export
delta_of_mu <- function(mu, epsilon) {
  gaussian_delta(check_nonnegative(mu, "mu"), check_nonnegative(epsilon, "epsilon"))
}

#' @rdname delta_of_mu
#' @export
epsilon_of_mu <- function(mu, delta) {
  mu <- check_nonnegative(mu, "mu")
  delta <- check_delta(delta)
  high <- mu * (mu / 2 + sqrt(-2 * log(delta)))
  if (!is.finite(high)) {
    invalid_input("mu must have an epsilon that floats can hold: found ", short(mu))
  }
  boundary(function(epsilon) gaussian_delta(mu, epsilon) <= delta, 0, high)[2]
}

#' @rdname delta_of_mu
#' @export
mu_of_epsilon <- function(epsilon, delta) {
  epsilon <- check_nonnegative(epsilon, "epsilon")
  delta <- check_delta(delta)
  high <- 1
  while (gaussian_delta(high, epsilon) <= delta) high <- 2 * high
  boundary(function(mu) gaussian_delta(mu, epsilon) > delta, 0, high)[1]
}

#' @rdname delta_of_mu
#' @export
compose_mu <- function(mus) {
  if (length(mus) == 0) {
    return(0)
  }
  # Up by one unit in the last place: a charge must not be rounded down.
  total <- sqrt(sum(check_nonnegative_vector(mus, "mus")^2))
  if (total^2 < sum(mus^2)) total * (1 + .Machine$double.eps) else total
}

#' @rdname delta_of_mu
#' @export
mu_of_release <- function(mu, n_draws_released = 1, relation = "remove") {
  sides <- relation_sides(relation)
  mu <- check_nonnegative(mu, "mu")
  draws <- check_count(n_draws_released, "n_draws_released")
  total <- sides * mu * sqrt(draws)
  if (total^2 < sides^2 * mu^2 * draws) next_up(total) else total
}

# With Mills' ratio M(x) = P(Z > x)/phi(x): delta = phi(x) (M(x) - M(x + mu)), x = epsilon/mu - mu/2.
# M' = x M - 1, which is integrated where the difference would cancel.
gaussian_delta <- function(mu, epsilon) {
  if (mu == 0) {
    return(0)
  }
  x <- epsilon / mu - mu / 2
  if (x < 0 && mu > 0.25) {
    upper <- exp(epsilon + stats::pnorm(x + mu, lower.tail = FALSE, log.p = TRUE))
    return(max(0, stats::pnorm(x, lower.tail = FALSE) - upper))
  }
  if (mu > 0.25 * max(1, x)) {
    return(stats::dnorm(x) * (mills(x) - mills(x + mu)))
  }
  rule <- legendre_rule
  stats::dnorm(x) * mu / 2 * sum(rule$weight * mills_slope(x + mu * (rule$node + 1) / 2))
}

mills <- function(x) {
  if (x >= 3) {
    return(1 / (x + mills_rest(x)))
  }
  exp(stats::pnorm(x, lower.tail = FALSE, log.p = TRUE) - stats::dnorm(x, log = TRUE))
}

# 1 - t M(t)
mills_slope <- function(t) {
  rest <- mills_rest(pmax(t, 3))
  near <- stats::pnorm(t, lower.tail = FALSE) / stats::dnorm(pmin(t, 30))
  ifelse(t >= 3, rest / (t + rest), 1 - t * near)
}

# 1/(t + 2/(t + 3/(t + ...))) for t of 3 and more, so that M(t) = 1/(t + rest).
mills_rest <- function(t) {
  rest <- 0
  for (level in 80:1) rest <- level / (t + rest)
  rest
}

# Gauss-Legendre with 16 points: eigenvalues of the tridiagonal matrix of the recursion.
legendre_rule <- local({
  level <- 1:15
  beside <- level / sqrt(4 * level^2 - 1)
  recursion <- matrix(0, 16, 16)
  recursion[cbind(level, level + 1)] <- beside
  recursion[cbind(level + 1, level)] <- beside
  found <- eigen(recursion, symmetric = TRUE)
  list(node = found$values, weight = 2 * found$vectors[1, ]^2)
})

# Neighboring doubles between which `holds`, true at high, turns true; twice low if true there.
boundary <- function(holds, low, high) {
  if (holds(low)) {
    return(c(low, low))
  }
  for (step in seq_len(2100)) {
    middle <- low + (high - low) / 2
    if (middle == low || middle == high) break
    if (holds(middle)) high <- middle else low <- middle
  }
  c(low, high)
}
