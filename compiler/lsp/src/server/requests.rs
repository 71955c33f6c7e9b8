//! What the client asks → what the features answer.

use super::Server;
use crate::analysis::Snapshot;
use crate::features::{
    actions, completion, folding, formatting, hints, hover, lens, links, navigate, selection, symbols, tokens,
};
use crate::planning;
use crate::workspace::name_of;
use ent_plan::diagnostic::FileId;
use lsp_server::{ErrorCode, Request, RequestId, Response};
use lsp_types::request::{
    CodeActionRequest, CodeLensRequest, Completion, DocumentHighlightRequest, DocumentLinkRequest,
    DocumentSymbolRequest, ExecuteCommand, FoldingRangeRequest, Formatting, GotoDefinition, HoverRequest,
    InlayHintRequest, OnTypeFormatting, PrepareRenameRequest, RangeFormatting, References, Rename,
    Request as Asked, ResolveCompletionItem, SelectionRangeRequest, SemanticTokensFullRequest,
    SemanticTokensRangeRequest, Shutdown, WorkspaceSymbolRequest,
};
use lsp_types::{
    CompletionResponse, DocumentSymbolResponse, GotoDefinitionResponse, Position, SemanticTokensRangeResult,
    SemanticTokensResult, TextDocumentIdentifier, TextDocumentPositionParams, WorkspaceSymbolResponse,
};
use serde_json::Value;

/// The text of a file as the server has it: what a client compares its own with when they seem to differ.
enum TextOfFile {}

impl Asked for TextOfFile {
    type Params = TextDocumentIdentifier;
    type Result = Option<String>;
    const METHOD: &'static str = "entc/text";
}

/// Why a request has no answer of its own.
pub(super) enum Refusal {
    /// The protocol's code, and why.
    Error(ErrorCode, String),
    /// The file is none of ours: the answer is `null`.
    Foreign,
}

impl From<(ErrorCode, String)> for Refusal {
    fn from((code, why): (ErrorCode, String)) -> Self {
        Self::Error(code, why)
    }
}

impl Server {
    pub(super) fn request(&mut self, request: Request) {
        if self.is_shut_down {
            self.refuse(request.id, ErrorCode::InvalidRequest, "the server was shut down");
            return;
        }
        match request.method.as_str() {
            Completion::METHOD => self.answer::<Completion>(request, |server, params| {
                let at = server.place(&params.text_document_position)?;
                let with_snippets = server.takes_snippets();
                let list =
                    server.of(at.file, |s| completion::completion(s, at.file, at.offset, with_snippets))?;
                Ok(Some(CompletionResponse::List(list)))
            }),
            ResolveCompletionItem::METHOD => {
                self.answer::<ResolveCompletionItem>(request, |_, item| Ok(completion::resolve(item)))
            }
            HoverRequest::METHOD => self.answer::<HoverRequest>(request, |server, params| {
                let at = server.place(&params.text_document_position_params)?;
                server.of_planned(at.file, |s, p| hover::hover(s, p, at.file, at.offset))
            }),
            GotoDefinition::METHOD => self.answer::<GotoDefinition>(request, |server, params| {
                let at = server.place(&params.text_document_position_params)?;
                let found = server.of(at.file, |s| navigate::definition(s, at.file, at.offset))?;
                Ok(Some(GotoDefinitionResponse::Array(found)))
            }),
            References::METHOD => self.answer::<References>(request, |server, params| {
                let at = server.place(&params.text_document_position)?;
                let declared = params.context.include_declaration;
                let found = server.of_all(at.file, |s| navigate::references(s, at.file, at.offset, declared));
                Ok(Some(found))
            }),
            DocumentHighlightRequest::METHOD => {
                self.answer::<DocumentHighlightRequest>(request, |server, params| {
                    let at = server.place(&params.text_document_position_params)?;
                    server.of(at.file, |s| navigate::highlights(s, at.file, at.offset)).map(Some)
                });
            }
            PrepareRenameRequest::METHOD => self.answer::<PrepareRenameRequest>(request, |server, params| {
                let at = server.place(&params)?;
                // What cannot be renamed is no error of the client's: it asks to find out.
                server.of(at.file, |s| navigate::prepare_rename(s, at.file, at.offset)).map(Result::ok)
            }),
            Rename::METHOD => self.answer::<Rename>(request, |server, params| {
                let at = server.place(&params.text_document_position)?;
                let name = params.new_name;
                let edit = server.of_all(at.file, |s| navigate::rename(s, at.file, at.offset, &name));
                edit.map(Some).map_err(|why| (ErrorCode::RequestFailed, why).into())
            }),
            DocumentSymbolRequest::METHOD => {
                self.answer::<DocumentSymbolRequest>(request, |server, params| {
                    let file = server.file(&params.text_document)?;
                    let found = server.of(file, |s| symbols::document(s, file))?;
                    Ok(Some(DocumentSymbolResponse::Nested(found)))
                })
            }
            WorkspaceSymbolRequest::METHOD => {
                self.answer::<WorkspaceSymbolRequest>(request, |server, params| {
                    server.publish();
                    let all: Vec<Snapshot<'_>> = (server.programs.iter())
                        .map(|(_, analysis)| Snapshot { workspace: &server.workspace, analysis })
                        .collect();
                    Ok(Some(WorkspaceSymbolResponse::Nested(symbols::workspace(&all, &params.query))))
                });
            }
            SemanticTokensFullRequest::METHOD => {
                self.answer::<SemanticTokensFullRequest>(request, |server, params| {
                    let file = server.file(&params.text_document)?;
                    let found = server.of(file, |s| tokens::tokens(s, file, 0..s.text(file).len()))?;
                    Ok(Some(SemanticTokensResult::Tokens(found)))
                });
            }
            SemanticTokensRangeRequest::METHOD => {
                self.answer::<SemanticTokensRangeRequest>(request, |server, params| {
                    let file = server.file(&params.text_document)?;
                    let bytes = server.workspace.bytes(file, params.range);
                    let found = server.of(file, |s| tokens::tokens(s, file, bytes))?;
                    Ok(Some(SemanticTokensRangeResult::Tokens(found)))
                });
            }
            _ => self.request_of_layout(request),
        }
    }

