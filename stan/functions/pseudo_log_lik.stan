  // The pseudo log-likelihood of n rows with log densities f.            [S22, eq. 3; C25, sec. 3]
  //
  // Without a cap: sum_i frequency_i weights_i f_i. With one, each term g is clipped to
  // [-cap_below, cap_above], a row counting frequency_i times:
  //   n_units = 0: g_i = weights_i (f_i - reference_i), row by row;
  //   n_units > 0: g_u = sum of frequency_i weights_i (f_i - reference_i) over the rows of unit u.
  // reference_i is f_i at a frozen theta [re-centered censoring], or 0. Rows of weight 0 do not
  // count, even where f is not finite.
  real pseudo_log_lik(vector f, vector frequency, vector weights, vector reference,
                      array[] int unit, int n_units,
                      int use_cap, real cap_below, real cap_above) {
    real total = 0;
    if (use_cap == 0) {
      return dot_product(frequency .* weights, f);
    }
    if (n_units == 0) {
      for (i in 1:num_elements(f)) {
        if (weights[i] > 0) {
          total += frequency[i]
                   * fmax(-cap_below, fmin(cap_above, weights[i] * (f[i] - reference[i])));
        }
      }
    } else {
      vector[n_units] g = rep_vector(0, n_units);
      for (i in 1:num_elements(f)) {
        if (weights[i] > 0) {
          g[unit[i]] += frequency[i] * weights[i] * (f[i] - reference[i]);
        }
      }
      for (u in 1:n_units) {
        total += fmax(-cap_below, fmin(cap_above, g[u]));
      }
    }
    return total;
  }
