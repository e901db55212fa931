//! What all workers of an engine see: its options, its accounts, its connections.
//!
//! Invariant: a connection is in `connections` exactly while it is a client; its slot is free again when its session is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use ahash::AHashMap;
use mio::net::TcpStream;
use parking_lot::{Mutex, RwLock};

use super::account::{Account, GLOBAL_ACCOUNT};
use super::clients::closed_reason::ClosedReason;
use super::clients::connection::Connection;
use super::clients::mailbox::{AcceptedConnection, Mailbox, WorkerCommand};
use super::imports::{ServiceImport, StreamImport};
use super::latency::LatencyQueue;
use super::leaf;
use super::leaf::LeafLinks;
use super::mappings::Mappings;
use super::monitoring::statistics::Totals;
use crate::common::clock::Clock;
use crate::common::error::EngineError;
use crate::common::events::{Events, Level};
use crate::common::identity::ServerSeed;
use crate::config::connection_type::ConnectionType;
use crate::config::imports::ImportOptions;
use crate::config::options::Options;
use crate::transport::outbox::{Flushed, Outbox};
use crate::transport::tls::TlsSettings;
use crate::transport::websocket::WebSocketSettings;
use crate::wire::information::Information;

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
    /// The same for clients that speak WebSocket; none where they are not served.
    websocket: RwLock<Option<Arc<WebSocketSettings>>>,
    /// The same for ever, while the rest of INFO may change with a reload.
    server_seed: ServerSeed,
    server_id: String,
    mailboxes: Vec<Mailbox>,
    accounts: RwLock<Vec<Arc<Account>>>,
    global_account: Arc<Account>,
    connections: Mutex<AHashMap<u64, Arc<Connection>>>,
    connection_count: AtomicUsize,
    /// Those of them that are clients.
    listed_count: AtomicUsize,
    next_connection_id: AtomicU64,
    next_internal_worker: AtomicUsize,
    next_event_sequence: AtomicU64,
    slots: Mutex<Slots>,
    /// What to publish about requests to services.
    pub latencies: Arc<LatencyQueue>,
    /// Links to other servers.
    pub links: LeafLinks,
    leaf_address: OnceLock<SocketAddr>,
    leaf_tls: RwLock<Option<Arc<TlsSettings>>>,
}

/// Dense numbers for connections, used again when one is gone.
#[derive(Default)]
struct Slots {
    free: Vec<usize>,
    next: usize,
}

/// What a new one is made of.
pub struct SharedParts {
    pub options: Options,
    pub information: Information,
    pub tls: Option<Arc<TlsSettings>>,
    pub websocket: Option<Arc<WebSocketSettings>>,
    pub server_seed: ServerSeed,
    pub server_id: String,
    pub clock: Clock,
    pub events: Arc<Events>,
    pub mailboxes: Vec<Mailbox>,
}

impl Shared {
    pub fn new(parts: SharedParts) -> Self {
        let global_account = Arc::new(Account::new(GLOBAL_ACCOUNT, 0));
        Self {
            information: RwLock::new(parts.information),
            options: RwLock::new(Arc::new(parts.options)),
            tls: RwLock::new(parts.tls),
            websocket: RwLock::new(parts.websocket),
            server_seed: parts.server_seed,
            server_id: parts.server_id,
            clock: parts.clock,
            events: parts.events,
            totals: Totals::default(),
            started: SystemTime::now(),
            mailboxes: parts.mailboxes,
            accounts: RwLock::new(vec![Arc::clone(&global_account)]),
            global_account,
            connections: Mutex::default(),
            connection_count: AtomicUsize::new(0),
            listed_count: AtomicUsize::new(0),
            next_connection_id: AtomicU64::new(1),
            next_internal_worker: AtomicUsize::new(0),
            next_event_sequence: AtomicU64::new(1),
            slots: Mutex::default(),
            latencies: Arc::default(),
            links: LeafLinks::default(),
            leaf_address: OnceLock::new(),
            leaf_tls: RwLock::default(),
        }
    }

    /// Puts other options in force.
    pub fn set_options(&self, options: Options, information: Information) {
        *self.information.write() = information;
        *self.options.write() = Arc::new(options);
    }

    /// Puts other settings of WebSocket in force, for connections to come.
    pub fn set_websocket(&self, settings: Option<Arc<WebSocketSettings>>) {
        *self.websocket.write() = settings;
    }

    pub fn server_seed(&self) -> &ServerSeed {
        &self.server_seed
    }

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

    /// WebSocket for a new connection; none where it is not served.
    pub fn websocket(&self) -> Option<Arc<WebSocketSettings>> {
        self.websocket.read().clone()
    }

    /// Whether this client is asked who it is.
    pub fn requires_login(&self, connection: &Connection) -> bool {
        let options = self.options();
        if connection.connection_type() == ConnectionType::Internal {
            return false;
        }
        if connection.connection_type().is_leaf() {
            return options.auth_required
                || options.leaf_listener().is_some_and(|one| one.auth_required);
        }
        let of_websocket = options.websocket_of(connection.connection_type());
        options.auth_required || of_websocket.is_some_and(|websocket| websocket.auth_required)
    }

