//! The two sides of TLS: this server as the one that is connected to, and as the one that connects.
//!
//! rustls has a type for each, alike but for their names. `Unbuffered` is what they have in common.

use std::sync::Arc;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::UnbufferedStatus;
use rustls::{ClientConfig, CommonState, Error, ServerConfig};

pub(super) enum Role {
    Server(Box<UnbufferedServerConnection>),
    Client(Box<UnbufferedClientConnection>),
}

impl Role {
    pub(super) fn server(config: &Arc<ServerConfig>) -> Result<Self, Error> {
        let connection = UnbufferedServerConnection::new(Arc::clone(config))?;
        Ok(Self::Server(Box::new(connection)))
    }

    pub(super) fn client(
        config: &Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Self, Error> {
        let connection = UnbufferedClientConnection::new(Arc::clone(config), name)?;
        Ok(Self::Client(Box::new(connection)))
    }

    pub(super) fn common(&self) -> &CommonState {
        match self {
            Self::Server(connection) => connection,
            Self::Client(connection) => connection,
        }
    }
}

/// What both sides can do.
pub(super) trait Unbuffered {
    type Data;

    fn process<'c, 'i>(&'c mut self, records: &'i mut [u8])
        -> UnbufferedStatus<'c, 'i, Self::Data>;

    fn wants_write(&self) -> bool;
}

impl Unbuffered for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(
        &'c mut self,
        records: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(records)
    }

    fn wants_write(&self) -> bool {
        CommonState::wants_write(self)
    }
}

impl Unbuffered for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(
        &'c mut self,
        records: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(records)
    }

    fn wants_write(&self) -> bool {
        CommonState::wants_write(self)
    }
}
