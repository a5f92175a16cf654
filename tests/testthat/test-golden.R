golden_functions <- c(
  "censor", "center_and_censor", "clip_scores", "combine_fully_synthetic", "combine_multiple_imputation",
  "combine_nested", "combine_partially_synthetic", "compose", "compose_mu", "count_weights", "delta_of_mu",
  "epsilon_of_bound", "epsilon_of_censoring", "epsilon_of_mu", "epsilon_of_range", "epsilon_of_rho",
  "frozen_excess", "gaussian_mask_log_density", "gaussian_mu", "histogram_counts", "lipschitz_bounds",
  "lipschitz_weights", "loss_ranges", "masked_level_probabilities", "masked_normal",
  "misclassification_log_density", "mixture_mask_log_density", "mu_of_epsilon", "mu_of_release",
  "pairwise_risk", "perturbed_probabilities", "radius_risk", "reweight", "rho_of_range", "round_up",
  "scalar_weights", "scoring_design", "scoring_step", "truncate_weights", "weights_from_lipschitz"
)

for (name in golden_functions) {
  test_that(paste(name, "gives the golden values"), {
    expect_golden(name)
  })
}

test_that("every golden file is read", {
  skip_if_not(dir.exists(golden_folder()), "golden cases are not here")
  files <- sub("[.]json$", "", list.files(golden_folder(), "[.]json$"))
  expect_setequal(files, golden_functions)
})

test_that("the comparison catches a wrong number, length, shape and a missing NaN", {
  expect_true(same_value(c(1, Inf, NaN), c(1, Inf, NaN)))
  expect_false(same_value(1 + 1e-11, 1))
  expect_false(same_value(c(1, 2), 1))
  expect_false(same_value(matrix(1:4, 2), matrix(1:4, 1)))
  expect_false(same_value(c(1, 2), c(1, NaN)))
  expect_false(same_value(list(a = 1, b = 2), list(a = 1, b = 3)))
})
