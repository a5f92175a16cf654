"""What `NoisyMarginals` is made of: public domains and predictors, noisy tables, their choice, the
log-linear model of a column, and the chain of all columns."""
