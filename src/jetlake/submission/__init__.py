"""Submission: any program hands messages over by writing a file, and a sender delivers them to streams.

```python
from jetlake.submission import submit

submit("tasks.status", b"done", spool="/var/spool/jetlake", reliable=True)
```

- `message`       what a file says, in Choria's format
- `spool`         the folder, and how files get there whole
- `submitting`    `submit`, for programs
- `lanes`         which message is sent next
- `delivery`      one message published, and what became of it
- `signing`       signatures of messages
- `sender`        `run_sender`, which delivers
- `statistics`    what it has done
- `metrics_page`  the same for Prometheus
- `hosted`        a sender in a process that another program starts, as `jetlake server` does
"""

from jetlake.submission.sender import SenderOptions, run_sender
from jetlake.submission.spool import Spool
from jetlake.submission.submitting import submit, submit_async

__all__ = ["SenderOptions", "Spool", "run_sender", "submit", "submit_async"]
