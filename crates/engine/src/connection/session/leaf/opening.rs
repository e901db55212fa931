//! An open link: what may pass it, who is notified, and its end.

use std::sync::Arc;

use super::LeafPhase;
use crate::common::permissions::RuleLists;
use crate::connection::session::{Context, Next, Session, SessionPhase};
use crate::routing::clients::closed_reason::ClosedReason;
use crate::routing::clients::mailbox::Admission;
use crate::routing::leaf::link::JETSTREAM_DENIED;
use crate::routing::leaf::reporting;
use crate::routing::leaf::{LeafLink, LinkRules, LinkTraits};
use crate::routing::shared::Shared;
use crate::wire::leaf_information::{LeafRuleLists, TRACING_PROTOCOL};

impl Session {
    /// Notes what the user may do that another server has logged in as.
    pub(in crate::connection::session) fn grant_leaf(&mut self, admission: &Admission) {
        let lists = admission.permissions.as_ref();
        if let Some(leaf) = &mut self.leaf {
            leaf.granted = lists.map(|lists| (lists.publish.clone(), lists.subscribe.clone()));
        }
    }

    /// What may pass, by the configuration of this side and what the other side has said.
    pub(super) fn link_rules(&self, shared: &Shared) -> LinkRules {
        let Some(leaf) = &self.leaf else {
            return LinkRules::new(&RuleLists::default(), &RuleLists::default());
        };
        let (mut outgoing, mut incoming) = (RuleLists::default(), RuleLists::default());
        if let Some(remote) = &leaf.remote {
            let told = |lists: &Option<LeafRuleLists>| {
                lists
                    .as_ref()
                    .map_or(RuleLists::default(), LeafRuleLists::to_rules)
            };
            outgoing = told(&leaf.information.export);
            incoming = told(&leaf.information.import);
            outgoing.deny.extend(remote.options.deny_exports.clone());
            incoming.deny.extend(remote.options.deny_imports.clone());
        } else if let Some((publish, subscribe)) = &leaf.granted {
            // What that user may subscribe to goes out to it, and what it may publish comes in.
            outgoing = subscribe.clone();
            incoming = publish.clone();
        }
        outgoing
            .deny
            .extend(leaf.connect.denied_publishes.clone().unwrap_or_default());
        let denied = JETSTREAM_DENIED.map(str::to_owned);
        outgoing.deny.extend(denied.clone());
        incoming.deny.extend(denied);
        if let Some(domain) = shared
            .options()
            .domain
            .as_ref()
            .filter(|one| !one.is_empty())
        {
            // Another server of the same domain must not answer in place of this one.
            outgoing.deny.push(format!("$JS.{domain}.API.>"));
        }
        LinkRules::new(&outgoing, &incoming)
    }

    fn link_traits(&self, shared: &Shared) -> LinkTraits {
        let Some(leaf) = &self.leaf else {
            return LinkTraits::default();
        };
        let options = shared.options();
        let listener = options.leaf_listener();
        let remote = leaf.remote.as_ref().map(|remote| &remote.options);
        let is_isolated = listener.is_some_and(|listener| listener.isolate);
        let common = LinkTraits {
            is_solicited: leaf.is_solicited,
            is_isolated: is_isolated
                || leaf.connect.isolate
                || remote.is_some_and(|remote| remote.isolate),
            url: leaf.url.clone(),
            compression: leaf.compression.name(),
            ..LinkTraits::default()
        };
        match remote {
            Some(remote) => LinkTraits {
                is_spoke: !remote.hub,
                server_id: leaf.information.server_id.clone(),
                server_name: leaf.information.name().to_owned(),
                cluster: leaf.information.cluster.clone(),
                domain: leaf.information.domain.clone(),
                remote_account: leaf.information.remote_account.clone(),
                has_tracing: leaf.information.proto >= TRACING_PROTOCOL,
                ..common
            },
            None => LinkTraits {
                is_spoke: leaf.connect.is_hub,
                server_id: leaf.connect.server_id.clone(),
                server_name: leaf.connect.name.clone(),
                cluster: leaf.connect.cluster.clone(),
                domain: leaf.connect.domain.clone(),
                remote_account: leaf.connect.remote_account.clone(),
                has_tracing: leaf.connect.protocol >= TRACING_PROTOCOL,
                ..common
            },
        }
    }

