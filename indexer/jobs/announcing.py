"""Announcing what will be published: readers fetch its typeahead ahead, so that no request waits for it later.

No answer depends on it, so a failure is logged and the publication goes on.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import Sink

_STEP_S: Final = 0.5
_LOG: Final = logging.getLogger(__name__)


def announce(sink: Sink, generation: str, meanwhile: Callable[[], None]) -> None:
    """Announce a sealed generation, and give readers the time that they need.

    Args:
        sink: where the generation is.
        generation: its name.
        meanwhile: called again and again while that takes time; its errors are raised.
    """
    try:
        seconds = sink.announce(generation)
    except SinkError as error:
        _LOG.warning("the next generation could not be announced, so readers fetch it when it is live: %s", error)
        return
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        meanwhile()
        time.sleep(min(_STEP_S, left))
