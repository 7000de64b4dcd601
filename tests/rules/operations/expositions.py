"""An exposition as its own official parsers read it."""

from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from tests.support.served import Reply, get

Labels = tuple[tuple[str, str], ...]


def families_of(reply: Reply) -> dict[str, Metric]:
    """The families of an answer in the text format, by name; each is there once."""
    assert (reply.status, reply.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    found = list(parse_text(reply.body.decode()))
    families = {family.name: family for family in found}
    assert len(families) == len(found)
    return families


def samples_of(reply: Reply) -> dict[tuple[str, Labels], float]:
    """The samples of an answer by name and labels; each is there once."""
    found = [
        ((sample.name, tuple(sorted(sample.labels.items()))), sample.value)
        for family in families_of(reply).values()
        for sample in family.samples
    ]
    samples = dict(found)
    assert len(samples) == len(found)
    return samples


def names_of(reply: Reply) -> set[str]:
    """The metrics of an answer, under the names by which they are asked for; a histogram under its own."""
    names = set()
    for family in families_of(reply).values():
        names |= {family.name} if family.type == "histogram" else {sample.name for sample in family.samples}
    return names


def openmetrics_of(base: str, path: str, **headers: str) -> dict[str, Metric]:
    """The same in OpenMetrics, read by the parser that is strict about its rules."""
    reply = get(base, path, accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5", **headers)
    assert (reply.status, reply.headers["content-type"]) == (
        200,
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
    )
    return {family.name: family for family in parse_openmetrics(reply.body.decode())}  # type: ignore[no-untyped-call]
