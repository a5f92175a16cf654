# Array declarations in the form that rstan before 2.26 reads.

# rstan before 2.26 reads `int<lower=0> y[n];` and not `array[n] int<lower=0> y;`, which current Stan
# demands. Declarations (several names and initial values included), arguments and return types are
# rewritten; comments, and everything else, are left as they are.
rewrite_arrays <- function(text) {
  text <- paste(text, collapse = "\n")
  repeat {
    code <- mask_comments(text)
    start <- regexpr("\\barray\\s*\\[", code, perl = TRUE)
    if (start < 0) {
      return(text)
    }
    text <- rewrite_declaration(text, code, as.integer(start))
  }
}

# The text with every character of a comment or a string blanked, so that places are kept.
mask_comments <- function(text) {
  found <- gregexpr("//[^\n]*|#include[^\n]*|/\\*(?s:.*?)\\*/|\"[^\"]*\"", text, perl = TRUE)
  regmatches(text, found) <- lapply(
    regmatches(text, found), function(hit) gsub("[^\n]", " ", hit, perl = TRUE)
  )
  text
}

rewrite_declaration <- function(text, code, start) {
  at <- function(from, to) substr(text, from, to)
  open <- start + regexpr("[", substring(code, start), fixed = TRUE) - 1L
  close <- closing(code, open)
  dims <- at(open, close)
  type_end <- end_of_type(code, close + 1L)
  type <- sub("^\\s+", "", at(close + 1L, type_end))
  before <- substr(text, 1L, start - 1L)
  if (grepl("^\\[[ ,]*\\]$", dims)) {
    return(paste0(before, type, dims, substring(text, type_end + 1L)))
  }
  end <- end_of_declaration(code, type_end + 1L)
  names <- add_dims(at(type_end + 1L, end - 1L), substr(code, type_end + 1L, end - 1L), dims)
  paste0(before, type, paste(names, collapse = ","), substring(text, end))
}

characters <- function(code) strsplit(code, "", fixed = TRUE)[[1]]

# How many brackets of any kind are open after each character.
depth_of <- function(char) cumsum((char %in% c("(", "[", "{")) - (char %in% c(")", "]", "}")))

# Place of the bracket that closes the one at `open`.
closing <- function(code, open) {
  open + which(depth_of(characters(substring(code, open))) == 0)[1] - 1L
}

# Last place of a type: its name, then <bounds> and [size] where present.
end_of_type <- function(code, from) {
  name <- regexpr("^\\s*\\w+", substring(code, from), perl = TRUE)
  end <- from + attr(name, "match.length") - 1L
  if (grepl("^\\s*<", substring(code, end + 1L))) {
    char <- characters(substring(code, end + 1L))
    end <- end + which(char == ">" & depth_of(char) == 0)[1]
  }
  if (grepl("^\\s*\\[", substring(code, end + 1L))) {
    end <- closing(code, end + regexpr("[", substring(code, end + 1L), fixed = TRUE))
  }
  as.integer(end)
}

# Place of the semicolon that ends the declaration.
end_of_declaration <- function(code, from) {
  char <- characters(substring(code, from))
  from + which(char == ";" & depth_of(char) == 0)[1] - 1L
}

# "a, b = f(1, 2)" into "a[dims]" and " b[dims] = f(1, 2)". Commas inside brackets do not count,
# nor do comments: names are found in `code`, where comments are blank.
add_dims <- function(text, code, dims) {
  char <- characters(code)
  comma <- which(char == "," & depth_of(char) == 0)
  from <- c(1L, comma + 1L)
  to <- c(comma - 1L, nchar(text))
  name <- regexpr("^\\s*[A-Za-z]\\w*", substring(code, from, to), perl = TRUE)
  name_end <- from + attr(name, "match.length") - 1L
  paste0(substring(text, from, name_end), dims, substring(text, name_end + 1L, to))
}

# Program text for rstan before 2.26: old array declarations, and a negative binomial that is sound
# at large phi. The old library's neg_binomial_2_log_lpmf subtracts lgamma(phi) from lgamma(y + phi)
# at any phi: beyond 1e12 nothing but rounding is left, up to +1e3 nats per record, and a chain that
# gets there stays. There the density is Poisson's to far below that error.
for_old_rstan <- function(text) {
  text <- rewrite_arrays(text)
  scalar_call <- "\\bneg_binomial_2_log_lpmf\\s*\\((\\s*\\w+\\[\\w+\\]\\s*)\\|"
  if (!grepl(scalar_call, text, perl = TRUE)) {
    return(text)
  }
  text <- gsub(scalar_call, "pyhybrid_neg_binomial_2_log_lpmf(\\1|", text, perl = TRUE)
  code <- mask_comments(text)
  block <- regexpr("\\bfunctions\\s*\\{", code, perl = TRUE)
  if (block < 0) {
    return(paste0("functions {\n", sound_neg_binomial, "}\n", text))
  }
  end <- block + attr(block, "match.length") - 1L
  paste0(substr(text, 1L, end), "\n", sound_neg_binomial, substring(text, end + 1L))
}

sound_neg_binomial <- "  real pyhybrid_neg_binomial_2_log_lpmf(int y, real eta, real phi) {
    return phi > 1e8 ? poisson_log_lpmf(y | eta) : neg_binomial_2_log_lpmf(y | eta, phi);
  }
"
