"""Calls a gateway with Triton's own client, over HTTP and gRPC: `client.py HTTP GRPC`."""

import sys

import numpy as np
import tritonclient.grpc as over_grpc
import tritonclient.http as over_http
from tritonclient.utils import InferenceServerException

MODEL = "net"


def raises(message, call):
    try:
        call()
    except InferenceServerException as e:
        assert message in str(e), str(e)
        return
    raise AssertionError(f"no error, where `{message}` was expected")


def check(triton, client, is_http):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready(MODEL)
    assert client.is_model_ready(MODEL, "1")
    raises("nett", lambda: client.get_model_metadata("nett"))
    server = client.get_server_metadata()
    model = client.get_model_metadata(MODEL)
    if is_http:
        assert server["name"] == "entc", server
        assert model["outputs"][0] == {"name": "output", "datatype": "FP32", "shape": [-1, 1]}, model
        assert client.get_model_config(MODEL)["max_batch_size"] == 4
    else:
        assert server.name == "entc", server
        assert model.outputs[0].name == "output", model

    x = np.array([[1.0], [2.5], [-3.0]], dtype=np.float32)

    def infer(x, datatype="FP32", binary=True, **more):
        tensor = triton.InferInput("x", list(x.shape), datatype)
        wanted = triton.InferRequestedOutput("output")
        if is_http:
            tensor.set_data_from_numpy(x, binary_data=binary)
            wanted = triton.InferRequestedOutput("output", binary_data=binary)
        else:
            tensor.set_data_from_numpy(x)
        return client.infer(MODEL, [tensor], outputs=[wanted], **more)

    for binary in [True, False] if is_http else [True]:
        result = infer(x, binary=binary, request_id="seven")
        np.testing.assert_array_equal(result.as_numpy("output"), 2 * x)
        response = result.get_response()
        assert (response["id"] if is_http else response.id) == "seven"
    # Without saying which outputs.
    tensor = triton.InferInput("x", [3, 1], "FP32")
    tensor.set_data_from_numpy(x)
    np.testing.assert_array_equal(client.infer(MODEL, [tensor]).as_numpy("output"), 2 * x)

    raises("over the model's largest of 4", lambda: infer(np.zeros((5, 1), dtype=np.float32)))
    raises("no rows", lambda: infer(np.zeros((0, 1), dtype=np.float32)))
    raises("allowed by the client's timeout", lambda: infer(x, timeout=1))
    raises("a sequence", lambda: infer(x, sequence_id=3, sequence_start=True))

    calls = [client.async_infer(MODEL, [tensor]) for _ in range(20)] if is_http else []
    for call in calls:
        np.testing.assert_array_equal(call.get_result().as_numpy("output"), 2 * x)


def stream(client, triton):
    import queue

    answers = queue.Queue()
    client.start_stream(callback=lambda result, error: answers.put((result, error)))
    for i in range(10):
        x = np.array([[i]], dtype=np.float32)
        tensor = triton.InferInput("x", [1, 1], "FP32")
        tensor.set_data_from_numpy(x)
        client.async_stream_infer(MODEL, [tensor], request_id=str(i))
    for i in range(10):
        result, error = answers.get(timeout=60)
        assert error is None, error
        assert result.get_response().id == str(i)
        assert result.as_numpy("output")[0][0] == 2 * i
    client.stop_stream()


with over_http.InferenceServerClient(sys.argv[1], concurrency=8) as client:
    check(over_http, client, True)
with over_grpc.InferenceServerClient(sys.argv[2]) as client:
    check(over_grpc, client, False)
    stream(client, over_grpc)
print("all is well")
