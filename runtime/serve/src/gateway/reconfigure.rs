//! One deployment in the place of another, under load.

use super::ReconfigureError;
use super::front::Front;
use super::replica::Replica;
use crate::deployment::{self, Deployment};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often something is looked at that nobody announces.
const GLANCE: Duration = Duration::from_millis(2);

/// How often queues are looked at for what has waited too long.
const SWEEP: Duration = Duration::from_millis(50);

/// Puts the first deployment in.
pub(crate) fn install(front: &Front, deployment: &Deployment) -> io::Result<()> {
    for service in &deployment.services {
        for replica in &service.replicas {
            front.make(service, replica)?;
        }
    }
    front.put(deployment, |service, replica| find(front, service, replica)).map(|_| ())
}

fn find(front: &Front, service: &deployment::Service, plan: &deployment::Replica) -> Option<Arc<Replica>> {
    front.replica(&service.name, &plan.id, plan.epoch).filter(|r| r.is(plan, &service.model))
}

/// Waits until replicas have all their workers.
pub(crate) async fn ready(replicas: &[Arc<Replica>], patience: Duration) -> Result<(), ReconfigureError> {
    let until = Instant::now() + patience;
    loop {
        let missing: Vec<String> =
            replicas.iter().filter(|r| !r.is_complete()).map(|r| r.id.clone()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(ReconfigureError::NotReady { replicas: missing, waited: patience });
        }
        sleep(GLANCE).await;
    }
}

/// Puts another deployment in the place of the present one.
pub(crate) async fn reconfigure(
    front: &Front,
    deployment: &Deployment,
    patience: Duration,
) -> Result<(), ReconfigureError> {
    deployment.validate()?;
    // One at a time: each begins with what the one before left.
    let _turn = front.changing.lock().await;
    let table = front.table();
    let present = |service: &deployment::Service, plan: &deployment::Replica| {
        let routes = table.services.get(&service.name).into_iter().flat_map(|s| &s.routes);
        routes.map(|r| &r.replica).find(|r| r.is(plan, &service.model)).map(Arc::clone)
    };
    let mut made = Vec::new();
    for service in &deployment.services {
        for plan in service.replicas.iter().filter(|plan| present(service, plan).is_none()) {
            made.push(front.make(service, plan)?);
        }
    }
    if let Err(error) = ready(&made, patience).await {
        for replica in &made {
            replica.close();
            front.forget(replica);
        }
        return Err(error);
    }
    let gone = front.put(deployment, |service, plan| {
        if let Some(replica) = present(service, plan) {
            replica.replan(plan);
            return Some(replica);
        }
        find(front, service, plan)
    })?;
    gone.iter().for_each(|replica| replica.close());
    for replica in gone {
        while replica.is_busy() {
            sleep(GLANCE).await;
        }
        front.forget(&replica);
    }
    Ok(())
}

/// Lets replicas finish what they are at and begin nothing more, so that their workers can end; returns when they
/// have, or after `patience`. What waits in them moves to the other replicas of their services.
pub(crate) async fn rest(front: &Front, ids: &[String], patience: Duration) {
    let until = Instant::now() + patience;
    let mut resting = Vec::new();
    for service in front.table().services.values() {
        let is_one = |replica: &Replica| ids.contains(&replica.id);
        if !service.routes.iter().any(|r| is_one(&r.replica)) {
            continue;
        }
        for route in &service.routes {
            if is_one(&route.replica) {
                route.replica.rest();
                resting.push(Arc::clone(&route.replica));
            } else {
                route.replica.stand_in();
            }
        }
        if service.is_ready() {
            service.routes.iter().filter(|r| is_one(&r.replica)).for_each(|r| r.replica.release());
        }
    }
    while resting.iter().any(|replica| replica.is_busy()) && Instant::now() < until {
        sleep(GLANCE).await;
    }
}

/// Looks after what has waited too long, for as long as the gateway runs.
pub(crate) async fn sweep(front: Arc<Front>) {
    loop {
        sleep(SWEEP).await;
        let absence = front.options.limits.absence_time;
        for service in front.table().services.values() {
            let is_ready = service.is_ready();
            for route in &service.routes {
                if is_ready && !route.replica.is_ready() {
                    route.replica.release();
                }
                route.replica.sweep(absence);
            }
        }
    }
}
