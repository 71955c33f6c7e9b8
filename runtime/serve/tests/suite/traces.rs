//! Requests as OpenTelemetry spans: a collector of OTLP's own messages reads what the gateway sends.

use super::rig::*;
use ent_serve::gateway::Tracing;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use std::sync::{Arc, Mutex};
use tonic::{Request, Response, Status};

/// Keeps every span that it is sent.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Span>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = request.into_inner().resource_spans;
        let spans = resources.into_iter().flat_map(|r| r.scope_spans).flat_map(|s| s.spans);
        self.0.lock().unwrap().extend(spans);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// What a gateway that ended had sent, by the share of requests that it draws.
fn spans(ratio: f64, act: impl FnOnce(&Rig)) -> Vec<Span> {
    let collector = Collector::default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let service = TraceServiceServer::new(collector.clone());
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    runtime.spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming));
    let one = deployment(vec![service_of("net")]);
    let mut rig = Rig::with(&one, |options| options.tracing = Some(Tracing { endpoint, ratio }));
    rig.worker("net", "gpu0", double);
    rig.ready();
    act(&rig);
    drop(rig);
    let spans = collector.0.lock().unwrap();
    spans.clone()
}

fn service_of(name: &str) -> ent_serve::deployment::Service {
    service(name, vec![replica("gpu0")])
}

fn text(span: &Span, key: &str) -> Option<String> {
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    let found = span.attributes.iter().find(|a| a.key == key)?;
    let value = found.value.as_ref()?.value.as_ref()?;
    let number = |value: &Value| if let Value::IntValue(n) = value { Some(n.to_string()) } else { None };
    if let Value::StringValue(text) = value { Some(text.clone()) } else { number(value) }
}

#[test]
fn a_request_is_a_span_with_its_wait_and_its_batch_below_its_clients() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let spans = spans(0.0, |rig| {
        assert_eq!(rig.infer(&[1.0]).status, 200, "not drawn, and not traced by its client");
        let got = rig.post_with("/v2/models/net/infer", &[("traceparent", parent)], rows(&[1.0, 2.0]));
        assert_eq!(got.status, 200);
    });
    let [infer] = spans.iter().filter(|s| s.name == "infer net").collect::<Vec<_>>()[..] else {
        panic!("{spans:#?}")
    };
    assert_eq!(infer.trace_id, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes());
    assert_eq!(infer.parent_span_id, 0xb7ad_6b71_6920_3331_u64.to_be_bytes());
    assert_eq!(text(infer, "entc.replica").as_deref(), Some("gpu0"));
    assert_eq!(text(infer, "entc.batch_rows").as_deref(), Some("2"));
    let child = |name: &str| spans.iter().find(|s| s.name == name).unwrap_or_else(|| panic!("{spans:#?}"));
    let (queue, batch) = (child("queue"), child("batch"));
    for span in [queue, batch] {
        assert_eq!((&span.trace_id, &span.parent_span_id), (&infer.trace_id, &infer.span_id));
    }
    assert!(infer.start_time_unix_nano <= queue.start_time_unix_nano);
    assert_eq!(queue.end_time_unix_nano, batch.start_time_unix_nano);
    assert!(batch.start_time_unix_nano < batch.end_time_unix_nano);
    assert!(batch.end_time_unix_nano <= infer.end_time_unix_nano);
}

#[test]
fn what_is_refused_is_a_span_that_says_why() {
    let spans = spans(1.0, |rig| assert_eq!(rig.post("/v2/models/net/infer", "{").status, 400));
    let [span] = &spans[..] else { panic!("{spans:#?}") };
    assert!(span.status.as_ref().unwrap().message.contains("not one of the protocol"), "{span:#?}");
}

#[test]
fn a_collector_that_is_not_there_costs_no_request() {
    let one = deployment(vec![service_of("net")]);
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = format!("http://{nobody}");
    let mut rig = Rig::with(&one, |options| options.tracing = Some(Tracing { endpoint, ratio: 1.0 }));
    rig.worker("net", "gpu0", double);
    rig.ready();
    assert_eq!(rig.infer(&[1.0]).data(), [2.0]);
}
