# Masking by data augmentation: densities of the mask models and the closed forms of one masked key.

#' Mask densities and keys given their mask
#'
#' A mask W is drawn from the true value X of a key; the released value is drawn from
#' p(X | Z, theta) p(W | X). `gaussian_mask_log_density()`: `W_k ~ N(X, variance)`, k = 1 .. K, of a
#' continuous key. `mixture_mask_log_density()`: `W ~ N(a X, 1)` for codes X of a binary or ordered
#' key, or, with a matrix `w`, W normal about centers that lie a apart for a nominal one.
#' `misclassification_log_density()`: `P(W = w | X = x)` from a matrix. `masked_normal()`: the normal
#' distribution of a continuous key given W, by precision weighting: precision 1/variance +
#' K/mask_variance. `masked_level_probabilities()`: the same for levels. Not differentially private.
#'
#' @param w Mask: a matrix with one row for each record and K columns (Gaussian); a vector, or a
#'   matrix with one column for each level (mixture); a vector of codes (misclassification).
#' @param x True values, or codes from 0, a vector of length n.
#' @param variance Variance of a copy, above 0; for `masked_normal()` the variances of
#'   p(X | Z, theta), a vector of length n.
#' @param separation Distance a between centers, above 0.
#' @param matrix Row x + 1 holds `P(W = 0, 1, ... | X = x)`.
#' @param mean Means of p(X | Z, theta), a vector of length n.
#' @param mask_variance Variance of a copy of the mask, above 0.
#' @param prior,log_density Matrices n x levels: `P(X = x | Z, theta)` and `log p(w | x)`.
#' @return A vector of log densities in nats; a list of `mean` and `variance`; a matrix of
#'   probabilities n x levels.
#' @references Jiang, Raftery, Steele, Wang (2022), JASA.
#' @examples
#' masked_normal(0, 1, w = matrix(c(0.4, 0.6), 1), mask_variance = 0.5)
#' @name masking
NULL

#' @rdname masking
#' @export
gaussian_mask_log_density <- function(w, x, variance) {
  variance <- check_positive(variance, "variance")
  x <- check_vector(x, "x")
  w <- check_mask_rows(w, length(x))
  unname(rowSums(stats::dnorm(w, x, sqrt(variance), log = TRUE)))
}

#' @rdname masking
#' @export
mixture_mask_log_density <- function(w, x, separation) {
  separation <- check_positive(separation, "separation")
  x <- check_vector(x, "x")
  if (length(dim(w)) < 2) {
    w <- check_vector(w, "w", length(x))
    return(stats::dnorm(w, separation * x, 1, log = TRUE))
  }
  w <- check_mask_rows(w, length(x))
  centers <- separation / sqrt(2) * diag(ncol(w))[check_codes(x, ncol(w)) + 1, , drop = FALSE]
  unname(rowSums(stats::dnorm(w, centers, 1, log = TRUE)))
}

#' @rdname masking
#' @export
misclassification_log_density <- function(w, x, matrix) {
  x <- check_vector(x, "x")
  w <- check_vector(w, "w", length(x))
  log(matrix[cbind(check_codes(x, nrow(matrix)), check_codes(w, nrow(matrix))) + 1])
}

#' @rdname masking
#' @export
masked_normal <- function(mean, variance, w, mask_variance) {
  mask_variance <- check_positive(mask_variance, "mask_variance")
  mean <- check_vector(mean, "mean")
  variance <- check_vector(variance, "variance", length(mean))
  w <- check_mask_rows(w, length(mean))
  if (!all(variance > 0)) invalid_input("variance must be above 0 in every record")
  precision <- 1 / variance + ncol(w) / mask_variance
  list(
    mean = (mean / variance + rowSums(w) / mask_variance) / precision,
    variance = 1 / precision
  )
}

#' @rdname masking
#' @export
masked_level_probabilities <- function(prior, log_density) {
  if (!identical(dim(prior), dim(log_density)) || length(dim(prior)) != 2) {
    invalid_input(
      "prior and log_density must share a shape (n, levels): found ", show_shape(prior), " and ",
      show_shape(log_density)
    )
  }
  weights <- prior * exp(log_density - matrixStats::rowMaxs(log_density, useNames = FALSE))
  total <- rowSums(weights)
  if (any(prior < 0) || !all(is.finite(total)) || !all(total > 0)) {
    invalid_input("each record must have a level with positive prior and density")
  }
  unname(weights / total)
}

check_mask_rows <- function(w, n) {
  if (!is.numeric(w) || length(dim(w)) != 2 || nrow(w) != n || length(w) == 0) {
    invalid_input(
      "w must have one row for each of ", n, " records: found ",
      if (length(dim(w)) > 1) "shape ", show_shape(w)
    )
  }
  w
}

check_codes <- function(values, levels) {
  if (any(values != floor(values) | values < 0 | values >= levels)) {
    invalid_input("codes must be whole numbers from 0 to ", levels - 1)
  }
  values
}
