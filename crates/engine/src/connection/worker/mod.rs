//! A worker thread: polls its sockets, reads, lets sessions work, hands over what they staged.
//!
//! Each turn: wait for events → commands from other threads → one turn of reading per ready connection (`reading`) → what was staged is
//! handed over (`delivery`) → newcomers → deadlines (`maintenance`). Everything shared is touched per read or per turn and not per message.

mod delivery;
mod linking;
mod maintenance;
mod reading;
mod securing;
mod transport;
mod unauthenticated;
mod upgrading;

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use ahash::AHashMap;
use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use delivery::Stall;
use unauthenticated::Unauthenticated;

use crate::common::identity;
use crate::common::random::Random;
use crate::config::connection_type::ConnectionType;
use crate::config::options::{CLOSE_DEADLINE_MS, PAUSE_MS, READ_BUFFER_BYTES};
use crate::connection::listener::{
    Listener, LEAF_LISTENER_TOKEN, LISTENER_TOKEN, WEBSOCKET_LISTENER_TOKEN,
};
use crate::connection::session::{Context, Decision, Next, Session};
use crate::connection::timers::{ConnectionTimers, PlannedTimer, Timer};
use crate::routing::clients::closed_reason::ClosedReason;
use crate::routing::clients::mailbox::{AcceptedConnection, WorkerCommand};
use crate::routing::router::Router;
use crate::routing::sender::Sender;
use crate::routing::shared::Shared;
use crate::routing::staging::{Followup, Staging};
use crate::transport::outbox::{Flushed, Outbox};
use crate::transport::s2_link::S2Unframing;

use transport::Transport;
use upgrading::WebSocket;

pub const WAKER_TOKEN: Token = Token(usize::MAX - 1);

/// Events taken from the poll at once.
const EVENTS_PER_POLL: usize = 1024;

/// Letters that are read before sockets are looked at again: a message to thousands of receivers is as many commands, each a system call of some microseconds.
const LETTERS_PER_ROUND: usize = 256;

/// An idle worker wakes this often: to check write deadlines, and to release outdated routes.
const SWEEP_MS: u64 = 250;

pub struct Worker {
    index: usize,
    poll: Poll,
    listeners: Vec<Listener>,
    members: AHashMap<usize, WorkerConnection>,
    core: WorkerCore,
    read_buffer: Vec<u8>,
    unauthenticated: Unauthenticated,
    timers: ConnectionTimers,
    /// Letters that are not read yet.
    commands: VecDeque<WorkerCommand>,
    /// Connections with bytes to read.
    ready: VecDeque<usize>,
    /// Publishers that wait for a receiver to catch up.
    stalled: Vec<usize>,
    next_sweep_ms: u64,
    next_deadlines_ms: u64,
}

/// What sessions work with.
struct WorkerCore {
    shared: Arc<Shared>,
    router: Router,
    staging: Staging,
    followups: Vec<Followup>,
    trace_sender: Option<Sender>,
    now_ms: u64,
}

/// A connection of this worker.
struct WorkerConnection {
    session: Session,
    socket: Arc<TcpStream>,
    transport: Transport,
    /// Of a client that speaks WebSocket.
    websocket: Option<Box<WebSocket>>,
    /// Of a link that is compressed.
    unframing: Option<Box<S2Unframing>>,
    /// What it is counted for among those whom nobody knows; 0 when it is known.
    unauthenticated_bytes: usize,
    /// In `ready` already.
    queued: bool,
    /// The poll has reported that the peer ended its side.
    read_closed: bool,
    stall: Option<Stall>,
    /// `session.input` holds whole operations: the stall came in the middle of a read.
    interrupted: bool,
    /// Set when it is being closed: what comes in is read and dropped.
    closing: Option<ClosedReason>,
    next_ping: PlannedTimer,
    next_expiry: PlannedTimer,
}

impl WorkerConnection {
    fn new(
        session: Session,
        socket: Arc<TcpStream>,
        transport: Transport,
        websocket: Option<Box<WebSocket>>,
    ) -> Self {
        Self {
            session,
            socket,
            transport,
            websocket,
            unframing: None,
            unauthenticated_bytes: 0,
            queued: false,
            read_closed: false,
            stall: None,
            interrupted: false,
            closing: None,
            next_ping: PlannedTimer::default(),
            next_expiry: PlannedTimer::default(),
        }
    }
}

