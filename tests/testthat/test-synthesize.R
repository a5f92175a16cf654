release <- function(..., formula = visits ~ sex, data = survey(), family = "poisson", refits = 4, seed = 3,
                    engine = normal_draws()) {
  synthesize(formula, data, family, ..., refits = refits, seed = seed, engine = engine, progress = FALSE)
}

test_that("every family and mechanism makes tables in the form of the data", {
  of <- list(
    poisson = visits ~ sex, negative_binomial = visits ~ sex, bernoulli = voted ~ age,
    normal = income ~ age, beta = share ~ 1, beta_regression = share ~ sex
  )
  for (family in names(of)) {
    made <- release(formula = of[[family]], family = family, m = 2, refits = 2)
    expect_s3_class(made, "pyhybrid_release")
    outcome <- all.vars(of[[family]])[1]
    for (set in as.list(made)) {
      expect_equal(names(set), names(survey()))
      expect_equal(set[setdiff(names(set), outcome)], survey()[setdiff(names(set), outcome)])
      expect_type(set[[outcome]], typeof(survey()[[outcome]]))
      expect_false(identical(set[[outcome]], survey()[[outcome]]))
    }
    expect_gt(charge(made)$epsilon, 0)
  }
  for (mechanism in list(
    unweighted(), lipschitz_weighted(0.8, reweight = TRUE), count_weighted(pattern = "sex"),
    scalar_weighted(target_epsilon = 5), weighted_m(cap = 2.5), weighted_m(epsilon = 5, inner = unweighted())
  )) {
    made <- release(mechanism = mechanism)
    alpha <- confidential(made)$alpha
    expect_true(all(alpha >= 0 & alpha <= 1), label = mechanism$name)
    expect_equal(charge(made)$mechanism, mechanism$name)
  }
})

test_that("a charge is the rule of refits, by hand", {
  made <- release(m = 3, relation = "replace")
  own <- confidential(made)
  design <- program_design(visits ~ sex, survey(), "poisson")
  family <- families_in_r$poisson
  log_lik <- log_lik_at(parameters_of(own$weighted, family), family, design)
  expect_equal(log_lik[5, 7], dpois(survey()$visits[7], exp(
    drop(design$X[7, ] %*% stacked_draws(own$weighted, "beta")[5, ])
  ), log = TRUE))
  unweighted_log_lik <- log_lik_at(parameters_of(own$unweighted, family), family, design)
  expect_equal(own$alpha, lipschitz_weights(unweighted_log_lik))
  expect_equal(own$bounds$overall, max(abs(own$alpha * t(log_lik))))
  # One refit anew: weights and fit without the record, terms of all records at both draws.
  record <- own$loss$record[1]
  less <- survey()[-record, ]
  engine <- normal_draws()
  data <- stan_data(visits ~ sex, less, program = "poisson")
  first <- engine("poisson", data, seed = 3)
  unweighted_less <- log_lik_at(parameters_of(first, family), family, design)
  alpha <- rep(0, 60)
  alpha[-record] <- lipschitz_weights(unweighted_less[, -record])
  second <- engine("poisson", stan_data(visits ~ sex, less, alpha[-record], "poisson"), seed = 4)
  at <- function(fit) {
    drop(log_lik_at(parameters_of(fit, family), family, design) %*% (own$alpha - alpha))
  }
  expect_equal(own$loss$loss[1], refit_loss(at(own$weighted), at(second)), tolerance = 1e-10)
  change <- 1.25 * max(own$loss$loss)
  price <- charge(made)
  expect_equal(price$epsilon_published, epsilon_of_bound(own$bounds, 3, "replace"))
  expect_equal(price$epsilon, max(price$epsilon_published, epsilon_of_range(change, 3, "replace")))
  expect_equal(price$epsilon_range, epsilon_of_range(max(own$loss$ranges, change), 3, "replace"))
  mu <- max(own$loss$deviations, mu_of_epsilon(change, 1e-6))
  expect_equal(
    price$epsilon_gaussian, round_up(epsilon_of_mu(mu_of_release(mu, 3, "replace"), 1e-6))
  )
})

test_that("without refits the charge says that it is as published", {
  made <- release(refits = 0)
  expect_equal(charge(made)$epsilon, charge(made)$epsilon_published)
  expect_output(print(made), "as published: the weights are taken as fixed")
  expect_no_match(paste(capture.output(print(release())), collapse = " "), "taken as fixed")
})

test_that("nothing confidential is printed, and little at all", {
  made <- release(m = 2)
  for (show in list(print, summary, str, function(x) print(charge(x)))) {
    shown <- paste(capture.output(show(made)), collapse = "\n")
    weights <- confidential(made)$alpha
    hidden <- c(weights[weights > 0.1 & weights < 0.9], confidential(made)$bounds$overall)
    expect_gt(length(hidden), 20)
    for (number in hidden) expect_no_match(shown, substr(format(number, digits = 12), 1, 6), fixed = TRUE)
  }
  expect_lt(length(capture.output(print(made))), 10)
  expect_output(print(made), "as they are: .*not covered by the charge")
})

test_that("the session's random numbers are left alone; a seed repeats, none does not", {
  set.seed(1)
  before <- runif(1)
  set.seed(1)
  made <- release(m = 2)
  expect_equal(runif(1), before)
  expect_equal(as.list(made), as.list(release(m = 2)))
  set.seed(1)
  one <- release(seed = NULL)
  set.seed(1)
  other <- release(seed = NULL)
  expect_false(identical(as.list(one), as.list(other)))
  rm(".Random.seed", envir = globalenv())
  release()
  expect_false(exists(".Random.seed", globalenv()))
})

