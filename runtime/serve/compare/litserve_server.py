"""The network in LitServe: `litserve_server.py PORT`."""

import sys

import litserve
import numpy as np


class Null(litserve.LitAPI):
    """Numbers in, each doubled; the bodies are those of the Open Inference Protocol."""

    def setup(self, device):
        """There is nothing to load."""

    def decode_request(self, request):
        """One request's row."""
        return request["inputs"][0]["data"]

    def batch(self, inputs):
        """All requests of a batch as one tensor."""
        return np.array(inputs, dtype=np.float32)

    def predict(self, x):
        """The whole batch."""
        return x * np.float32(2)

    def unbatch(self, output):
        """One row a request."""
        return list(output)

    def encode_response(self, output):
        """One request's answer."""
        data = output.tolist()
        return {
            "model_name": "null",
            "outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 1], "data": data}],
        }


if __name__ == "__main__":
    # Batches leave as soon as the worker is idle (no timeout); the fast queue is ZeroMQ in place of a manager process.
    api = Null(max_batch_size=32, batch_timeout=0, api_path="/predict")
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1, fast_queue=True)
    server.run(
        host="127.0.0.1",
        port=int(sys.argv[1]),
        num_api_servers=1,
        log_level="warning",
        generate_client_file=False,
    )
