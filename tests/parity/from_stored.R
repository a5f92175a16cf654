# Draws in the order in which Python made its fits: R asks for them in the same.
function(synthesize) function(stored, mechanism, ...) {
  fits <- stored
  engine <- function(program, data, variables, seed, ...) {
    draws <- fits[[1]]
    fits <<- fits[-1]
    sound <- list(rhat = 1, ess_bulk = 1e6, ess_tail = 1e6, divergences = 0)
    list(draws = draws, diagnostics = sound)
  }
  mechanism <- eval(str2lang(mechanism), environment(synthesize))
  release <- synthesize(..., mechanism = mechanism, engine = engine, seed = 1)
  own <- as.list(release$confidential)
  list(
    charge = unclass(release$charge)[c("epsilon_published", "epsilon_lipschitz", "epsilon_range",
                                       "epsilon_gaussian", "mu", "epsilon")],
    alpha = own$alpha, by_record = own$bounds$by_record, record = own$loss$record,
    loss = own$loss$loss, left = length(fits), synthetic = release$synthetic
  )
}
