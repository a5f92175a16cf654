# Mechanisms: how record weights come from the data. Each is a list of settings and a function of a
# session (R/session.R) that gives weights.

#' Mechanisms of synthesize()
#'
#' Each says how the weights of the pseudo posterior come from the data; [synthesize()] does the rest.
#'
#' * `unweighted()`: all weights 1, the baseline.
#' * `lipschitz_weighted()`: [lipschitz_weights()] of an unweighted fit (LW).
#' * `count_weighted()`: [count_weights()] of the share of records outside a ball around each value (CW).
#' * `scalar_weighted()`: one weight for all, target bound over the unweighted one (SW).
#' * `weighted_m()`: the weights of another mechanism, 0 where alpha_i f_i is above a cap M
#'   (Weighted-M, Weighted-e).
#' * `censored()`: each weighted term is clipped at M (Censor_w; with `inner = unweighted()` Censor_uw),
#'   by this package's programs, which sample a clipped posterior: about a `center`, if there is one.
#'
#' @param scale,shift,transform,threshold,risk As in [lipschitz_weights()] and [count_weights()].
#' @param reweight `FALSE`; or k in (0, 1\], `TRUE` for the papers' 0.95: one step of [reweight()] and a
#'   refit. It is kept if the bound rises by at most 0.25 nats, else the weights before it are, with a
#'   warning. (The Python package searches for k, unless told the same.)
#' @param radius,kind As in [radius_risk()].
#' @param pattern Names of columns that an intruder knows; they may not be synthesized.
#' @param pairwise Take [pairwise_risk()] in place of the radius risk.
#' @param target_epsilon,target_bound Epsilon of one draw by the Lipschitz bound, or that bound, in
#'   nats, above 0; one of the two. The bound of the refit is near the target and usually above it.
#' @param cap,epsilon M in nats, above 0, or epsilon of one draw, from which M follows (half of it; a
#'   quarter under `relation = "replace"` where terms have either sign); one of the two.
#' @param inner The mechanism whose weights are taken.
#' @param center Public parameters theta_ref, chosen without looking at the data: a list of `beta`, one
#'   number for each column of the design (`phi` for family beta), and of the family's second
#'   parameter, `phi`, `sigma` or `lambda`. Terms are then clipped about their value there.
#' @return An object of class `pyhybrid_mechanism`.
#' @references Savitsky, Williams, Hu (2022), JMLR 23:1-37. Hu, Savitsky, Williams (2022), JSSAM 10.
#'   Hu, Williams, Savitsky (2025), Statistica Sinica 35:563-584.
#' @examples
#' lipschitz_weighted(scale = 0.8, reweight = TRUE)
#' censored(epsilon = 4, inner = unweighted())
#' @name mechanisms
NULL

new_mechanism <- function(name, weights, settings, reweight = FALSE, inner = NULL) {
  structure(
    list(name = name, weights = weights, settings = settings, reweight = reweight, inner = inner),
    class = "pyhybrid_mechanism"
  )
}

#' @rdname mechanisms
#' @export
unweighted <- function() {
  new_mechanism("Unweighted", function(session) rep(1, session$n), list())
}

#' @rdname mechanisms
#' @export
lipschitz_weighted <- function(scale = 1, shift = 0, reweight = FALSE, transform = "linear",
                               threshold = NULL, risk = "size") {
  weights_from_lipschitz(1, scale, shift, transform, threshold)
  check_choice(risk, "risk", names(risks))
  new_mechanism(
    "LipschitzWeighted",
    function(session) {
      lipschitz_weights(session$log_lik(session$unweighted()), scale, shift, transform,
        threshold = threshold, risk = risk
      )
    },
    c(list(scale = scale, shift = shift, transform = transform, threshold = threshold),
      if (risk != "size") list(risk = risk)),
    reweight = check_reweight(reweight)
  )
}

#' @rdname mechanisms
#' @export
count_weighted <- function(scale = 1, shift = 0, radius = 0.2, kind = "relative", pattern = NULL,
                           pairwise = FALSE, reweight = FALSE) {
  check_finite(scale, "scale")
  check_finite(shift, "shift")
  check_positive(radius, "radius")
  check_choice(kind, "kind", c("relative", "absolute"))
  check_flag(pairwise, "pairwise")
  if (!is.null(pattern) && !is.character(pattern)) {
    invalid_input("pattern must be names of columns: found ", class(pattern)[1])
  }
  new_mechanism(
    "CountWeighted",
    function(session) {
      measure <- if (pairwise) pairwise_risk else radius_risk
      known <- session$columns(pattern)
      count_weights(measure(session$outcome, radius, kind, known), scale, shift)
    },
    list(scale = scale, shift = shift, radius = radius, kind = kind, pattern = as.list(pattern),
         pairwise = pairwise),
    reweight = check_reweight(reweight)
  )
}

