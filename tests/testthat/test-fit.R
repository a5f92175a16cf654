test_that("draws come back by variable, whatever the order of the engine", {
  names <- c("b[2]", "L[1,1]", "L[1,2]", "L[2,1]", "L[2,2]", "s", "b[1]")
  flat <- array(seq_len(2 * 3 * 7), c(3, 2, 7), list(NULL, NULL, names))
  draws <- by_variable(flat)
  expect_equal(names(draws), c("b", "L", "s"))
  expect_equal(dim(draws$s), c(2L, 3L))
  for (chain in 1:2) {
    for (draw in 1:3) {
      expect_equal(draws$b[chain, draw, 2], flat[draw, chain, "b[2]"], ignore_attr = TRUE)
      expect_equal(draws$L[chain, draw, 1, 2], flat[draw, chain, "L[1,2]"], ignore_attr = TRUE)
    }
  }
})

test_that("the inverse metric is read from rstan's text", {
  text <- paste0(
    "# Adaptation terminated\n# Step size = 0.9\n# Diagonal elements of inverse mass matrix:\n",
    "# 1.5, 2e-05\n"
  )
  expect_equal(metric_in_text(text), c(1.5, 2e-05))
})

test_that("bad input is refused before anything is compiled", {
  refused <- function(...) expect_error(fit_rstan(...), class = "pyhybrid_invalid_input")
  refused("poisson", list(), chains = 0)
  refused("poisson", list(1))
  refused("poisson", list(), seed = 2^31)
  skip_if_not_installed("rstan")
  expect_error(fit_rstan("no_such_program", list()), "found 'no_such_program'")
})

test_that("what is missing is named with its remedy", {
  skip_if(nzchar(system.file(package = "cmdstanr")), "cmdstanr is installed")
  expect_error(
    fit_cmdstanr("poisson", list()), "cmdstanr must be installed: not found in this R; run",
    class = "pyhybrid_engine_unavailable"
  )
  expect_error(
    boost_folder("", tempdir()), "apt-get install libboost-dev",
    class = "pyhybrid_engine_unavailable"
  )
})

test_that("rstan samples the Poisson program; log_lik is the density at the draws", {
  skip_on_cran()
  skip_if_not_installed("rstan")
  y <- c(95, 100, 104, 88, 110, 97, 102, 99)
  program <- file.path(stan_folder(), "poisson.stan")
  fit <- fit_rstan(program, poisson_data(y), chains = 2, iter_sampling = 500, seed = 7)
  expect_equal(dim(fit$draws$beta), c(2L, 500L, 1L))
  expect_equal(dim(fit$sampler$energy), c(2L, 500L))
  eta <- c(t(fit$draws$beta[, , 1]))
  expect_equal(fit$log_lik, sapply(y, dpois, lambda = exp(eta), log = TRUE), tolerance = 1e-8)
  expect_lt(fit$diagnostics$rhat, 1.05)
  # The posterior of beta is close to normal about log(mean(y)); 5 Monte Carlo standard errors.
  se <- 1 / sqrt(sum(y)) / sqrt(fit$diagnostics$ess_bulk)
  expect_lt(abs(mean(eta) - log(mean(y))), 5 * se + 1 / sum(y))
  expect_equal(lipschitz_bounds(fit)$overall, max(abs(fit$log_lik)))
  expect_equal(names(coef(fit)), "(Intercept)")
  expect_equal(nobs(fit), 8)
  if (requireNamespace("posterior", quietly = TRUE)) {
    draws <- posterior::as_draws_array(fit)
    beta <- posterior::extract_variable_matrix(draws, "beta[(Intercept)]")
    expect_equal(unname(unclass(beta)), t(fit$draws$beta[, , 1]), ignore_attr = TRUE)
    # R-hat and the effective size are of chains, not of iterations taken for chains.
    expect_equal(posterior::rhat(beta), fit$diagnostics$rhat, tolerance = 0.01)
    expect_gt(posterior::ess_bulk(beta), 50)
  }
  expect_output(print(fit), "Fit by rstan .*2 chains of 500 draws, seed 7")

  wrong <- poisson_data(y)
  wrong$y <- NULL
  utils::capture.output(
    expect_error(
      suppressWarnings(fit_rstan(program, wrong, chains = 1)), "variable does not exist",
      class = "pyhybrid_sampling_error"
    ),
    type = "message"
  )
})

# --- What CmdStan wrote (tests/fake_cmdstan), through an object with the methods of cmdstanr ---------

