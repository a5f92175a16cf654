# Terms (1 | g) of a formula: intercepts by the levels of a column, whose spread is estimated.

# The formula without its terms (1 | g), and the names of their columns.
without_groups <- function(formula) {
  groups <- character(0)
  kept <- function(term) {
    if (!"|" %in% all.names(term)) {
      return(term)
    }
    if (is.call(term) && identical(term[[1]], quote(`+`)) && length(term) == 3) {
      parts <- Filter(Negate(is.null), list(kept(term[[2]]), kept(term[[3]])))
      both <- length(parts) == 2
      return(if (both) call("+", parts[[1]], parts[[2]]) else if (length(parts) == 1) parts[[1]])
    }
    groups <<- c(groups, group_column(term))
    NULL
  }
  right <- kept(formula[[3]])
  if (anyDuplicated(groups)) {
    invalid_input("formula must have each group once: (1 | ", groups[anyDuplicated(groups)],
                  ") is twice")
  }
  formula[[3]] <- if (is.null(right)) 1 else right
  list(formula = formula, groups = groups)
}

# Name of the column g of a term (1 | g).
group_column <- function(term) {
  text <- deparse1(term)
  bar <- if (is.call(term) && identical(term[[1]], quote(`(`))) term[[2]]
  if (!is.call(bar) || !identical(bar[[1]], quote(`|`))) {
    invalid_input("formula must have '|' in terms (1 | g) alone, with + before them: found ", text,
                  "; write e.g. y ~ x + (1 | region)")
  }
  if (!identical(bar[[2]], 1)) {
    invalid_input("formula must have no slope by group: found ", text,
                  "; write (1 | g) for an intercept by group, or x:g for coefficients by level")
  }
  if (!is.name(bar[[3]])) {
    invalid_input("formula must have one column as a group: found ", text, "; for nested or joined ",
                  "groups make a column of both, paste(g, h, sep = \"/\"), and write ",
                  "(1 | g) + (1 | g_h)")
  }
  as.character(bar[[3]])
}

# Indicators of the levels of each group, the one with the most levels last, and which group each of
# the columns is of, from 1.
group_columns <- function(groups, data) {
  made <- lapply(groups, function(name) {
    if (!name %in% names(data)) {
      invalid_input("formula must name columns of the data: '", name, "' is none")
    }
    own <- data[[name]]
    if (is.logical(own)) own <- factor(own, c(FALSE, TRUE))
    if (!is.factor(own)) own <- factor(own, sort(unique(own)))
    if (anyNA(own)) {
      invalid_input("predictor '", name, "' must not be missing: record ", which(is.na(own))[1],
                    " is")
    }
    check_group(own, name)
    outer(as.integer(own), seq_len(nlevels(own)), "==") + 0
  })
  made <- made[order(vapply(made, ncol, 1L))]
  sizes <- vapply(made, ncol, 1L)
  list(X = do.call(cbind, made), group = rep(seq_along(made), sizes))
}

check_group <- function(own, name) {
  used <- length(unique(own))
  if (used == 1) {
    invalid_input("group (1 | ", name, ") must have 2 levels or more: all records have the same; ",
                  "leave it out, e.g. y ~ x")
  }
  if (used == length(own)) {
    invalid_input("group (1 | ", name, ") must have records in common: each of the ", used,
                  " has a level of its own; write it as a predictor if it is a number, ",
                  "e.g. y ~ x, or leave it out")
  }
}

# What the programs read of the groups of the design's columns; see stan/blocks/coefficients_data.stan.
group_data <- function(group, prior_scale_groups) {
  n_terms <- max(group)
  list(
    n_group_terms = n_terms, n_grouped = sum(group > 0),
    group_term = array(as.integer(group[group > 0]), sum(group > 0)),
    n_apart = n_apart(group), prior_scale_groups = prior_scale_groups,
    center_tau = array(0, n_terms), spread_tau = array(1, n_terms)
  )
}

# Number of columns of the last group, which share no information with each other.
n_apart <- function(group) if (max(group) == 0) 0L else sum(group == max(group))
