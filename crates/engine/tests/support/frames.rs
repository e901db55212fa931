//! Input for a server: valid operations, and what becomes of them when bytes are lost, doubled or changed.
//!
//! A `Script` is what one connection sends. Most of its frames are valid or only odd, so that the connection lives long enough to be
//! sent many; the mutations are what this run is about.

use super::random::Random;

/// What one connection sends.
pub struct Script {
    pub bytes: Vec<u8>,
    /// Where each frame begins.
    pub frames: Vec<usize>,
    /// Where the writes are split; empty sends all in one.
    pub splits: Vec<usize>,
    /// Close without reading the answers, by a reset.
    pub abrupt: bool,
}

/// Frames of one connection at most; a mutation usually ends it earlier.
const FRAMES_PER_SCRIPT_MAX: usize = 48;

/// The share of frames that are mutated, in percent.
const MUTATED_PERCENT: usize = 12;

const SUBJECTS: [&[u8]; 20] = [
    b"probe.a",
    b"probe.b.c",
    b"probe.*",
    b"probe.>",
    b"probe.*.c",
    b"a",
    b">",
    b"*",
    b"a..b",
    b".a",
    b"a.",
    b"probe.>.c",
    b"foo*bar.x>",
    b"_INBOX.x.y",
    b"_GR_.reserved",
    b"$NRG.reserved",
    b"$SYS.REQ.SERVER.PING",
    b"$JS.API.INFO",
    b"1.2.3.4.5.6.7.8.9.10.11.12",
    b"\xc3\xa9\xff.\x01",
];
const REPLIES: [&[u8]; 6] = [
    b"_INBOX.x.y",
    b"r",
    b"_R_.x",
    b"$JS.ACK.a.b",
    b"_GR_.r",
    b"a..b",
];
const QUEUES: [&[u8]; 4] = [b"workers", b"_sys_", b"q.*", b"\xff"];
const SIDS: [&[u8]; 8] = [
    b"1",
    b"2",
    b"3",
    b"44",
    b"x",
    b"999999999999",
    b"sid-5",
    b"\x7f",
];
const SIZES: [&[u8]; 18] = [
    b"0",
    b"1",
    b"7",
    b"008",
    b"65536",
    b"65537",
    b"1048576",
    b"1048577",
    b"999999999",
    b"1234567890",
    b"99999999999999999999",
    b"-1",
    b"+5",
    b"0x10",
    b"1e3",
    b"5.",
    b"\xd9\xa3",
    b"size",
];
const NAMES: [&[u8]; 15] = [
    b"PUB",
    b"HPUB",
    b"SUB",
    b"UNSUB",
    b"PING",
    b"PONG",
    b"CONNECT",
    b"INFO",
    b"+OK",
    b"-ERR",
    b"MSG",
    b"LS+",
    b"RS-",
    b"A+",
    b"GET / HTTP/1.1",
];

/// Makes the script of one connection.
pub fn script(random: &mut Random) -> Script {
    let mut bytes = Vec::new();
    let mut frames = Vec::new();
    if random.percent(4) {
        frames.push(0);
        let count = random.between(1, 600);
        bytes = random.bytes(count);
    } else {
        if random.percent(70) {
            frames.push(0);
            bytes.extend_from_slice(&connect(random));
        }
        for _ in 0..random.between(1, FRAMES_PER_SCRIPT_MAX) {
            frames.push(bytes.len());
            let mut frame = operation(random);
            if random.percent(MUTATED_PERCENT) {
                mutate(random, &mut frame);
            }
            bytes.extend_from_slice(&frame);
        }
        // Its answer shows that everything before was dealt with, unless something before swallows or ends it.
        bytes.extend_from_slice(b"PING\r\n");
    }
    let mut splits = Vec::new();
    if random.percent(25) {
        splits = (0..random.between(1, 6))
            .map(|_| random.below(bytes.len() + 1))
            .collect();
        splits.sort_unstable();
    }
    Script {
        bytes,
        frames,
        splits,
        abrupt: random.percent(3),
    }
}

/// One valid operation. Some are refused, but none breaks the protocol.
fn operation(random: &mut Random) -> Vec<u8> {
    match random.below(20) {
        0..=6 => publish(random, false),
        7..=8 => publish(random, true),
        9..=12 => {
            let mut line = [&b"SUB "[..], random.pick(&SUBJECTS)].concat();
            if random.percent(25) {
                line = [&line[..], b" ", random.pick(&QUEUES)].concat();
            }
            [&line[..], b" ", random.pick(&SIDS), b"\r\n"].concat()
        }
        13..=14 => {
            let maximum =
                random.pick(&[&b""[..], b" 0", b" 1", b" 5", b" 999999999", b" x", b" -1"]);
            [&b"UNSUB "[..], random.pick(&SIDS), maximum, b"\r\n"].concat()
        }
        15..=16 => random
            .pick(&[
                &b"PING\r\n"[..],
                b"ping\n",
                b"PING and more\r\n",
                b"PiNg \t\r\n",
            ])
            .to_vec(),
        17 => random
            .pick(&[&b"PONG\r\n"[..], b"pong\n", b"+OK\r\n", b"+ok or not\r\n"])
            .to_vec(),
        18 => b"INFO {\"server_id\":\"x\",\"port\":1}\r\n".to_vec(),
        _ => connect(random),
    }
}

