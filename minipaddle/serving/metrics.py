"""The counters of the server, in the format of Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
MODEL = ["model", "version"]


class Metrics:
    """The metrics of a server; a scraper reads `text()`."""

    def __init__(self):
        own = {"registry": CollectorRegistry(), "namespace": "minipaddle"}
        self.registry = own["registry"]
        self.requests = Counter("requests", "Answers by HTTP status", [*MODEL, "status"], **own)
        self.seconds = Histogram(
            "request_seconds", "From the request to the answer", MODEL, buckets=SECONDS, **own
        )
        self.waiting = Histogram(
            "queue_seconds", "From the request to its run", MODEL, buckets=SECONDS, **own
        )
        self.running = Histogram("run_seconds", "Runs of batches", MODEL, buckets=SECONDS, **own)
        self.rows = Histogram("batch_rows", "Rows of batches", MODEL, buckets=ROWS, **own)
        self.queue = Gauge("queue_requests", "Requests that wait", MODEL, **own)
        self.loads = Counter("loads", "Models read from files", ["model", "result"], **own)

    def text(self) -> bytes:
        """All metrics, as text."""
        return generate_latest(self.registry)


class ModelMetrics:
    """The metrics of one version of a model."""

    def __init__(self, metrics: Metrics, model: str, version: str):
        self.labels = model, version
        self.all = metrics
        for name in ("seconds", "waiting", "running", "rows", "queue"):
            setattr(self, name, getattr(metrics, name).labels(*self.labels))
        self.statuses: dict[int, Counter] = {}

    def count(self, status: int) -> None:
        """Count an answer."""
        if status not in self.statuses:
            self.statuses[status] = self.all.requests.labels(*self.labels, status)
        self.statuses[status].inc()
