"""What `NoisyMarginals` is made of.

============ ======================================================================
domain       public levels, bins and missing values of a column
predictors   how records are shared out over the cells of predictors
one_way      a column alone: smooth shares within bins, and which of these are merged
measuring    the noisy tables, a step that looks at confidential values
choosing     the private choice of tables, the other such step
log_linear   one column's noise-aware model: its posterior given noisy tables
chain        all columns, one after the other
record       charge and record of a release
============ ======================================================================
"""
