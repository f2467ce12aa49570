"""Is the machine set up as it should be: rules that compare facts, and send nothing.

`registry` holds what a rule is; each other module is one family of rules. `load_rules` finds them all.
"""
