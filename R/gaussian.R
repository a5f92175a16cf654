# Gaussian accounting: mu from the draws, and (epsilon, delta) of mu.

#' Gaussian mu from a log-likelihood matrix
#'
#' As n grows, releasing one draw is mu_i-GDP for record i, with mu_i the standard deviation of its
#' term \eqn{g_i = \alpha_i f_i} over the posterior. The deviation under the neighbor's posterior,
#' without the record, is found from smoothed importance weights \eqn{\exp(-g_i)}; the larger of the
#' two is charged, at its upper end.
#'
#' @param log_lik As in [lipschitz_bounds()]; rows of a matrix are stacked chain after chain. A record
#'   that is not finite in any draw has an infinite mu.
#' @param alpha Record weights in \[0, 1\], a vector of length n; all 1 if `NULL`.
#' @param chains Chains that the draws come from, at least 4 draws each; those that [as_loglik()]
#'   knows of if `NULL`, one for a plain matrix.
#' @param ess Effective number of draws, one or one for each record, instead of that of the chains.
#' @param neighbor Whether to take the deviation without the record, too.
#' @return A list with `by_record`, `neighbor_by_record`, `standard_error_by_record`,
#'   `upper_by_record` (estimate plus two standard errors, the higher of both) and `pareto_k` of the
#'   weights, each a vector of length n; `overall` and its `standard_error`; `upper`, which is
#'   charged. Confidential.
#' @references Dong, Roth, Su (2022), Gaussian differential privacy, JRSS B 84:3-37. Savitsky,
#'   Williams, Hu (2022), JMLR 23:1-37, sec. 4. Geyer (1992), Statistical Science 7:473-483.
#' @examples
#' log_lik <- matrix(stats::rnorm(400, sd = 0.1), 200)
#' gaussian_mu(log_lik)$upper
#' @export
gaussian_mu <- function(log_lik, alpha = NULL, chains = NULL, ess = NULL, neighbor = TRUE) {
  if (is.null(chains)) chains <- chains_of(log_lik)
  terms <- weighted_terms(log_lik, alpha)
  check_flag(neighbor, "neighbor")
  ess <- check_effective(ess, nrow(terms), ncol(terms), chains)
  found <- lapply(seq_len(ncol(terms)), function(i) {
    mu_of_term(terms[, i], chains, ess[i], neighbor)
  })
  part <- function(name) {
    stats::setNames(vapply(found, function(one) one[[name]], 0), colnames(terms))
  }
  own <- part("own")
  other <- part("other")
  own_upper <- own + 2 * part("own_error")
  other_upper <- other + 2 * part("other_error")
  top <- which.max(pmax(own, other))
  list(
    by_record = own, neighbor_by_record = other,
    standard_error_by_record = ifelse(
      own_upper >= other_upper, part("own_error"), part("other_error")
    ),
    upper_by_record = pmax(own_upper, other_upper), pareto_k = part("k"),
    overall = max(own[top], other[top]),
    standard_error = unname(part(if (own[top] >= other[top]) "own_error" else "other_error")[top]),
    upper = max(own_upper, other_upper)
  )
}

# NULL if the effective number is to be computed.
check_effective <- function(ess, n_draws, n, chains) {
  if (is.null(ess)) {
    chains <- check_count(chains, "chains")
    if (n_draws %% chains != 0 || n_draws %/% chains < 4) {
      invalid_input(
        "draws must be stacked chain after chain, at least 4 in each of ", chains, ": found ",
        n_draws, "; or give ess"
      )
    }
    return(NULL)
  }
  if (n_draws < 2) invalid_input("log_lik must hold at least 2 draws: found ", n_draws)
  ess <- check_vector(if (length(ess) == 1) rep(ess, n) else ess, "ess", n)
  wrong <- which(!(ess > 0) | is.na(ess))
  if (length(wrong) > 0) {
    invalid_input("ess must be above 0: record ", wrong[1], " has ", short(ess[wrong[1]]))
  }
  ess
}

mu_of_term <- function(term, chains, ess, neighbor) {
  if (!is.finite(max(term) - min(term))) {
    return(list(own = Inf, own_error = Inf, other = Inf, other_error = Inf, k = Inf))
  }
  own <- deviation(term, rep(1, length(term)), chains, ess)
  other <- own
  k <- -Inf
  if (neighbor) {
    smoothed <- smooth_weights(-term)
    k <- smoothed$k
    weights <- exp(smoothed$log_weights - max(smoothed$log_weights))
    other <- deviation(term, weights / mean(weights), chains, ess)
  }
  list(own = own[1], own_error = own[2], other = other[1], other_error = other[2], k = k)
}

# Standard deviation under weights of mean 1, and its standard error.
deviation <- function(term, weights, chains, ess) {
  moved <- term - term[1]
  largest <- max(abs(moved))
  if (largest == 0) {
    return(c(0, 0))
  }
  n <- length(moved)
  moved <- moved / largest
  squares <- (moved - mean(weights * moved))^2
  variance <- mean(weights * squares)
  influence <- weights * (squares - variance)
  if (is.null(ess)) ess <- effective_draws(influence, chains)
  sd <- sqrt(variance * n / (n - 1))
  error <- if (sd > 0) stats::sd(influence) / sqrt(ess) / (2 * sd) else 0
  c(sd, error) * largest
}

# Effective number of draws for a mean: chains halved, Geyer's initial monotone sequence, at most S.
effective_draws <- function(values, chains) {
  length <- length(values) %/% chains
  half <- length %/% 2
  by_chain <- matrix(values, length)
  halves <- cbind(by_chain[seq_len(half), ], by_chain[length - half + seq_len(half), ])
  halves <- matrix(halves, half)
  means <- colMeans(halves)
  centered <- halves - rep(means, each = half)
  padded <- rbind(centered, matrix(0, half, ncol(centered)))
  power <- Mod(stats::mvfft(padded))^2
  covariance <- rowMeans(Re(stats::mvfft(power + 0i, inverse = TRUE)))[seq_len(half)] /
    (nrow(padded) * half)
  total <- covariance[1] + stats::var(means)
  if (total <= 0 || max(values) == min(values)) {
    return(length(values))
  }
  rho <- 1 - (covariance[1] * half / (half - 1) - covariance) / total
  rho[1] <- 1
  n_pairs <- half %/% 2
  even <- rho[2 * seq_len(n_pairs) - 1]
  pairs <- even + rho[2 * seq_len(n_pairs)]
  negative <- which(pairs <= 0 & seq_len(n_pairs) > 1)
  kept <- if (length(negative) > 0) negative[1] - 1 else n_pairs
  time <- 2 * sum(cummin(pairs[seq_len(kept)])) - 1
  if (kept < n_pairs) time <- time + max(even[kept + 1], 0)
  length(values) / max(time, 1)
}

#' Delta, epsilon and mu of Gaussian differential privacy
#'
#' A mu-GDP release is (epsilon, delta)-DP with
#' \eqn{\delta = \Phi(-\epsilon/\mu + \mu/2) - e^\epsilon \Phi(-\epsilon/\mu - \mu/2)}.
#' `epsilon_of_mu()` is its inverse in epsilon, rounded up, and `mu_of_epsilon()` the largest mu that
#' keeps to both. `compose_mu()` is the root of a sum of squares; `mu_of_release()` is mu of m released
#' draws, mu sqrt(m), and twice that where a record is replaced.
#'
#' @param mu Finite and at least 0; of a release the `upper` of [gaussian_mu()].
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
