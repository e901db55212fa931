//! The subscriptions of one account as a tree of tokens, so that a subject finds its receivers by walking its own tokens.
//!
//! Nothing is searched for among subscriptions to one subject, nor among its queue groups: there may be tens of thousands, of one client. Invariant: a node without
//! subscriptions and without children does not exist, so the tree is never larger than what is subscribed.

use std::sync::Arc;

use ahash::AHashMap;

use super::sink::Sink;
use super::subscription::{Receiver, Subscription};
use crate::common::subject;

/// Who gets a message on one subject: every plain subscription, and one member of each queue group.
#[derive(Default)]
pub struct Routes {
    pub plain: Vec<Arc<Subscription>>,
    pub groups: Vec<QueueGroup>,
    /// The subject that they were found by, those must receive it.
    pub linked_subject: Option<Box<[u8]>>,
}

pub struct QueueGroup {
    pub name: Box<[u8]>,
    pub members: Vec<Arc<Subscription>>,
}

impl Routes {
    /// Whether a receiver may not see everything it has subscribed to.
    fn is_restricted(&self) -> bool {
        let members = self.groups.iter().flat_map(|group| &group.members);
        let mut all = self.plain.iter().chain(members);
        all.any(|subscription| {
            !subscription.restrictions.kept_back.is_empty() || subscription.is_linked()
        })
    }

    fn note_links(&mut self, subject: &[u8]) {
        let members = self.groups.iter().flat_map(|group| &group.members);
        let mut all = self.plain.iter().chain(members);
        if all.any(|subscription| subscription.is_linked()) {
            self.linked_subject = Some(subject.into());
        }
    }

    /// Drops receivers that want only unstored messages, if another receiver stores this one.
    fn drop_unneeded(&mut self) {
        let is =
            |subscription: &Arc<Subscription>, asked: fn(&dyn Sink) -> bool| match &subscription
                .receiver
            {
                Receiver::Sink(sink) => asked(&**sink),
                _ => false,
            };
        let wants_unstored =
            |subscription: &Arc<Subscription>| is(subscription, |sink| sink.wants_unstored());
        if self.plain.iter().any(wants_unstored)
            && self
                .plain
                .iter()
                .any(|subscription| is(subscription, |sink| sink.stores()))
        {
            self.plain
                .retain(|subscription| !wants_unstored(subscription));
        }
    }

    fn drop_unseen(&mut self, subject: &[u8]) {
        self.plain
            .retain(|subscription| subscription.may_see(subject));
        for group in &mut self.groups {
            group
                .members
                .retain(|subscription| subscription.may_see(subject));
        }
        self.groups.retain(|group| !group.members.is_empty());
    }
}

#[derive(Default)]
pub struct SubscriptionTree {
    root: Node,
    count: usize,
    /// How many were ever inserted.
    inserted: u64,
}

#[derive(Default)]
struct Node {
    literal: AHashMap<Box<[u8]>, Node>,
    /// What continues after a `*`.
    star: Option<Box<Node>>,
    /// What ends in `>` here.
    rest: Option<Box<Leaf>>,
    /// What ends here.
    leaf: Leaf,
}

#[derive(Default)]
struct Leaf {
    plain: Members,
    /// Queue groups by their name; most subjects have none.
    groups: Option<Box<AHashMap<Box<[u8]>, Members>>>,
}

/// Subscriptions to one subject, or of one queue group on it.
///
/// Invariant: among those of this server it makes no difference to a link which one is looked at, so they are not looked at one by one.
#[derive(Default)]
struct Members {
    own: Places,
    /// Of servers behind links.
    linked: Places,
}

/// Subscriptions in no order. Invariant: each knows its place.
#[derive(Default)]
struct Places(Vec<Arc<Subscription>>);

