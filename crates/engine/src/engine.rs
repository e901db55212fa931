//! The engine: one listener, its workers, and what they share.

use std::net::SocketAddr;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
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
use crate::connection::mailbox::{Letter, Mailbox, Verdict};
use crate::connection::outbox::Outbox;
use crate::connection::worker::{Worker, WAKER_TOKEN};
use crate::connection::Connection;
use crate::error::EngineError;
use crate::events::{Event, Events, Level};
use crate::identity::{self, KeyPrefix};
use crate::routing::account::{Account, GLOBAL_ACCOUNT};
use crate::statistics::Totals;

/// The JetStream API level that is announced.
const API_LEVEL: u8 = 5;

/// What all workers see.
pub struct Shared {
    pub options: Options,
    pub clock: Clock,
    pub events: Events,
    pub totals: Totals,
    pub started: SystemTime,
    information: Information,
    mailboxes: Vec<Mailbox>,
    accounts: RwLock<Vec<Arc<Account>>>,
    global_account: Arc<Account>,
    connections: Mutex<AHashMap<u64, Arc<Connection>>>,
    connection_count: AtomicUsize,
    next_connection_id: AtomicU64,
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
    workers: Mutex<Vec<Worker>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Engine {
    /// Binds the listener; nothing runs yet.
    pub fn new(options: Options) -> Result<Self, EngineError> {
        let system = |what| move |cause| EngineError::System { what, cause };
        let mut listener = Listener::bind(&options.host, options.port)?;
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
        let events = Events::default();
        events.set_levels(options.debug, options.trace);
        let shared = Arc::new(Shared {
            information: information(&options, address)?,
            options,
            clock: Clock::start(),
            events,
            totals: Totals::default(),
            started: SystemTime::now(),
            mailboxes,
            accounts: RwLock::new(vec![Arc::clone(&global_account)]),
            global_account,
            connections: Mutex::default(),
            connection_count: AtomicUsize::new(0),
            next_connection_id: AtomicU64::new(1),
            slots: Mutex::default(),
        });
        let mut listener = Some(listener);
        let workers = polls
            .into_iter()
            .enumerate()
            .map(|(index, poll)| Worker::new(index, poll, listener.take(), Arc::clone(&shared)))
            .collect();
        Ok(Self {
            shared,
            address,
            workers: Mutex::new(workers),
            threads: Mutex::default(),
        })
    }

    /// Starts the workers. Calling it again does nothing.
    pub fn start(&self) -> Result<(), EngineError> {
        for (index, worker) in self.workers.lock().drain(..).enumerate() {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new()
                .name(format!("jetlake-worker-{index}"))
                .spawn(move || run(worker, &shared))
                .map_err(|cause| EngineError::System {
                    what: "worker thread",
                    cause,
                })?;
            self.threads.lock().push(thread);
        }
        Ok(())
    }

    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub fn server_id(&self) -> &str {
        &self.shared.information.server_id
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

    pub fn stop_accepting(&self) {
        self.shared.send(0, Letter::StopAccepting);
    }

    /// Tells every client that takes it that this server will go, and says how many connections there are.
    pub fn announce_lame_duck(&self) -> usize {
        for worker in 0..self.shared.worker_count() {
            self.shared.send(worker, Letter::LameDuck);
        }
        self.shared.connection_count()
    }

    /// Closes any one connection; false when there is none.
    pub fn close_one_connection(&self) -> bool {
        let Some(connection) = self.shared.any_connection() else {
            return false;
        };
        self.shared.send(
            connection.worker,
            Letter::Close {
                slot: connection.slot,
                connection_id: connection.id,
                reason: ClosedReason::ServerShutdown,
            },
        );
        true
    }

    /// Ends all connections and workers, and waits for them. Calling it again does nothing.
    pub fn shutdown(&self) {
        let threads: Vec<_> = self.threads.lock().drain(..).collect();
        // Workers that were never started hold the listener; dropping them frees the port.
        self.workers.lock().clear();
        if threads.is_empty() {
            return;
        }
        for worker in 0..self.shared.worker_count() {
            self.shared.send(worker, Letter::Shutdown);
        }
        for thread in threads {
            // A worker that panicked has said so already.
            let _ = thread.join();
        }
        self.shared.events.push(Event::Stopped {
            failure: String::new(),
        });
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// A worker's thread. A bug in the engine must not leave a server that looks alive.
fn run(worker: Worker, shared: &Shared) {
    let failure = match catch_unwind(AssertUnwindSafe(|| worker.run())) {
        Ok(Ok(())) => return,
        Ok(Err(error)) => format!("a worker lost its poll: {error}"),
        Err(panic) => {
            let text = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_default();
            format!("a worker broke off: {text}")
        }
    };
    shared.events.push(Event::Stopped { failure });
}

fn information(options: &Options, address: SocketAddr) -> Result<Information, EngineError> {
    let server_id = identity::public_key(KeyPrefix::Server)?;
    let (host, port) = match &options.client_advertise {
        None => (options.host.clone(), address.port()),
        Some(advertised) => split_advertised(advertised, address.port())?,
    };
    Ok(Information {
        server_name: if options.server_name.is_empty() {
            server_id.clone()
        } else {
            options.server_name.clone()
        },
        server_id,
        version: options.version.clone(),
        proto: 1,
        git_commit: options.git_commit.clone(),
        go: format!("rust jetlake-{}", env!("CARGO_PKG_VERSION")),
        host,
        port,
        headers: options.headers,
        auth_required: options.auth_required,
        max_payload: options.max_payload_bytes,
        jetstream: options.jetstream,
        client_id: 0,
        client_ip: String::new(),
        nonce: String::new(),
        domain: options.domain.clone(),
        ldm: false,
        connect_info: false,
        remote_account: String::new(),
        api_lvl: API_LEVEL,
        xkey: identity::public_key(KeyPrefix::Curve)?,
    })
}

fn split_advertised(advertised: &str, port: u16) -> Result<(String, u16), EngineError> {
    match advertised.rsplit_once(':') {
        None => Ok((advertised.to_owned(), port)),
        Some((host, text)) => match text.parse() {
            Ok(port) => Ok((host.to_owned(), port)),
            Err(_) => Err(EngineError::Options(format!(
                "client_advertise {advertised:?} must be host or host:port"
            ))),
        },
    }
}

impl Shared {
    pub fn worker_count(&self) -> usize {
        self.mailboxes.len()
    }

    pub fn send(&self, worker: usize, letter: Letter) {
        self.mailboxes[worker].send(letter);
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

    /// INFO for one connection.
    pub fn information(&self, connection: &Connection) -> Information {
        Information {
            client_id: connection.id,
            client_ip: connection.remote_address.ip().to_string(),
            ..self.information.clone()
        }
    }

    /// Makes a connection for a socket and sends it to its worker.
    pub fn add_connection(&self, socket: TcpStream, address: SocketAddr, worker: usize) {
        let id = self.next_connection_id.fetch_add(1, Ordering::Relaxed);
        let slot = self.slots.lock().take();
        let socket = Arc::new(socket);
        let outbox = Outbox::new(Arc::clone(&socket), self.options.max_pending_bytes);
        let connection = Arc::new(Connection::new(id, slot, worker, address, outbox));
        self.connections.lock().insert(id, Arc::clone(&connection));
        self.connection_count.fetch_add(1, Ordering::Relaxed);
        self.totals.connections.fetch_add(1, Ordering::Relaxed);
        self.send(worker, Letter::Accepted(connection, socket));
    }

    /// A session has ended.
    pub fn forget_connection(&self, connection: &Connection, reason: ClosedReason) {
        if self.connections.lock().remove(&connection.id).is_none() {
            return;
        }
        self.connection_count.fetch_sub(1, Ordering::Relaxed);
        self.totals.add_ended(&connection.traffic);
        if reason.is_slow_consumer() {
            self.totals.slow_consumers.fetch_add(1, Ordering::Relaxed);
        }
        if reason == ClosedReason::StaleConnection {
            self.totals
                .stale_connections
                .fetch_add(1, Ordering::Relaxed);
        }
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
                self.options.max_pending_bytes
            ),
        );
    }

    pub fn report_write_deadline(&self, connection: &Connection) {
        self.events.log(
            Level::Info,
            format!(
                "{} - Slow Consumer Detected: WriteDeadline of {}ms exceeded with {} total bytes.",
                connection.label(),
                self.options.write_deadline_ms,
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
