"""Jobs as a whole: the master that takes one from its start to its end, and the dispatcher of several."""
