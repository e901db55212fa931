//! The layers below a link: TLS as a client, WebSocket as a client, compression. The session says when each begins; the worker does it.

use std::sync::Arc;

use super::{LeafPhase, LeafState};
use crate::common::identity;
use crate::config::leaf::LeafCompression;
use crate::connection::session::{Context, Next, Session};
use crate::routing::clients::connection::Connection;
use crate::routing::leaf::reporting;
use crate::routing::shared::Shared;
use crate::transport::websocket::request::UpgradeRequest;
use crate::wire::s2_frames::BLOCK_BYTES_MAX;

/// What a server may send together with its CONNECT, such as a PING, and what a line may have besides its arguments.
const HANDSHAKE_BYTES_SPARE: usize = 8 * 1024;

impl LeafState {
    pub(super) fn wanted_compression(&self, shared: &Shared) -> LeafCompression {
        match &self.remote {
            Some(remote) => remote.options.compression,
            None => shared
                .options()
                .leaf_listener()
                .map_or(LeafCompression::Off, |listener| listener.compression),
        }
    }

    /// How what was agreed on is done: with `s2_auto`, the time since the connection was made stands for the round trip.
    pub(super) fn level_of(
        &self,
        agreed: LeafCompression,
        connection: &Connection,
        shared: &Shared,
    ) -> LeafCompression {
        if agreed != LeafCompression::S2Auto {
            return agreed;
        }
        let elapsed = connection.started.elapsed().unwrap_or_default();
        let thresholds_ms = self.round_trip_thresholds_ms(shared);
        LeafCompression::by_round_trip(elapsed.as_millis() as u64, &thresholds_ms)
    }

    fn round_trip_thresholds_ms(&self, shared: &Shared) -> Vec<u64> {
        match &self.remote {
            Some(remote) => remote.options.compression_rtt_ms.clone(),
            None => shared
                .options()
                .leaf_listener()
                .map_or(Vec::new(), |listener| listener.compression_rtt_ms.clone()),
        }
    }
}

impl Session {
    /// A client of WebSocket turned out to be another server.
    pub fn become_leaf(&mut self, shared: &Shared) {
        self.connection.become_leaf();
        shared.links.add_connection(&self.connection);
        if std::mem::take(&mut self.in_account) {
            self.account.leave();
        }
        self.nonce = identity::nonce().unwrap_or_default();
        self.prepare_leaf(shared);
        self.settle_compression();
    }

    /// What the frames of WebSocket compress, or leave as it is, is not compressed once more.
    fn settle_compression(&mut self) {
        if let Some(leaf) = &mut self.leaf {
            leaf.is_compression_settled = true;
        }
    }

    /// Bytes travel in frames of WebSocket from now on, in TLS if that was asked for.
    pub fn upgraded(&mut self) {
        if let Some(leaf) = &mut self.leaf {
            leaf.is_secured = true;
        }
        self.settle_compression();
    }

    /// How to ask for the upgrade to WebSocket; none for a link without.
    pub fn upgrade_request(&self) -> Option<UpgradeRequest> {
        let leaf = self.leaf.as_ref()?;
        let (remote, url) = (leaf.remote.as_ref()?, leaf.websocket.as_ref()?);
        let address = format!("{}:{}", url.host, url.port);
        Some(UpgradeRequest::new(
            &address,
            &url.path,
            remote.options.websocket_compress,
            remote.options.websocket_no_masking,
        ))
    }

    /// Whether TLS comes before the upgrade to WebSocket.
    pub fn secures_upgrade(&self) -> bool {
        let leaf = self.leaf.as_ref();
        leaf.is_some_and(|leaf| leaf.websocket.is_some() && leaf.wants_tls && !leaf.is_secured)
    }

    /// The connection is encrypted now.
    pub fn secured(&mut self, context: &mut Context<'_>) -> Result<(), Next> {
        if let Some(leaf) = &mut self.leaf {
            leaf.is_secured = true;
        }
        self.continue_handshake(context)
    }

    /// The name of the server that is connected to, as its certificate must have it, and what is needed to encrypt; the error is why it cannot be.
    pub fn client_tls(&self) -> Result<(String, Arc<rustls::ClientConfig>, u64), String> {
        let leaf = self.leaf.as_ref().ok_or("not a link")?;
        let remote = leaf.remote.as_ref().ok_or("not connected by this side")?;
        let tls = remote.tls.clone().ok_or(
            "the other server demands TLS: give the remote a tls block with the ca_file of its authority",
        )?;
        let options = remote.options.tls.as_ref();
        let timeout_ms = options.map_or(0, |tls| tls.timeout_ms);
        Ok((leaf.host.clone(), tls, timeout_ms))
    }

    /// Whether TLS comes before INFO.
    pub fn secures_first(&self) -> bool {
        let remote = self.leaf.as_ref().and_then(|leaf| leaf.remote.as_ref());
        let tls = remote.and_then(|remote| remote.options.tls.as_ref());
        tls.is_some_and(|tls| tls.handshake_first)
    }

    /// What a chunk of a compressed link may hold. A server that has not logged in says no more than its CONNECT.
    pub fn block_bytes_max(&self) -> usize {
        match self.is_solicited() || self.is_link_open() {
            true => BLOCK_BYTES_MAX,
            false => self.limits.control_line_bytes_max + HANDSHAKE_BYTES_SPARE,
        }
    }

    pub(super) fn agreed_compression(&self) -> LeafCompression {
        let leaf = self.leaf.as_ref();
        leaf.map_or(LeafCompression::Off, |leaf| leaf.compression)
    }

    /// Announces to the other side how what follows is compressed.
    pub(super) fn tell_compression(&self, own: LeafCompression, context: &mut Context<'_>) {
        let mut information = reporting::information(context.shared, &self.connection);
        let told = match own {
            LeafCompression::S2Auto => own,
            _ => self.agreed_compression(),
        };
        told.name().clone_into(&mut information.compression);
        information.nonce.clone_from(&self.nonce);
        information.write(context.staging.entry(&self.connection).line());
    }

    /// A server that has connected says how it wants to compress.
    pub(super) fn hear_compression(
        &mut self,
        theirs: &str,
        context: &mut Context<'_>,
    ) -> Result<(), Next> {
        let Some(leaf) = &mut self.leaf else {
            return Ok(());
        };
        if leaf.phase != LeafPhase::AwaitingConnect
            || std::mem::replace(&mut leaf.is_compression_settled, true)
        {
            return Ok(());
        }
        let own = leaf.wanted_compression(context.shared);
        let theirs = LeafCompression::read(theirs).unwrap_or_default();
        let agreed = own.agree(theirs);
        if !agreed.is_framed() {
            return Ok(());
        }
        leaf.compression = leaf.level_of(agreed, &self.connection, context.shared);
        Err(Next::Compress(self.agreed_compression()))
    }

    /// What follows is compressed, in both directions.
    pub fn compressed(&mut self, context: &mut Context<'_>) {
        let Some(leaf) = &self.leaf else {
            return;
        };
        if !leaf.is_solicited {
            let own = leaf.wanted_compression(context.shared);
            self.tell_compression(own, context);
        }
    }
}
