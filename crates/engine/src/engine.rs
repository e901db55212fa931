//! The engine: its listeners and its workers; what they share is in `shared`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use mio::{Interest, Poll, Waker};
use parking_lot::Mutex;

use crate::common::clock::Clock;
use crate::common::error::EngineError;
use crate::common::events::{Event, Events, Level};
use crate::common::identity;
use crate::common::identity::KeyPrefix;
use crate::common::threads;
use crate::config::connection_type::ConnectionType;
use crate::config::options::Options;
use crate::connection::leaf_dialer;
use crate::connection::listener::{
    Listener, LEAF_LISTENER_TOKEN, LISTENER_TOKEN, WEBSOCKET_LISTENER_TOKEN,
};
use crate::connection::worker::{Worker, WAKER_TOKEN};
use crate::routing::clients::closed_reason::ClosedReason;
use crate::routing::clients::mailbox::{Mailbox, Verdict, WorkerCommand};
use crate::routing::imports::token_map::TokenMap;
use crate::routing::latency::Reporter;
use crate::routing::leaf::LeafRemote;
use crate::routing::mappings::Mappings;
use crate::routing::services::Services;
use crate::routing::shared::SharedParts;
use crate::routing::subscription::Receiver;
use crate::storage::disk::file_system::{FileSystem, RealFileSystem};
use crate::stream::api::Api;
use crate::stream::registry::Streams;
use crate::transport::tls;
use crate::transport::tls::TlsSettings;
use crate::transport::websocket::WebSocketSettings;
use crate::wire::information::Information;

pub use crate::routing::shared::Shared;

