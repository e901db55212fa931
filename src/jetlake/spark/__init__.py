"""What the Spark side of Jetlake needs.

- `source`  the format `jetlake`, which Spark finds through the package `pyspark_jetlake`
- `java`    finds a Java that Spark can run on, without needing root
"""
