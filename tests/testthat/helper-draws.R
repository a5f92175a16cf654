# An engine that needs no sampler: draws about a rough fit, under the weights, with the seed given. A
# program's coefficients are normal about those of glm with its covariance; `diagnostics` is what is said
# of the chains.
sound <- list(rhat = 1.001, ess_bulk = 900, ess_tail = 800, divergences = 0)

normal_draws <- function(diagnostics = sound, draws = 100) {
  function(program, data, variables, seed, ...) {
    pyhybrid:::with_randomness(seed, {
      program <- sub("^published/", "", program)
      y <- if (is.null(data$y)) data$outcome else as.vector(data$y)
      w <- as.vector(if (is.null(data$weights)) data$alpha else data$weights) + 1e-3
      if (program == "beta") {
        mean <- stats::weighted.mean(y, w)
        values <- list(
          phi = array(stats::plogis(stats::qlogis(mean) + rnorm(4 * draws, sd = 0.1)), c(4, draws)),
          lambda = array(exp(rnorm(4 * draws, log(3), 0.1)), c(4, draws))
        )
      } else {
        family <- switch(program,
          poisson = , negative_binomial = stats::quasipoisson(), normal_regression = stats::gaussian(),
          stats::quasibinomial()
        )
        fit <- stats::glm.fit(data$X, y, w, family = family)
        root <- chol(chol2inv(fit$qr$qr[seq_len(ncol(data$X)), , drop = FALSE]))
        beta <- matrix(rnorm(4 * draws * ncol(data$X)), ncol = ncol(data$X)) %*% root
        beta <- beta + rep(fit$coefficients, each = 4 * draws)
        values <- list(beta = aperm(array(beta, c(draws, 4, ncol(data$X))), c(2, 1, 3)))
        size <- c(negative_binomial = "phi", normal_regression = "sigma", beta_regression = "lambda")
        if (program %in% names(size)) {
          values[[size[[program]]]] <- array(exp(rnorm(4 * draws, log(2), 0.1)), c(4, draws))
        }
      }
      structure(
        list(draws = values, diagnostics = diagnostics, n = data$n, engine = "none",
             coefficients = attr(data, "coefficients")),
        class = "pyhybrid_fit"
      )
    })
  }
}

survey <- function(n = 60) {
  pyhybrid:::with_randomness(11, {
    sex <- rep(c("f", "m"), length.out = n)
    data.frame(
      visits = rpois(n, 5 + 2 * (sex == "m")), voted = rbinom(n, 1, 0.4), income = round(rnorm(n, 30, 8), 1),
      share = round(stats::rbeta(n, 2, 3), 3), sex = sex, age = sample(20:70, n, TRUE)
    )
  })
}

# A folder's name that nothing has, removed when the test ends.
new_folder <- function(env = parent.frame()) {
  path <- tempfile("release")
  do.call(on.exit, list(bquote(unlink(.(path), recursive = TRUE)), add = TRUE), envir = env)
  path
}
