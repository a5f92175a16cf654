# Fitting a Stan program with rstan, or with cmdstanr where it is installed.

#' Fit a Stan program
#'
#' Draws from the (weighted) posterior of a program of this package, of a file or of a text. With
#' rstan before 2.26, array declarations are rewritten first, and single calls of
#' `neg_binomial_2_log_lpmf` go over to Poisson's where phi > 1e8, at which the old library loses all
#' digits. Compiled programs hold no data; they are kept for the session, and in `cache_folder` if
#' that is given.
#'
#' @param program Name of a program of this package (`"negative_binomial"`), path of a `.stan` file,
#'   or program text.
#' @param data Named list of the program's data.
#' @param chains,iter_warmup,iter_sampling Number of chains; draws of each, before and after
#'   adaptation.
#' @param seed Whole number; from the system's entropy if `NULL`; recorded in the result. The session's
#'   own random numbers are left as they were.
#' @param adapt_delta,max_treedepth,init,cores,refresh As in [rstan::sampling()].
#' @param step_size Initial step size of the sampler; chosen by it if `NULL`.
#' @param variables Names of variables to keep; all if `NULL`.
#' @param cache_folder Folder for compiled programs, by content; none if `NULL`.
#' @return An object of class `pyhybrid_fit` with methods for [print()], [coef()], [vcov()], [nobs()],
#'   `as_draws_array()` of \pkg{posterior}, `tidy()` and `glance()` ([fit-methods]) and [as_loglik()]: a
#'   list with `draws` (one array of chains x draws x ...
#'   per variable, in the order of the program; \pkg{posterior} and \pkg{loo} expect iterations first:
#'   give them `as_draws_array()`), `log_lik` (matrix, all draws by records, chain by
#'   chain; `NULL` if the program has none), `diagnostics` (`rhat`, `ess_bulk`, `ess_tail`: the
#'   worst over `lp__` and all variables of at most 100 elements; `divergences`), `sampler` (chains
#'   x draws matrices `divergent`, `treedepth` and `energy`; by chain, `step_size` and the diagonal
#'   `inv_metric`), `settings` of the sampler, `engine`, `version`, `seed` and `program` (the text that
#'   was compiled). Draws of
#'   `log_lik` are confidential.
#' @seealso [pyhybrid-conditions]
#' @examples
#' \donttest{
#' if (requireNamespace("rstan", quietly = TRUE)) {
#'   visits <- data.frame(visits = c(95, 100, 104))
#'   fit <- fit_rstan("poisson", stan_data(visits ~ 1, visits, program = "poisson"), seed = 1)
#'   lipschitz_bounds(fit)
#' }
#' }
#' @export
fit_rstan <- function(program, data, chains = 4, iter_warmup = 1000, iter_sampling = 1000,
                      seed = NULL, adapt_delta = 0.9, max_treedepth = 10, init = "random",
                      step_size = NULL, variables = NULL, cores = 1, refresh = 0,
                      cache_folder = NULL) {
  random <- random_state()
  on.exit(restore_random(random))
  seed <- check_settings(chains, iter_warmup, iter_sampling, seed, data)
  boost <- require_rstan()
  on.exit(rstan::rstan_options(boost_lib = boost), add = TRUE)
  text <- program_text(program)
  if (utils::packageVersion("rstan") < "2.26") text <- for_old_rstan(text)
  model <- compile_rstan(text, cache_folder)
  control <- list(adapt_delta = adapt_delta, max_treedepth = max_treedepth)
  control$stepsize <- step_size
  # rstan looks for what a list lacks in the caller's variables; in an environment it does not.
  sealed <- list2env(data, parent = emptyenv())
  # What chains say goes into a file, which an interrupt leaves: into a folder of its own.
  folder <- private_folder()
  sinks <- sink.number(type = "message")
  on.exit(undivert_messages(sinks), add = TRUE)
  on.exit(unlink(folder, recursive = TRUE), add = TRUE)
  fit <- as_sampling_error(rstan::sampling(
    model,
    data = sealed, pars = if (is.null(variables)) NA else variables, chains = chains,
    iter = iter_warmup + iter_sampling, warmup = iter_warmup, seed = seed, init = init,
    cores = cores, refresh = refresh, open_progress = FALSE,
    show_messages = file.path(folder, "messages.txt"), control = control
  ))
  if (fit@mode != 0) {
    sampling_error("rstan must return draws: no chain finished; ", trimws(geterrmessage()))
  }
  measures <- list(rhat = rstan::Rhat, ess_bulk = rstan::ess_bulk, ess_tail = rstan::ess_tail)
  new_fit(
    by_variable(as.array(fit)), measures, rstan_sampler(fit), data,
    settings = sampler_settings(chains, iter_warmup, iter_sampling, adapt_delta, max_treedepth),
    engine = "rstan", version = as.character(utils::packageVersion("rstan")), seed = seed,
    program = text, name = program
  )
}