    /// How often this client is asked if it is there.
    pub fn ping_interval_ms(&self, connection: &Connection) -> u64 {
        let options = self.options();
        let own_ms = options
            .websocket_of(connection.connection_type())
            .map_or(0, |websocket| websocket.ping_interval_ms);
        match own_ms {
            0 => options.ping_interval_ms,
            own_ms => own_ms,
        }
    }

    /// How long this client has to say who it is or, where nobody asks, to say anything.
    pub fn login_timeout_ms(&self, connection: &Connection) -> u64 {
        let options = self.options();
        if !self.requires_login(connection) {
            return options.handshake_timeout_ms;
        }
        let own_ms = match options.leaf_listener() {
            Some(listener) if connection.connection_type().is_leaf() => listener.auth_timeout_ms,
            _ => options
                .websocket_of(connection.connection_type())
                .map_or(0, |websocket| websocket.auth_timeout_ms),
        };
        match own_ms {
            0 => options.auth_timeout_ms,
            own_ms => own_ms,
        }
    }

    /// Puts the mappings of all accounts in force; those that are not named have none.
    pub fn set_mappings(&self, mut mappings: BTreeMap<String, Mappings>) {
        for account in self.accounts() {
            account.set_mappings(mappings.remove(&account.name).unwrap_or_default());
        }
        for (name, mappings) in mappings {
            self.account(&name).set_mappings(mappings);
        }
    }

    /// Puts the imports of all accounts in force. Those of an account that has the same as before are left alone, so that a reload loses no message.
    pub fn set_imports(
        &self,
        before: &BTreeMap<String, ImportOptions>,
        wanted: &BTreeMap<String, ImportOptions>,
    ) -> Result<(), EngineError> {
        let none = ImportOptions::default();
        let names: BTreeSet<&String> = before.keys().chain(wanted.keys()).collect();
        for name in names {
            let wanted = wanted.get(name).unwrap_or(&none);
            if before.get(name) == Some(wanted) {
                continue;
            }
            let account = self.account(name);
            let streams = wanted
                .streams
                .iter()
                .map(|import| StreamImport::new(import, &account, self.account(&import.account)))
                .collect::<Result<_, _>>()?;
            let services = wanted
                .services
                .iter()
                .map(|import| {
                    ServiceImport::new(import, self.account(&import.account), &self.latencies)
                })
                .collect::<Result<_, _>>()?;
            account.set_imports(streams, services);
        }
        Ok(())
    }

    /// Puts other certificates in force, for connections to come.
    pub fn set_tls(&self, settings: Option<Arc<TlsSettings>>) {
        *self.tls.write() = settings;
    }

    /// Puts other certificates in force for servers that connect.
    pub fn set_leaf_tls(&self, settings: Option<Arc<TlsSettings>>) {
        *self.leaf_tls.write() = settings;
    }

    /// TLS for a server that connects; none where servers speak in the clear.
    pub fn leaf_tls(&self) -> Option<Arc<TlsSettings>> {
        self.leaf_tls.read().clone()
    }

    pub fn worker_count(&self) -> usize {
        self.mailboxes.len()
    }

    pub fn send(&self, worker: usize, command: WorkerCommand) {
        self.mailboxes[worker].send(command);
    }

    /// Sends a connection's owner what a hand-over left to do; false when the connection is lost.
    pub fn follow_up(&self, connection: &Connection, flushed: Flushed) -> bool {
        let (slot, connection_id) = (connection.slot, connection.id);
        let reason = match flushed {
            Flushed::Settled => return true,
            Flushed::HandOver => {
                if !connection.outbox.ask_owner() {
                    return true;
                }
                let command = WorkerCommand::Flush {
                    slot,
                    connection_id,
                };
                self.send(connection.worker, command);
                return true;
            }
            Flushed::Gone => return false,
            Flushed::SlowConsumer => {
                self.report_slow_consumer(connection);
                ClosedReason::SlowConsumerPendingBytes
            }
            Flushed::WriteFailed => ClosedReason::WriteError,
        };
        // By command even to the present worker: the session may be in the middle of its own turn.
        let command = WorkerCommand::Lost {
            slot,
            connection_id,
            reason,
        };
        self.send(connection.worker, command);
        false
    }

    /// Has a connection closed in good order.
    pub fn close(&self, connection: &Connection, reason: ClosedReason) {
        self.send(
            connection.worker,
            WorkerCommand::Close {
                slot: connection.slot,
                connection_id: connection.id,
                reason,
            },
        );
    }

    pub fn send_to_all(&self, command: impl Fn() -> WorkerCommand) {
        for mailbox in &self.mailboxes {
            mailbox.send(command());
        }
    }