/// Receivers as they are gathered from the nodes that a subject leads to.
#[derive(Default)]
struct GatheredRoutes<'tree> {
    routes: Routes,
    /// Where each group is: the same name on another matching subject is the same group.
    positions: AHashMap<&'tree [u8], usize>,
}

impl SubscriptionTree {
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Every subscription, in no order.
    pub fn all(&self) -> Vec<Arc<Subscription>> {
        let mut all = Vec::with_capacity(self.count);
        self.root.list(&mut all);
        all
    }

    /// Adds a subscription whose subject was found valid.
    pub fn insert(&mut self, subscription: Arc<Subscription>) {
        self.inserted += 1;
        let path = Arc::clone(&subscription);
        let mut node = &mut self.root;
        for token in subject::tokens(&path.subject) {
            match token {
                b">" => {
                    node.rest.get_or_insert_default().add(subscription);
                    self.count += 1;
                    return;
                }
                b"*" => node = node.star.get_or_insert_default(),
                literal => {
                    // Looked up first, because the common case must not copy the token.
                    if !node.literal.contains_key(literal) {
                        node.literal.insert(literal.into(), Node::default());
                    }
                    node = node.literal.get_mut(literal).expect("just inserted");
                }
            }
        }
        node.leaf.add(subscription);
        self.count += 1;
    }

    /// Removes a subscription; false when it was not there.
    pub fn remove(&mut self, subscription: &Arc<Subscription>) -> bool {
        let tokens: Vec<&[u8]> = subject::tokens(&subscription.subject).collect();
        let removed = self.root.remove(&tokens, subscription);
        self.count -= usize::from(removed);
        removed
    }

    /// What the subscriptions to exactly this subject and queue group weigh together. Without a group one is as good as many. Those of this server weigh the same.
    pub fn weight(
        &self,
        subject: &[u8],
        queue: Option<&[u8]>,
        weight_of: &dyn Fn(&Subscription) -> u32,
    ) -> u32 {
        let Some(leaf) = self.root.exact(subject) else {
            return 0;
        };
        match queue {
            None => u32::from(leaf.plain.weight(weight_of) > 0),
            Some(queue) => {
                let group = leaf.groups.as_ref().and_then(|groups| groups.get(queue));
                group.map_or(0, |members| members.weight(weight_of))
            }
        }
    }

    /// Everybody who gets a message on this concrete subject: who asked for it and may see it. Wildcards in it are taken as the
    /// characters they are.
    pub fn find(&self, subject: &[u8]) -> Routes {
        self.find_deciding(subject).0
    }

    /// Everybody who asked for it, whether or not they may see it.
    pub fn find_asking(&self, subject: &[u8]) -> Routes {
        let mut gathered = GatheredRoutes::default();
        if !subject::has_empty_token(subject) {
            let tokens: Vec<&[u8]> = subject::tokens(subject).collect();
            self.root.collect(&tokens, &mut gathered, &mut 0);
            gathered.routes.drop_unneeded();
        }
        gathered.routes
    }

    /// The same, and how many tokens of the subject that depends on: whatever has the same ones first, and as many in all, has the same receivers.
    pub fn find_deciding(&self, subject: &[u8]) -> (Routes, usize) {
        let mut deciding = 0;
        if subject::has_empty_token(subject) {
            return (Routes::default(), usize::MAX);
        }
        let tokens: Vec<&[u8]> = subject::tokens(subject).collect();
        let mut gathered = GatheredRoutes::default();
        self.root.collect(&tokens, &mut gathered, &mut deciding);
        let mut routes = gathered.routes;
        routes.drop_unneeded();
        if routes.is_restricted() {
            routes.drop_unseen(subject);
            routes.note_links(subject);
            deciding = usize::MAX;
        }
        (routes, deciding)
    }
}

