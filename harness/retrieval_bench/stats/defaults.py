"""Choices of a comparison, and what it is unless somebody does. Loads nothing."""

MARGIN = 0.01
"""Systems whose means differ by less are as good as equal, unless another margin is stated."""

EXTRA = ("t", "wilcoxon")
"""Further tests of a difference, beside the randomisation test."""

EQUIVALENCE = ("bound", "tost")
"""Tests of equivalence: by the bound that assumes nothing but the range, which holds always; by two
one-sided t tests, which assume that means of so many differences are normal."""
