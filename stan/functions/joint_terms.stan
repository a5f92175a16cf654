  // Log densities f of a part's rows, for the records of each term: row is 1 for a record that is in
  // none of them, whose density is 0 then, and 1 more than its row for others.
  vector in_terms(vector f, array[] int row) {
    vector[rows(f) + 1] own = append_row(rep_vector(0, 1), f);
    return own[row];
  }
