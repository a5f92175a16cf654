# Posterior of a Poisson regression with intercepts by group from rstanarm::stan_glmer, for
# tests/models/test_groups.py. Writes groups.json of this folder (rstanarm 2.21.3 wrote that stored):
#   Rscript tests/stored/rstanarm/make_rstanarm.R tests/stored/rstanarm
#
# rstanarm's prior of the intercepts' standard deviation tau is exponential(1); its draws are weighted
# by half-student_t(3, 0, 2.5) over that, so that the means are those under the prior of pyhybrid and
# brms. x has mean 0, so that rstanarm's intercept, of centered predictors, is that of x as it is.
suppressMessages(library(rstanarm))

set.seed(20)
n <- 160
g <- sprintf("g%02d", sample(rep(1:12, length.out = n), n))
x <- round(stats::rnorm(n), 1)
x <- round(x - mean(x), 3)
x[n] <- x[n] - sum(x)
effect <- stats::rnorm(12, 0, 0.5)
y <- stats::rpois(n, exp(0.6 + 0.3 * x + effect[as.integer(factor(g))]))
table <- data.frame(y = y, x = x, g = g)

fit <- stan_glmer(
  y ~ x + (1 | g), family = poisson, data = table,
  prior = normal(0, 2.5, autoscale = FALSE), prior_intercept = normal(0, 10, autoscale = FALSE),
  prior_covariance = decov(regularization = 1, concentration = 1, shape = 1, scale = 1),
  chains = 4, iter = 6000, cores = 1, seed = 7, refresh = 0
)
draws <- as.array(fit)
names <- dimnames(draws)[[3]]
spread <- grepl("^Sigma", names)
draws[, , spread] <- sqrt(draws[, , spread])
tau <- draws[, , spread]
weight <- 2 * stats::dt(tau / 2.5, 3) / 2.5 / stats::dexp(tau, 1)

# Means of a quantity under the weights, and their Monte Carlo error by means of 60 batches.
batches <- rep(1:15, each = nrow(tau) / 15)
of <- function(value) {
  parts <- outer(1:15, 1:4, Vectorize(function(batch, chain) {
    own <- batches == batch
    sum(weight[own, chain] * value[own, chain]) / sum(weight[own, chain])
  }))
  list(mean = sum(weight * value) / sum(weight), error = stats::sd(parts) / sqrt(60))
}
found <- list()
for (k in seq_along(names)) {
  label <- if (spread[k]) "tau" else sub("b\\[\\(Intercept\\) g:(.*)\\]", "(1 | g)[\\1]", names[k])
  label <- sub("(Intercept)", "Intercept", label, fixed = TRUE)
  found[[label]] <- of(draws[, , k])
  found[[paste0(label, "^2")]] <- of(draws[, , k]^2)
}
writeLines(jsonlite::toJSON(
  list(
    version = paste("rstanarm", utils::packageVersion("rstanarm")), data = table, posterior = found
  ),
  dataframe = "columns", auto_unbox = TRUE, digits = 8, pretty = FALSE
), file.path(commandArgs(trailingOnly = TRUE)[1], "groups.json"))
print(round(t(sapply(found, unlist)), 4))