impl Node {
    fn collect<'tree>(
        &'tree self,
        tokens: &[&[u8]],
        gathered: &mut GatheredRoutes<'tree>,
        deciding: &mut usize,
    ) {
        let mut waiting = vec![(self, 0)];
        while let Some((node, depth)) = waiting.pop() {
            let Some(first) = tokens.get(depth) else {
                gathered.add(&node.leaf);
                continue;
            };
            if let Some(rest) = &node.rest {
                gathered.add(rest);
            }
            if !node.literal.is_empty() {
                *deciding = (*deciding).max(depth + 1);
                waiting.extend(node.literal.get(*first).map(|literal| (literal, depth + 1)));
            }
            waiting.extend(node.star.as_deref().map(|star| (star, depth + 1)));
        }
    }

    /// What is subscribed to exactly this.
    fn exact(&self, subject: &[u8]) -> Option<&Leaf> {
        let mut node = self;
        for token in subject::tokens(subject) {
            node = match token {
                b">" => return node.rest.as_deref(),
                b"*" => node.star.as_deref()?,
                literal => node.literal.get(literal)?,
            };
        }
        Some(&node.leaf)
    }

    fn remove(&mut self, tokens: &[&[u8]], subscription: &Arc<Subscription>) -> bool {
        let mut node = &mut *self;
        for token in tokens {
            if *token == b">" {
                let Some(rest) = &mut node.rest else {
                    return false;
                };
                let removed = rest.remove(subscription);
                if rest.is_empty() {
                    node.rest = None;
                }
                self.prune(tokens);
                return removed;
            }
            let Some(child) = node.child_mut(token) else {
                return false;
            };
            node = child;
        }
        let removed = node.leaf.remove(subscription);
        self.prune(tokens);
        removed
    }

    /// Removes what nothing is below any more on the way of these tokens.
    fn prune(&mut self, tokens: &[&[u8]]) {
        // The last node on the way that stays: it has something else, or something is at the end.
        let (mut node, mut stays) = (&*self, 0);
        for (depth, token) in tokens.iter().enumerate() {
            if !node.is_passage() {
                stays = depth;
            }
            let Some(child) = node.child(token) else {
                break;
            };
            node = child;
        }
        if !node.is_empty() {
            return;
        }
        let mut node = self;
        for token in &tokens[..stays] {
            node = node.child_mut(token).expect("it was walked");
        }
        match tokens.get(stays) {
            Some(&b"*") => node.star = None,
            Some(literal) => drop(node.literal.remove(*literal)),
            None => {}
        }
    }

    fn list(&self, all: &mut Vec<Arc<Subscription>>) {
        let mut waiting = vec![self];
        while let Some(node) = waiting.pop() {
            node.leaf.list(all);
            if let Some(rest) = &node.rest {
                rest.list(all);
            }
            waiting.extend(node.star.as_deref());
            waiting.extend(node.literal.values());
        }
    }

    fn child(&self, token: &[u8]) -> Option<&Self> {
        match token {
            b"*" => self.star.as_deref(),
            literal => self.literal.get(literal),
        }
    }

    fn child_mut(&mut self, token: &[u8]) -> Option<&mut Self> {
        match token {
            b"*" => self.star.as_deref_mut(),
            literal => self.literal.get_mut(literal),
        }
    }

    /// Whether nothing is here, or only one way on.
    fn is_passage(&self) -> bool {
        let ways = self.literal.len() + usize::from(self.star.is_some());
        ways <= 1 && self.rest.is_none() && self.leaf.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.literal.is_empty()
            && self.star.is_none()
            && self.rest.is_none()
            && self.leaf.is_empty()
    }
}

/// A subject may have as many tokens as fit into a line: what is as deep as that must not be dropped level by level on the stack.
impl Drop for Node {
    fn drop(&mut self) {
        let mut waiting: Vec<Self> = Vec::new();
        let take_children = |node: &mut Self, waiting: &mut Vec<Self>| {
            waiting.extend(node.star.take().map(|star| *star));
            waiting.extend(node.literal.drain().map(|(_, child)| child));
        };
        take_children(self, &mut waiting);
        while let Some(mut node) = waiting.pop() {
            take_children(&mut node, &mut waiting);
        }
    }
}

