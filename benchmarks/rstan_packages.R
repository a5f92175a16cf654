# Rscript rstan_packages.R PROGRAM FAMILY FORMULA DATA.csv DRAWS.csv CHAINS WARMUP DRAWS
# Fits with rstanarm on one core, default priors, the seed fixed; writes the draws of the coefficients
# (chain after chain) and prints "CPU seconds, version".
given <- commandArgs(trailingOnly = TRUE)
program <- given[1]
family <- given[2]
formula <- as.formula(given[3])
data <- read.csv(given[4], stringsAsFactors = TRUE)
chains <- as.integer(given[6])
warmup <- as.integer(given[7])
iterations <- warmup + as.integer(given[8])

cpu <- function() sum(proc.time()[c("user.self", "sys.self", "user.child", "sys.child")])

fit_rstanarm <- function() {
  common <- list(
    formula, data = data, chains = chains, warmup = warmup, iter = iterations, cores = 1, seed = 1,
    refresh = 0
  )
  families <- list(poisson = poisson(), bernoulli = binomial(), normal = gaussian())
  switch(family,
    negative_binomial = do.call(rstanarm::stan_glm.nb, common),
    beta_regression = do.call(rstanarm::stan_betareg, common),
    do.call(rstanarm::stan_glm, c(common, list(family = families[[family]])))
  )
}

suppressPackageStartupMessages(suppressWarnings(library(program, character.only = TRUE)))
started <- cpu()
fit <- suppressMessages(suppressWarnings(fit_rstanarm()))
spent <- cpu() - started
own <- rstan::extract(fit$stanfit, permuted = FALSE)  # iterations, chains, parameters
internal <- "^(mean_PPD|log-posterior)"
kept <- !grepl(internal, dimnames(own)[[3]])
own <- own[, , kept, drop = FALSE]
flat <- matrix(own, ncol = dim(own)[3], dimnames = list(NULL, dimnames(own)[[3]]))
write.csv(flat, given[5], row.names = FALSE)
cat(sprintf("%.2f %s\n", spent, packageVersion(program)))
