  // The pseudo log-likelihood of n rows with log densities f.            [S22, eq. 3; C25, sec. 3]
  //
  // Without a cap: sum_i frequency_i weights_i f_i. With one, each term g is clipped to
  // [-cap_below, cap_above], a row counting frequency_i times:
  //   n_units = 0: g_i = weights_i (f_i - reference_i) + e, row by row;
  //   n_units > 0: g_u = sum of frequency_i weights_i (f_i - reference_i) over the rows of unit u.
  // reference_i is f_i at a frozen theta [re-centered censoring], or 0. Rows of weight 0 do not
  // count, even where f is not finite.
  //
  // The last n_frozen rows are those of a frozen reference, their frequencies shares that sum to 1.
  // What clipping takes from them on average, e = sum of frequency_j (g_j - clip(g_j)), is added to
  // each of the other terms before that is clipped: its range stays that of the cap. Where their
  // mean term falls below -farthest, outside of a region of theta that they alone decide, `steep`
  // times what is beyond is taken off.
  real pseudo_log_lik(vector f, vector frequency, vector weights, vector reference,
                      array[] int unit, int n_units, int n_frozen, real farthest, real steep,
                      int use_cap, real cap_below, real cap_above) {
    int n = num_elements(f);
    int own = n - n_frozen;
    real total = 0;
    if (use_cap == 0) {
      return dot_product(frequency .* weights, f);
    }
    if (n_units == 0) {
      vector[n] g = weights .* (f - reference);
      vector[n] inside;
      real excess = 0;
      if (n_frozen > 0) {
        vector[n_frozen] share = tail(frequency, n_frozen);
        real mean_term = dot_product(share, tail(g, n_frozen));
        for (j in (own + 1):n) {
          inside[j] = fmax(-cap_below, fmin(cap_above, g[j]));
        }
        excess = mean_term - dot_product(share, tail(inside, n_frozen));
        total -= steep * fmax(0, -mean_term - farthest);
      }
      for (i in 1:own) {
        inside[i] = weights[i] > 0 ? fmax(-cap_below, fmin(cap_above, g[i] + excess)) : 0;
      }
      total += dot_product(head(frequency, own), head(inside, own));
    } else {
      vector[n_units] g = rep_vector(0, n_units);
      for (i in 1:n) {
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
