"""What somebody should look after: one file for each rule, each a function of facts that finds something or nothing.

A rule that judges chance states how often it may be wrong: `FALSE_ALARMS` is the probability with which it is ever
raised in a whole campaign in which nothing is wrong, under the assumptions that its file names.
"""
