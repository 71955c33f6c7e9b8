//! A plan's nodes and this host → which of them it is.

use crate::exit::Stop;
use ent_plan::plan::Plan;

/// The nodes of a plan, in its order.
pub(crate) fn of_plan(plan: &Plan) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let all = plan.gpus.iter().map(|gpu| &gpu.node).chain(plan.unused.iter().map(|unused| &unused.node));
    for name in all {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Which node this machine is: the one asked for, the only one, or the one with the host's name.
///
/// # Errors
/// With the names to choose from, when it is none of these.
pub(crate) fn this_node(names: &[String], asked: Option<&str>) -> Result<String, Stop> {
    choose(names, asked, &host())
}

fn choose(names: &[String], asked: Option<&str>, host: &str) -> Result<String, Stop> {
    let refuse = |message: String| Stop::Refused {
        code: "unknown-node",
        message,
        help: Some(match names {
            [] => "plan again: a plan has at least one node".to_owned(),
            _ => format!("name this machine's node with `--node`; one of: {}", names.join(", ")),
        }),
    };
    if let Some(asked) = asked {
        return match names.iter().find(|name| *name == asked) {
            Some(name) => Ok(name.clone()),
            None => Err(refuse(format!("there is no node `{asked}`"))),
        };
    }
    if let [only] = names {
        return Ok(only.clone());
    }
    let short = host.split('.').next().unwrap_or_default();
    let is_host = |name: &&String| !host.is_empty() && (name.as_str() == host || name.as_str() == short);
    names.iter().find(is_host).cloned().ok_or_else(|| {
        refuse(match host {
            "" => "it is not known which node this machine is".to_owned(),
            host => format!("it is not known which node this machine is; none is called `{host}`"),
        })
    })
}

/// The host's name; empty where the system does not say.
fn host() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let name = read("/proc/sys/kernel/hostname");
    if name.is_empty() { read("/etc/hostname") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_is_asked_for_or_the_only_one_or_the_hosts_or_refused_with_all_names() {
        let names = ["gpu-1".to_owned(), "gpu-2".to_owned()];
        let chosen = |names: &[String], asked, host| choose(names, asked, host).ok();
        assert_eq!(chosen(&names, Some("gpu-2"), "gpu-1").as_deref(), Some("gpu-2"));
        assert_eq!(chosen(&names[..1], None, "elsewhere").as_deref(), Some("gpu-1"));
        assert_eq!(chosen(&names, None, "gpu-2.example.org").as_deref(), Some("gpu-2"));
        for (asked, host) in [(Some("gpu-3"), "gpu-1"), (None, "laptop"), (None, "")] {
            let Err(Stop::Refused { help: Some(help), .. }) = choose(&names, asked, host) else {
                panic!("not refused");
            };
            assert!(help.contains("gpu-1, gpu-2"), "{help}");
        }
        assert!(choose(&[], None, "a").is_err());
    }
}
