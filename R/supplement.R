# The script that the earlier version of [V25] prints in its supplement, run as it is: the witness
# of bounds and weights.

#' Run the supplement's script
#'
#' Sources the R script of the supplement of Hu, Savitsky and Williams, Vector-weighted mechanisms
#' for utility maximization under differential privacy (weights from an unweighted fit, bound of the
#' weighted one), from a file of your own, as it is printed. What it leaves undefined is supplied:
#' `rowMaxs` and `colMaxs` as in Rfast, and `logthresh_ratio`, by which `log_ratio` is meant. It takes
#' time of order draws times records squared.
#'
#' @param file Path of the script; it is code, and runs with your rights.
#' @param log_lik_unweighted Matrix of draws by records, of the unweighted fit.
#' @param log_lik_weighted The same of the weighted fit; the printed program multiplies it by the
#'   weights. Without it, `log_lik_unweighted` times the weights of the script's steps 2 to 4.
#' @param draw_quantile,scale,shift The script's `thresh`, `c` and `g`. It takes the quantile in the
#'   bound alone: bounds by record and weights are of all draws.
#' @return A list: `by_record` and `weights` of the unweighted fit, `by_record_weighted` and `bound`
#'   of the weighted one, `risks` in between.
#' @seealso [lipschitz_weights()] without `draw_quantile`, which gives the same weights, and
#'   [lipschitz_bounds()], whose `overall` is the same bound
#' @examples
#' script <- "supplement_1.R" # a copy of your own
#' if (file.exists(script)) run_supplement(script, matrix(-stats::rexp(20), 5))$weights
#' @export
run_supplement <- function(file, log_lik_unweighted, log_lik_weighted = NULL, draw_quantile = 1,
                           scale = 1, shift = 0) {
  if (!is.character(file) || length(file) != 1 || !file.exists(file)) {
    invalid_input("file must be the path of the supplement's script: found ", show_value(file))
  }
  check_log_lik(log_lik_unweighted)
  check_fraction(draw_quantile, "draw_quantile")
  check_finite(scale, "scale")
  check_finite(shift, "shift")
  given <- list(
    thresh = draw_quantile, c = scale, g = shift,
    rowMaxs = function(x, value = TRUE) apply(x, 1, max),
    colMaxs = function(x, value = TRUE) apply(x, 2, max),
    stan_estimate_unweighted = list(log_lik = log_lik_unweighted)
  )
  home <- list2env(given, parent = asNamespace("stats"))
  makeActiveBinding("logthresh_ratio", function() home$log_ratio, home)
  weighted <- function() {
    if (is.null(log_lik_weighted)) sweep(log_lik_unweighted, 2, home$weights, "*") else log_lik_weighted
  }
  makeActiveBinding("stan_estimate_weighted", function() list(log_lik = weighted()), home)
  if (!is.null(log_lik_weighted)) check_log_lik(log_lik_weighted)
  sys.source(file, envir = home)
  wanted <- c("log_ratio_data", "risks", "weights", "log_ratio", "L")
  lacking <- setdiff(wanted, ls(home))
  if (length(lacking) > 0) {
    invalid_input(
      "file must be the supplement's script, which makes ", paste(lacking, collapse = ", "),
      ": it did not"
    )
  }
  list(
    by_record = home$log_ratio_data, risks = home$risks, weights = home$weights,
    by_record_weighted = apply(home$log_ratio, 2, max), bound = unname(home$L)
  )
}
