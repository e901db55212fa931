//! Requests and those who answer them.

use std::time::Instant;

use super::client::Client;
use super::latency::Samples;
use super::plan::LoadPlan;
use super::publish::frame;
use super::workload::LoadOutcome;

/// Sends requests one after the other, each when the one before is answered.
pub fn request(plan: &LoadPlan, client: &mut Client, number: usize) -> LoadOutcome {
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
pub fn respond(plan: &LoadPlan, client: &mut Client) -> LoadOutcome {
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
