# An object with an environment does not pass: what is compared is taken out of it in R.
function(from_release) function(path) {
  release <- from_release(path)
  own <- as.list(release$confidential)
  list(
    synthetic = lapply(release$synthetic, function(set) {
      set$g <- as.character(set$g)
      set
    }),
    charge = unclass(release$charge)[c("epsilon", "epsilon_published",
      "epsilon_range", "epsilon_gaussian", "kind", "mechanism", "refits")],
    alpha = own$alpha, by_record = own$bounds$by_record, outcome = release$outcome,
    shown = paste(
      capture.output(environment(from_release)$print.pyhybrid_release(release)), collapse = " "
    )
  )
}