    /// Both sides know each other: the link is open.
    pub(in crate::connection::session) fn open_leaf(
        &mut self,
        context: &mut Context<'_>,
    ) -> Option<Next> {
        let shared = context.shared;
        let (traits, rules) = (self.link_traits(shared), self.link_rules(shared));
        let leaf = self.leaf.as_mut()?;
        let remote = leaf.remote.as_ref();
        if remote.is_some_and(|remote| !remote.connected(self.connection.id)) {
            // A reload has removed the remote meanwhile.
            return Some(Next::Close(ClosedReason::ClientClosed));
        }
        let other_takes_headers = match leaf.is_solicited {
            true => leaf.information.headers,
            false => leaf.connect.headers,
        };
        leaf.phase = LeafPhase::Open;
        let headers = other_takes_headers && shared.options().headers;
        self.phase = SessionPhase::Open;
        self.connected = true;
        self.limits.headers = headers;
        self.limits.payload_bytes_max = shared.options().max_payload_bytes;
        self.connection.set_takes_headers(headers);
        let mut identity = self.connection.identity.lock();
        identity.name.clone_from(&traits.server_name);
        identity.account.clone_from(&self.account.name);
        drop(identity);
        let link = LeafLink::new(shared, &self.connection, traits, rules);
        leaf.link = Some(Arc::clone(&link));
        if !link.traits.is_solicited {
            self.tell_admission(&link, context);
        }
        if let Some(replaced) = context.shared.links.add(&link) {
            context
                .shared
                .close(&replaced.connection, ClosedReason::DuplicateLeaf);
        }
        self.account.add_link(&link);
        link.restart_readers(&self.account);
        reporting::opened(context.shared, &link);
        None
    }

    /// Informs a server that has connected of its account and of what may pass.
    fn tell_admission(&self, link: &LeafLink, context: &Context<'_>) {
        let mut information = reporting::information(context.shared, &self.connection);
        if let Some((publish, subscribe)) =
            self.leaf.as_ref().and_then(|leaf| leaf.granted.as_ref())
        {
            information.export = LeafRuleLists::of(publish);
            information.import = LeafRuleLists::of(subscribe);
        }
        information.remote_account.clone_from(&self.account.name);
        information.acc_is_sys = context.shared.options().system_account == self.account.name;
        information.connect_info = true;
        let mut line = Vec::new();
        information.write(&mut line);
        // Before any announcement of interest, which goes to the outbox as well.
        link.send(line);
    }

    /// What the user may do has changed that another server has logged in as.
    pub(in crate::connection::session) fn review_leaf(
        &mut self,
        admission: &Admission,
        context: &mut Context<'_>,
    ) {
        self.grant_leaf(admission);
        let rules = self.link_rules(context.shared);
        if let Some(link) = self.leaf.as_ref().and_then(|leaf| leaf.link.clone()) {
            self.tell_admission(&link, context);
            link.set_rules(rules, &self.account);
            self.account.outdate_routes();
        }
    }

    /// The end of the session with another server.
    pub(in crate::connection::session) fn leave_leaf(&mut self, reason: ClosedReason) {
        let Some(leaf) = &mut self.leaf else {
            return;
        };
        if let Some(link) = leaf.link.take() {
            self.account.remove_link(&link);
            link.restart_readers(&self.account);
        }
        if let Some(remote) = leaf.remote.take() {
            let failure = match leaf.failure.as_str() {
                "" => reason.text(),
                failure => failure,
            };
            remote.ended(failure, leaf.pause);
        }
    }
}
