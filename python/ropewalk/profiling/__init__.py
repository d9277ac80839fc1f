"""``ropewalk profile``: Nsight Compute's counters of one case, and what they say."""