#' @rdname mechanisms
#' @export
scalar_weighted <- function(target_epsilon = NULL, target_bound = NULL) {
  check_one_of(target_epsilon, target_bound, "target_epsilon", "target_bound")
  new_mechanism(
    "ScalarWeighted",
    function(session) {
      bound <- max(largest_abs(session$log_lik(session$unweighted())))
      if (!is.finite(bound)) {
        sampling_error("a scalar weight needs a finite unweighted bound: it is infinite")
      }
      target <- cap_of(target_bound, target_epsilon, session$relation, session$family$above_one)
      scalar_weights(session$n, target, bound)
    },
    list(target_epsilon = target_epsilon) # a bound is confidential
  )
}

#' @rdname mechanisms
#' @export
weighted_m <- function(cap = NULL, epsilon = NULL, inner = lipschitz_weighted()) {
  check_one_of(cap, epsilon, "cap", "epsilon")
  check_mechanism(inner, "inner")
  mechanism <- new_mechanism(
    "Truncated",
    function(session) {
      f <- largest_abs(session$log_lik(session$unweighted()))
      size <- cap_of(cap, epsilon, session$relation, session$family$above_one)
      truncate_weights(final_weights(inner, session), f, size)
    },
    list(cap = cap, epsilon = epsilon), inner = inner
  )
  mechanism$cap <- function(relation, family) cap_of(cap, epsilon, relation, family$above_one)
  mechanism
}

#' @rdname mechanisms
#' @export
censored <- function(cap = NULL, epsilon = NULL, inner = lipschitz_weighted(), center = NULL) {
  check_one_of(cap, epsilon, "cap", "epsilon")
  check_mechanism(inner, "inner")
  if (!is.null(center) && !(is.list(center) && length(center) > 0 && !is.null(names(center)))) {
    invalid_input("center must be a list of parameters by name, such as list(beta = 1, phi = 0.7)")
  }
  mechanism <- new_mechanism(
    "Censored", function(session) final_weights(inner, session),
    list(cap = cap, epsilon = epsilon, center = center), inner = inner
  )
  either <- !is.null(center)
  mechanism$cap <- function(relation, family) {
    cap_of(cap, epsilon, relation, family$above_one || either)
  }
  mechanism$clips <- TRUE
  mechanism$center <- center
  mechanism
}

#' @export
print.pyhybrid_mechanism <- function(x, ...) {
  cat(x$name, settings_in_words(x$settings), "\n", sep = "")
  if (!is.null(x$inner)) {
    cat("  weights of ", x$inner$name, settings_in_words(x$inner$settings), "\n", sep = "")
  }
  if (!isFALSE(x$reweight)) cat("  re-weighted once, k = ", x$reweight, "\n", sep = "")
  invisible(x)
}

settings_in_words <- function(settings) {
  settings <- Filter(function(value) length(value) > 0, settings)
  if (length(settings) == 0) {
    return("")
  }
  values <- vapply(settings, function(value) paste(unlist(value), collapse = "; "), "")
  paste0(" (", paste(names(settings), "=", values, collapse = ", "), ")")
}

check_reweight <- function(reweight) {
  if (is.logical(reweight)) {
    return(if (check_flag(reweight, "reweight")) 0.95 else FALSE)
  }
  check_fraction(reweight, "reweight")
}

check_one_of <- function(first, second, name_first, name_second) {
  if (is.null(first) == is.null(second)) {
    invalid_input("exactly one of ", name_first, " and ", name_second, " must be given")
  }
  if (!is.null(first)) check_positive(first, name_first)
  if (!is.null(second)) check_positive(second, name_second)
}

check_mechanism <- function(mechanism, name) {
  if (!inherits(mechanism, "pyhybrid_mechanism")) {
    invalid_input(
      name, " must be a mechanism such as lipschitz_weighted(): found ",
      if (is.function(mechanism)) "a function, write its call with ()" else class(mechanism)[1]
    )
  }
  if (name == "inner" && isTRUE(mechanism$clips)) {
    invalid_input("inner must be a mechanism of weights: found one that clips")
  }
  mechanism
}

# The bound, or cap, of one draw in nats: as given, or that of an epsilon.
cap_of <- function(cap, epsilon, relation, either_sign) {
  if (!is.null(cap)) {
    return(cap)
  }
  epsilon / (if (relation == "replace" && either_sign) 4 else 2)
}

# Weights after re-weighting, if the mechanism re-weights.
final_weights <- function(mechanism, session) {
  if (isFALSE(mechanism$reweight)) mechanism$weights(session) else weighted_fit(mechanism, session)$alpha
}
