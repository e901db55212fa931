"""The demo: the whole system at work against a real server, each scene checked against the truth.

It sits on top of everything else, like `cli`; nobody but the command `jetlake demo` imports it.

- `scene`       `Scene`: what was shown and what was checked; `Script`: how a scene is made
- `stage`       `Stage`: the folder and the server that all scenes share
- `messaging`   publish and subscribe, queue groups, requests, logins
- `durability`  a stream and its fork; a server that is killed
- `dashboard`   the dashboard, to look at while the demo runs
- `buckets`     key-value buckets and objects
- `workers`     workers that share a queue, and dead letters
- `governor`    competitors for a few slots
- `submission`  a spool that delivers while the server comes and goes
- `fleet`       a simulated fleet, and the adapter that receives its registrations
- `devices`     simulated devices, and their state rebuilt from events
- `speed`       the native load generator
- `pipelines`   the shipped pipelines on Spark, and their tables
- `query`       SQL over streams and tables
- `scenes`      all scenes in order
- `page`        the scenes as one HTML page
- `run`         `play`: plays the scenes and writes the page
"""
