# The perturbed histogram's arithmetic; the noise itself is an argument.

#' Perturbed histogram: counts and probabilities
#'
#' `histogram_counts()` counts values in equal bins of \[lower, upper\], closed on the left, the last
#' one closed on both sides. `perturbed_probabilities()` adds noise to counts, sets negatives to 0
#' and normalizes; if nothing positive is left the bins are equally likely. The noise (Laplace with
#' scale 2/epsilon) must come from a vetted library, such as 'OpenDP' in the Python package:
#' [stats::rexp()] is not fit for it.
#'
#' @param y Finite values within the bounds, a vector of length n.
#' @param lower,upper Public bounds, part of the guarantee: given by the user, never read from the
#'   data.
#' @param n_bins Number of bins, >= 2, public.
#' @param counts,noise Vectors of one number per bin.
#' @return Counts or probabilities, a vector of length `n_bins`.
#' @references Hu, Williams, Savitsky (2025), supplement 1.
#' @examples
#' counts <- histogram_counts(c(0.1, 0.2, 0.9, 1), lower = 0, upper = 1, n_bins = 4)
#' perturbed_probabilities(counts, noise = c(0.5, -1, 0.2, 0))
#' @export
histogram_counts <- function(y, lower, upper, n_bins) {
  y <- check_vector(y, "y")
  lower <- check_finite(lower, "lower")
  upper <- check_finite(upper, "upper")
  if (lower >= upper) {
    invalid_input("lower must be below upper: found ", short(lower), " and ", short(upper))
  }
  n_bins <- check_count(n_bins, "n_bins", at_least = 2)
  outside <- which(is.na(y) | y < lower | y > upper)
  if (length(outside) > 0) {
    invalid_input("y must lie in [lower, upper]: record ", outside[1], " does not")
  }
  bin <- (y - lower) / ((upper - lower) / n_bins)
  near <- round(bin)
  bin <- floor(ifelse(abs(bin - near) <= 1e-9 + 1e-15 * near, near, bin)) + 1 # 0.29 is 29 hundredths
  tabulate(pmin(bin, n_bins), n_bins)
}

#' @rdname histogram_counts
#' @export
perturbed_probabilities <- function(counts, noise) {
  counts <- check_vector(counts, "counts")
  noise <- check_vector(noise, "noise", length(counts))
  kept <- pmax(counts + noise, 0)
  if (!all(is.finite(kept))) {
    invalid_input("counts and noise must be finite: bin ", which(!is.finite(kept))[1], " is not")
  }
  if (sum(kept) > 0) kept / sum(kept) else rep(1 / length(kept), length(kept))
}