impl Worker {
    pub fn new(index: usize, poll: Poll, listeners: Vec<Listener>, shared: Arc<Shared>) -> Self {
        let seed = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(index as u64 + 1)
            ^ u64::from(std::process::id())
            ^ shared.clock.now_micros();
        let mut staging = Staging::new(index);
        staging.limit_entries(shared.options().max_pending_bytes);
        Self {
            index,
            poll,
            listeners,
            members: AHashMap::new(),
            core: WorkerCore {
                router: Router::new(Arc::clone(&shared), Random::seeded(seed)),
                staging,
                followups: Vec::new(),
                trace_sender: None,
                now_ms: shared.clock.now_ms(),
                shared,
            },
            read_buffer: vec![0; READ_BUFFER_BYTES],
            unauthenticated: Unauthenticated::default(),
            timers: ConnectionTimers::default(),
            commands: VecDeque::new(),
            ready: VecDeque::new(),
            stalled: Vec::new(),
            next_sweep_ms: 0,
            next_deadlines_ms: 0,
        }
    }

    /// Runs until the engine shuts down.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_PER_POLL);
        loop {
            match self.poll.poll(&mut events, Some(self.wait())) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            self.core.shared.events.fail_point("worker");
            self.core.now_ms = self.core.shared.clock.now_ms();
            let mut has_accepted = false;
            for event in &events {
                match event.token() {
                    WAKER_TOKEN => {
                        let commands = self.core.shared.take_commands(self.index);
                        self.commands.extend(commands);
                    }
                    LISTENER_TOKEN | WEBSOCKET_LISTENER_TOKEN | LEAF_LISTENER_TOKEN => {
                        has_accepted = true;
                    }
                    Token(slot) => self.note_event(slot, event),
                }
            }
            if self.read_commands() {
                return Ok(());
            }
            for _ in 0..self.ready.len() {
                let Some(slot) = self.ready.pop_front() else {
                    break;
                };
                self.take_turn(slot);
            }
            self.hand_over(&[]);
            // After those who are here already: a flood must not keep them waiting.
            if has_accepted || self.is_accept_due() {
                self.accept();
            }
            self.retry_stalled();
            self.run_timers();
            self.sweep();
        }
    }

    fn wait(&self) -> Duration {
        if !self.ready.is_empty() || !self.commands.is_empty() {
            return Duration::ZERO;
        }
        if !self.stalled.is_empty() {
            // Receivers of other workers catch up without a word to this one.
            return Duration::from_millis(PAUSE_MS);
        }
        let accept_ms = self
            .listeners
            .iter()
            .filter_map(|listener| listener.retry_in_ms(self.core.now_ms))
            .min();
        let wait_ms = [self.timers.wait_ms(self.core.now_ms), accept_ms]
            .into_iter()
            .flatten()
            .fold(SWEEP_MS, u64::min);
        Duration::from_millis(wait_ms)
    }

    fn note_event(&mut self, slot: usize, event: &mio::event::Event) {
        let Some(member) = self.members.get_mut(&slot) else {
            return;
        };
        if event.is_writable() {
            let flushed = member.session.connection.outbox.writable(self.core.now_ms);
            if flushed != Flushed::Settled {
                let connection = Arc::clone(&member.session.connection);
                self.core.followups.push(Followup {
                    connection,
                    flushed,
                    publisher: None,
                    message_bytes: 0,
                });
                self.follow_up();
            }
        }
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            if let Some(member) = self.members.get_mut(&slot) {
                member.read_closed |= event.is_read_closed() || event.is_error();
            }
            self.make_ready(slot);
        }
    }

    fn make_ready(&mut self, slot: usize) {
        if let Some(member) = self.members.get_mut(&slot) {
            if !member.queued {
                member.queued = true;
                self.ready.push_back(slot);
            }
        }
    }

    /// Returns true when the worker must end.
    fn read_commands(&mut self) -> bool {
        let shared = Arc::clone(&self.core.shared);
        for _ in 0..LETTERS_PER_ROUND {
            let Some(command) = self.commands.pop_front() else {
                break;
            };
            match command {
                WorkerCommand::Accepted(accepted) => self.admit(accepted),
                WorkerCommand::Solicited(solicited) => self.admit_solicited(*solicited),
                WorkerCommand::Flush {
                    slot,
                    connection_id,
                } => {
                    if self.member(slot, connection_id).is_some() {
                        self.flush(slot, Outbox::flush_for_owner);
                    }
                }
                WorkerCommand::Lost {
                    slot,
                    connection_id,
                    reason,
                } => {
                    if self.member(slot, connection_id).is_some() {
                        self.end(slot, reason);
                    }
                }
                WorkerCommand::Close {
                    slot,
                    connection_id,
                    reason,
                } => {
                    let Some(member) = self.members.get_mut(&slot) else {
                        continue;
                    };
                    if member.session.connection.id != connection_id {
                        continue;
                    }
                    match reason {
                        ClosedReason::MaximumConnectionsExceeded => {
                            member.session.refuse_connection(&mut self.core.context());
                        }
                        ClosedReason::DuplicateLeaf => {
                            member.session.say_duplicate(&mut self.core.context());
                        }
                        _ => {}
                    }
                    self.hand_over(&[]);
                    self.begin_close(slot, reason);
                }
                WorkerCommand::Ended {
                    slot,
                    connection_id,
                    subscription,
                } => {
                    if let Some(member) = self.member(slot, connection_id) {
                        member.session.forget_ended(&subscription.sid);
                    }
                }
                WorkerCommand::Verdict {
                    slot,
                    connection_id,
                    verdict,
                } => {
                    let Some(member) = self.members.get_mut(&slot) else {
                        continue;
                    };
                    if member.session.connection.id != connection_id || member.closing.is_some() {
                        continue;
                    }
                    let decision = member.session.decide(verdict, &mut self.core.context());
                    self.hand_over(&[]);
                    match decision {
                        Decision::Ended(Next::Close(reason)) => self.begin_close(slot, reason),
                        Decision::Opened => {
                            self.plan_expiry(slot);
                            self.resume(slot);
                        }
                        Decision::Reviewed => self.plan_expiry(slot),
                        Decision::Ended(_) | Decision::Unasked => {}
                    }
                }
                WorkerCommand::OptionsChanged => {
                    let pending_bytes_max = shared.options().max_pending_bytes;
                    self.core.staging.limit_entries(pending_bytes_max);
                    for member in self.members.values_mut() {
                        member.session.apply_options(&shared);
                    }
                }
                WorkerCommand::Reauthenticate { account } => {
                    for member in self.members.values_mut() {
                        if account.is_none_or(|index| member.session.is_in_account(index)) {
                            member.session.ask_again(&self.core.context());
                        }
                    }
                }
                WorkerCommand::StopAccepting => self.listeners.clear(),
                WorkerCommand::LameDuck => self.announce_lame_duck(),
                WorkerCommand::Shutdown => {
                    self.listeners.clear();
                    self.end_all();
                    return true;
                }
            }
        }
        false
    }

    fn member(&mut self, slot: usize, connection_id: u64) -> Option<&mut WorkerConnection> {
        self.members
            .get_mut(&slot)
            .filter(|member| member.session.connection.id == connection_id)
    }

    fn is_accept_due(&self) -> bool {
        let mut listeners = self.listeners.iter();
        listeners.any(|listener| listener.is_due(self.core.now_ms))
    }

    fn accept(&mut self) {
        let mut own = Vec::new();
        for listener in &mut self.listeners {
            own.extend(listener.accept_some(&self.core.shared, self.index, self.core.now_ms));
        }
        for accepted in own {
            self.admit(accepted);
        }
    }

    /// A new connection of this worker: say INFO and start its clocks, unless it has to be upgraded first.
    fn admit(&mut self, (connection, socket): AcceptedConnection) {
        let slot = connection.slot;
        let shared = &self.core.shared;
        let is_leaf = connection.connection_type().is_leaf();
        let is_internal = connection.connection_type() == ConnectionType::Internal;
        let over_limit =
            !is_leaf && !is_internal && shared.listed_count() > shared.options().max_connections;
        let nonce = if shared.options().nonce || is_leaf {
            identity::nonce().unwrap_or_default()
        } else {
            String::new()
        };
        let session = Session::new(Arc::clone(&connection), shared, nonce);
        let registered = self.poll.registry().register(
            &mut SourceFd(&socket.as_raw_fd()),
            Token(slot),
            Interest::READABLE | Interest::WRITABLE,
        );
        let upgrades = connection.connection_type() == ConnectionType::WebSocket;
        let (transport, websocket) = if upgrades {
            let settings = shared.websocket();
            let tls = settings.as_ref().and_then(|settings| settings.tls.clone());
            (Transport::new(tls), settings.map(WebSocket::awaiting))
        } else if is_leaf {
            (Transport::new(shared.leaf_tls()), None)
        } else if is_internal {
            (Transport::Plain, None)
        } else {
            shared
                .events
                .debug(|| format!("{} - Client connection created", connection.label()));
            (Transport::new(shared.tls()), None)
        };
        let member = WorkerConnection::new(session, socket, transport, websocket);
        self.members.insert(slot, member);
        if registered.is_err() {
            return self.end(slot, ClosedReason::ReadError);
        }
        if upgrades {
            self.await_upgrade(slot);
            return self.expect_login(slot, connection.id);
        }
        let member = self.members.get_mut(&slot).expect("just inserted");
        if member.transport.greets_at_once() {
            member.session.greet(&mut self.core.context());
        }
        if over_limit {
            member.session.refuse_connection(&mut self.core.context());
            self.hand_over(&[]);
            return self.begin_close(slot, ClosedReason::MaximumConnectionsExceeded);
        }
        let carries_messages = member.transport.carries_messages();
        let must_encrypt = member.transport.must_encrypt();
        self.hand_over(&[]);
        if must_encrypt && self.throttle(slot) {
            return;
        }
        if carries_messages {
            self.start_clocks(slot);
        } else {
            self.await_handshake(slot);
        }
        self.expect_login(slot, connection.id);
    }

    fn announce_lame_duck(&mut self) {
        for member in self.members.values() {
            let connection = &member.session.connection;
            if connection.takes_information() {
                let mut information = self.core.shared.information(connection);
                information.ldm = true;
                information.write(self.core.staging.entry(connection).line());
            }
        }
        self.hand_over(&[]);
    }

    /// Lets what is pending leave, then closes: the writing side first, so that a last error line is not lost to a reset.
    fn begin_close(&mut self, slot: usize, reason: ClosedReason) {
        let Some(member) = self.members.get_mut(&slot) else {
            return;
        };
        if member.closing.is_some() {
            return;
        }
        member.closing = Some(reason);
        member.stall = None;
        member.interrupted = false;
        member.session.leave(reason);
        member.session.input.clear();
        let farewell = member.farewell(reason);
        let connection = &member.session.connection;
        if let Some(frame) = farewell {
            // What cannot be sent any more is not missed: the connection ends in any case.
            connection.outbox.queue_framed(frame, self.core.now_ms);
        }
        connection.outbox.end_when_drained(self.core.now_ms);
        let due_ms = self.core.now_ms + CLOSE_DEADLINE_MS;
        self.timers.add(due_ms, slot, connection.id, Timer::Close);
        // A client that is being closed no longer counts as one.
        if member.is_client() {
            self.core.shared.unlist_connection(connection, reason);
        }
        self.make_ready(slot);
    }

    /// The connection is over.
    fn end(&mut self, slot: usize, reason: ClosedReason) {
        let Some(mut member) = self.members.remove(&slot) else {
            return;
        };
        self.forget_unauthenticated(member.unauthenticated_bytes);
        let was_cut_off = member.session.connection.outbox.was_cut_off();
        let reason = match member.closing {
            Some(closing) => closing,
            // The end of the socket is often seen before the command that says why.
            None if was_cut_off => ClosedReason::SlowConsumerPendingBytes,
            None => reason,
        };
        member.session.leave(reason);
        let connection = &member.session.connection;
        connection.outbox.abort();
        // It fails only if it was never registered.
        let _ = self
            .poll
            .registry()
            .deregister(&mut SourceFd(&member.socket.as_raw_fd()));
        if member.is_client() {
            self.core.shared.unlist_connection(connection, reason);
        }
        self.core.shared.forget_connection(connection);
    }

    fn end_all(&mut self) {
        let slots: Vec<usize> = self.members.keys().copied().collect();
        for slot in slots {
            let Some(member) = self.members.get_mut(&slot) else {
                continue;
            };
            let farewell = member.farewell(ClosedReason::ServerShutdown);
            let outbox = &member.session.connection.outbox;
            match farewell {
                Some(frame) => outbox.queue_framed(frame, self.core.now_ms),
                None => outbox.flush(self.core.now_ms),
            };
            self.end(slot, ClosedReason::ServerShutdown);
        }
        self.core
            .shared
            .events
            .debug(|| format!("worker {} ended", self.index));
    }
}

impl WorkerCore {
    fn context(&mut self) -> Context<'_> {
        Context {
            shared: &self.shared,
            router: &mut self.router,
            staging: &mut self.staging,
            trace_sender: &mut self.trace_sender,
            now_ms: self.now_ms,
        }
    }
}
