  // log(F(upper) - F(lower)) of two log probabilities below, and above, each of the two points: on
  // the side where the larger differences are, so that no digits are lost in a tail.
  real log_mass(real below_lower, real below_upper, real above_lower, real above_upper) {
    if (below_upper < above_lower) {           // nearer to the lower tail
      return log_diff_exp(below_upper, below_lower);
    }
    return log_diff_exp(above_lower, above_upper);
  }
