list(
  # Runs a call where neither its arguments nor its value can stay behind.
  caller = function(f, args) {
    warned <- character()
    outcome <- withCallingHandlers(
      tryCatch(
        list(value = do.call(f, args, quote = TRUE)),
        error = function(problem) list(problem = conditionMessage(problem), class = class(problem)),
        interrupt = function(stopped) list(problem = "interrupted", class = "interrupt")
      ),
      warning = function(w) {
        warned <<- c(warned, conditionMessage(w))
        invokeRestart("muffleWarning")
      }
    )
    list(outcome = outcome, warned = warned)
  },
  # An environment with what R files define.
  loader = function(files) {
    home <- new.env(parent = globalenv())
    home$stan_folder <- file.path(dirname(dirname(files[1])), "stan")
    for (file in files) sys.source(file, envir = home, keep.source = FALSE)
    home
  }
)
