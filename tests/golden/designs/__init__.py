"""Formulas whose design matrices are compared with R's; the matrices that R made are stored."""
