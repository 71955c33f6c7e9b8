//! Plans that come back from the background, and the commands that ask for one.

use super::Server;
use super::requests::Refusal;
use crate::planning::{Event, Happening, PLAN, SHOW_PLAN};
use ent_plan::diagnostic::FileId;
use lsp_server::{ErrorCode, Notification, Request, RequestId, Response};
use lsp_types::notification::{DidChangeConfiguration, Notification as Told};
use lsp_types::request::{CodeLensRefresh, ExecuteCommand, InlayHintRefreshRequest, Request as Asked};
use lsp_types::{ExecuteCommandParams, TextDocumentIdentifier};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::str::FromStr;

/// What is told of each change in the state of a plan. The client may not know it.
const PLANNED: &str = "entc/planned";

/// What a request for a plan is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// State, watts, gap, boards and a line in words.
    Summary,
    /// The same, with the plan and its page.
    Page,
}

impl Server {
    /// Something happened in the background.
    pub(super) fn planned(&mut self, event: Event) {
        let main = event.main;
        let is_finished = matches!(event.happening, Happening::Finished(_));
        let Some(analysis) = self.programs.get(main) else { return };
        if !self.background.take(event, analysis) {
            return;
        }
        if !is_finished {
            self.tell_planned(main, Map::from_iter([("state".to_owned(), "planning".into())]));
            return;
        }
        self.tell(&BTreeSet::new());
        if let Some(planned) = self.background.planned(main) {
            self.tell_planned(main, planned.summary());
        }
        let (now, later) = std::mem::take(&mut self.asked).into_iter().partition(|(_, of, _)| *of == main);
        self.asked = later;
        let now: Vec<(RequestId, FileId, Wanted)> = now;
        for (id, _, wanted) in now {
            self.answer_plan(id, main, wanted);
        }
        self.refresh_shown();
    }

    /// A program was compiled anew: what was being planned of it no longer counts.
    pub(super) fn recompiled(&mut self, main: FileId) {
        if let Some(analysis) = self.programs.get(main) {
            self.background.changed(&self.workspace, main, analysis);
        }
        self.refuse_asked(|of| of == main, ErrorCode::ContentModified, "the program has changed");
    }

    /// Refuses the requests that wait for plans of some programs.
    pub(super) fn refuse_asked(&mut self, is_meant: impl Fn(FileId) -> bool, code: ErrorCode, why: &str) {
        let (refused, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.asked).into_iter().partition(|(_, main, _)| is_meant(*main));
        self.asked = kept;
        for (id, ..) in refused {
            self.refuse(id, code, why);
        }
    }

    /// Takes over changed settings.
    pub(super) fn configure(&mut self, note: Notification) {
        let Ok(params) = serde_json::from_value::<<DidChangeConfiguration as Told>::Params>(note.params)
        else {
            return;
        };
        let was_automatic = self.background.settings.is_automatic;
        self.background.settings.take(&params.settings);
        if self.background.settings.is_automatic && !was_automatic {
            for (main, analysis) in self.programs.iter() {
                self.background.changed(&self.workspace, main, analysis);
            }
        }
    }

    /// Answers a command: at once, or when the plan is there.
    pub(super) fn execute(&mut self, request: Request) {
        let params = super::requests::with_legal_addresses(request.params);
        let asked = serde_json::from_value::<<ExecuteCommand as Asked>::Params>(params)
            .map_err(|error| Refusal::Error(ErrorCode::InvalidParams, error.to_string()))
            .and_then(|params| self.command(&params));
        let (file, wanted) = match asked {
            Ok(asked) => asked,
            Err(Refusal::Error(code, why)) => return self.refuse(request.id, code, &why),
            Err(Refusal::Foreign) => return self.send(Response::new_ok(request.id, Value::Null)),
        };
        let main = self.main_of(file);
        if self.programs.refresh(&mut self.workspace, main) {
            self.dirty.insert(file);
            self.recompiled(main);
        }
        let Some(analysis) = self.programs.get(main) else { return };
        if analysis.has_errors() {
            let why = "the program has errors; mend them first";
            return self.refuse(request.id, ErrorCode::RequestFailed, why);
        }
        if self.background.plan_now(&self.workspace, main, analysis) {
            self.answer_plan(request.id, main, wanted);
        } else {
            self.asked.push((request.id, main, wanted));
        }
    }

    fn command(&self, params: &ExecuteCommandParams) -> Result<(FileId, Wanted), Refusal> {
        let invalid = |why: String| Refusal::Error(ErrorCode::InvalidParams, why);
        let wanted = match params.command.as_str() {
            PLAN => Wanted::Summary,
            SHOW_PLAN => Wanted::Page,
            other => return Err(invalid(format!("unknown command `{other}`"))),
        };
        let command = &params.command;
        let uri = params.arguments.first().and_then(|a| a.as_str().or_else(|| a.get("uri")?.as_str()));
        let uri = uri.map(super::requests::legal_address).and_then(|uri| lsp_types::Uri::from_str(&uri).ok());
        let uri = uri.ok_or_else(|| invalid(format!("`{command}` needs the address of a file")))?;
        let file = self.file(&TextDocumentIdentifier { uri })?;
        if !self.background.can_plan() {
            let why = "nothing is planned here: the server was started without a planner";
            return Err(Refusal::Error(ErrorCode::RequestFailed, why.to_owned()));
        }
        Ok((file, wanted))
    }

    fn answer_plan(&self, id: RequestId, main: FileId, wanted: Wanted) {
        let Some(planned) = self.background.planned(main) else {
            return self.refuse(id, ErrorCode::RequestFailed, "there is no plan");
        };
        let mut answer = planned.summary();
        answer.extend(self.address(main));
        if wanted == Wanted::Page {
            let drawn = planned.plan.as_ref().filter(|plan| !plan.gpus.is_empty());
            let Some(plan) = drawn else {
                let why = answer.get("summary").and_then(Value::as_str).unwrap_or("there is no plan");
                return self.refuse(id, ErrorCode::RequestFailed, why);
            };
            answer.insert("plan".to_owned(), serde_json::to_value(plan).unwrap_or_default());
            answer.extend(self.background.page(plan).map(|page| ("html".to_owned(), page.into())));
        }
        self.send(Response::new_ok(id, Value::Object(answer)));
    }

    fn address(&self, main: FileId) -> Option<(String, Value)> {
        let uri = self.workspace.file(main)?.uri.as_str();
        Some(("uri".to_owned(), uri.into()))
    }

    fn tell_planned(&self, main: FileId, mut fields: Map<String, Value>) {
        fields.extend(self.address(main));
        self.send(Notification { method: PLANNED.to_owned(), params: Value::Object(fields) });
    }

    /// Asks the client to fetch again what is shown beside the text.
    fn refresh_shown(&mut self) {
        let workspace = self.client.capabilities.workspace.clone().unwrap_or_default();
        self.n_refreshes += 1;
        if workspace.inlay_hint.and_then(|hints| hints.refresh_support) == Some(true) {
            self.ask::<InlayHintRefreshRequest>(&format!("hints-{}", self.n_refreshes), &());
        }
        if workspace.code_lens.and_then(|lenses| lenses.refresh_support) == Some(true) {
            self.ask::<CodeLensRefresh>(&format!("lenses-{}", self.n_refreshes), &());
        }
    }
}
