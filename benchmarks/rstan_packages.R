# Rscript rstan_packages.R PACKAGE PRIOR FAMILY FORMULA DATA.csv DRAWS CHAINS WARMUP DRAWS SEEDS
# Fits with rstanarm or brms on one core, seeds 1 to SEEDS; writes the draws of the likelihood's
# parameters (chain after chain) to DRAWS<seed>.csv and prints CPU seconds by seed, and the version.
# PRIOR: "default", or "normal", N(0, 2.5^2) and N(0, 10^2) of the intercept, unscaled, as pyhybrid's;
# rstanarm's intercept is that of centered columns, brms' that of the columns as they are.
given <- commandArgs(trailingOnly = TRUE)
package <- given[1]
normal_prior <- given[2] == "normal"
family <- given[3]
formula <- as.formula(given[4])
data <- read.csv(given[5], stringsAsFactors = TRUE)
chains <- as.integer(given[7])
warmup <- as.integer(given[8])
iterations <- warmup + as.integer(given[9])
seeds <- as.integer(given[10])

cpu <- function() sum(proc.time()[c("user.self", "sys.self", "user.child", "sys.child")])

fit_rstanarm <- function(seed) {
  common <- list(
    formula, data = data, chains = chains, warmup = warmup, iter = iterations, cores = 1,
    seed = seed, refresh = 0
  )
  if (normal_prior) {
    common$prior <- rstanarm::normal(0, 2.5, autoscale = FALSE)
    common$prior_intercept <- rstanarm::normal(0, 10, autoscale = FALSE)
  }
  families <- list(poisson = poisson(), bernoulli = binomial(), normal = gaussian())
  fit <- switch(family,
    negative_binomial = do.call(rstanarm::stan_glm.nb, common),
    beta_regression = do.call(rstanarm::stan_betareg, common),
    do.call(rstanarm::stan_glm, c(common, list(family = families[[family]])))
  )
  fit$stanfit
}

compiled <- NULL
compile_brms <- function() {
  families <- list(
    poisson = poisson(), bernoulli = brms::bernoulli(), normal = gaussian(),
    negative_binomial = brms::negbinomial(), beta_regression = brms::Beta()
  )
  own <- update(formula, ~ 0 + Intercept + .)  # the intercept of the columns as they are
  prior <- c(
    brms::set_prior("normal(0, 2.5)", class = "b"),
    brms::set_prior("normal(0, 10)", class = "b", coef = "Intercept")
  )
  compiled <<- brms::brm(
    own, data = data, family = families[[family]], prior = prior, chains = 0, silent = 2,
    refresh = 0
  )
}

fit_brms <- function(seed) {
  update(
    compiled, newdata = data, recompile = FALSE, chains = chains, warmup = warmup,
    iter = iterations, cores = 1, seed = seed, refresh = 0, silent = 2
  )$fit
}

suppressPackageStartupMessages(suppressWarnings(library(package, character.only = TRUE)))
# As in pyhybrid's own engine: Debian's BH holds no headers, they are the system's.
if (!dir.exists(file.path(system.file("include", package = "BH"), "boost"))) {
  rstan::rstan_options(boost_lib = "/usr/include")
}
if (package == "brms") suppressMessages(suppressWarnings(compile_brms()))
fit_one <- if (package == "brms") fit_brms else fit_rstanarm
spent <- numeric(0)
for (seed in seq_len(seeds)) {
  started <- cpu()
  fit <- suppressMessages(suppressWarnings(fit_one(seed)))
  spent[seed] <- cpu() - started
  own <- rstan::extract(fit, permuted = FALSE)  # iterations, chains, parameters
  kept <- !grepl("^(mean_PPD|log-posterior|lp__|lprior)", dimnames(own)[[3]])
  own <- own[, , kept, drop = FALSE]
  flat <- matrix(own, ncol = dim(own)[3], dimnames = list(NULL, dimnames(own)[[3]]))
  write.csv(flat, paste0(given[6], seed, ".csv"), row.names = FALSE)
}
cat(sprintf("%.3f", spent), as.character(packageVersion(package)), "\n")
