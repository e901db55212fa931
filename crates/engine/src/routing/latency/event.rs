//! One latency event, as nats-server writes it.

use serde::Serialize;

use super::measurement::Measurement;
use super::sampling::Headers;
use crate::common::clock;
use crate::common::go_json;
use crate::common::timestamp;
use crate::routing::client_information::ClientInformation;

const EVENT_TYPE: &str = "io.nats.server.metric.v1.service_latency";

/// How a measured request ended.
pub enum Outcome {
    Answered(Box<Answer>),
    /// It has no reply subject.
    BadRequest,
    /// Nobody listens for the answer any more.
    RequesterGone,
    /// Nobody takes requests.
    NoResponder,
    /// The service did not answer in time.
    TimedOut,
}

/// The answer to a request, when it arrives.
pub struct Answer {
    responder: ClientInformation,
    service_ns: i64,
    system_ns: i64,
    total_ns: i64,
}

impl Answer {
    /// An answer that arrived at `arrived_ns`, the time of day.
    pub fn new(measurement: &Measurement, responder: ClientInformation, arrived_ns: i64) -> Self {
        let taken_ns = arrived_ns - measurement.started_ns;
        let system_ns = (clock::system_ns() - arrived_ns).max(0);
        Self {
            service_ns: (taken_ns - responder.round_trip_ns()).max(0),
            total_ns: measurement.requester.round_trip_ns() + taken_ns + system_ns,
            responder,
            system_ns,
        }
    }
}

impl Outcome {
    fn status(&self) -> (u16, &'static str) {
        match self {
            Self::Answered(_) => (200, ""),
            Self::BadRequest => (400, "Bad Request"),
            Self::RequesterGone => (408, "Request Timeout"),
            Self::NoResponder => (503, "Service Unavailable"),
            Self::TimedOut => (504, "Service Timeout"),
        }
    }
}

#[derive(Serialize)]
struct LatencyEvent<'a> {
    r#type: &'static str,
    id: String,
    timestamp: String,
    status: u16,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'static str,
    requestor: &'a ClientInformation,
    #[serde(skip_serializing_if = "Option::is_none")]
    responder: Option<&'a ClientInformation>,
    #[serde(skip_serializing_if = "Headers::is_empty")]
    header: &'a Headers,
    start: String,
    service: i64,
    system: i64,
    total: i64,
}

/// The event that reports how a request ended.
pub fn to_json(measurement: &Measurement, outcome: &Outcome, id: String) -> Vec<u8> {
    let answer = match outcome {
        Outcome::Answered(answer) => Some(answer),
        _ => None,
    };
    let (status, description) = outcome.status();
    let requester = &measurement.requester;
    let event = LatencyEvent {
        r#type: EVENT_TYPE,
        id,
        timestamp: timestamp::text(clock::system_ns()),
        status,
        description,
        requestor: requester,
        responder: answer.map(|answer| &answer.responder),
        header: &measurement.headers,
        start: timestamp::text(measurement.started_ns - requester.round_trip_ns()),
        service: answer.map_or(0, |answer| answer.service_ns),
        system: answer.map_or(0, |answer| answer.system_ns),
        total: answer.map_or(0, |answer| answer.total_ns),
    };
    let mut out = Vec::new();
    go_json::append(&mut out, &event);
    out
}
