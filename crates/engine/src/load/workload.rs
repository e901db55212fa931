//! What the connections of a load do: publish, subscribe, request.
//!
//! Every connection has a thread of its own; all start together, after the subscribers are known to the server.

use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::client::Client;
use super::latency::Samples;
use super::plan::{Figures, Plan, Workload};
use crate::error::EngineError;

/// Bytes handed to one write at full speed.
const BATCH_BYTES: usize = 64 * 1024;

/// A time stamp at the front of a payload.
const STAMP_BYTES: usize = 8;

/// At full speed, one message of this many is timed.
const SAMPLE_EVERY: u64 = 64;

type Outcome = Result<(Samples, Instant), EngineError>;

/// What the connections of one side measured together: from the first that began to the last that ended.
struct Side {
    samples: Samples,
    begun_at: Instant,
    ended_at: Instant,
}

pub fn run(plan: &Plan) -> Result<Figures, EngineError> {
    let plan = Arc::new(plan.clone());
    let epoch = Instant::now();
    let subscribers = match plan.workload {
        Workload::Publish => 0,
        _ => plan.subscribers,
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
                Workload::Request => respond(plan, client),
                _ => receive(plan, client, epoch),
            },
        ));
    }
    let mut senders = Vec::new();
    for number in 0..plan.publishers {
        let client = Client::connect(&plan)?;
        senders.push(spawn(
            &plan,
            &ready,
            client,
            move |plan, client| match plan.workload {
                Workload::Request => request(plan, client, number),
                _ => publish(plan, client, epoch),
            },
        ));
    }
    ready.wait();
    let sent = join(senders)?;
    let received = join(receivers)?;

    let published = plan.messages * plan.publishers as u64;
    let (delivered, end) = match plan.workload {
        Workload::Publish => (0, sent.ended_at),
        Workload::PubSub => (published * subscribers as u64, received.ended_at),
        Workload::Request => (published, sent.ended_at),
    };
    let seconds = end.duration_since(sent.begun_at).as_secs_f64();
    let publishing = sent.ended_at.duration_since(sent.begun_at).as_secs_f64();
    let mut samples = sent.samples;
    samples.merge(received.samples);
    Ok(Figures {
        published,
        delivered,
        seconds,
        publish_rate: published as f64 / publishing,
        deliver_rate: delivered as f64 / seconds,
        latency_us: samples.percentiles(),
    })
}