fn publish(random: &mut Random, with_headers: bool) -> Vec<u8> {
    let length = match random.below(60) {
        0 => 5_000,
        1 => 65_536,
        2 => 66_000,
        _ => random.below(40),
    };
    let body: Vec<u8> = if random.percent(20) {
        random.bytes(length)
    } else {
        vec![b'x'; length]
    };
    let mut line = [
        if with_headers { &b"HPUB "[..] } else { b"PUB " },
        random.pick(&SUBJECTS),
    ]
    .concat();
    if random.percent(25) {
        line = [&line[..], b" ", random.pick(&REPLIES)].concat();
    }
    let header: &[u8] = if with_headers {
        b"NATS/1.0\r\nKey: value\r\n\r\n"
    } else {
        b""
    };
    let sizes = if with_headers {
        format!(" {} {}\r\n", header.len(), header.len() + length)
    } else {
        format!(" {length}\r\n")
    };
    [&line[..], sizes.as_bytes(), header, &body, b"\r\n"].concat()
}

/// CONNECT with every option that changes answers, so that a second one does not depend on the first.
fn connect(random: &mut Random) -> Vec<u8> {
    let headers = random.percent(70);
    let mut options = format!(
        "{{\"verbose\":{},\"pedantic\":{},\"echo\":{},\"headers\":{headers},\"no_responders\":{},\"protocol\":{}",
        random.percent(40),
        random.percent(40),
        random.percent(80),
        headers && random.percent(50),
        random.below(2),
    );
    options += match random.below(12) {
        0 => ",\"USER\":\"stranger\",\"pass\":\"x\"",
        1 => ",\"name\":\"\\u00e9\\n\",\"lang\":\"test\",\"unknown\":[1,{\"a\":null}]",
        _ => ",\"user\":\"friend\",\"pass\":\"x\"",
    };
    if random.percent(3) {
        options += random.pick(&[
            ",\"protocol\":2",
            ",\"verbose\":1",
            ",\"name\":5",
            ",\"account\":\"other\"",
            ",\"new_account\":true",
            ",\"headers\":false,\"no_responders\":true",
            ",",
            "}{",
        ]);
    }
    format!("CONNECT {options}}}\r\n").into_bytes()
}

fn mutate(random: &mut Random, frame: &mut Vec<u8>) {
    match random.below(16) {
        0 => {
            let position = random.below(frame.len());
            frame[position] ^= 1 << random.below(8);
        }
        1 => {
            let position = random.below(frame.len());
            frame[position] = random.next() as u8;
        }
        2 => change_tokens(random, frame, |tokens, position, _| {
            drop(tokens.remove(position))
        }),
        3 => change_tokens(random, frame, |tokens, position, _| {
            tokens.insert(position, tokens[position].clone())
        }),
        4 | 5 => change_tokens(random, frame, |tokens, _, random| {
            if let Some(last) = tokens.last_mut() {
                *last = random.pick(&SIZES).to_vec();
            }
        }),
        6 => change_tokens(random, frame, |tokens, position, random| {
            tokens[position] = random.pick(&SIZES).to_vec()
        }),
        7 => {
            let position = random.below(frame.len() + 1);
            frame.insert(
                position,
                *random.pick(&[&0u8, &1, &8, &9, &10, &13, &27, &32, &127, &255]),
            );
        }
        8 => change_tokens(random, frame, |tokens, position, random| {
            // Just within the limit of a line, just beyond, and far beyond.
            let count = *random.pick(&[&4_060, &4_085, &4_096, &4_097, &5_000, &20_000]);
            tokens[position] = vec![b'y'; count];
        }),
        9 => frame.truncate(random.below(frame.len())),
        10 => {
            let count = random.between(1, 40);
            *frame = random.bytes(count);
        }
        11 => replace_line_end(random, frame),
        12 => frame
            .iter_mut()
            .take(5)
            .for_each(|byte| *byte ^= if byte.is_ascii_alphabetic() { 0x20 } else { 0 }),
        13 => {
            let blanks = random.pick(&[
                &b" "[..],
                b"\t",
                b"  \t ",
                b"                                ",
            ]);
            let position = frame.iter().position(|byte| *byte == b' ').unwrap_or(0);
            frame.splice(position..position, blanks.iter().copied());
        }
        14 => {
            let blank = *random.pick(&[&b' ', &b'\t', &b'\r', &b'\n', &0]);
            frame.insert(0, blank);
        }
        _ => change_tokens(random, frame, |tokens, _, random| {
            tokens[0] = random.pick(&NAMES).to_vec()
        }),
    }
}

/// Splits the first line at its blanks, lets `change` work on the tokens, and puts them together again.
fn change_tokens(
    random: &mut Random,
    frame: &mut Vec<u8>,
    change: impl FnOnce(&mut Vec<Vec<u8>>, usize, &mut Random),
) {
    let line_end = frame
        .iter()
        .position(|byte| matches!(byte, b'\r' | b'\n'))
        .unwrap_or(frame.len());
    let rest = frame.split_off(line_end);
    let mut tokens: Vec<Vec<u8>> = frame
        .split(|byte| *byte == b' ')
        .map(<[u8]>::to_vec)
        .collect();
    let position = random.below(tokens.len());
    change(&mut tokens, position, random);
    *frame = tokens.join(&b' ');
    frame.extend_from_slice(&rest);
}

/// Makes the first or the last CR LF something else.
fn replace_line_end(random: &mut Random, frame: &mut Vec<u8>) {
    let found = if random.percent(50) {
        frame.windows(2).position(|pair| pair == b"\r\n")
    } else {
        frame.windows(2).rposition(|pair| pair == b"\r\n")
    };
    let Some(position) = found else { return };
    let other = random.pick(&[
        &b"\n"[..],
        b"\r",
        b"",
        b"\r\r\n",
        b"\n\n",
        b" \r\n",
        b"\r\n\r\n",
        b"\r\0\n",
    ]);
    frame.splice(position..position + 2, other.iter().copied());
}
