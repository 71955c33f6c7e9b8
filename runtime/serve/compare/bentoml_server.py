"""The network in BentoML; started with `bentoml serve bentoml_server:Null`."""

import bentoml
import numpy as np


@bentoml.service(
    workers=1, traffic={"timeout": 60, "max_concurrency": 256}, logging={"access": {"enabled": False}}
)
class Null:
    """Numbers in, each doubled; bodies are BentoML's own."""

    # The default of 60000 ms would let nothing wait; batches are adaptive, and 32 requests at most.
    @bentoml.api(batchable=True, max_batch_size=32, max_latency_ms=60000)
    def predict(self, x: np.ndarray) -> np.ndarray:
        """The whole batch."""
        return np.asarray(x, dtype=np.float32) * np.float32(2)
