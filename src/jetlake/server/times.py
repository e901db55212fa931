"""The longest time that a server is asked to wait, by whatever asks: a file, a command line or a program.

Invariant: nothing imported from here takes longer than reading a file does.
"""

SECONDS_MAX = 292 * 365 * 86_400
"""292 years, which is what a longer duration counts as; the longest that Go has takes some months more.

In milliseconds it can be added to any time of day, and it is within what Python's own clocks wait for.
"""