    /// Requests about the layout of a file and what is shown beside it.
    fn request_of_layout(&mut self, request: Request) {
        match request.method.as_str() {
            InlayHintRequest::METHOD => self.answer::<InlayHintRequest>(request, |server, params| {
                let file = server.file(&params.text_document)?;
                let bytes = server.workspace.bytes(file, params.range);
                server.of_planned(file, |s, p| hints::hints(s, p, file, bytes)).map(Some)
            }),
            CodeLensRequest::METHOD => self.answer::<CodeLensRequest>(request, |server, params| {
                let file = server.file(&params.text_document)?;
                server.of_planned(file, |s, p| lens::lenses(s, p, file)).map(Some)
            }),
            CodeActionRequest::METHOD => self.answer::<CodeActionRequest>(request, |server, params| {
                let file = server.file(&params.text_document)?;
                let bytes = server.workspace.bytes(file, params.range);
                let found = server.of_planned(file, |s, planned| {
                    let planning = planned.map_or(&[][..], |p| &p.diagnostics);
                    actions::actions(s, planning, file, bytes, &params.context)
                });
                found.map(Some)
            }),
            Formatting::METHOD => self.answer::<Formatting>(request, |server, params| {
                let file = server.file(&params.text_document)?;
                server.of(file, |s| formatting::whole(s, file)).map(Some)
            }),
            RangeFormatting::METHOD => self.answer::<RangeFormatting>(request, |server, params| {
                let file = server.file(&params.text_document)?;
                let bytes = server.workspace.bytes(file, params.range);
                server.of(file, |s| formatting::range(s, file, bytes)).map(Some)
            }),
            OnTypeFormatting::METHOD => self.answer::<OnTypeFormatting>(request, |server, params| {
                let at = server.place(&params.text_document_position)?;
                server.of(at.file, |s| formatting::on_type(s, at.file, at.offset, &params.ch)).map(Some)
            }),
            DocumentLinkRequest::METHOD => self.answer::<DocumentLinkRequest>(request, |server, params| {
                let file = server.file(&params.text_document)?;
                server.of(file, |s| links::links(s, file)).map(Some)
            }),
            FoldingRangeRequest::METHOD => self.answer::<FoldingRangeRequest>(request, |server, params| {
                let file = server.file(&params.text_document)?;
                server.of(file, |s| folding::folding(s, file)).map(Some)
            }),
            SelectionRangeRequest::METHOD => {
                self.answer::<SelectionRangeRequest>(request, |server, params| {
                    let file = server.file(&params.text_document)?;
                    let found = server.of(file, |s| {
                        let at = |position: &Position| s.workspace.offset(file, *position);
                        params.positions.iter().map(|p| selection::selection(s, file, at(p))).collect()
                    });
                    found.map(Some)
                })
            }
            ExecuteCommand::METHOD => self.execute(request),
            Shutdown::METHOD => self.answer::<Shutdown>(request, |server, ()| {
                server.is_shut_down = true;
                server.refuse_asked(|_| true, ErrorCode::RequestCanceled, "the server was shut down");
                Ok(())
            }),
            TextOfFile::METHOD => self.answer::<TextOfFile>(request, |server, document| {
                let known = server.workspace.find(&document.uri);
                Ok(known.map(|file| server.workspace.text(file).to_owned()))
            }),
            "initialize" => self.refuse(request.id, ErrorCode::InvalidRequest, "already initialized"),
            other => {
                let why = format!("unknown request `{other}`");
                self.refuse(request.id, ErrorCode::MethodNotFound, &why);
            }
        }
    }

