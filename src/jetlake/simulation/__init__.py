"""Simulators: what a fleet would send, with a written account of what really happened.

- `fleet`       a fleet of nodes in simulated time: decides what happens, and when
- `node`        one node of it: what it is, and what it says about itself
- `fleet_truth` the account: counts and final states, kept by those who decide, not read from messages
- `publisher`   sends events to a server, at their time or as fast as it goes
"""
