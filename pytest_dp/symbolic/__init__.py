"""Runs on stand-ins for data, which show on what values a mechanism's branches depend.

Every stand-in has a value, with which the run goes on, and a formula of z3 in the numbers and texts
of the inputs. Code that does not know them has their value: they become *concrete*. A proposal that
follows is an input like any other, so nothing has to be exact here: floats are real numbers.

z3 is imported by the modules of this room alone, which nobody imports before they are needed.
"""
