"""A Spark cluster on this machine: one master and some workers, as processes from the pip package."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from jetlake.spark.java import find_java

START_S_MAX = 90


class StandaloneCluster:
    """A master with workers of one core each; stopped when its block ends."""

    def __init__(self, folder: Path, *, workers: int) -> None:
        import pyspark

        self.folder = folder
        folder.mkdir(parents=True)
        home = Path(pyspark.__file__).parent
        self._environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "JAVA_HOME": str(find_java()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_DIR": str(folder / "work"),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_DAEMON_MEMORY": "512m",
        }
        self._program = str(home / "bin" / "spark-class")
        self.url = ""
        self.workers: list[subprocess.Popen[bytes]] = []
        self._worker_count = workers
        self._processes: list[subprocess.Popen[bytes]] = []
        self.config = {
            "spark.executor.memory": "512m",
            "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }

    def __enter__(self) -> Self:
        try:
            log = self._start("master", "Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
            self.url = self._wait_for(log, r"Starting Spark master at (spark://\S+)")
            for number in range(self._worker_count):
                arguments = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0", self.url]
                log = self._start(f"worker-{number}", "Worker", *arguments)
                self.workers.append(self._processes[-1])
                self._wait_for(log, r"(Successfully registered with master)")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            kill_group(process)

    def flags(self, **more: str) -> list[str]:
        """Return what makes a command run on this cluster; dots in names of further settings are spelled `__`."""
        settings = self.config | {name.replace("__", "."): value for name, value in more.items()}
        given = [part for key, value in settings.items() if value for part in ("--conf", f"{key}={value}")]
        return ["--master", self.url, *given]

    def kill_worker(self, number: int) -> None:
        """Kill a worker and the executor it has started."""
        kill_group(self.workers[number])

    def _start(self, name: str, kind: str, *arguments: str) -> Path:
        path = self.folder / f"{name}.log"
        command = [self._program, f"org.apache.spark.deploy.{kind.lower()}.{kind}", *arguments]
        with path.open("wb") as log:
            self._processes.append(
                subprocess.Popen(command, env=self._environment, stdout=log, stderr=log, start_new_session=True)
            )
        return path

    def _wait_for(self, log: Path, pattern: str) -> str:
        deadline = time.monotonic() + START_S_MAX
        while (found := re.search(pattern, log.read_text(errors="replace"))) is None:
            assert time.monotonic() < deadline, log.read_text(errors="replace")
            time.sleep(0.1)
        return found[1]


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and everything it started in its session."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()
