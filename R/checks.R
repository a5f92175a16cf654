# Checks of arguments, each signaling `pyhybrid_invalid_input`. Exported functions call these once;
# everything else computes. A missing value (NA) counts as NaN throughout.

show_value <- function(value) {
  if (is.null(value)) {
    "NULL"
  } else if (is.character(value) && length(value) == 1) {
    paste0("'", value, "'")
  } else if (length(value) == 1 && is.atomic(value)) {
    format(value, digits = 15)
  } else {
    paste0("<", class(value)[1], " of length ", length(value), ">")
  }
}

# A shape in R's words: "length 3" for a vector, (3, 4) for a matrix, () for nothing.
show_shape <- function(value) {
  size <- if (is.null(dim(value))) length(value) else dim(value)
  if (is.null(value)) size <- integer(0)
  if (length(size) == 1) paste("length", size) else paste0("(", paste(size, collapse = ", "), ")")
}

short <- function(number) sprintf("%g", number)

check_finite <- function(value, name) {
  if (!is.numeric(value) || is.object(value) || length(value) != 1 || !is.finite(value)) {
    invalid_input(name, " must be a finite number: found ", show_value(value))
  }
  as.double(value)
}

check_positive <- function(value, name) {
  number <- check_finite(value, name)
  if (number <= 0) invalid_input(name, " must be above 0: found ", short(number))
  number
}

check_fraction <- function(value, name) {
  number <- check_finite(value, name)
  if (number <= 0 || number > 1) {
    invalid_input(name, " must lie in (0, 1]: found ", short(number))
  }
  number
}

check_count <- function(value, name, at_least = 1) {
  number <- check_finite(value, name)
  if (number != floor(number) || number < at_least) {
    invalid_input(name, " must be a whole number >= ", at_least, ": found ", show_value(value))
  }
  number
}

check_flag <- function(value, name) {
  if (!is.logical(value) || length(value) != 1 || is.na(value)) {
    invalid_input(name, " must be TRUE or FALSE: found ", show_value(value))
  }
  value
}

check_choice <- function(value, name, known) {
  if (!is.character(value) || length(value) != 1 || !value %in% known) {
    invalid_input(
      name, " must be one of ", paste(known, collapse = ", "), ": found ", show_value(value)
    )
  }
  value
}

check_vector <- function(values, name, length = NULL) {
  if (!(is.numeric(values) || is.logical(values)) || is.factor(values)) {
    invalid_input(name, " must be numeric: found ", class(values)[1])
  }
  if (length(dim(values)) > 1 || base::length(values) == 0) {
    invalid_input(name, " must be a vector of length n, n >= 1: found ", show_shape(values))
  }
  if (!is.null(length) && base::length(values) != length) {
    invalid_input(name, " must have ", length, " elements: found ", base::length(values))
  }
  as.double(values)
}

check_nonnegative_vector <- function(values, name, length = NULL) {
  vector <- check_vector(values, name, length)
  wrong <- which(!(vector >= 0) | is.na(vector))
  if (base::length(wrong) > 0) {
    invalid_input(
      name, " must be >= 0 and not NaN: record ", wrong[1], " is not"
    )
  }
  vector
}

check_alpha <- function(alpha, n) {
  if (is.null(alpha)) {
    return(rep(1, n))
  }
  vector <- check_vector(alpha, "alpha", n)
  wrong <- which(is.na(vector) | vector < 0 | vector > 1)
  if (length(wrong) > 0) {
    invalid_input(
      "alpha must lie in [0, 1]: record ", wrong[1], " has another weight"
    )
  }
  vector
}
