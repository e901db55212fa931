//! Bytes of a client. No input may stop the parser, make it consume nothing or too much, or read differently in pieces than as a whole.

#![no_main]

use jetlake_engine::wire::{parse, Operation, ParserLimits, ProtocolViolation, ParserStep};
use libfuzzer_sys::fuzz_target;

/// Lines from this length on may be refused sooner when they come in pieces: how much of a line has come is looked at after each read.
const LIMITS: ParserLimits = ParserLimits {
    control_line_bytes_max: 256,
    payload_bytes_max: 1024,
    headers: true,
};

/// Operations until the first one that is incomplete or refused: how much they took, what they were, and what ended them.
struct Reading<'a> {
    consumed: usize,
    operations: Vec<Operation<'a>>,
    refusal: Option<ProtocolViolation>,
}

fn read(bytes: &[u8]) -> Reading<'_> {
    let mut reading = Reading {
        consumed: 0,
        operations: Vec::new(),
        refusal: None,
    };
    loop {
        let rest = &bytes[reading.consumed..];
        match parse(rest, &LIMITS) {
            ParserStep::Operation {
                operation,
                consumed,
            } => {
                assert!(consumed > 0 && consumed <= rest.len());
                check(&operation);
                reading.consumed += consumed;
                reading.operations.push(operation);
            }
            ParserStep::Incomplete { bytes_needed } => {
                assert!(bytes_needed > rest.len(), "it would be asked again at once");
                return reading;
            }
            ParserStep::Refused(refusal) => {
                reading.refusal = Some(refusal);
                return reading;
            }
        }
    }
}

fn check(operation: &Operation<'_>) {
    match operation {
        Operation::Publish(publish) => {
            assert!(publish.body.len() <= LIMITS.payload_bytes_max);
            assert_eq!(
                publish.header().len() + publish.payload().len(),
                publish.body.len()
            );
            assert!(is_token(publish.subject) && publish.reply.is_none_or(is_token));
        }
        Operation::Subscribe {
            subject,
            queue,
            sid,
        } => {
            assert!(is_token(subject) && is_token(sid) && queue.is_none_or(is_token));
        }
        Operation::Unsubscribe { sid, delivered_max } => {
            assert!(is_token(sid) && *delivered_max != Some(0));
        }
        _ => {}
    }
}

fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && !bytes
            .iter()
            .any(|byte| matches!(byte, b' ' | b'\t' | b'\n'))
}

fuzz_target!(|input: (u16, &[u8])| {
    let (split, bytes) = input;
    let whole = read(bytes);

    let front = read(&bytes[..usize::from(split) % (bytes.len() + 1)]);

    let common = front.operations.len();
    match front.refusal {
        Some(ProtocolViolation::ControlLineTooLong) => {
            assert_eq!(front.operations[..], whole.operations[..common]);
        }
        Some(refusal) => {
            assert_eq!(front.operations, whole.operations);
            assert_eq!(Some(refusal), whole.refusal);
        }
        None => {
            assert_eq!(front.operations[..], whole.operations[..common]);
            let behind = read(&bytes[front.consumed..]);
            assert_eq!(behind.operations[..], whole.operations[common..]);
            assert_eq!(behind.refusal, whole.refusal);
            assert_eq!(front.consumed + behind.consumed, whole.consumed);
        }
    }
});
