//! Publishers at full speed or at a rate, and those who listen.
//!
//! Payloads carry the time at which they were made, so that a receiver knows how old a message is.

use std::thread;
use std::time::{Duration, Instant};

use super::client::Client;
use super::latency::Samples;
use super::plan::LoadPlan;
use super::workload::{LoadOutcome, BATCH_BYTES, SAMPLE_EVERY};
use crate::common::error::EngineError;

/// A time stamp at the front of a payload.
const STAMP_BYTES: usize = 8;

/// One `PUB` of the plan, and where its payload begins.
pub fn frame(plan: &LoadPlan, reply: Option<&str>) -> (Vec<u8>, usize) {
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

pub fn publish(plan: &LoadPlan, client: &mut Client, epoch: Instant) -> LoadOutcome {
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

pub fn receive(plan: &LoadPlan, client: &mut Client, epoch: Instant) -> LoadOutcome {
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
