//! What is wished → why a step is taken, in words.

use crate::observed::ObservedInstance;
use crate::target::{Target, TargetGpu, TargetInstance};

/// Whether a wish is a plan's: only plans name services.
pub(super) fn is_plan(target: &Target) -> bool {
    let serves = |gpu: &TargetGpu| {
        !gpu.services.is_empty() || gpu.instances.iter().any(|instance| instance.service.is_some())
    };
    target.gpus.values().any(serves)
}

/// What the reasons on one GPU rest on.
pub(super) struct Reasons<'a> {
    pub(super) wish: &'a TargetGpu,
    pub(super) is_plan: bool,
}

impl Reasons<'_> {
    /// The services on this GPU, each once, in order of their first instance.
    fn services(&self) -> Vec<&str> {
        let of_instances = self.wish.instances.iter().filter_map(|i| i.service.as_deref());
        let mut all: Vec<&str> = Vec::new();
        for service in of_instances.chain(self.wish.services.iter().map(String::as_str)) {
            if !all.contains(&service) {
                all.push(service);
            }
        }
        all
    }

    /// `service a needs`, `services a and b need`.
    fn need(&self, what: &str) -> Option<String> {
        let services = self.services();
        match services.as_slice() {
            [] => None,
            [one] => Some(format!("service {one} needs {what}")),
            [first @ .., last] => Some(format!("services {} and {last} need {what}", first.join(", "))),
        }
    }

    pub(super) fn mode(&self, is_on: bool) -> String {
        let what = if is_on { "MIG instances" } else { "the whole board" };
        self.need(what).unwrap_or_else(|| format!("it was {} before", if is_on { "on" } else { "off" }))
    }

    pub(super) fn persistence(&self, is_on: bool, is_lost: bool) -> String {
        match (is_on, is_lost) {
            (true, true) => "the reset may turn it off".to_owned(),
            (true, false) if self.is_plan => "a locked clock is lost without it".to_owned(),
            (true | false, _) => "as before".to_owned(),
        }
    }

    /// `over` is what comes in its place.
    pub(super) fn destroy(&self, instance: &ObservedInstance, over: Option<(&str, u32)>) -> String {
        match over {
            Some((profile, start)) if (profile, start) == (&*instance.profile, instance.start) => {
                "its compute instances leave part of it unused".to_owned()
            }
            Some((profile, start)) => format!("in the way of {profile} at slice {start}"),
            None if self.is_plan => "no service needs it any more".to_owned(),
            None if self.wish.instances.iter().any(|wish| wish.is_fixed) => {
                "it was not there before".to_owned()
            }
            None => "nothing is to be there".to_owned(),
        }
    }

    pub(super) fn create(&self, wish: &TargetInstance, is_repair: bool) -> String {
        let why = match &wish.service {
            Some(service) => format!("service {service} needs it"),
            None => "it was there before".to_owned(),
        };
        if is_repair { format!("{why}; its compute instance is missing") } else { why }
    }

    pub(super) fn lock(&self) -> String {
        self.need("this clock").unwrap_or_else(|| "as before".to_owned())
    }

    pub(super) fn unlock(&self) -> String {
        if self.is_plan { "no service needs a clock of its own any more" } else { "as before" }.to_owned()
    }
}

/// Why a mode is asked for that is there already.
pub(super) fn takes_back(pending: bool) -> String {
    format!("it would be turned {} at the next reset", if pending { "on" } else { "off" })
}
