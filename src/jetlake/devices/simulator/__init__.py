"""Devices that are not there: what they would say, and a written account of what really happened.

- `device`      one device: what it measures, what can be switched, how it behaves
- `simulation`  many devices in simulated time: decides what happens and when, and yields events
- `truth`       the account, kept by those who decide and not read from events
- `run`         sends the events to a server, at their time or as fast as it goes
"""