fn spawn(
    plan: &Arc<Plan>,
    ready: &Arc<Barrier>,
    mut client: Client,
    work: impl FnOnce(&Plan, &mut Client) -> Outcome + Send + 'static,
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

fn subscriber(plan: &Plan) -> Result<Client, EngineError> {
    let mut client = Client::connect(plan)?;
    let queue = match plan.workload {
        Workload::Request => " responders",
        _ => "",
    };
    client.send(format!("SUB {}{queue} 1\r\n", plan.subject).as_bytes())?;
    client.synchronise()?;
    Ok(client)
}

/// One `PUB` of the plan, and where its payload begins.
fn frame(plan: &Plan, reply: Option<&str>) -> (Vec<u8>, usize) {
    let reply = reply.map_or(String::new(), |reply| format!(" {reply}"));
    let mut frame = format!("PUB {}{reply} {}\r\n", plan.subject, plan.payload_bytes).into_bytes();
    let payload_start = frame.len();
    frame.resize(payload_start + plan.payload_bytes, b'.');
    frame.extend_from_slice(b"\r\n");
    (frame, payload_start)
}

fn stamp(frame: &mut [u8], payload_start: usize, payload_bytes: usize, epoch: Instant) {
    if payload_bytes >= STAMP_BYTES {
        let nanos = epoch.elapsed().as_nanos() as u64;
        frame[payload_start..payload_start + STAMP_BYTES].copy_from_slice(&nanos.to_le_bytes());
    }
}

fn age_nanos(body: &[u8], epoch: Instant) -> Option<u64> {
    let stamp: [u8; STAMP_BYTES] = body.get(..STAMP_BYTES)?.try_into().ok()?;
    Some((epoch.elapsed().as_nanos() as u64).saturating_sub(u64::from_le_bytes(stamp)))
}

fn publish(plan: &Plan, client: &mut Client, epoch: Instant) -> Outcome {
    let (mut one, payload_start) = frame(plan, None);
    let batch_messages = if plan.rate > 0 {
        1
    } else {
        (BATCH_BYTES / one.len()).max(1) as u64
    };
    let start = Instant::now();
    let mut batch = Vec::with_capacity(one.len() * batch_messages as usize);
    let mut sent = 0;
    while sent < plan.messages {
        if let Some(interval_nanos) = 1_000_000_000_u64.checked_div(plan.rate) {
            let due = start + Duration::from_nanos(interval_nanos * sent);
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        let count = batch_messages.min(plan.messages - sent);
        stamp(&mut one, payload_start, plan.payload_bytes, epoch);
        batch.clear();
        for _ in 0..count {
            batch.extend_from_slice(&one);
        }
        client.send(&batch)?;
        sent += count;
    }
    client.synchronise()?;
    Ok((Samples::default(), Instant::now()))
}

fn receive(plan: &Plan, client: &mut Client, epoch: Instant) -> Outcome {
    let expected = plan.messages * plan.publishers as u64;
    let every = if plan.rate > 0 { 1 } else { SAMPLE_EVERY };
    let mut samples = Samples::default();
    let mut received = 0u64;
    while received < expected {
        client
            .read(
                |message| {
                    if received % every == 0 {
                        if let Some(nanos) = age_nanos(message.body, epoch) {
                            samples.add(nanos);
                        }
                    }
                    received += 1;
                },
                |_| {},
            )
            .map_err(|error| {
                EngineError::Load(format!(
                    "{received} of {expected} messages arrived, then: {error}"
                ))
            })?;
    }
    Ok((samples, Instant::now()))
}

/// Sends requests one after the other, each when the one before is answered.
fn request(plan: &Plan, client: &mut Client, number: usize) -> Outcome {
    let inbox = format!("_INBOX.bench{}x{number}", std::process::id());
    client.send(format!("SUB {inbox}.* 1\r\n").as_bytes())?;
    client.synchronise()?;
    let (one, _) = frame(plan, Some(&format!("{inbox}.1")));
    let mut samples = Samples::default();
    for _ in 0..plan.messages {
        let sent_at = Instant::now();
        client.send(&one)?;
        let mut answers = 0;
        while answers == 0 {
            client.read(|_| answers += 1, |_| {})?;
        }
        samples.add(sent_at.elapsed().as_nanos() as u64);
    }
    // One message without a reply subject tells the responders that this requester is done.
    client.send(format!("PUB {}.done 0\r\n\r\n", plan.subject).as_bytes())?;
    client.synchronise()?;
    Ok((samples, Instant::now()))
}

/// Answers requests until every requester is done.
fn respond(plan: &Plan, client: &mut Client) -> Outcome {
    client.send(format!("SUB {}.done 2\r\n", plan.subject).as_bytes())?;
    let mut done = 0;
    let mut answers = Vec::new();
    while done < plan.publishers {
        answers.clear();
        client.read(
            |message| match message.reply {
                Some(reply) => {
                    answers.extend_from_slice(b"PUB ");
                    answers.extend_from_slice(reply);
                    answers.extend_from_slice(format!(" {}\r\n", message.body.len()).as_bytes());
                    answers.extend_from_slice(message.body);
                    answers.extend_from_slice(b"\r\n");
                }
                None => done += 1,
            },
            |_| {},
        )?;
        if !answers.is_empty() {
            client.send(&answers)?;
        }
    }
    Ok((Samples::default(), Instant::now()))
}