impl Leaf {
    fn add(&mut self, subscription: Arc<Subscription>) {
        let Some(queue) = &subscription.queue else {
            self.plain.add(subscription);
            return;
        };
        let groups = self.groups.get_or_insert_default();
        match groups.get_mut(&**queue) {
            Some(members) => members.add(subscription),
            None => {
                let mut members = Members::default();
                let name = queue.clone();
                members.add(subscription);
                groups.insert(name, members);
            }
        }
    }

    fn remove(&mut self, subscription: &Arc<Subscription>) -> bool {
        let Some(queue) = &subscription.queue else {
            return self.plain.remove(subscription);
        };
        let Some(groups) = &mut self.groups else {
            return false;
        };
        let Some(members) = groups.get_mut(&**queue) else {
            return false;
        };
        let removed = members.remove(subscription);
        if members.is_empty() {
            groups.remove(&**queue);
        }
        if groups.is_empty() {
            self.groups = None;
        }
        removed
    }

    fn list(&self, all: &mut Vec<Arc<Subscription>>) {
        all.extend(self.plain.iter().cloned());
        for members in self.groups.iter().flat_map(|groups| groups.values()) {
            all.extend(members.iter().cloned());
        }
    }

    fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.groups.is_none()
    }
}

impl Members {
    fn add(&mut self, subscription: Arc<Subscription>) {
        self.places_of(&subscription).add(subscription);
    }

    fn remove(&mut self, subscription: &Arc<Subscription>) -> bool {
        self.places_of(subscription).remove(subscription)
    }

    fn places_of(&mut self, subscription: &Subscription) -> &mut Places {
        match subscription.is_linked() {
            true => &mut self.linked,
            false => &mut self.own,
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Arc<Subscription>> {
        self.own.0.iter().chain(&self.linked.0)
    }

    fn is_empty(&self) -> bool {
        self.own.0.is_empty() && self.linked.0.is_empty()
    }

    fn weight(&self, weight_of: &dyn Fn(&Subscription) -> u32) -> u32 {
        let mut own = self.own.0.iter();
        // One that has ended is about to leave, and then this is asked again.
        let any = own.find(|subscription| !subscription.has_ended());
        let each = any.map_or(0, |subscription| weight_of(subscription));
        let count = u32::try_from(self.own.0.len()).unwrap_or(u32::MAX);
        let linked = self.linked.0.iter().map(|member| weight_of(member));
        linked.fold(each.saturating_mul(count), u32::saturating_add)
    }
}

impl Places {
    fn add(&mut self, subscription: Arc<Subscription>) {
        debug_assert!(subscription.place().is_none(), "it is in one list");
        subscription.put_at(self.0.len());
        self.0.push(subscription);
    }

    fn remove(&mut self, subscription: &Arc<Subscription>) -> bool {
        let Some(place) = subscription.place() else {
            return false;
        };
        let there = self.0.get(place);
        if !there.is_some_and(|other| Arc::ptr_eq(other, subscription)) {
            return false;
        }
        self.0.swap_remove(place).take_out();
        if let Some(moved) = self.0.get(place) {
            moved.put_at(place);
        }
        true
    }
}

impl<'tree> GatheredRoutes<'tree> {
    fn add(&mut self, leaf: &'tree Leaf) {
        let Self { routes, positions } = self;
        routes.plain.extend(leaf.plain.iter().cloned());
        for (name, members) in leaf.groups.iter().flat_map(|groups| groups.iter()) {
            let members = members.iter().cloned();
            let position = *positions.entry(name).or_insert(routes.groups.len());
            match routes.groups.get_mut(position) {
                Some(group) => group.members.extend(members),
                None => routes.groups.push(QueueGroup {
                    name: name.clone(),
                    members: members.collect(),
                }),
            }
        }
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
