# Draws and the sampler's record, from what rstan and cmdstanr return.

# Variables of an array (draws, chains, flat names such as "beta[1,2]") as arrays (chains, draws, ..).
# Variables without elements have no flat name and are left out.
by_variable <- function(flat) {
  flat <- aperm(flat, c(2, 1, 3))
  full <- dimnames(flat)[[3]]
  base <- sub("\\[.*$", "", full)
  places <- strsplit(gsub("^[^[]*\\[?|\\]$", "", full), ",", fixed = TRUE)
  one <- function(name) {
    mine <- which(base == name)
    index <- matrix(as.integer(unlist(places[mine])), nrow = length(mine), byrow = TRUE)
    size <- if (ncol(index) > 0) apply(index, 2, max) else integer(0)
    # Elements in the column-major order of R, whatever the order of the engine.
    ordered <- mine[do.call(order, c(rev(as.data.frame(index)), list(mine)))]
    array(flat[, , ordered], c(dim(flat)[1:2], size))
  }
  sapply(unique(base), one, simplify = FALSE)
}

new_fit <- function(draws, measures, sampler, data, settings, engine, version, seed, program,
                    name) {
  log_lik <- draws[["log_lik"]]
  if (length(dim(log_lik)) == 3) {
    log_lik <- matrix(aperm(log_lik, c(2, 1, 3)), ncol = dim(log_lik)[3])
  }
  diagnostics <- worst_diagnostics(draws, measures)
  diagnostics$divergences <- sum(sampler$divergent)
  structure(
    list(
      draws = draws, log_lik = log_lik, diagnostics = diagnostics, sampler = sampler,
      settings = settings, engine = engine, version = version, seed = seed, program = program,
      name = name_of_program(name), n = data$n, coefficients = attr(data, "coefficients")
    ),
    class = "pyhybrid_fit"
  )
}

# What is kept of a program's name: none of a text.
name_of_program <- function(program) {
  if (length(program) == 1 && !grepl("[{\n]", program)) sub("[.]stan$", "", basename(program)) else ""
}

worst_diagnostics <- function(draws, measures) {
  small <- draws[vapply(draws, function(x) prod(dim(x)[-(1:2)]) <= 100, TRUE)]
  columns <- do.call(cbind, lapply(small, function(x) {
    matrix(aperm(x, c(2, 1, seq_along(dim(x))[-(1:2)])), prod(dim(x)[1:2]))
  }))
  chains <- dim(draws[[1]])[1]
  varies <- matrixStats::colSds(columns, useNames = FALSE) > 0
  each <- function(measure) {
    apply(columns[, varies, drop = FALSE], 2, function(x) measure(matrix(x, ncol = chains)))
  }
  list(
    rhat = max(each(measures$rhat)), ess_bulk = min(each(measures$ess_bulk)),
    ess_tail = min(each(measures$ess_tail))
  )
}

rstan_sampler <- function(fit) {
  record <- rstan::get_sampler_params(fit, inc_warmup = FALSE)
  column <- function(name) do.call(rbind, lapply(record, function(chain) chain[, name]))
  list(
    divergent = column("divergent__") > 0, treedepth = column("treedepth__"),
    energy = column("energy__"), step_size = column("stepsize__")[, 1],
    inv_metric = lapply(rstan::get_adaptation_info(fit), metric_in_text)
  )
}

# The numbers in the last line of rstan's adaptation text: the diagonal of the inverse metric.
metric_in_text <- function(text) {
  lines <- grep("[0-9]", strsplit(text, "\n", fixed = TRUE)[[1]], value = TRUE)
  as.numeric(strsplit(sub("^#", "", lines[length(lines)]), ",", fixed = TRUE)[[1]])
}

cmdstanr_sampler <- function(fit) {
  record <- unclass(fit$sampler_diagnostics(format = "draws_array"))
  column <- function(name) t(matrix(record[, , name], dim(record)[1]))
  list(
    divergent = column("divergent__") > 0, treedepth = column("treedepth__"),
    energy = column("energy__"), step_size = column("stepsize__")[, 1],
    inv_metric = fit$inv_metric(matrix = FALSE)
  )
}
