//! What a right server answers to the bytes of one client, from the description of the protocol and not from the engine's parser.
//!
//! It reads a whole script at once and says line by line what must come back, messages aside, and whether the server closes. Where the
//! protocol leaves the answer open it gives up (`certain` turns false): from there on the answers need only be ones a server may give.

mod connect;
mod text;

use std::collections::HashSet;
use std::fmt;

use serde_json::Value;

use text::{begins, is_literal, is_reserved_reply, is_valid, size, tokens};

/// The limits of the server that is asked.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    pub auth_required: bool,
    pub control_line_bytes_max: usize,
    pub payload_bytes_max: usize,
    /// For a client that has not said CONNECT.
    pub unconnected_payload_bytes_max: usize,
    pub subscriptions_max: usize,
    pub subscription_tokens_max: usize,
}

/// The user that a server with authentication lets in.
pub const ADMITTED_USER: &str = "friend";

/// Said about a message whose subject is not one subject, to clients that asked for that.
pub const ODD_SUBJECT_ERROR: &[u8] = b"-ERR 'Invalid Publish Subject'";

#[derive(Clone, PartialEq, Eq)]
pub enum Expected {
    Line(Vec<u8>),
    /// A line that begins so: its end quotes bytes that are not printable.
    Begins(Vec<u8>),
}

impl fmt::Debug for Expected {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, end) = match self {
            Self::Line(line) => (line, ""),
            Self::Begins(line) => (line, "..."),
        };
        write!(formatter, "{}{end}", line.escape_ascii())
    }
}

#[derive(Debug)]
pub struct Judgement {
    pub answers: Vec<Expected>,
    /// The server ends the connection after these answers.
    pub closes: bool,
    pub certain: bool,
    /// Where reading stopped: the beginning of the refused or unfinished operation.
    pub position: usize,
}

impl Judgement {
    /// For the reference server, which says it again when the body of a message with an odd subject comes in several pieces.
    pub fn join_repeats(&mut self) {
        self.answers.dedup_by(|next, one| {
            matches!(next, Expected::Line(line) if line == ODD_SUBJECT_ERROR) && next == one
        });
    }
}

/// What follows one operation.
enum Next {
    Go,
    /// The rest of the script is the beginning of an operation.
    Unfinished,
    Close,
    Unsure,
}

#[derive(Clone)]
struct Options {
    verbose: bool,
    pedantic: bool,
    headers: bool,
    protocol: i64,
}

struct Oracle<'a> {
    script: &'a [u8],
    position: usize,
    rules: Rules,
    options: Options,
    connected: bool,
    /// The first PONG after CONNECT brings INFO with it, to clients of protocol 1, and none after it does.
    first_pong_sent: bool,
    subscriptions: HashSet<Vec<u8>>,
    /// Subscriptions with a number of messages left: what others publish decides when they end.
    perhaps_ended: HashSet<Vec<u8>>,
    answers: Vec<Expected>,
}

pub fn judge(script: &[u8], rules: Rules) -> Judgement {
    let mut oracle = Oracle {
        script,
        position: 0,
        rules,
        options: Options {
            verbose: true,
            pedantic: true,
            headers: false,
            protocol: 0,
        },
        connected: false,
        first_pong_sent: false,
        subscriptions: HashSet::new(),
        perhaps_ended: HashSet::new(),
        answers: vec![line("INFO")],
    };
    let (closes, certain) = loop {
        match oracle.operation() {
            Next::Go => {}
            Next::Unfinished => break (false, true),
            Next::Close => break (true, true),
            Next::Unsure => break (false, false),
        }
    };
    Judgement {
        answers: oracle.answers,
        closes,
        certain,
        position: oracle.position,
    }
}

fn line(text: &str) -> Expected {
    Expected::Line(text.as_bytes().to_vec())
}

/// Blanks before the arguments and junk after a PING do not count against the limit of a line, but whether a server reads
/// on through more of them than this depends on where its reads fell.
const BLANKS_CERTAIN_MAX: usize = 1_000;