pub struct Engine {
    shared: Arc<Shared>,
    address: SocketAddr,
    websocket_address: Option<SocketAddr>,
    services: Services,
    streams: OnceLock<Arc<Streams>>,
    workers: Mutex<Vec<Worker>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Engine {
    /// Binds the listeners; nothing runs yet.
    pub fn new(options: Options) -> Result<Self, EngineError> {
        Self::listening(options, None)
    }

    /// The same with a socket that listens already, if there is one.
    pub fn listening(options: Options, socket: Option<OwnedFd>) -> Result<Self, EngineError> {
        let system = |what| move |cause| EngineError::System { what, cause };
        let tls = tls::settings(&options)?;
        let kind = ConnectionType::Standard;
        let mut listener = Listener::bind(kind, &options.host, options.port, socket)?;
        let address = listener.address().map_err(system("listener"))?;
        let mut listeners = Vec::new();
        let mut websocket_address = None;
        let mut websocket = None;
        if let Some(wanted) = &options.websocket {
            let kind = ConnectionType::WebSocket;
            let listener = Listener::bind(kind, &wanted.host, wanted.port, None)?;
            let address = listener.address().map_err(system("listener"))?;
            websocket = WebSocketSettings::of(&options, address)?;
            websocket_address = Some(address);
            listeners.push(listener);
        }
        let mut leaf_address = None;
        if let Some(wanted) = options.leaf_listener() {
            let kind = ConnectionType::Leaf;
            let listener = Listener::bind(kind, &wanted.host, wanted.port, None)?;
            leaf_address = Some(listener.address().map_err(system("listener"))?);
            listeners.push(listener);
        }
        let leaf_tls = leaf_tls_of(&options)?;
        let remotes = remotes_of(&options)?;
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
        for further in &mut listeners {
            let token = match further.is_for_leafs() {
                true => LEAF_LISTENER_TOKEN,
                false => WEBSOCKET_LISTENER_TOKEN,
            };
            polls[0]
                .registry()
                .register(further.socket(), token, Interest::READABLE)
                .map_err(system("listener"))?;
        }
        listeners.push(listener);
        let events = Arc::new(Events::default());
        events.set_levels(options.debug, options.trace);
        let (server_seed, server_id) = identity::server_identity()?;
        let curve_key = identity::public_key(KeyPrefix::Curve)?;
        let clock = match options.manual_clock {
            true => Clock::by_hand(),
            false => Clock::start(),
        };
        let mappings = mappings_of(&options)?;
        let shared = Arc::new(Shared::new(SharedParts {
            information: Information::new(&options, address, &server_id, &curve_key)?,
            options,
            tls,
            websocket,
            server_seed,
            server_id,
            clock,
            events,
            mailboxes,
        }));
        shared.set_mappings(mappings);
        shared.set_imports(&BTreeMap::new(), &shared.options().imports)?;
        shared.set_leaf_tls(leaf_tls);
        if let Some(address) = leaf_address {
            shared.set_leaf_address(address);
        }
        shared.links.set_remotes(remotes);
        let workers = polls
            .into_iter()
            .enumerate()
            .map(|(index, poll)| {
                // The first one accepts for all.
                let listeners = std::mem::take(&mut listeners);
                Worker::new(index, poll, listeners, Arc::clone(&shared))
            })
            .collect();
        Ok(Self {
            services: Services::new(Arc::clone(&shared)),
            streams: OnceLock::new(),
            shared,
            address,
            websocket_address,
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
        for remote in self.shared.links.remotes() {
            leaf_dialer::start(&self.shared, remote)?;
        }
        self.report_latencies(&self.shared.options())
    }

    /// Starts the thread that publishes latency events, if these options are the first that ask for some.
    fn report_latencies(&self, options: &Options) -> Result<(), EngineError> {
        let mut services = options.imports.values().flat_map(|one| &one.services);
        if !services.any(|service| service.latency.is_some()) || !self.shared.latencies.claim() {
            return Ok(());
        }
        let reporter = Reporter::new(Arc::clone(&self.shared));
        let run = move || {
            reporter.run();
            Ok(())
        };
        let thread = threads::spawn(&self.shared.events, "jetlake-latency", run);
        let thread = thread.map_err(|cause| EngineError::System {
            what: "latency thread",
            cause,
        })?;
        self.threads.lock().push(thread);
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

    /// What the server signs requests to an authentication service with.
    pub fn server_seed(&self) -> &[u8] {
        &self.shared.server_seed().0
    }

    pub fn server_id(&self) -> &str {
        self.shared.server_id()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where clients reach it by WebSocket, if they do.
    pub fn websocket_address(&self) -> Option<SocketAddr> {
        self.websocket_address
    }

    /// Passes a verdict to the connection that waits for it; false when it is gone.
    pub fn decide(&self, connection_id: u64, verdict: Verdict) -> bool {
        let Some(connection) = self.shared.connection(connection_id) else {
            return false;
        };
        self.shared.send(
            connection.worker,
            WorkerCommand::Verdict {
                slot: connection.slot,
                connection_id,
                verdict,
            },
        );
        true
    }

    /// Refuses options that no engine could start with, such as invalid certificates.
    pub fn check(options: &Options) -> Result<(), EngineError> {
        mappings_of(options)?;
        check_imports(options)?;
        leaf_tls_of(options)?;
        remotes_of(options)?;
        let anywhere = SocketAddr::from(([0, 0, 0, 0], 0));
        WebSocketSettings::of(options, anywhere)?;
        tls::settings(options).map(|_| ())
    }

    /// Puts other options in force. What cannot change while running is refused, and then nothing changes.
    pub fn reload(&self, options: Options) -> Result<(), EngineError> {
        let old = self.shared.options();
        options.check_reload(&old)?;
        let curve_key = self.shared.server_information().xkey;
        let server_id = self.shared.server_id();
        let information = Information::new(&options, self.address, server_id, &curve_key)?;
        let tls = tls::settings(&options)?;
        let mappings = mappings_of(&options)?;
        check_imports(&options)?;
        let leaf_tls = leaf_tls_of(&options)?;
        let remotes = remotes_of(&options)?;
        if let Some(address) = self.websocket_address {
            let settings = WebSocketSettings::of(&options, address)?;
            self.shared.set_websocket(settings);
        }
        self.report_latencies(&options)?;
        self.shared.set_tls(tls);
        self.shared.set_mappings(mappings);
        self.shared.set_imports(&old.imports, &options.imports)?;
        self.shared.events.set_levels(options.debug, options.trace);
        let has_new_imports = old.imports != options.imports;
        self.shared.set_options(options, information);
        self.shared.set_leaf_tls(leaf_tls);
        self.replace_remotes(remotes)?;
        self.shared.send_to_all(|| WorkerCommand::OptionsChanged);
        if let Some(streams) = self.streams.get().filter(|_| has_new_imports) {
            streams.look_for_origins();
        }
        let excess = self
            .shared
            .listed_count()
            .saturating_sub(self.shared.options().max_connections);
        for connection in self.shared.connections().iter().rev().take(excess) {
            self.shared
                .close(connection, ClosedReason::MaximumConnectionsExceeded);
        }
        Ok(())
    }

    /// Puts other remotes in force. Links to those that stay as they are go on.
    fn replace_remotes(&self, wanted: Vec<Arc<LeafRemote>>) -> Result<(), EngineError> {
        let links = &self.shared.links;
        let mut before = links.remotes();
        let mut started = Vec::new();
        let kept = wanted.into_iter().map(|remote| {
            let same = |old: &Arc<LeafRemote>| old.options == remote.options;
            match before.iter().position(same) {
                Some(position) => before.swap_remove(position),
                None => {
                    started.push(Arc::clone(&remote));
                    remote
                }
            }
        });
        links.set_remotes(kept.collect());
        for removed in before {
            let id = removed.stop();
            if let Some(connection) = id.and_then(|id| links.connection(id)) {
                self.shared.close(&connection, ClosedReason::ClientClosed);
            }
        }
        for remote in started {
            leaf_dialer::start(&self.shared, remote)?;
        }
        Ok(())
    }

    /// Asks Python again about every client, or those of one account, after users or permissions have changed.
    pub fn reauthenticate(&self, account: Option<&str>) {
        let account = account.map(|name| self.shared.account(name).index);
        self.shared
            .send_to_all(|| WorkerCommand::Reauthenticate { account });
    }

    pub fn stop_accepting(&self) {
        self.shared.send(0, WorkerCommand::StopAccepting);
    }

    /// Notifies every client that supports it that this server will stop, and returns the number of connections.
    pub fn announce_lame_duck(&self) -> usize {
        self.shared.send_to_all(|| WorkerCommand::LameDuck);
        self.shared.listed_count()
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
        for remote in self.shared.links.remotes() {
            remote.stop();
        }
        self.shared.send_to_all(|| WorkerCommand::Shutdown);
        self.shared.latencies.close();
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

/// TLS for servers that connect; none where they speak in the clear.
fn leaf_tls_of(options: &Options) -> Result<Option<Arc<TlsSettings>>, EngineError> {
    match options
        .leaf_listener()
        .and_then(|listener| listener.tls.as_ref())
    {
        None => Ok(None),
        Some(tls) => Ok(Some(Arc::new(TlsSettings::new(tls)?))),
    }
}

/// The servers to connect to.
fn remotes_of(options: &Options) -> Result<Vec<Arc<LeafRemote>>, EngineError> {
    let Some(leaf) = &options.leaf else {
        return Ok(Vec::new());
    };
    if leaf.remotes.len() > leaf_dialer::REMOTES_MAX {
        return Err(EngineError::Options(format!(
            "leafnodes: {} remotes are more than the {} that a server connects to",
            leaf.remotes.len(),
            leaf_dialer::REMOTES_MAX
        )));
    }
    leaf.remotes
        .iter()
        .map(|remote| LeafRemote::new(remote, leaf))
        .collect()
}

/// Refuses imports whose subjects do not belong together.
fn check_imports(options: &Options) -> Result<(), EngineError> {
    for imports in options.imports.values() {
        for import in &imports.streams {
            TokenMap::new(&import.from, &import.to)?;
        }
        for import in &imports.services {
            TokenMap::new(&import.from, &import.to)?;
        }
    }
    Ok(())
}

/// The mappings of the accounts that have some.
fn mappings_of(options: &Options) -> Result<BTreeMap<String, Mappings>, EngineError> {
    let mappings = options.mappings.iter();
    mappings
        .map(|(account, options)| Ok((account.clone(), Mappings::new(options)?)))
        .collect()
}