    /// Understands a request, has it handled, and answers.
    fn answer<R: Asked>(
        &mut self,
        request: Request,
        handle: impl FnOnce(&mut Self, R::Params) -> Result<R::Result, Refusal>,
    ) {
        let id: RequestId = request.id;
        let params = match serde_json::from_value::<R::Params>(with_legal_addresses(request.params)) {
            Ok(params) => params,
            Err(error) => return self.refuse(id, ErrorCode::InvalidParams, &error.to_string()),
        };
        match handle(self, params).and_then(|result| {
            serde_json::to_value(result).map_err(|error| (ErrorCode::InternalError, error.to_string()).into())
        }) {
            Ok(value) => self.send(Response::new_ok(id, value)),
            Err(Refusal::Foreign) => self.send(Response::new_ok(id, Value::Null)),
            Err(Refusal::Error(code, why)) => self.refuse(id, code, &why),
        }
    }

    pub(super) fn file(&self, document: &TextDocumentIdentifier) -> Result<FileId, Refusal> {
        let known = self.workspace.find(&document.uri);
        match known.and_then(|id| Some((id, self.workspace.file(id)?))) {
            Some((_, file)) if file.foreign.is_some() => Err(Refusal::Foreign),
            Some((id, _)) => Ok(id),
            None => {
                let why = format!("`{}` is not open", name_of(&document.uri));
                Err((ErrorCode::InvalidParams, why).into())
            }
        }
    }

    fn place(&self, params: &TextDocumentPositionParams) -> Result<Place, Refusal> {
        let file = self.file(&params.text_document)?;
        Ok(Place { file, offset: self.workspace.offset(file, params.position) })
    }

    /// Asks a feature about a file in its program.
    fn of<T>(&mut self, file: FileId, ask: impl FnOnce(&Snapshot<'_>) -> T) -> Result<T, Refusal> {
        self.of_planned(file, |snapshot, _| ask(snapshot))
    }

    /// Asks a feature about a file in all programs that read it, the one it is shown in first.
    fn of_all<T>(&mut self, file: FileId, ask: impl FnOnce(&[Snapshot<'_>]) -> T) -> T {
        let mains = self.workspace.mains_of(file);
        for main in &mains {
            if self.programs.refresh(&mut self.workspace, *main) {
                self.dirty.insert(file);
                self.recompiled(*main);
            }
        }
        let snapshots: Vec<Snapshot<'_>> = mains
            .iter()
            .filter_map(|main| self.programs.get(*main))
            .map(|analysis| Snapshot { workspace: &self.workspace, analysis })
            .collect();
        ask(&snapshots)
    }

    /// Whether the client understands snippets in completions.
    fn takes_snippets(&self) -> bool {
        let completion = self.client.capabilities.text_document.as_ref().and_then(|t| t.completion.as_ref());
        completion.and_then(|c| c.completion_item.as_ref()?.snippet_support) == Some(true)
    }

    /// As [`Self::of`], with what is planned for the program.
    fn of_planned<T>(
        &mut self,
        file: FileId,
        ask: impl FnOnce(&Snapshot<'_>, Option<&planning::Planned>) -> T,
    ) -> Result<T, Refusal> {
        let main = self.main_of(file);
        if self.programs.refresh(&mut self.workspace, main) {
            self.dirty.insert(file);
            self.recompiled(main);
        }
        let Some(analysis) = self.programs.get(main) else {
            return Err((ErrorCode::InternalError, "the program is gone".to_owned()).into());
        };
        let snapshot = Snapshot { workspace: &self.workspace, analysis };
        Ok(ask(&snapshot, self.background.planned(main)))
    }
}

/// A byte of a file.
#[derive(Clone, Copy)]
struct Place {
    file: FileId,
    offset: usize,
}

/// Percent-encodes what may not stand in an address, wherever one stands: some clients send paths as
/// they are.
pub(super) fn with_legal_addresses(mut params: Value) -> Value {
    legalize(&mut params, 0);
    params
}

fn legalize(value: &mut Value, depth: usize) {
    match value {
        Value::Object(fields) if depth < 8 => {
            for (name, field) in fields {
                let is_address = name == "uri" || name.ends_with("Uri");
                match field {
                    Value::String(text) if is_address => *text = legal_address(text),
                    Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
                    Value::Object(_) | Value::Array(_) => legalize(field, depth + 1),
                }
            }
        }
        Value::Array(list) if depth < 8 => list.iter_mut().for_each(|v| legalize(v, depth + 1)),
        Value::Object(_) | Value::Array(_) | Value::String(_) => {}
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

pub(super) fn legal_address(text: &str) -> String {
    let mut legal = String::with_capacity(text.len());
    for byte in text.bytes() {
        let is_legal = byte.is_ascii_alphanumeric() || b"-._~:/?#@!$&'()*+,;=%".contains(&byte);
        if is_legal {
            legal.push(char::from(byte));
        } else {
            legal.push_str(&format!("%{byte:02X}"));
        }
    }
    legal
}
