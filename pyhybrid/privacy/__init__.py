"""What a release tells: bounds, risks, weights, charges, from arrays with pencil and paper.

Numpy and scipy only; every function names its equation.
"""
