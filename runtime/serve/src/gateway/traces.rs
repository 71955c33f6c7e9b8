//! Requests → OpenTelemetry spans, sent by OTLP over gRPC: one span a request, with its wait in the queue and its
//! batch as children. Only those are traced that their client traces (W3C `traceparent`), or that are drawn.

use super::options::Tracing;
use super::replica::Ran;
use crate::protocol::Refusal;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{Span, SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use std::fmt;
use std::time::{Duration, Instant, SystemTime};
use tokio::runtime::Runtime;

/// How long the last spans may take to be sent when the gateway ends.
const PATIENCE: Duration = Duration::from_secs(2);

/// Makes spans, and sends them on a thread of its own.
pub(crate) struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    /// What sends runs here, so that a collector that is slow slows no request.
    runtime: Option<Runtime>,
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Traces")
    }
}

impl Traces {
    /// Ready to send. The collector need not be there yet.
    pub(crate) fn start(options: &Tracing) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("entc-traces")
            .enable_all()
            .build()?;
        let exporter = {
            let _inside = runtime.enter();
            SpanExporter::builder().with_tonic().with_endpoint(&options.endpoint).build()
        };
        let exporter = exporter.map_err(|error| {
            std::io::Error::new(std::io::ErrorKind::InvalidInput, format!("`{}`: {error}", options.endpoint))
        })?;
        let drawn = Sampler::TraceIdRatioBased(options.ratio);
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_sampler(Sampler::ParentBased(Box::new(drawn)))
            .with_resource(Resource::builder().with_service_name("entc-gateway").build())
            .build();
        let tracer = provider.tracer("entc");
        Ok(Self { provider, tracer, runtime: Some(runtime) })
    }

    /// A request that arrived then; `header` gives what its client sent under a name.
    pub(crate) fn begin<'a>(
        &self,
        service: &str,
        arrived: Instant,
        header: impl Fn(&str) -> Option<&'a str>,
    ) -> Option<Box<Traced>> {
        let sent = ["traceparent", "tracestate"].map(|name| (name, header(name)));
        let parent = TraceContextPropagator::new().extract(&Headers(sent));
        // Of the moment of arrival, which was before this.
        let wall = SystemTime::now().checked_sub(arrived.elapsed())?;
        let span = self
            .tracer
            .span_builder(format!("infer {service}"))
            .with_kind(SpanKind::Server)
            .with_start_time(wall)
            .with_attributes([KeyValue::new("entc.service", service.to_owned())])
            .start_with_context(&self.tracer, &parent);
        span.is_recording().then(|| Box::new(Traced { span, arrived, wall, tracer: self.tracer.clone() }))
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        // A collector that is not there has lost nothing but spans.
        let _ = self.provider.shutdown_with_timeout(PATIENCE);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The headers of W3C's Trace Context that a client sent.
struct Headers<'a>([(&'static str, Option<&'a str>); 2]);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| *name == key)?.1
    }

    fn keys(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// A request that is traced. Its span ends when it is dropped.
pub(crate) struct Traced {
    span: opentelemetry_sdk::trace::Span,
    arrived: Instant,
    wall: SystemTime,
    tracer: SdkTracer,
}

impl Traced {
    /// It was answered, by this replica, in that batch.
    pub(crate) fn answered(&mut self, replica: &str, ran: &Ran) {
        self.span.set_attributes([
            KeyValue::new("entc.replica", replica.to_owned()),
            KeyValue::new("entc.batch_rows", i64::from(ran.rows)),
        ]);
        let parent = Context::new().with_remote_span_context(self.span.span_context().clone());
        let at = |moment: Instant| self.wall + moment.saturating_duration_since(self.arrived);
        for (name, from, to) in [("queue", self.arrived, ran.begun), ("batch", ran.begun, ran.ended)] {
            let child = self.tracer.span_builder(name).with_start_time(at(from));
            child.start_with_context(&self.tracer, &parent).end_with_timestamp(at(to));
        }
    }

    /// It was refused, or failed.
    pub(crate) fn refused(&mut self, refusal: &Refusal) {
        self.span.set_status(Status::error(refusal.words()));
    }
}