test_that("a censored release costs its cap, whatever the data", {
  for (inner in list(lipschitz_weighted(), unweighted())) {
    made <- release(mechanism = censored(epsilon = 3, inner = inner), m = 2)
    expect_equal(charge(made)$epsilon, 6)
    expect_lte(confidential(made)$bounds$overall, 1.5)
  }
  about <- censored(cap = 0.5, inner = unweighted(), center = list(beta = c(1.5, 0.3)))
  expect_equal(charge(release(mechanism = about))$epsilon, 1)
  expect_equal(charge(release(mechanism = about, relation = "replace"))$epsilon, 2)
  # The program is told: terms are clipped about the log density at the center.
  seen <- NULL
  spy <- function(program, data, ...) {
    seen <<- data
    normal_draws()(program, data, ...)
  }
  release(mechanism = about, engine = spy)
  expect_equal(unlist(seen[c("use_cap", "cap_below", "cap_above")], use.names = FALSE), c(1, 0.5, 0.5))
  mean <- exp(1.5 + 0.3 * (survey()$sex == "m"))
  expect_equal(c(seen$reference), dpois(survey()$visits, mean, log = TRUE))
})

test_that("what cannot be released is refused, with the function's name and no value", {
  refused <- function(.message, ..., class = "pyhybrid_invalid_input") {
    problem <- tryCatch(release(...), error = identity)
    expect_s3_class(problem, class)
    expect_match(conditionMessage(problem), .message)
    expect_identical(conditionCall(problem), quote(synthesize()))
  }
  refused("data must be a data.frame: found NULL", data = NULL)
  refused("at least 1 record", data = survey(0))
  refused("family must be one of poisson", family = "ordinal")
  refused("found binomial\\(probit\\)", family = binomial("probit"))
  refused("mechanism must be a mechanism such as", mechanism = lipschitz_weighted)
  refused("unknown option 'chain'", chain = 2, engine = function(program, data, variables, seed, chains) NULL)
  refused("delta must be below 1 / n", accounting = "gaussian", delta = 0.1)
  refused("refits must be even", refits = 3)
  refused("outcome must be a column", formula = log(income) ~ sex, family = "normal")
  refused("must be at most the number of draws", m = 1000)
  refused("program 'poisson' takes .*: found transform", transform = "log")
  refused("'region' must have at least 2 levels: found 1", formula = visits ~ region,
          data = transform(survey(), region = "north"))
  alone <- transform(survey(), rare = as.numeric(seq_len(60) == 9))
  refused("record 9 nearly alone informs a coefficient \\(rare", formula = visits ~ rare, data = alone)
  expect_s3_class(release(formula = visits ~ rare, data = alone, refits = 0), "pyhybrid_release")
  bad <- function(...) normal_draws(utils::modifyList(sound, list(...)))
  refused("did not converge", engine = bad(rhat = 1.02), class = "pyhybrid_sampling_error")
  refused("did not converge.*family \"poisson\" samples the same", family = "published/poisson",
          engine = bad(divergences = 9), class = "pyhybrid_sampling_error")
  expect_match(capture_warnings(release(engine = bad(ess_tail = 9), on_not_converged = "warn"))[1],
               "did not converge")
  # Re-weighting that raises the bound by too much keeps what it started from.
  expect_error(censored(1, 2), "exactly one of cap and epsilon")
  expect_error(censored(1, inner = censored(1)), "inner must be a mechanism of weights")
  expect_error(weighted_m(), "exactly one of")
})

test_that("columns of other classes are refused by name before use", {
  refused <- function(message, column) {
    data <- survey()
    data$odd <- column
    expect_error(stan_data(visits ~ odd, data, program = "poisson"), message,
                 class = "pyhybrid_invalid_input")
    expect_silent(stan_data(visits ~ sex, data, program = "poisson")) # not read, not refused
  }
  refused("'odd' must be of a class of R itself: found packed", structure(rep(1:2, 30), class = "packed"))
  skip_if_not_installed("bit64")
  refused("found integer64; as.numeric\\(\\)", bit64::as.integer64(1:60))
  skip_if_not_installed("haven")
  answers <- haven::labelled_spss(rep(c(1, 5, 9), 20), c(low = 1, refused = 9), na_values = 9)
  refused("found haven_labelled_spss; haven::as_factor", answers)
  expect_error(
    stan_data(visits ~ odd, cbind(survey(), odd = haven::zap_labels(answers)), program = "poisson"),
    "record 3 is not"
  )
})

test_that("tables of the ecosystem are read as data frames, and not modified", {
  for (package in c("tibble", "data.table")) {
    skip_if_not_installed(package)
    table <- getExportedValue(package, paste0("as.", package))
    if (package == "tibble") table <- tibble::as_tibble
    data <- table(survey())
    made <- release(data = data)
    expect_equal(as.list(made), as.list(release()))
    expect_equal(data, table(survey()))
  }
})

test_that("replicates of a fit by hand are those of its draws", {
  engine <- normal_draws()
  fit <- engine("poisson", stan_data(visits ~ sex, survey(), program = "poisson"), seed = 1)
  sets <- posterior_replicates(fit, visits ~ sex, survey(), "poisson", m = 40, seed = 2)
  mean <- mean(vapply(sets, function(set) mean(set$visits), 0))
  # 40 sets of 60 counts, and the coefficients' spread: 5 standard errors.
  expect_lt(abs(mean - mean(survey()$visits)), 5 * sqrt(6 / 60 / 40 + 6 / 60 / 40))
  expect_error(posterior_replicates(list(draws = list()), visits ~ sex, survey(), "poisson"),
               "fit must hold draws of beta")
})
