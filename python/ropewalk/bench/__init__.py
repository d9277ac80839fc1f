"""``ropewalk bench --against``: Ropewalk beside other implementations, each verified, then timed.

``cases`` says what is rotated, ``setting`` makes the data, ``judge`` decides whether a result is
right, ``timing`` measures, ``field`` puts them together, ``report`` prints. One file per peer lies
in ``peers``; ``packages`` fetches what cannot be installed.
"""