#' @rdname fit_rstan
#' @export
fit_cmdstanr <- function(program, data, chains = 4, iter_warmup = 1000, iter_sampling = 1000,
                         seed = NULL, adapt_delta = 0.9, max_treedepth = 10, init = NULL,
                         step_size = NULL, variables = NULL, cores = 1, refresh = 0,
                         cache_folder = NULL) {
  random <- random_state()
  on.exit(restore_random(random))
  seed <- check_settings(chains, iter_warmup, iter_sampling, seed, data)
  require_cmdstanr()
  # Data and draws are confidential: one private folder, removed on every way out.
  folder <- private_folder()
  on.exit(unlink(folder, recursive = TRUE), add = TRUE)
  text <- program_text(program)
  data_file <- file.path(folder, "data.json")
  from_cmdstanr("write_stan_json")(data, data_file)
  fit <- as_sampling_error({
    place <- if (is.null(cache_folder)) folder else cache_folder
    source <- from_cmdstanr("write_stan_file")(text, place)
    from_cmdstanr("cmdstan_model")(source)$sample(
      data = data_file, chains = chains, iter_warmup = iter_warmup, init = init,
      iter_sampling = iter_sampling, seed = seed, adapt_delta = adapt_delta, refresh = refresh,
      max_treedepth = max_treedepth, step_size = step_size, parallel_chains = cores,
      output_dir = folder, show_messages = refresh > 0
    )
  })
  flat <- unclass(fit$draws(variables = variables, format = "draws_array"))
  measures <- mget(c("rhat", "ess_bulk", "ess_tail"), envir = asNamespace("posterior"))
  new_fit(
    by_variable(flat), measures, cmdstanr_sampler(fit), data,
    settings = sampler_settings(chains, iter_warmup, iter_sampling, adapt_delta, max_treedepth),
    engine = "cmdstanr", version = from_cmdstanr("cmdstan_version")(), seed = seed,
    program = text, name = program
  )
}

#' @export
print.pyhybrid_fit <- function(x, ...) {
  size <- dim(x$draws[[1]])
  cat(paste0(
    "Fit by ", x$engine, " ", x$version, ": ", size[1], " chains of ", size[2], " draws, seed ",
    x$seed, "\n  variables:   ", paste(names(x$draws), collapse = ", "),
    "\n  diagnostics: R-hat ", format(x$diagnostics$rhat, digits = 4),
    ", bulk ESS ", round(x$diagnostics$ess_bulk), ", tail ESS ", round(x$diagnostics$ess_tail),
    ", divergences ", x$diagnostics$divergences, "\n"
  ))
  invisible(x)
}

# Under the Python package's names.
sampler_settings <- function(chains, iter_warmup, iter_sampling, adapt_delta, max_treedepth) {
  list(
    chains = chains, warmup = iter_warmup, draws = iter_sampling, adapt_delta = adapt_delta,
    max_treedepth = max_treedepth, max_draws = iter_sampling
  )
}

check_settings <- function(chains, iter_warmup, iter_sampling, seed, data) {
  check_count(chains, "chains")
  check_count(iter_warmup, "iter_warmup")
  check_count(iter_sampling, "iter_sampling")
  if (is.null(seed)) seed <- new_seed()
  seed <- check_count(seed, "seed", at_least = 0)
  if (seed > .Machine$integer.max) {
    invalid_input("seed must be at most ", .Machine$integer.max, ": found ", show_value(seed))
  }
  if (!is.list(data) || (length(data) > 0 && (is.null(names(data)) || any(names(data) == "")))) {
    invalid_input("data must be a list with a name for every element")
  }
  as.integer(seed)
}

private_folder <- function() {
  folder <- tempfile("pyhybrid")
  dir.create(folder, mode = "0700")
  folder
}

program_text <- function(program) {
  if (!is.character(program) || length(program) == 0) {
    invalid_input("program must be a name, a .stan file or program text: found ", class(program)[1])
  }
  if (length(program) > 1 || grepl("[{\n]", program)) {
    return(paste(program, collapse = "\n"))
  }
  shipped <- system.file("stan", package = "pyhybrid")
  folder <- get0("stan_folder", mode = "character", ifnotfound = shipped)
  known <- file.path(folder, paste0(program, ".stan"))
  file <- if (nzchar(folder) && file.exists(known)) known else program
  if (!file.exists(file) || dir.exists(file)) {
    invalid_input(
      "program must be one of ",
      paste(sub("[.]stan$", "", names_of_programs(folder)), collapse = ", "),
      ", a .stan file or program text: found '", program, "'"
    )
  }
  whole_text(file)
}

names_of_programs <- function(folder) {
  published <- file.path("published", list.files(file.path(folder, "published"), "[.]stan$"))
  c(list.files(folder, "[.]stan$"), published)
}

# Text of a program with what its lines `#include file` name in their place; files are looked for
# beside the program. Python and R hash and compile the same text.
whole_text <- function(file) {
  lines <- as.list(readLines(file, warn = FALSE))
  included <- grep("^#include ", lines)
  lines[included] <- lapply(lines[included], function(line) {
    readLines(file.path(dirname(file), sub("^#include ", "", line)), warn = FALSE)
  })
  paste(unlist(lines), collapse = "\n")
}

as_sampling_error <- function(expression) {
  tryCatch(expression, error = function(problem) {
    if (inherits(problem, "pyhybrid_sampling_error")) stop(problem)
    sampling_error(conditionMessage(problem))
  })
}