const NAMES: [&str; 10] = [
    "PUB", "HPUB", "SUB", "UNSUB", "PING", "PONG", "CONNECT", "+OK", "-ERR", "INFO",
];

impl<'a> Oracle<'a> {
    fn operation(&mut self) -> Next {
        let rest = &self.script[self.position..];
        let Some(first) = rest.first() else {
            return Next::Unfinished;
        };
        if self.rules.auth_required && !self.connected && !first.eq_ignore_ascii_case(&b'C') {
            return self.refuse("Authorization Violation");
        }
        let Some(name) = NAMES.into_iter().find(|name| begins(rest, name)) else {
            return self.refuse("Unknown Protocol Operation");
        };
        if rest.len() < name.len() {
            return Next::Unfinished;
        }
        let after_name = &rest[name.len()..];
        if matches!(name, "PUB" | "HPUB" | "SUB" | "UNSUB" | "-ERR" | "INFO") {
            match after_name.first() {
                None => return Next::Unfinished,
                Some(b' ' | b'\t') => {}
                // The reference server takes INFO without arguments for broken JSON, others for an unknown operation.
                Some(_) if name == "INFO" => return Next::Unsure,
                Some(_) => return self.refuse("Unknown Protocol Operation"),
            }
        }
        let bare = matches!(name, "PING" | "PONG" | "+OK");
        let is_blank = |byte: &&u8| !bare && matches!(byte, b' ' | b'\t');
        let blanks = after_name.iter().take_while(is_blank).count();
        let text = &after_name[blanks..];
        let line_end = text.iter().position(|byte| *byte == b'\n');
        let arguments = &text[..line_end.unwrap_or(text.len())];
        let arguments = arguments.strip_suffix(b"\r").unwrap_or(arguments);
        let too_long = arguments.len() > self.rules.control_line_bytes_max;
        if blanks > BLANKS_CERTAIN_MAX || bare && too_long {
            return Next::Unsure;
        }
        if too_long {
            return self.refuse("maximum control line exceeded");
        }
        let Some(line_end) = line_end else {
            return Next::Unfinished;
        };
        if !bare && (line_end == 0 || arguments.contains(&b'\r')) {
            // The reference server reads on beyond an empty line, and cuts an argument off after a stray CR.
            return Next::Unsure;
        }
        let line_bytes = name.len() + blanks + line_end + 1;
        let next = self.perform(name, arguments, line_bytes);
        if matches!(next, Next::Go) && !matches!(name, "PUB" | "HPUB") {
            self.position += line_bytes;
        }
        next
    }

    fn perform(&mut self, name: &str, arguments: &[u8], line_bytes: usize) -> Next {
        match name {
            "PUB" | "HPUB" => self.publish(name == "HPUB", arguments, line_bytes),
            "SUB" => self.subscribe(arguments),
            "UNSUB" => self.unsubscribe(arguments),
            "CONNECT" => self.connect(arguments),
            "PING" => {
                self.answers.push(line("PONG"));
                if self.connected && !self.first_pong_sent {
                    self.first_pong_sent = true;
                    self.answers
                        .extend((self.options.protocol == 1).then(|| line("INFO")));
                }
                Next::Go
            }
            "INFO" => match serde_json::from_str::<Value>(&String::from_utf8_lossy(arguments)) {
                Err(_) => Next::Close,
                // The known members are there with their types; what others would do is not said.
                Ok(value) if value["server_id"].is_string() && value["port"].is_u64() => Next::Go,
                Ok(_) => Next::Unsure,
            },
            "-ERR" => Next::Close,
            _ => Next::Go,
        }
    }

