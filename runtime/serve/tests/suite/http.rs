//! The protocol over HTTP: what is answered, and what a client is told.

use super::rig::*;
use ent_wire::{Datatype, Signature, TensorSpec};
use serde_json::json;

#[test]
fn a_request_gets_its_rows_and_hears_which_executor_ran() {
    let rig = Rig::single(double);
    let got = rig.post(
        "/v2/models/net/infer",
        r#"{"id":"a \"b\"","inputs":[{"name":"x","shape":[3,1],"datatype":"FP32","data":[[1],[2.5],[-3e1]]}],
            "outputs":[{"name":"output"}]}"#,
    );
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(
        got.json(),
        json!({
            "id": "a \"b\"", "model_name": "net", "model_version": "1",
            "parameters": { "executor": "modelled" },
            "outputs": [{ "name": "output", "datatype": "FP32", "shape": [3, 1], "data": [2.0, 5.0, -60.0] }],
        })
    );
    assert_eq!(got.header("content-type"), Some("application/json"));
    let versioned = rig.post("/v2/models/net/versions/1/infer", rows(&[4.0]));
    assert_eq!(versioned.data(), [8.0]);
    assert_eq!(rig.service("net").outcomes.served, 2);
}

#[test]
fn tensors_go_raw_both_ways() {
    let rig = Rig::single(double);
    let json = r#"{"inputs":[{"name":"x","shape":[2,1],"datatype":"FP32","parameters":{"binary_data_size":8}}],"outputs":[{"name":"output","parameters":{"binary_data":true}}]}"#;
    let mut body = json.as_bytes().to_vec();
    body.extend([1.5_f32, -2.0].iter().flat_map(|x| x.to_le_bytes()));
    let length = json.len().to_string();
    let got = rig.post_with("/v2/models/net/infer", &[("Inference-Header-Content-Length", &length)], &body);
    assert_eq!(got.status, 200, "{}", got.text());
    let length: usize = got.header("inference-header-content-length").unwrap().parse().unwrap();
    let head: serde_json::Value = serde_json::from_slice(&got.body[..length]).unwrap();
    assert_eq!(head["outputs"][0]["parameters"]["binary_data_size"], 8);
    let expected: Vec<u8> = [3.0_f32, -4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_eq!(got.body[length..], expected);
    assert_eq!(got.header("content-type"), Some("application/octet-stream"));

    // All outputs raw, of a JSON request.
    let json = rows(&[1.0]).replacen('{', r#"{"parameters":{"binary_data_output":true},"#, 1);
    let got = rig.post("/v2/models/net/infer", json);
    let length: usize = got.header("inference-header-content-length").unwrap().parse().unwrap();
    assert_eq!(got.body[length..], 2.0_f32.to_le_bytes());
}

#[test]
fn large_tensors_and_strings_come_back_as_they_went() {
    let rig = Rig::single(|_| Act::Echo);
    let count = 300_000;
    let json = format!(
        r#"{{"inputs":[{{"name":"image","shape":[1,{count}],"datatype":"FP16","parameters":{{"binary_data_size":{}}}}},{{"name":"words","shape":[1,3],"datatype":"BYTES","data":["","é\"\u0041","c"]}}],"outputs":[{{"name":"output"}}]}}"#,
        2 * count
    );
    // Without a signature, the only output that can be asked for by name is the default one.
    let wrong = rig.post_with(
        "/v2/models/net/infer",
        &[("Inference-Header-Content-Length", &json.len().to_string())],
        {
            let mut body = json.clone().into_bytes();
            body.resize(json.len() + 2 * count, 7);
            body
        },
    );
    assert_eq!(wrong.status, 200, "{}", wrong.text());
    let json =
        json.replace(r#","outputs":[{"name":"output"}]"#, r#","parameters":{"binary_data_output":true}"#);
    let mut body = json.clone().into_bytes();
    body.extend((0..2 * count).map(|i| (i % 251) as u8));
    let raw = body[json.len()..].to_vec();
    let got = rig.post_with(
        "/v2/models/net/infer",
        &[("Inference-Header-Content-Length", &json.len().to_string())],
        &body,
    );
    assert_eq!(got.status, 200, "{}", got.text());
    let length: usize = got.header("inference-header-content-length").unwrap().parse().unwrap();
    assert_eq!(got.body[length..length + raw.len()], raw);
    assert_eq!(got.body[length + raw.len()..], *b"\0\0\0\0\x04\0\0\0\xc3\xa9\"A\x01\0\0\0c");
}

#[test]
fn server_and_models_say_what_they_are_and_when_they_are_ready() {
    let mut one = service("net", vec![replica("gpu0")]);
    one.model.signature = Some(Signature {
        inputs: vec![TensorSpec { name: "x".into(), datatype: Datatype::Fp32, shape: vec![-1, 1] }],
        outputs: vec![TensorSpec { name: "output".into(), datatype: Datatype::Fp32, shape: vec![-1, 1] }],
    });
    let mut rig = Rig::new(&deployment(vec![one, service("other", vec![replica("gpu1")])]));
    assert_eq!(rig.get("/v2/health/live").status, 200);
    assert_eq!(rig.get("/v2/health/ready").status, 503);
    assert_eq!(rig.get("/v2/models/net/ready").status, 503);
    rig.worker("net", "gpu0", double);
    rig.until(|s| s.services[0].is_ready);
    assert_eq!(rig.get("/v2/models/net/ready").status, 200);
    assert_eq!(rig.get("/v2/models/net/versions/1/ready").status, 200);
    assert_eq!(rig.get("/v2/health/ready").status, 503, "one service of two is not");
    rig.worker("other", "gpu1", double);
    rig.ready();
    assert_eq!(rig.get("/v2/health/ready").status, 200);

    let server = rig.get("/v2").json();
    assert_eq!(server["name"], "entc");
    assert!(server["extensions"].as_array().unwrap().contains(&json!("binary_tensor_data")));
    let x = json!({ "name": "x", "datatype": "FP32", "shape": [-1, 1] });
    let output = json!({ "name": "output", "datatype": "FP32", "shape": [-1, 1] });
    assert_eq!(
        rig.get("/v2/models/net").json(),
        json!({ "name": "net", "versions": ["1"], "platform": "entc_modelled", "inputs": [x], "outputs": [output] })
    );
    assert_eq!(rig.get("/v2/models/other").json()["inputs"], json!([]));
    assert_eq!(rig.get("/v2/models/net/config").json()["max_batch_size"], 4);
    rig.infer(&[1.0, 2.0]);
    let statistics = rig.get("/v2/models/net/stats").json();
    assert_eq!(statistics["model_stats"][0]["inference_count"], 2);
    assert_eq!(statistics["model_stats"][0]["execution_count"], 1);
}

#[test]
fn what_is_not_there_is_named() {
    let rig = Rig::single(double);
    for (got, status, message) in [
        (rig.post("/v2/models/nett/infer", rows(&[1.0])), 404, "there is no model `nett`"),
        (rig.post("/v2/models/net/versions/7/infer", rows(&[1.0])), 404, "has no version `7`"),
        (rig.get("/v2/models/net/frobnicate"), 404, "nothing at `/v2/models/net/frobnicate`"),
        (rig.get("/v1/models"), 404, "nothing at `/v1/models`"),
        (rig.get("/v2/models/net/infer"), 405, "use POST"),
        (rig.post("/v2/health/ready", ""), 405, "use GET"),
        (rig.post_with("/v2/models/net/infer", &[("content-encoding", "gzip")], "x"), 415, "compressed"),
    ] {
        assert_eq!(got.status, status, "{}", got.text());
        assert!(got.error().contains(message), "{}", got.error());
    }
}

#[test]
fn wrong_requests_are_told_what_is_wrong_and_the_next_is_answered() {
    let mut with = service("typed", vec![replica("gpu1")]);
    with.model.signature = Some(Signature {
        inputs: vec![
            TensorSpec { name: "a".into(), datatype: Datatype::Int32, shape: vec![-1, 2] },
            TensorSpec { name: "b".into(), datatype: Datatype::Bool, shape: vec![-1, -1] },
        ],
        outputs: vec![TensorSpec { name: "y".into(), datatype: Datatype::Fp32, shape: vec![-1, 1] }],
    });
    let mut rig = Rig::new(&deployment(vec![service("net", vec![replica("gpu0")]), with]));
    rig.worker("net", "gpu0", double);
    rig.worker("typed", "gpu1", |_| Act::Echo);
    rig.ready();
    let input = |text: &str| format!(r#"{{"inputs":[{text}]}}"#);
    let x = |rest: &str| input(&format!(r#"{{"name":"x",{rest}}}"#));
    let cases = [
        ("net", String::new(), "not one of the protocol"),
        ("net", "{".to_owned(), "not one of the protocol"),
        ("net", "[]".to_owned(), "not one of the protocol"),
        ("net", "{}".to_owned(), "missing field `inputs`"),
        ("net", input(""), "has no inputs"),
        ("net", x(r#""shape":[1,1],"data":[1]"#), "missing field `datatype`"),
        ("net", x(r#""datatype":"FP33","shape":[1,1],"data":[1]"#), "FP33"),
        ("net", x(r#""datatype":"FP32","shape":[1,1]"#), "neither `data` nor `binary_data_size`"),
        ("net", x(r#""datatype":"FP32","shape":[1,1],"data":[1,2]"#), "more than the 1 elements"),
        ("net", x(r#""datatype":"FP32","shape":[1,2],"data":[1]"#), "has 1 elements; its shape has 2"),
        ("net", x(r#""datatype":"FP32","shape":[1,1],"data":["1"]"#), "element `\"1\"`"),
        ("net", x(r#""datatype":"FP32","shape":[1,1],"data":[null]"#), "element `null`"),
        ("net", x(r#""datatype":"FP32","shape":[1,1],"data":[NaN]"#), "not one of the protocol"),
        ("net", x(r#""datatype":"FP32","shape":[1,1],"data":[{"a":1}]"#), "an object among its elements"),
        ("net", x(r#""datatype":"UINT8","shape":[1,1],"data":[256]"#), "UINT8, but has the element `256`"),
        ("net", x(r#""datatype":"INT64","shape":[1,1],"data":[1.5]"#), "INT64, but has the element `1.5`"),
        ("net", x(r#""datatype":"FP16","shape":[1,1],"data":[1]"#), "has to be sent as binary data"),
        ("net", x(r#""datatype":"FP32","shape":[-1,1],"data":[1]"#), "impossible shape [-1, 1]"),
        ("net", x(r#""datatype":"FP32","shape":[9223372036854775807,9],"data":[1]"#), "impossible shape"),
        ("net", x(r#""datatype":"FP32","shape":[4611686018427387904],"data":[1]"#), "impossible shape"),
        ("net", x(r#""datatype":"FP32","shape":[],"data":[1]"#), "has no dimensions"),
        ("net", x(r#""datatype":"FP32","shape":[0,1],"data":[]"#), "has no rows"),
        (
            "net",
            x(r#""datatype":"FP32","shape":[5,1],"data":[1,2,3,4,5]"#),
            "a batch of 5 is over the model's largest of 4",
        ),
        (
            "net",
            x(r#""datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4}"#),
            "0 are left in the body",
        ),
        ("net", x(r#""datatype":"FP32","shape":[1],"data":[1],"parameters":{"binary_data_size":4}"#), "both"),
        (
            "net",
            input(
                r#"{"name":"x","datatype":"BOOL","shape":[1],"data":[true]},{"name":"x","datatype":"BOOL","shape":[1],"data":[true]}"#,
            ),
            "input `x` is there twice",
        ),
        (
            "net",
            input(
                r#"{"name":"x","datatype":"BOOL","shape":[1],"data":[true]},{"name":"y","datatype":"BOOL","shape":[2],"data":[true,false]}"#,
            ),
            "different first dimensions, 1 and 2",
        ),
        (
            "net",
            rows(&[1.0]).replace("]}]}", "]}],\"outputs\":[{\"name\":\"z\"}]}"),
            "there is no output `z`",
        ),
        (
            "typed",
            x(r#""datatype":"INT32","shape":[1,2],"data":[1,2]"#),
            "there is no input `x`; the model has `a`, `b`",
        ),
        (
            "typed",
            input(r#"{"name":"a","datatype":"INT32","shape":[1,2],"data":[1,2]}"#),
            "input `b` is missing",
        ),
        (
            "typed",
            input(r#"{"name":"a","datatype":"FP32","shape":[1,2],"data":[1,2]}"#),
            "is FP32; the model takes INT32",
        ),
        (
            "typed",
            input(r#"{"name":"a","datatype":"INT32","shape":[1,3],"data":[1,2,3]}"#),
            "the model takes [-1, 2]",
        ),
        (
            "typed",
            input(r#"{"name":"a","datatype":"INT32","shape":[1],"data":[1]}"#),
            "the model takes [-1, 2]",
        ),
    ];
    for (model, body, message) in &cases {
        let got = rig.post(&format!("/v2/models/{model}/infer"), body);
        assert_eq!(got.status, 400, "{body}: {}", got.text());
        assert!(got.error().contains(message), "{body}: {}", got.error());
        assert_eq!(rig.infer(&[1.0]).data(), [2.0], "after {body}");
    }
    let wrong: u64 = rig.stats().services.iter().map(|s| s.outcomes.invalid).sum();
    assert_eq!(wrong, cases.len() as u64);
    for (feature, body) in [
        ("shared memory", x(r#""datatype":"FP32","shape":[1],"parameters":{"shared_memory_region":"r"}"#)),
        ("a sequence", rows(&[1.0]).replacen('{', r#"{"parameters":{"sequence_id":5},"#, 1)),
    ] {
        let got = rig.post("/v2/models/net/infer", body);
        assert_eq!(got.status, 415);
        assert!(got.error().contains(feature), "{}", got.error());
    }
}

#[test]
fn what_a_client_sent_is_not_sent_back_at_length() {
    let rig = Rig::single(double);
    let long = "x".repeat(100_000);
    let dimensions = vec!["1"; 100_000].join(",");
    let inputs = vec![r#"{"name":"x","shape":[1],"datatype":"BOOL","data":[true]}"#; 2000].join(",");
    for body in [
        format!(r#"{{"inputs":[{{"name":"{long}","shape":[1],"datatype":"BOOL","data":[2]}}]}}"#),
        format!(r#"{{"inputs":[{{"name":"x","shape":[1],"datatype":"{long}","data":[2]}}]}}"#),
        format!(r#"{{"inputs":[{{"name":"x","shape":[-1,{dimensions}],"datatype":"BOOL","data":[true]}}]}}"#),
        format!(r#"{{"inputs":[{inputs}]}}"#),
    ] {
        let got = rig.post("/v2/models/net/infer", body);
        assert_eq!(got.status, 400);
        assert!(got.body.len() < 5000, "{}", got.body.len());
    }
}

#[test]
fn a_raw_body_that_is_cut_or_too_long_is_told_so() {
    let rig = Rig::single(double);
    let json =
        r#"{"inputs":[{"name":"x","shape":[2,1],"datatype":"FP32","parameters":{"binary_data_size":8}}]}"#;
    let send = |json: &str, raw: usize, length: &str| {
        let mut body = json.as_bytes().to_vec();
        body.resize(json.len() + raw, 0);
        rig.post_with("/v2/models/net/infer", &[("Inference-Header-Content-Length", length)], body)
    };
    let length = json.len().to_string();
    for (got, message) in [
        (send(json, 7, &length), "says 8 bytes of binary data, but 7 are left"),
        (send(json, 9, &length), "1 bytes of the body belong to no input"),
        (send(json, 0, "100000"), "says 100000 bytes of JSON, but the body has"),
        (send(json, 8, "many"), "is not a number of bytes"),
        (send(json, 8, "-5"), "is not a number of bytes"),
        (send(&json.replace(":8", ":4"), 4, &length), "has 4 bytes; FP32 of shape [2, 1] is 8 bytes"),
        (
            send(&json.replace("FP32", "BYTES"), 8, &(json.len() + 1).to_string()),
            "2 strings, each with its length",
        ),
    ] {
        // Eight zero bytes are two empty strings, which are fine.
        if got.status == 200 {
            assert!(message.contains("strings"));
            continue;
        }
        assert_eq!(got.status, 400, "{}", got.text());
        assert!(got.error().contains(message), "{}", got.error());
    }
    let words = json.replace("FP32", "BYTES").replace("[2,1]", "[1,1]");
    let got = send(&words, 8, &words.len().to_string());
    assert!(got.error().contains("1 strings, each with its length"), "{}", got.text());
    assert_eq!(send(json, 8, &length).status, 200);
}

#[test]
fn metrics_are_where_prometheus_looks_for_them() {
    let rig = Rig::single(double);
    rig.infer(&[1.0, 2.0]);
    rig.infer(&[1.0]);
    rig.post("/v2/models/net/infer", "{}");
    let metrics = rig.handle().addresses().metrics.unwrap();
    let got = rig.get_from(metrics, "/metrics");
    assert_eq!(got.status, 200);
    let text = got.text();
    for line in [
        r#"entc_model_requests_total{outcome="served",service="net"} 2"#,
        r#"entc_model_requests_total{outcome="invalid",service="net"} 1"#,
        r#"entc_model_request_duration_seconds_count{service="net"} 2"#,
        r#"entc_slo_violations_total{service="net"} 0"#,
        r#"entc_slo_attainment{service="net"} 1"#,
        r#"entc_plan_info{hash="sha256:abc"} 1"#,
        r#"entc_batch_rows_total{executor="modelled",replica="gpu0",service="net"} 3"#,
        r#"entc_executor_energy_joules_total{executor="modelled",replica="gpu0",service="net"} 1"#,
        "# TYPE entc_batches_total counter",
        r#"entc_workers{executor="modelled",replica="gpu0",service="net"} 1"#,
        r#"entc_queue_requests{executor="modelled",replica="gpu0",service="net"} 0"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert_eq!(rig.get_from(metrics, "/").status, 404);
    let ours = prometheus::IntGauge::new("entc_gpu_power_watts", "Of others").unwrap();
    rig.handle().registry().register(Box::new(ours)).unwrap();
    assert!(rig.get_from(metrics, "/metrics").text().contains("entc_gpu_power_watts 0"));
}

#[test]
fn where_a_token_is_needed_nothing_is_said_without_it() {
    let deployment = deployment(vec![service("net", vec![replica("gpu0")])]);
    let mut rig = Rig::with(&deployment, |options| options.token = Some("s3cret".into()));
    rig.worker("net", "gpu0", double);
    rig.ready();
    for headers in [&[][..], &[("authorization", "Bearer s3cre")], &[("authorization", "s3cret")]] {
        let got = rig.post_with("/v2/models/net/infer", headers, rows(&[1.0]));
        assert_eq!((got.status, got.header("www-authenticate")), (401, Some("Bearer")));
    }
    let got = rig.post_with("/v2/models/net/infer", &[("authorization", "Bearer s3cret")], rows(&[1.0]));
    assert_eq!(got.data(), [2.0]);
    let metrics = rig.handle().addresses().metrics.unwrap();
    assert_eq!(rig.get_from(metrics, "/metrics").status, 401);
}
