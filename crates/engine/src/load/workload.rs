//! How a load is run: who connects, when all begin, what they measured together.
//!
//! Every connection has a thread of its own; all start together, after the subscribers are known to the server.

use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::client::Client;
use super::latency::Samples;
use super::plan::{LoadFigures, LoadPlan, Workload};
use super::{consumers_create, direct_get, fetch, publish, push, request, store};
use crate::common::error::EngineError;

/// Bytes handed to one write at full speed.
pub const BATCH_BYTES: usize = 64 * 1024;

/// At full speed, one message of this many is timed.
pub const SAMPLE_EVERY: u64 = 64;

/// How long messages took, and when the connection was done.
pub type LoadOutcome = Result<(Samples, Instant), EngineError>;

/// What one connection does once all have begun.
pub type LoadWork = Box<dyn FnOnce(&LoadPlan, &mut Client) -> LoadOutcome + Send>;

/// What the connections of one side measured together: from the first that began to the last that ended.
struct Side {
    samples: Samples,
    begun_at: Instant,
    ended_at: Instant,
}

pub fn run(plan: &LoadPlan) -> Result<LoadFigures, EngineError> {
    let plan = Arc::new(plan.clone());
    let epoch = Instant::now();
    let subscribers = if plan.workload.has_subscribers() {
        plan.subscribers
    } else {
        0
    };
    let ready = Arc::new(Barrier::new(plan.publishers + subscribers + 1));
    let mut idle = Client::connect(&plan)?;
    for number in 0..plan.idle_subscriptions {
        idle.send(format!("SUB idle.{number} i{number}\r\n").as_bytes())?;
    }
    idle.synchronise()?;

    let mut receivers = Vec::new();
    for _ in 0..subscribers {
        let client = subscriber(&plan)?;
        receivers.push(spawn(
            &plan,
            &ready,
            client,
            move |plan, client| match plan.workload {
                Workload::Request => request::respond(plan, client),
                _ => publish::receive(plan, client, epoch),
            },
        ));
    }
    let mut senders = Vec::new();
    for number in 0..plan.publishers {
        let mut client = Client::connect(&plan)?;
        let work: LoadWork = match plan.workload {
            Workload::Store => store::prepare(&plan, &mut client, number as u64)?,
            Workload::DirectGet => direct_get::prepare(&plan, &mut client, number as u64)?,
            Workload::Fetch => fetch::prepare(&plan, &mut client, number as u64)?,
            Workload::Push => push::prepare(&plan, &mut client, number as u64)?,
            Workload::ConsumersCreate => {
                consumers_create::prepare(&plan, &mut client, number as u64)?
            }
            Workload::Request => {
                Box::new(move |plan, client| request::request(plan, client, number))
            }
            Workload::Publish | Workload::PubSub => {
                Box::new(move |plan, client| publish::publish(plan, client, epoch))
            }
        };
        senders.push(spawn(&plan, &ready, client, work));
    }
    ready.wait();
    let sent = join(senders)?;
    let received = join(receivers)?;

    let published = plan.messages * plan.publishers as u64;
    let (delivered, end) = match plan.workload {
        Workload::Publish => (0, sent.ended_at),
        Workload::PubSub => (published * subscribers as u64, received.ended_at),
        Workload::Request
        | Workload::Store
        | Workload::DirectGet
        | Workload::Fetch
        | Workload::Push
        | Workload::ConsumersCreate => (published, sent.ended_at),
    };
    let seconds = end.duration_since(sent.begun_at).as_secs_f64();
    let publishing = sent.ended_at.duration_since(sent.begun_at).as_secs_f64();
    let mut samples = sent.samples;
    samples.merge(received.samples);
    Ok(LoadFigures {
        published,
        delivered,
        seconds,
        publish_rate: published as f64 / publishing,
        deliver_rate: delivered as f64 / seconds,
        latency_us: samples.percentiles(),
    })
}

fn spawn(
    plan: &Arc<LoadPlan>,
    ready: &Arc<Barrier>,
    mut client: Client,
    work: impl FnOnce(&LoadPlan, &mut Client) -> LoadOutcome + Send + 'static,
) -> JoinHandle<Result<Side, EngineError>> {
    let (plan, ready) = (Arc::clone(plan), Arc::clone(ready));
    thread::spawn(move || {
        ready.wait();
        let begun_at = Instant::now();
        let (samples, ended_at) = work(&plan, &mut client)?;
        Ok(Side {
            samples,
            begun_at,
            ended_at,
        })
    })
}

/// Waits for all threads of one side.
fn join(threads: Vec<JoinHandle<Result<Side, EngineError>>>) -> Result<Side, EngineError> {
    let now = Instant::now();
    let mut all = Side {
        samples: Samples::default(),
        begun_at: now,
        ended_at: now,
    };
    for (index, thread) in threads.into_iter().enumerate() {
        let side = thread
            .join()
            .map_err(|_| EngineError::Load("a load thread broke off".to_owned()))??;
        all.samples.merge(side.samples);
        if index == 0 {
            (all.begun_at, all.ended_at) = (side.begun_at, side.ended_at);
        }
        all.begun_at = all.begun_at.min(side.begun_at);
        all.ended_at = all.ended_at.max(side.ended_at);
    }
    Ok(all)
}

fn subscriber(plan: &LoadPlan) -> Result<Client, EngineError> {
    let mut client = Client::connect(plan)?;
    let queue = match plan.workload {
        Workload::Request => " responders",
        _ => "",
    };
    client.send(format!("SUB {}{queue} 1\r\n", plan.subject).as_bytes())?;
    client.synchronise()?;
    Ok(client)
}
