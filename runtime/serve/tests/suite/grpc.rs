//! The protocol over gRPC, with a client made from the same definition.

use super::rig::*;
use ent_serve::protocol::grpc::grpc_inference_service_client::GrpcInferenceServiceClient;
use ent_serve::protocol::grpc::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
use ent_serve::protocol::grpc::*;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};

fn with_client<T>(rig: &Rig, act: impl AsyncFnOnce(GrpcInferenceServiceClient<Channel>) -> T) -> T {
    let address = rig.handle().addresses().grpc.unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let channel = Endpoint::new(format!("http://{address}")).unwrap().connect().await.unwrap();
        act(GrpcInferenceServiceClient::new(channel)).await
    })
}

fn request(values: &[f32]) -> ModelInferRequest {
    ModelInferRequest {
        model_name: "net".into(),
        id: "7".into(),
        inputs: vec![InferInputTensor {
            name: "x".into(),
            datatype: "FP32".into(),
            shape: vec![values.len() as i64, 1],
            ..InferInputTensor::default()
        }],
        raw_input_contents: vec![values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>().into()],
        ..ModelInferRequest::default()
    }
}

fn numbers(response: &ModelInferResponse) -> Vec<f32> {
    response.raw_output_contents[0].as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

#[test]
fn server_and_models_answer_over_grpc() {
    let mut rig = Rig::new(&deployment(vec![service("net", vec![replica("gpu0")])]));
    with_client(&rig, async |mut client| {
        assert!(client.server_live(ServerLiveRequest {}).await.unwrap().into_inner().live);
        assert!(!client.server_ready(ServerReadyRequest {}).await.unwrap().into_inner().ready);
    });
    rig.worker("net", "gpu0", double);
    rig.ready();
    with_client(&rig, async |mut client| {
        assert!(client.server_ready(ServerReadyRequest {}).await.unwrap().into_inner().ready);
        let of = |name: &str| ModelReadyRequest { name: name.into(), version: String::new() };
        assert!(client.model_ready(of("net")).await.unwrap().into_inner().ready);
        assert_eq!(client.model_ready(of("nett")).await.unwrap_err().code(), Code::NotFound);
        let server = client.server_metadata(ServerMetadataRequest {}).await.unwrap().into_inner();
        assert_eq!(server.name, "entc");
        let of = ModelMetadataRequest { name: "net".into(), version: "1".into() };
        let model = client.model_metadata(of).await.unwrap().into_inner();
        assert_eq!((model.platform.as_str(), model.versions), ("entc_modelled", vec!["1".to_owned()]));
        assert_eq!(model.outputs[0].shape, [-1, 1]);
    });
}

#[test]
fn raw_and_typed_contents_are_both_taken() {
    let rig = Rig::single(double);
    with_client(&rig, async |mut client| {
        let answer = client.model_infer(request(&[1.0, 2.5])).await.unwrap().into_inner();
        assert_eq!(numbers(&answer), [2.0, 5.0]);
        assert_eq!((answer.id.as_str(), answer.outputs[0].shape.as_slice()), ("7", &[2, 1][..]));
        let executor = &answer.parameters["executor"].parameter_choice;
        assert_eq!(*executor, Some(infer_parameter::ParameterChoice::StringParam("modelled".into())));
        let mut typed = request(&[]);
        typed.raw_input_contents.clear();
        typed.inputs[0].shape = vec![1, 1];
        typed.inputs[0].contents =
            Some(InferTensorContents { fp32_contents: vec![4.0], ..InferTensorContents::default() });
        assert_eq!(numbers(&client.model_infer(typed).await.unwrap().into_inner()), [8.0]);
    });
}

#[test]
fn wrong_messages_are_told_what_is_wrong() {
    let rig = Rig::single(double);
    let change = |change: &dyn Fn(&mut ModelInferRequest)| {
        let mut message = request(&[1.0]);
        change(&mut message);
        message
    };
    let small = |field: &dyn Fn(&mut InferTensorContents), datatype: &str| {
        let mut contents = InferTensorContents::default();
        field(&mut contents);
        let mut message = request(&[1.0]);
        message.raw_input_contents.clear();
        message.inputs[0].datatype = datatype.into();
        message.inputs[0].contents = Some(contents);
        message
    };
    let cases = [
        (change(&|m| m.model_name = "nett".into()), Code::NotFound, "no model `nett`"),
        (change(&|m| m.model_version = "2".into()), Code::NotFound, "no version `2`"),
        (
            change(&|m| m.inputs[0].datatype = "FP33".into()),
            Code::InvalidArgument,
            "`FP33` is not a datatype",
        ),
        (change(&|m| m.inputs[0].shape = vec![2, 1]), Code::InvalidArgument, "has 4 bytes"),
        (change(&|m| m.inputs[0].shape = vec![-1, 1]), Code::InvalidArgument, "impossible shape"),
        (change(&|m| m.inputs[0].shape = vec![i64::MAX, 2]), Code::InvalidArgument, "impossible shape"),
        (change(&|m| m.inputs.clear()), Code::InvalidArgument, "0 inputs have 1 raw contents"),
        (change(&|m| m.raw_input_contents.clear()), Code::InvalidArgument, "has 0 elements"),
        (
            change(&|m| {
                m.outputs.push(InferRequestedOutputTensor { name: "z".into(), ..Default::default() })
            }),
            Code::InvalidArgument,
            "no output `z`",
        ),
        (
            change(&|m| {
                let parameter = infer_parameter::ParameterChoice::StringParam("r".into());
                let parameter = InferParameter { parameter_choice: Some(parameter) };
                m.inputs[0].parameters.insert("shared_memory_region".into(), parameter);
            }),
            Code::Unimplemented,
            "shared memory",
        ),
        (
            small(&|c| c.int_contents.push(300), "INT8"),
            Code::InvalidArgument,
            "INT8, but has the element 300",
        ),
        (small(&|c| c.uint_contents.push(70_000), "UINT16"), Code::InvalidArgument, "the element 70000"),
        (
            small(&|c| c.fp32_contents.push(1.0), "FP64"),
            Code::InvalidArgument,
            "0 elements in the contents of FP64",
        ),
        (
            small(&|c| c.fp32_contents.push(1.0), "FP16"),
            Code::InvalidArgument,
            "has to be sent as raw contents",
        ),
    ];
    with_client(&rig, async |mut client| {
        for (message, code, text) in cases {
            let status = client.model_infer(message).await.unwrap_err();
            assert_eq!(status.code(), code, "{status:?}");
            assert!(status.message().contains(text), "{status:?}");
            assert_eq!(numbers(&client.model_infer(request(&[1.0])).await.unwrap().into_inner()), [2.0]);
        }
    });
}

#[test]
fn a_message_over_the_limit_is_refused() {
    let one = deployment(vec![service("net", vec![replica("gpu0")])]);
    let mut rig = Rig::with(&one, |options| options.limits.body_bytes = 1 << 16);
    rig.worker("net", "gpu0", double);
    rig.ready();
    with_client(&rig, async |mut client| {
        let mut large = request(&[1.0]);
        large.raw_input_contents = vec![vec![0; 1 << 17].into()];
        let status = client.model_infer(large).await.unwrap_err();
        assert!(matches!(status.code(), Code::OutOfRange | Code::ResourceExhausted), "{status:?}");
        assert_eq!(numbers(&client.model_infer(request(&[1.0])).await.unwrap().into_inner()), [2.0]);
    });
}

#[test]
fn a_deadline_of_grpc_is_a_timeout_of_the_queue() {
    let mut slow = replica("gpu0");
    slow.batch_times_ms = vec![30_000.0; 4];
    let mut one = service("net", vec![slow]);
    one.promised_latency_ms = 60_000.0;
    let mut rig = Rig::new(&deployment(vec![one]));
    rig.worker("net", "gpu0", double);
    rig.ready();
    with_client(&rig, async |mut client| {
        let mut hasty = Request::new(request(&[1.0]));
        hasty.set_timeout(std::time::Duration::from_secs(10));
        let status = client.model_infer(hasty).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert!(status.message().contains("allowed by the client's timeout"), "{status:?}");
        assert!(status.metadata().contains_key("grpc-retry-pushback-ms"));
    });
    assert_eq!(rig.service("net").outcomes.shed, 1);
}

#[test]
fn a_stream_is_answered_in_order_and_outlives_a_wrong_request() {
    let rig = Rig::single(double);
    let mut wrong = request(&[0.0]);
    wrong.model_name = "nett".into();
    let messages: Vec<ModelInferRequest> =
        (0..20).map(|i| request(&[i as f32])).chain([wrong]).chain([request(&[50.0])]).collect();
    with_client(&rig, async |mut client| {
        let stream = futures_util::stream::iter(messages);
        let mut answers = client.model_stream_infer(stream).await.unwrap().into_inner();
        let mut seen = Vec::new();
        while let Some(answer) = answers.message().await.unwrap() {
            match answer.error_message.as_str() {
                "" => seen.push(numbers(&answer.infer_response.unwrap())[0]),
                message => {
                    assert_eq!(message, "there is no model `nett`");
                    seen.push(-1.0);
                }
            }
        }
        let expected: Vec<f32> = (0..20).map(|i| 2.0 * i as f32).chain([-1.0, 100.0]).collect();
        assert_eq!(seen, expected);
    });
}

#[test]
fn grpc_needs_the_token_too() {
    let deployment = deployment(vec![service("net", vec![replica("gpu0")])]);
    let mut rig = Rig::with(&deployment, |options| options.token = Some("s3cret".into()));
    rig.worker("net", "gpu0", double);
    rig.ready();
    with_client(&rig, async |mut client| {
        assert_eq!(client.model_infer(request(&[1.0])).await.unwrap_err().code(), Code::Unauthenticated);
        let mut known = Request::new(request(&[1.0]));
        known.metadata_mut().insert("authorization", "Bearer s3cret".parse().unwrap());
        assert_eq!(numbers(&client.model_infer(known).await.unwrap().into_inner()), [2.0]);
    });
}
