# Random numbers: a seed of the user's, or the system's entropy; the session's own are left as they were.

random_state <- function() get0(".Random.seed", globalenv(), inherits = FALSE)

with_randomness <- function(seed, code) {
  before <- random_state()
  on.exit(restore_random(before))
  RNGkind("Mersenne-Twister", "Inversion", "Rejection")
  if (is.null(seed)) fill_from_system() else set.seed(seed)
  force(code)
}

restore_random <- function(state) {
  if (is.null(state)) {
    suppressWarnings(rm(".Random.seed", envir = globalenv()))
  } else {
    assign(".Random.seed", state, envir = globalenv())
  }
}

# The whole state, where the system has a source; elsewhere R's own, by time and process.
fill_from_system <- function() {
  set.seed(NULL)
  if (!file.exists("/dev/urandom")) {
    return(invisible())
  }
  state <- get(".Random.seed", globalenv())
  source <- file("/dev/urandom", "rb", raw = TRUE)
  on.exit(close(source))
  random <- readBin(source, "integer", length(state) - 2)
  random[is.na(random)] <- 0L
  assign(".Random.seed", c(state[1], 624L, random), envir = globalenv())
}

# A seed for what takes one of 31 bits.
new_seed <- function() with_randomness(NULL, sample.int(.Machine$integer.max, 1))

# A name that no other release has: 32 hexadecimal digits.
new_identifier <- function() {
  with_randomness(NULL, paste(sample(c(0:9, letters[1:6]), 32, TRUE), collapse = ""))
}
