//! The engine: one listener, its workers, and what they share.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::SystemTime;

use ahash::AHashMap;
use mio::net::TcpStream;
use mio::{Interest, Poll, Waker};
use parking_lot::{Mutex, RwLock};

use crate::clock::Clock;
use crate::config::Options;
use crate::connection::closed_reason::ClosedReason;
use crate::connection::handshake::Information;
use crate::connection::listener::{Listener, LISTENER_TOKEN};
use crate::connection::mailbox::{Letter, Mailbox, Newcomer, Verdict};
use crate::connection::outbox::{Flushed, Outbox};
use crate::connection::tls::{self, Settings as TlsSettings};
use crate::connection::worker::{Worker, WAKER_TOKEN};
use crate::connection::Connection;
use crate::error::EngineError;
use crate::events::{Event, Events, Level};
use crate::identity::{self, KeyPrefix};
use crate::routing::account::{Account, GLOBAL_ACCOUNT};
use crate::routing::subscription::Receiver;
use crate::services::Services;
use crate::statistics::Totals;
use crate::storage::file_system::{FileSystem, RealFileSystem};
use crate::stream::api::Api;
use crate::stream::registry::Streams;
use crate::threads;

/// What all workers see.
pub struct Shared {
    pub clock: Clock,
    pub events: Arc<Events>,
    pub totals: Totals,
    pub started: SystemTime,
    options: RwLock<Arc<Options>>,
    information: RwLock<Information>,
    /// TLS for connections to come; those that are there keep what they began with.
    tls: RwLock<Option<Arc<TlsSettings>>>,
    /// The same for ever, while the rest of INFO may change with a reload.
    server_id: String,
    mailboxes: Vec<Mailbox>,
    accounts: RwLock<Vec<Arc<Account>>>,
    global_account: Arc<Account>,
    connections: Mutex<AHashMap<u64, Arc<Connection>>>,
    connection_count: AtomicUsize,
    next_connection_id: AtomicU64,
    next_event_sequence: AtomicU64,
    slots: Mutex<Slots>,
}

/// Dense numbers for connections, used again when one is gone.
#[derive(Default)]
struct Slots {
    free: Vec<usize>,
    next: usize,
}