    pub fn take_commands(&self, worker: usize) -> Vec<WorkerCommand> {
        self.mailboxes[worker].drain()
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
        let mut information = Information {
            client_id: connection.id,
            client_ip: connection.remote_address.ip().to_string(),
            ..self.information.read().clone()
        };
        if connection.connection_type() == ConnectionType::WebSocket {
            if let Some(websocket) = self.websocket() {
                information.host.clone_from(&websocket.options.host);
                information.port = websocket.address.port();
                information.tls_required = websocket.tls.is_some();
                information.tls_available = websocket.tls.is_some();
                information.auth_required = self.requires_login(connection);
            }
        }
        information
    }

    /// Whether this server connects to others as a leaf node.
    pub fn has_leaf_remotes(&self) -> bool {
        let options = self.options();
        options
            .leaf
            .as_ref()
            .is_some_and(|leaf| !leaf.remotes.is_empty())
    }

    /// Where other servers reach this one, if they may.
    pub fn leaf_address(&self) -> Option<SocketAddr> {
        self.leaf_address.get().copied()
    }

    pub fn set_leaf_address(&self, address: SocketAddr) {
        // A server listens once.
        let _ = self.leaf_address.set(address);
    }

    /// Connects a part of this server to an account, as a client without limits. It is not listed as a client.
    pub fn connect_internally(&self, account: &str) -> io::Result<std::net::TcpStream> {
        let (own, other) = UnixStream::pair()?;
        other.set_nonblocking(true)?;
        // To the system both are sockets; what kind they are makes no difference to reading and writing.
        let socket = TcpStream::from_std(OwnedFd::from(other).into());
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let worker =
            self.next_internal_worker.fetch_add(1, Ordering::Relaxed) % self.worker_count();
        let accepted = self.add_connection(ConnectionType::Internal, socket, nowhere, worker);
        accepted.0.identity.lock().account = account.to_owned();
        self.links.add_internal(&accepted.0);
        self.send(worker, WorkerCommand::Accepted(accepted));
        Ok(OwnedFd::from(own).into())
    }

    /// Restarts the parts of this server that read through links: a link has come or gone.
    pub fn restart_internal_readers(&self, account: &str) {
        for connection in self.links.internal_of(account) {
            self.close(&connection, ClosedReason::ServerShutdown);
        }
    }

    /// Makes a connection of this worker for a socket that was accepted. It is a client, and listed as one, unless it is still to be upgraded.
    pub fn add_connection(
        &self,
        connection_type: ConnectionType,
        socket: TcpStream,
        peer: SocketAddr,
        worker: usize,
    ) -> AcceptedConnection {
        let id = self.next_connection_id.fetch_add(1, Ordering::Relaxed);
        let slot = self.slots.lock().acquire();
        let socket = Arc::new(socket);
        let outbox = Outbox::new(Arc::clone(&socket), self.options().max_pending_bytes);
        let connection = Connection::new(id, connection_type, slot, worker, peer, outbox);
        let connection = Arc::new(connection);
        self.connection_count.fetch_add(1, Ordering::Relaxed);
        match connection_type {
            ConnectionType::Standard => self.list_connection(&connection),
            ConnectionType::Leaf => self.links.add_connection(&connection),
            ConnectionType::LeafWebSocket => self.links.add_connection(&connection),
            ConnectionType::WebSocket | ConnectionType::Internal => {}
        }
        (connection, socket)
    }

    /// A connection is a client from now on.
    pub fn list_connection(&self, connection: &Arc<Connection>) {
        let listed = Arc::clone(connection);
        self.connections.lock().insert(connection.id, listed);
        self.listed_count.fetch_add(1, Ordering::Relaxed);
        self.totals.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection no longer counts as a client; calling it again does nothing.
    pub fn unlist_connection(&self, connection: &Connection, reason: ClosedReason) {
        if self.connections.lock().remove(&connection.id).is_none() {
            return leaf::reporting::closed(self, connection, reason);
        }
        self.listed_count.fetch_sub(1, Ordering::Relaxed);
        self.totals.add_ended(connection, reason);
        self.totals.closed.add(self, connection, reason);
        self.events.debug(|| {
            format!(
                "{} - Client connection closed: {}",
                connection.label(),
                reason.text()
            )
        });
    }

    /// A session has ended, and its socket is closed.
    pub fn forget_connection(&self, connection: &Connection) {
        self.links.remove_connection(connection.id);
        self.connection_count.fetch_sub(1, Ordering::Relaxed);
        self.slots.lock().release(connection.slot);
    }

    /// Connections that are clients.
    pub fn listed_count(&self) -> usize {
        self.listed_count.load(Ordering::Relaxed)
    }

    /// Sockets that are open, or about to be closed.
    pub fn connection_count(&self) -> usize {
        self.connection_count.load(Ordering::Relaxed)
    }

    /// The client, or the connection to another server, of that number.
    pub fn connection(&self, id: u64) -> Option<Arc<Connection>> {
        let client = self.connections.lock().get(&id).cloned();
        client.or_else(|| self.links.connection(id))
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
    fn acquire(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    fn release(&mut self, slot: usize) {
        self.free.push(slot);
    }
}
