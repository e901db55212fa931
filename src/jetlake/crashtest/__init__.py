"""What a server keeps of its acknowledged messages when it is killed, loses power, or its files are damaged.

It speaks NATS to servers that it starts as processes, on the disk it is told to use, and compares what they serve
afterwards with what they had acknowledged.

- `servers`    which servers there are to test, and one of them as a process
- `load`       publishes and notes what was acknowledged; reads everything back
- `verdict`    what became of the acknowledged messages, as figures
- `damage`     torn writes and flipped bits in the files of a store
- `power`      a power cut: a file system in an image, of which only what reached the device is kept
- `campaign`   all tests of a server within a time
"""