pub struct Engine {
    shared: Arc<Shared>,
    address: SocketAddr,
    services: Services,
    streams: OnceLock<Arc<Streams>>,
    workers: Mutex<Vec<Worker>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Engine {
    /// Binds the listener; nothing runs yet.
    pub fn new(options: Options) -> Result<Self, EngineError> {
        Self::listening(options, None)
    }

    /// The same with a socket that listens already, if there is one.
    pub fn listening(options: Options, socket: Option<OwnedFd>) -> Result<Self, EngineError> {
        let system = |what| move |cause| EngineError::System { what, cause };
        let tls = tls::settings(&options)?;
        let mut listener = Listener::bind(&options.host, options.port, socket)?;
        let address = listener.address().map_err(system("listener"))?;
        let mut polls = Vec::new();
        let mut mailboxes = Vec::new();
        for _ in 0..options.worker_count() {
            let poll = Poll::new().map_err(system("poll"))?;
            let waker = Waker::new(poll.registry(), WAKER_TOKEN).map_err(system("waker"))?;
            polls.push(poll);
            mailboxes.push(Mailbox::new(waker));
        }
        polls[0]
            .registry()
            .register(listener.socket(), LISTENER_TOKEN, Interest::READABLE)
            .map_err(system("listener"))?;
        let global_account = Arc::new(Account::new(GLOBAL_ACCOUNT, 0));
        let events = Arc::new(Events::default());
        events.set_levels(options.debug, options.trace);
        let server_id = identity::public_key(KeyPrefix::Server)?;
        let curve_key = identity::public_key(KeyPrefix::Curve)?;
        let clock = match options.manual_clock {
            true => Clock::by_hand(),
            false => Clock::start(),
        };
        let shared = Arc::new(Shared {
            information: RwLock::new(Information::new(&options, address, &server_id, &curve_key)?),
            options: RwLock::new(Arc::new(options)),
            tls: RwLock::new(tls),
            server_id,
            clock,
            events,
            totals: Totals::default(),
            started: SystemTime::now(),
            mailboxes,
            accounts: RwLock::new(vec![Arc::clone(&global_account)]),
            global_account,
            connections: Mutex::default(),
            connection_count: AtomicUsize::new(0),
            next_connection_id: AtomicU64::new(1),
            next_event_sequence: AtomicU64::new(1),
            slots: Mutex::default(),
        });
        let mut listener = Some(listener);
        let workers = polls
            .into_iter()
            .enumerate()
            .map(|(index, poll)| Worker::new(index, poll, listener.take(), Arc::clone(&shared)))
            .collect();
        Ok(Self {
            services: Services::new(Arc::clone(&shared)),
            streams: OnceLock::new(),
            shared,
            address,
            workers: Mutex::new(workers),
            threads: Mutex::default(),
        })
    }

    /// Starts the workers. Calling it again does nothing.
    pub fn start(&self) -> Result<(), EngineError> {
        for (index, worker) in self.workers.lock().drain(..).enumerate() {
            let name = format!("jetlake-worker-{index}");
            let run = move || worker.run().map_err(|error| error.to_string());
            let thread = threads::spawn(&self.shared.events, &name, run).map_err(|cause| {
                EngineError::System {
                    what: "worker thread",
                    cause,
                }
            })?;
            self.threads.lock().push(thread);
        }
        Ok(())
    }

    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Where Python subscribes and publishes.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Serves the streams in a folder; once.
    pub fn serve_streams(
        &self,
        folder: &Path,
        options: &[u8],
    ) -> Result<&Arc<Streams>, EngineError> {
        self.serve_streams_on(Arc::new(RealFileSystem), folder, options)
    }

    /// The same on any disk.
    pub fn serve_streams_on(
        &self,
        file_system: Arc<dyn FileSystem>,
        folder: &Path,
        options: &[u8],
    ) -> Result<&Arc<Streams>, EngineError> {
        let streams = Streams::new(file_system, Arc::clone(&self.shared), folder, options)?;
        if self.streams.set(streams).is_err() {
            return Err(EngineError::Options(
                "streams are served already".to_owned(),
            ));
        }
        self.streams()
    }

    pub fn streams(&self) -> Result<&Arc<Streams>, EngineError> {
        let streams = self.streams.get();
        streams.ok_or_else(|| EngineError::Options("no streams are served".to_owned()))
    }

    /// Hands requests on these subjects to Python, but for those that the engine answers itself.
    pub fn subscribe_api(&self, account: &str, subject: &[u8]) -> Result<u64, EngineError> {
        let streams = self.streams()?;
        self.services
            .subscribe_with(account, subject, None, |service| {
                Receiver::Sink(Api::new(streams, service))
            })
    }

    pub fn server_id(&self) -> &str {
        &self.shared.server_id
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Passes a verdict to the connection that waits for it; false when it is gone.
    pub fn decide(&self, connection_id: u64, verdict: Verdict) -> bool {
        let Some(connection) = self.shared.connection(connection_id) else {
            return false;
        };
        self.shared.send(
            connection.worker,
            Letter::Verdict {
                slot: connection.slot,
                connection_id,
                verdict,
            },
        );
        true
    }

    /// Refuses options that no engine could start with, such as certificates that are none.
    pub fn check(options: &Options) -> Result<(), EngineError> {
        tls::settings(options).map(|_| ())
    }

    /// Puts other options in force. What cannot change while running is refused, and then nothing changes.
    pub fn reload(&self, options: Options) -> Result<(), EngineError> {
        let old = self.shared.options();
        options.check_reload(&old)?;
        let curve_key = self.shared.information.read().xkey.clone();
        let server_id = &self.shared.server_id;
        let information = Information::new(&options, self.address, server_id, &curve_key)?;
        self.shared.set_tls(tls::settings(&options)?);
        self.shared.events.set_levels(options.debug, options.trace);
        *self.shared.information.write() = information;
        *self.shared.options.write() = Arc::new(options);
        self.shared.send_to_all(|| Letter::OptionsChanged);
        let excess = self
            .shared
            .connection_count()
            .saturating_sub(self.shared.options().max_connections);
        for connection in self.shared.connections().iter().rev().take(excess) {
            self.shared
                .close(connection, ClosedReason::MaximumConnectionsExceeded);
        }
        Ok(())
    }

    /// Asks Python again about every client, after users or permissions have changed.
    pub fn reauthenticate(&self) {
        self.shared.send_to_all(|| Letter::Reauthenticate);
    }

    pub fn stop_accepting(&self) {
        self.shared.send(0, Letter::StopAccepting);
    }

    /// Tells every client that takes it that this server will go, and says how many connections there are.
    pub fn announce_lame_duck(&self) -> usize {
        self.shared.send_to_all(|| Letter::LameDuck);
        self.shared.connection_count()
    }

    /// Closes a connection, as an operator asks; false when it is gone.
    pub fn kick(&self, connection_id: u64) -> bool {
        let Some(connection) = self.shared.connection(connection_id) else {
            return false;
        };
        self.shared.close(&connection, ClosedReason::Kicked);
        true
    }

    /// Closes any one connection; false when there is none.
    pub fn close_one_connection(&self) -> bool {
        let Some(connection) = self.shared.any_connection() else {
            return false;
        };
        self.shared.close(&connection, ClosedReason::ServerShutdown);
        true
    }

    /// Sets a clock that is set by hand forward, and sees to what is due by then.
    pub fn advance(&self, duration_ns: i64) -> Result<(), EngineError> {
        if !self.shared.clock.advance(duration_ns) {
            return Err(EngineError::Options(
                "the clock goes by itself: make the engine with manual_clock".to_owned(),
            ));
        }
        if let Some(streams) = self.streams.get() {
            streams.look_at_clock();
        }
        Ok(())
    }

    /// Ends all connections and workers, and waits for them. Calling it again does nothing.
    pub fn shutdown(&self) {
        let threads: Vec<_> = self.threads.lock().drain(..).collect();
        // Workers that were never started hold the listener; dropping them frees the port.
        self.workers.lock().clear();
        if threads.is_empty() {
            return self.close_streams();
        }
        if let Some(streams) = self.streams.get() {
            streams.say_goodbye();
        }
        self.shared.send_to_all(|| Letter::Shutdown);
        for thread in threads {
            // A worker that panicked has said so already.
            let _ = thread.join();
        }
        self.close_streams();
        self.shared.events.push(Event::Stopped {
            failure: String::new(),
        });
    }
}

impl Engine {
    /// After the last publish. Where the engine has failed, nobody knows what it would write: the next start finds everything that was acknowledged.
    fn close_streams(&self) {
        if let Some(streams) = self
            .streams
            .get()
            .filter(|_| !self.shared.events.has_failed())
        {
            for failure in streams.close() {
                self.shared.events.log(Level::Error, failure);
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl Shared {
    pub fn server_id(&self) -> &str {
        &self.server_id
    }

    /// The options in force; a reload puts others in their place.
    pub fn options(&self) -> Arc<Options> {
        Arc::clone(&self.options.read())
    }

    /// TLS for a new connection; none where clients speak in the clear.
    pub fn tls(&self) -> Option<Arc<TlsSettings>> {
        self.tls.read().clone()
    }

    /// Puts other certificates in force, for connections to come.
    pub fn set_tls(&self, settings: Option<Arc<TlsSettings>>) {
        *self.tls.write() = settings;
    }

    pub fn worker_count(&self) -> usize {
        self.mailboxes.len()
    }

    pub fn send(&self, worker: usize, letter: Letter) {
        self.mailboxes[worker].send(letter);
    }

    /// Tells a connection's owner what a hand-over left to do; false when the connection is lost.
    pub fn settle(&self, connection: &Connection, flushed: Flushed) -> bool {
        let (slot, connection_id) = (connection.slot, connection.id);
        let reason = match flushed {
            Flushed::Settled => return true,
            Flushed::HandOver => {
                if !connection.outbox.ask_owner() {
                    return true;
                }
                let letter = Letter::Flush {
                    slot,
                    connection_id,
                };
                self.send(connection.worker, letter);
                return true;
            }
            Flushed::Gone => return false,
            Flushed::SlowConsumer => {
                self.report_slow_consumer(connection);
                ClosedReason::SlowConsumerPendingBytes
            }
            Flushed::WriteFailed => ClosedReason::WriteError,
        };
        // By letter even to the present worker: the session may be in the middle of its own turn.
        let letter = Letter::Lost {
            slot,
            connection_id,
            reason,
        };
        self.send(connection.worker, letter);
        false
    }

    /// Has a connection closed in good order.
    pub fn close(&self, connection: &Connection, reason: ClosedReason) {
        self.send(
            connection.worker,
            Letter::Close {
                slot: connection.slot,
                connection_id: connection.id,
                reason,
            },
        );
    }

    pub fn send_to_all(&self, letter: impl Fn() -> Letter) {
        for mailbox in &self.mailboxes {
            mailbox.send(letter());
        }
    }

    pub fn take_letters(&self, worker: usize) -> Vec<Letter> {
        self.mailboxes[worker].take()
    }

    pub fn global_account(&self) -> &Arc<Account> {
        &self.global_account
    }

    pub fn accounts(&self) -> Vec<Arc<Account>> {
        self.accounts.read().clone()
    }

    /// The account of that name, made when it is first named.
    pub fn account(&self, name: &str) -> Arc<Account> {
        let mut accounts = self.accounts.write();
        if let Some(account) = accounts.iter().find(|account| account.name == name) {
            return Arc::clone(account);
        }
        let account = Arc::new(Account::new(name, accounts.len()));
        accounts.push(Arc::clone(&account));
        account
    }

    /// INFO without what is different for each connection.
    pub fn server_information(&self) -> Information {
        self.information.read().clone()
    }

    /// Numbers the events and answers of the server itself.
    pub fn next_event_sequence(&self) -> u64 {
        self.next_event_sequence.fetch_add(1, Ordering::Relaxed)
    }

    /// INFO for one connection.
    pub fn information(&self, connection: &Connection) -> Information {
        Information {
            client_id: connection.id,
            client_ip: connection.remote_address.ip().to_string(),
            ..self.information.read().clone()
        }
    }

    /// Makes a connection of this worker for a socket that was accepted.
    pub fn add_connection(&self, socket: TcpStream, peer: SocketAddr, worker: usize) -> Newcomer {
        let id = self.next_connection_id.fetch_add(1, Ordering::Relaxed);
        let slot = self.slots.lock().take();
        let socket = Arc::new(socket);
        let outbox = Outbox::new(Arc::clone(&socket), self.options().max_pending_bytes);
        let connection = Arc::new(Connection::new(id, slot, worker, peer, outbox));
        self.connections.lock().insert(id, Arc::clone(&connection));
        self.connection_count.fetch_add(1, Ordering::Relaxed);
        self.totals.connections.fetch_add(1, Ordering::Relaxed);
        (connection, socket)
    }

    /// A session has ended.
    pub fn forget_connection(&self, connection: &Connection, reason: ClosedReason) {
        if self.connections.lock().remove(&connection.id).is_none() {
            return;
        }
        self.connection_count.fetch_sub(1, Ordering::Relaxed);
        self.totals.add_ended(connection, reason);
        self.totals.closed.add(self, connection, reason);
        self.slots.lock().give_back(connection.slot);
        self.events.debug(|| {
            format!(
                "{} - Client connection closed: {}",
                connection.label(),
                reason.text()
            )
        });
    }

    pub fn connection_count(&self) -> usize {
        self.connection_count.load(Ordering::Relaxed)
    }

    pub fn connection(&self, id: u64) -> Option<Arc<Connection>> {
        self.connections.lock().get(&id).cloned()
    }

    pub fn any_connection(&self) -> Option<Arc<Connection>> {
        self.connections.lock().values().next().cloned()
    }

    /// All connections, oldest first.
    pub fn connections(&self) -> Vec<Arc<Connection>> {
        let mut connections: Vec<_> = self.connections.lock().values().cloned().collect();
        connections.sort_unstable_by_key(|connection| connection.id);
        connections
    }

    pub fn report_slow_consumer(&self, connection: &Connection) {
        self.events.log(
            Level::Info,
            format!(
                "{} - Slow Consumer Detected: MaxPending of {} Exceeded",
                connection.label(),
                self.options().max_pending_bytes
            ),
        );
    }

    pub fn report_write_deadline(&self, connection: &Connection) {
        self.events.log(
            Level::Info,
            format!(
                "{} - Slow Consumer Detected: WriteDeadline of {}ms exceeded with {} total bytes.",
                connection.label(),
                self.options().write_deadline_ms,
                connection.outbox.pending_bytes()
            ),
        );
    }
}

impl Slots {
    fn take(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    fn give_back(&mut self, slot: usize) {
        self.free.push(slot);
    }
}
