# Outcomes with levels.

# Place of each value among the levels, from 1; the levels as texts are an attribute.
places_of <- function(y, levels) {
  if (is.null(levels)) {
    levels <- if (is.factor(y)) {
      base::levels(y)
    } else if (is.logical(y)) {
      c(FALSE, TRUE)
    } else {
      sort(unique(y), method = "radix")
    }
  }
  levels <- as.character(levels)
  if (length(levels) < 2 || anyDuplicated(levels) > 0) {
    invalid_input("levels must be at least 2 different values: found ", length(levels))
  }
  places <- as.double(match(as.character(y), levels))
  first_wrong(!is.na(y) & is.na(places), "be one of its levels")
  structure(places, levels = levels)
}

# Location and scale of the reparametrization, on which the posterior does not depend: the levels'
# shares, at the predictors' means, and about the deviations that so many records leave; see
# pyhybrid/models/initialization.py.
ordinal_fit <- function(y, X, weights, own) {
  C <- own$n_levels
  if (colnames(X)[1] != "(Intercept)") {
    invalid_input("program 'ordinal' must have an intercept, whose place its thresholds take")
  }
  size <- vapply(seq_len(C), function(c) sum(weights[y == c]), 0) + 0.5
  slopes <- X[, -1, drop = FALSE]
  n_slopes <- ncol(slopes)
  wide <- apply(slopes, 2, function(x) max(stats::sd(x), 0, na.rm = TRUE))
  wide[wide == 0] <- 1
  scale <- pmin(c(1 / sqrt(size), rep(2 / sqrt(sum(size)), n_slopes)), 1)
  scale <- scale / c(rep(1, C), wide)
  P <- C + n_slopes
  list(
    center = array(c(log(size), rep(0, n_slopes)), P),
    factor = diag(scale, P)[, -which.max(size), drop = FALSE],
    middle = array(c(0, colMeans(slopes)), ncol(X))
  )
}

# Location and scale of the reparametrization, on which the posterior does not depend: the levels'
# shares at the intercept, and the bases in which prior and information are diagonal; see
# pyhybrid/models/initialization.py.
categorical_fit <- function(y, X, weights, own) {
  C <- own$n_levels
  K <- ncol(X)
  counts <- vapply(seq_len(C), function(c) sum(weights[y == c]), 0)
  shares <- (counts + 0.5) / (sum(counts) + 0.5 * C)
  center <- matrix(0, K, C - 1)
  ones <- which(colSums(X != 1) == 0)
  if (length(ones) > 0) center[ones[1], ] <- log(shares[-1] / shares[1])
  curvature <- diag(shares) - outer(shares, shares)
  root <- chol(2 * (diag(C - 1) - 1 / C))
  inverse <- backsolve(root, diag(C - 1))
  by_level <- eigen(crossprod(inverse, curvature[-1, -1, drop = FALSE] %*% inverse), symmetric = TRUE)
  scale <- as.vector(own$prior_scale)
  by_column <- eigen(
    crossprod(sqrt(weights) * sweep(X, 2, scale, "*")),
    symmetric = TRUE
  )
  size <- outer(pmax(by_column$values, 0), pmax(by_level$values, 0))
  list(
    center_beta = center, spread_beta = 1 / sqrt(1 + size),
    column_basis = scale * by_column$vectors, level_basis = inverse %*% by_level$vectors
  )
}
