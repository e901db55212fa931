"""What the Spark side of Jetlake needs.

- `java`  finds a Java that Spark can run on, without needing root
"""
