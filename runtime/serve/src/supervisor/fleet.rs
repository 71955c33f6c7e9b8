//! All processes of a deployment: started, looked at, ended together.

use super::job::{Job, Program, Seen};
use super::launch::{Key, folders};
use super::log::Log;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// All processes that are to be there.
#[derive(Debug)]
pub(super) struct Fleet {
    jobs: Mutex<BTreeMap<Key, Job>>,
    grace: Duration,
    log: Arc<Log>,
}

impl Fleet {
    pub(super) fn new(grace: Duration, log: Arc<Log>) -> Self {
        Self { jobs: Mutex::default(), grace, log }
    }

    /// Starts those that are not there. Needs a runtime.
    pub(super) fn start(&self, programs: BTreeMap<Key, Program>) {
        let mut jobs = self.jobs.lock();
        for (key, program) in programs {
            jobs.entry(key).or_insert_with(|| {
                for folder in folders(&program) {
                    if let Err(error) = std::fs::create_dir_all(folder) {
                        self.log.line(format_args!("cannot create `{}`: {error}", folder.display()));
                    }
                }
                Job::start(program, self.grace, Arc::clone(&self.log))
            });
        }
    }

    /// Those of them that are there.
    pub(super) fn keys(&self) -> Vec<Key> {
        self.jobs.lock().keys().cloned().collect()
    }

    /// Somebody else is about to tell these to end.
    pub(super) fn last(&self, keys: &[Key]) {
        let jobs = self.jobs.lock();
        keys.iter().filter_map(|key| jobs.get(key)).for_each(Job::last);
    }

    /// These are wanted after all.
    pub(super) fn wanted(&self, keys: &[Key]) {
        let jobs = self.jobs.lock();
        keys.iter().filter_map(|key| jobs.get(key)).for_each(Job::wanted);
    }

    /// Ends these, and returns when they are gone.
    pub(super) async fn end(&self, keys: &[Key]) {
        let ending: Vec<Job> = {
            let mut jobs = self.jobs.lock();
            keys.iter().filter_map(|key| jobs.remove(key)).collect()
        };
        // All at once, and then each is waited for.
        ending.iter().for_each(Job::end);
        for job in ending {
            job.ended().await;
        }
    }

    /// What is known of each.
    pub(super) fn seen(&self) -> BTreeMap<Key, Seen> {
        self.jobs.lock().iter().map(|(key, job)| (key.clone(), job.seen())).collect()
    }
}