stored_cmdstan <- function() {
  files <- testthat::test_path("..", "fake_cmdstan", paste0("output_", 1:2, ".csv"))
  if (!all(file.exists(files))) skip("CmdStan's stored output is not here")
  chains <- lapply(files, utils::read.csv, comment.char = "#", check.names = FALSE)
  names <- gsub("[.]([0-9]+)$", "[\\1]", names(chains[[1]]))
  names <- gsub("[.]([0-9]+)\\[([0-9]+)\\]$", "[\\1,\\2]", names)
  everything <- aperm(simplify2array(lapply(chains, as.matrix)), c(1, 3, 2))
  dimnames(everything) <- list(NULL, NULL, names)
  sampler <- endsWith(names, "__") & names != "lp__"
  methods <- list(
    draws = function(variables = NULL, format) {
      chosen <- !sampler & (is.null(variables) | sub("\\[.*", "", names) %in% variables)
      posterior::as_draws_array(everything[, , chosen, drop = FALSE])
    },
    sampler_diagnostics = function(format) posterior::as_draws_array(everything[, , sampler]),
    inv_metric = function(matrix) list(1, 1),
    metadata = function() list(stan_variables = unique(sub("\\[.*", "", names[!sampler])))
  )
  list(fit = structure(methods, class = "CmdStanMCMC"), draws = everything)
}

test_that("cmdstanr's path reads what CmdStan wrote", {
  skip_if_not_installed("posterior")
  stored <- stored_cmdstan()
  asked <- NULL
  cmdstanr <- list(
    cmdstan_version = function(...) "2.35.0", write_stan_json = function(data, file) file.create(file),
    write_stan_file = function(text, dir) file.path(dir, "program.stan"),
    cmdstan_model = function(source) {
      list(sample = function(...) {
        asked <<- list(...)
        stored$fit
      })
    }
  )
  fit <- fit_cmdstanr
  environment(fit) <- list2env(
    list(from_cmdstanr = function(name) cmdstanr[[name]], require_cmdstanr = function() NULL),
    parent = asNamespace("pyhybrid")
  )
  text <- "parameters { real s; } model { s ~ std_normal(); }"
  found <- suppressWarnings(fit(text, list(n = 3), chains = 2, seed = 7)) # of 20 draws a chain
  expect_equal(found$draws$m[2, 5, 1, 2], stored$draws[5, 2, "m[1,2]"], ignore_attr = TRUE)
  expect_equal(dim(found$draws$s), c(2L, 20L))
  expect_equal(found$sampler$energy[2, 3], stored$draws[3, 2, "energy__"], ignore_attr = TRUE)
  expect_equal(found$version, "2.35.0")
  expect_equal(asked$seed, 7L)
  expect_false(file.exists(asked$data)) # the data's folder is gone
  # Its objects are log-likelihoods, too.
  x <- as_loglik(stored$fit, variable = "x")
  expect_equal(x[20 + 4, 2], stored$draws[4, 2, "x[2]"], ignore_attr = TRUE)
  expect_equal(attr(x, "chains"), 2)
  expect_error(lipschitz_bounds(stored$fit), "must have a variable 'log_lik'.*found lp__, x")
})

stanfit_of <- function(data, chain) {
  text <- pyhybrid:::for_old_rstan(pyhybrid:::program_text("poisson"))
  model <- pyhybrid:::compile_rstan(text, NULL)
  given <- stan_data(visits ~ sex, data, program = "poisson")
  suppressWarnings( # one short chain
    rstan::sampling(model, given, chains = 1, iter = 400, refresh = 0, seed = 3, chain_id = chain)
  )
}

test_that("rstan's objects are read, and a clipped posterior is sampled by our programs", {
  skip_on_cran()
  skip_if_not_installed("rstan")
  data <- survey(80)
  made <- synthesize(
    visits ~ sex, data, "poisson", censored(cap = 2.5), engine = "rstan", seed = 5, progress = FALSE,
    chains = 3, iter_sampling = 600
  )
  expect_equal(charge(made)$epsilon, 5)
  weighted <- confidential(made)$weighted
  expect_lt(weighted$diagnostics$divergences, 2) # the printed program's diverge by thousands
  expect_lt(weighted$diagnostics$rhat, 1.01)
  wild <- rstan::sflist2stanfit(list(stanfit_of(data, 1), stanfit_of(data, 2)))
  found <- as_loglik(wild)
  expect_equal(dim(found), c(400L, 80L))
  expect_equal(attr(found, "chains"), 2)
  expect_equal(found[201, 3], rstan::extract(wild, "log_lik", permuted = FALSE)[1, 2, 3], ignore_attr = TRUE)
  expect_error(as_loglik(wild, variable = "f"), "must have a variable 'f'")
})
