write_matrix <- function(x, file) writeBin(as.vector(x), file)
write_matrix(f, "f.bin")
write_matrix(weighted$log_lik, "weighted.bin")
jsonlite::write_json(
  list(
    alpha = alpha, by_record = bounds$by_record, overall = bounds$overall, epsilon = epsilon,
    alpha_final = alpha_final, overall_final = bounds_final$overall, n_draws = nrow(f),
    alpha_m = alpha_m, overall_unweighted = bounds_unweighted$overall,
    overall_m = bounds_m$overall, alpha_release = confidential(release)$alpha,
    synthetic = lapply(release, function(x) x$visits),
    columns = names(as.list(release)[[1]])
  ),
  "r.json", digits = NA
)
