# What a release costs: epsilon. Epsilons are rounded up, in exact decimal arithmetic.

charge_kinds <- c("asymptotic local", "strict")
charge_relations <- c("remove", "replace")
charge_decimals <- c("asymptotic local" = 2, "strict" = 6)

#' Privacy cost of released draws
#'
#' `epsilon_of_bound()` gives \eqn{\epsilon = 2 s \Delta} per released draw, summed over the draws
#' and rounded up. `round_up()` rounds a finished epsilon.
#'
#' @details
#' Rounding up needs exact products: 2 x 0.15 must be 0.30, not 0.31, although both numbers are
#' stored in binary. Numbers are therefore taken by their shortest decimal form (the fewest digits
#' that give back the same double) and multiplied digit by digit, without any tolerance.
#'
#' @param bound Overall Lipschitz bound in nats, >= 0, finite, or a result of [lipschitz_bounds()].
#' @param n_draws_released Posterior draws released; data sets simulated from one draw cost no more
#'   than one.
#' @param relation `"remove"` (one record left out) or `"replace"` (one record replaced).
#' @param density_above_one Whether log densities above 0 can occur; doubles the cost under
#'   `"replace"`.
#' @param safety_factor s >= 1, to turn a local bound into a global one: up to 1.05 for n > 1000,
#'   up to 1.10 below.
#' @param kind `"asymptotic local"` (rounded to 2 decimals) or `"strict"` (6 decimals).
#' @param epsilon In nats, finite.
#' @return Epsilon in nats.
#' @references Savitsky, Williams, Hu (2022), sec. 2, sec. 4.5 and app. A.3.
#' @examples
#' epsilon_of_bound(2.5, n_draws_released = 3)
#' epsilon_of_bound(0.15)
#' @export
epsilon_of_bound <- function(bound, n_draws_released = 1, relation = "remove",
                             density_above_one = FALSE, safety_factor = 1,
                             kind = "asymptotic local") {
  if (inherits(bound, "pyhybrid_lipschitz_bounds")) bound <- bound$overall
  bound <- check_finite(bound, "bound")
  if (bound < 0) invalid_input("bound must be >= 0: found ", short(bound))
  n_draws_released <- check_count(n_draws_released, "n_draws_released")
  check_choice(relation, "relation", charge_relations)
  check_flag(density_above_one, "density_above_one")
  safety_factor <- check_finite(safety_factor, "safety_factor")
  if (safety_factor < 1) {
    invalid_input("safety_factor must be >= 1: found ", short(safety_factor))
  }
  check_choice(kind, "kind", charge_kinds)
  sides <- if (relation == "replace" && density_above_one) 4 else 2
  exact <- Reduce(times, lapply(list(bound, safety_factor, sides, n_draws_released), as_decimal))
  ceiling_at(exact, charge_decimals[[kind]])
}

#' @rdname epsilon_of_bound
#' @export
round_up <- function(epsilon, kind = "asymptotic local") {
  epsilon <- check_finite(epsilon, "epsilon")
  check_choice(kind, "kind", charge_kinds)
  if (epsilon < 0) invalid_input("epsilon must be >= 0: found ", short(epsilon))
  ceiling_at(as_decimal(epsilon), charge_decimals[[kind]])
}

# A non-negative decimal number: digits (least significant first) times 10^exponent.
as_decimal <- function(number) {
  for (digits in 15:17) {
    text <- sprintf("%.*e", digits - 1L, number)
    if (as.numeric(text) == number) break
  }
  parts <- strsplit(text, "e", fixed = TRUE)[[1]]
  digit <- as.integer(strsplit(sub(".", "", parts[1], fixed = TRUE), "")[[1]])
  list(digits = rev(digit), exponent = as.integer(parts[2]) - (length(digit) - 1L))
}

times <- function(a, b) {
  place <- outer(seq_along(a$digits), seq_along(b$digits), `+`) - 1L
  sums <- as.vector(rowsum(as.vector(outer(a$digits, b$digits)), as.vector(place)))
  list(digits = carry(sums), exponent = a$exponent + b$exponent)
}

carry <- function(digits) {
  place <- 1
  while (place <= length(digits)) {
    if (digits[place] >= 10) {
      if (place == length(digits)) digits <- c(digits, 0L)
      digits[place + 1] <- digits[place + 1] + digits[place] %/% 10L
      digits[place] <- digits[place] %% 10L
    }
    place <- place + 1
  }
  digits
}

plus <- function(a, b) {
  lowest <- min(a$exponent, b$exponent)
  padded <- function(number) c(rep(0L, number$exponent - lowest), number$digits)
  one <- padded(a)
  other <- padded(b)
  size <- max(length(one), length(other))
  sums <- c(one, rep(0L, size - length(one))) + c(other, rep(0L, size - length(other)))
  list(digits = carry(sums), exponent = lowest)
}

is_below <- function(a, b) {
  lowest <- min(a$exponent, b$exponent)
  padded <- function(number) c(rep(0L, number$exponent - lowest), number$digits)
  one <- padded(a)
  other <- padded(b)
  size <- max(length(one), length(other))
  apart <- rev(c(other, rep(0L, size - length(other))) - c(one, rep(0L, size - length(one))))
  isTRUE(apart[apart != 0][1] > 0)
}

# A double next to the exact number, shown as no less than it.
at_least <- function(decimal) {
  text <- paste0(paste(rev(decimal$digits), collapse = ""), "e", decimal$exponent)
  value <- as.numeric(text)
  while (is.finite(value) && is_below(as_decimal(value), decimal)) value <- next_up(value)
  value
}

next_up <- function(value) value * (1 + .Machine$double.eps)

# The smallest multiple of 10^-decimals that is not below the number.
ceiling_at <- function(decimal, decimals) {
  below <- -decimals - decimal$exponent
  digits <- decimal$digits
  if (below > 0) {
    cut <- seq_along(digits) <= below
    rest <- digits[cut]
    digits <- if (all(cut)) 0L else digits[!cut]
    if (any(rest > 0)) digits[1] <- digits[1] + 1L
    decimal <- list(digits = carry(digits), exponent = -decimals)
  }
  epsilon <- as.numeric(paste0(paste(rev(decimal$digits), collapse = ""), "e", decimal$exponent))
  if (is.infinite(epsilon)) {
    invalid_input("epsilon must be a number that floats can hold: it is larger")
  }
  epsilon
}