    fn publish(&mut self, with_headers: bool, arguments: &[u8], line_bytes: usize) -> Next {
        let tokens = tokens(arguments);
        let sizes = if with_headers { 2 } else { 1 };
        if with_headers && !self.options.headers || !(sizes + 1..=sizes + 2).contains(&tokens.len())
        {
            return Next::Close;
        }
        let (names, size_tokens) = tokens.split_at(tokens.len() - sizes);
        let Some(numbers) = size_tokens
            .iter()
            .map(|token| size(token))
            .collect::<Option<Vec<usize>>>()
        else {
            return Next::Close;
        };
        let total = *numbers.last().expect("there is at least one size");
        if with_headers && numbers[0] > total {
            return Next::Close;
        }
        let payload_bytes_max = if self.connected {
            self.rules.payload_bytes_max
        } else {
            self.rules
                .payload_bytes_max
                .min(self.rules.unconnected_payload_bytes_max)
        };
        if total > payload_bytes_max {
            return self.refuse("Maximum Payload Violation");
        }
        let odd_subject = self.options.pedantic && !is_literal(names[0]);
        let body_end = self.position + line_bytes + total;
        let behind = self.script.get(body_end..).unwrap_or_default();
        if odd_subject {
            // Said as soon as the line is there, whatever becomes of the body.
            self.answers
                .push(Expected::Line(ODD_SUBJECT_ERROR.to_vec()));
        }
        if !behind.starts_with(b"\r\n") {
            return if behind.is_empty() || behind == b"\r" {
                Next::Unfinished
            } else {
                self.refuse("Unknown Protocol Operation")
            };
        }
        if names[0].starts_with(b"_GR_.") || names[0].starts_with(b"$NRG.") {
            self.deny("Publish to", names[0], "");
        } else if let Some(reply) = names.get(1).filter(|reply| is_reserved_reply(reply)) {
            self.deny("Publish with Reply of", reply, "");
        } else {
            self.acknowledge();
        }
        self.position = body_end + 2;
        Next::Go
    }

    fn subscribe(&mut self, arguments: &[u8]) -> Next {
        let tokens = tokens(arguments);
        if !(2..=3).contains(&tokens.len()) {
            return Next::Close;
        }
        let (subject, sid) = (tokens[0], tokens[tokens.len() - 1]);
        let count_max = self.rules.subscriptions_max;
        if tokens.len() == 3 && tokens[1] == b"_sys_" {
            self.deny("Subscription to", subject, " using queue \"_sys_\"");
        } else if subject.split(|byte| *byte == b'.').count() > self.rules.subscription_tokens_max {
            self.deny("Subscription to", subject, ", too many tokens");
        } else if self.subscriptions.len() >= count_max {
            self.say_error("maximum subscriptions exceeded");
        } else if self.subscriptions.len() + self.perhaps_ended.len() >= count_max
            || !is_valid(subject) && self.perhaps_ended.contains(sid)
        {
            return Next::Unsure;
        } else if !is_valid(subject) && !self.subscriptions.contains(sid) {
            self.say_error("Invalid Subject");
        } else {
            if !self.perhaps_ended.contains(sid) {
                self.subscriptions.insert(sid.to_vec());
            }
            self.acknowledge();
        }
        Next::Go
    }

    fn unsubscribe(&mut self, arguments: &[u8]) -> Next {
        let tokens = tokens(arguments);
        if !(1..=2).contains(&tokens.len()) {
            return Next::Close;
        }
        let known = self.subscriptions.remove(tokens[0]) | self.perhaps_ended.remove(tokens[0]);
        if known && tokens.get(1).and_then(|token| size(token)).unwrap_or(0) > 0 {
            self.perhaps_ended.insert(tokens[0].to_vec());
        }
        self.acknowledge();
        Next::Go
    }

    fn acknowledge(&mut self) {
        if self.options.verbose {
            self.answers.push(line("+OK"));
        }
    }

    fn say_error(&mut self, text: &str) {
        self.answers.push(line(&format!("-ERR '{text}'")));
    }

    fn refuse(&mut self, text: &str) -> Next {
        self.say_error(text);
        Next::Close
    }

    /// A violation of permissions, which quotes the subject.
    fn deny(&mut self, what: &str, subject: &[u8], behind: &str) {
        let begin = format!("-ERR 'Permissions Violation for {what} \"");
        let plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        self.answers.push(if subject.iter().all(plain) {
            line(&format!(
                "{begin}{}\"{behind}'",
                String::from_utf8_lossy(subject)
            ))
        } else {
            Expected::Begins(begin.into_bytes())
        });
    }
}
