"""Starts OpenSearch in a container as its published image does: settings are variables that have a dot."""

import os
from pathlib import Path

HOME = "/usr/share/opensearch"
STATED = {
    "path.home": HOME,
    "node.name": "opensearch",
    "network.host": "0.0.0.0",
    "http.type": "netty4",
    "transport.type": "netty4",
}

if __name__ == "__main__":
    # The node ends with its standard input: this end of the pipe stays open as long as the process lives.
    kept, written = os.pipe()
    os.dup2(kept, 0)
    os.set_inheritable(written, True)
    # The node has no plugin for security.
    given = {
        name: value for name, value in os.environ.items() if "." in name and not name.startswith("plugins.security.")
    }
    jars = ":".join(str(jar) for jar in sorted(Path(HOME, "lib").glob("*.jar")))
    words = ["/opt/java/bin/java", *os.environ.get("OPENSEARCH_JAVA_OPTS", "").split(), "-XX:+UseSerialGC"]
    words += ["-XX:TieredStopAtLevel=1", "-Dlog4j2.level=INFO", "-cp", jars, "OpenSearchNode"]
    os.execv(words[0], [*words, *(f"{name}={value}" for name, value in (STATED | given).items())])  # noqa: S606 - it becomes the node
