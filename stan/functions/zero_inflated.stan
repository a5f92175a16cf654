  // Log densities of counts whose zeros have two sources: `zero` is the log probability of an extra
  // zero where the count is 0, and of none elsewhere; `count` the log density of the count itself.
  vector zero_inflated(vector zero, vector count, array[] int at_zero) {
    vector[rows(zero)] joint = zero + count;
    for (t in 1:rows(zero)) {
      if (at_zero[t] == 1) {
        joint[t] = log_sum_exp(zero[t], log1m_exp(zero[t]) + count[t]);
      }
    }
    return joint;
  }
