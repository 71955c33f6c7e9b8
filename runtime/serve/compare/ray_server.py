"""The network in Ray Serve: `ray_server.py PORT`."""

import os
import sys
import threading

# As Ray's documentation advises for throughput; it has to be set before Ray is imported.
os.environ.setdefault("RAY_SERVE_THROUGHPUT_OPTIMIZED", "1")
os.environ.setdefault("RAY_SERVE_ENABLE_DIRECT_INGRESS", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import numpy as np
import ray
from ray import serve


@serve.deployment(num_replicas=1, max_ongoing_requests=256, ray_actor_options={"num_cpus": 1})
class Null:
    """Numbers in, each doubled; the bodies are those of the Open Inference Protocol."""

    @serve.batch(max_batch_size=32, batch_wait_timeout_s=0)
    async def predict(self, rows):
        """The whole batch."""
        return list(np.array(rows, dtype=np.float32) * np.float32(2))

    async def __call__(self, request):
        """One request."""
        body = await request.json()
        data = (await self.predict(body["inputs"][0]["data"])).tolist()
        return {
            "model_name": "null",
            "outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 1], "data": data}],
        }


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    serve.start(
        http_options={"host": "127.0.0.1", "port": int(sys.argv[1])},
        logging_config={"enable_access_log": False},
    )
    serve.run(Null.bind(), name="null", route_prefix="/predict", logging_config={"enable_access_log": False})
    threading.Event().wait()
