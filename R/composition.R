# Composition: what several charges cost together.

#' Sequential composition
#'
#' The sum of the epsilons of charges of one kind, relation and unit. Of charges that are counted at a
#' delta the deltas add, too: the sum holds at the sum of their deltas. The Python package's `compose`
#' finds a smaller epsilon for them, by squares of mu or by rho.
#' @param charges List of charges; each is a list with `epsilon`, `kind` and `relation`, and `unit`
#'   where all records of one person are protected, such as a privacy charge of the Python package
#'   read from JSON.
#' @return Epsilon in nats; 0 for no charges.
#' @examples
#' charge <- list(epsilon = 5, kind = "asymptotic local", relation = "remove")
#' compose(list(charge, charge))
#' @export
compose <- function(charges) {
  if (!is.list(charges) || !all(vapply(charges, is_charge, TRUE))) {
    invalid_input("charges must be a list of charges, each with epsilon, kind and relation")
  }
  label <- function(charge) {
    unit <- charge$unit
    protected <- if (is.null(unit)) "one record" else paste("all records of one", unit)
    paste0(charge$kind, ", ", charge$relation, " ", protected)
  }
  labels <- sort(unique(vapply(charges, label, "")), method = "radix")
  if (length(labels) > 1) {
    invalid_input(
      "charges must be of one kind, relation and unit: found ", paste(labels, collapse = "; "),
      "; a sum of unlike charges is no guarantee"
    )
  }
  at_least(Reduce(plus, lapply(charges, function(charge) as_decimal(charge$epsilon)), as_decimal(0)))
}

is_charge <- function(charge) {
  is.list(charge) && all(c("epsilon", "kind", "relation") %in% names(charge)) &&
    is.numeric(charge$epsilon) && length(charge$epsilon) == 1 && is.finite(charge$epsilon)
}
