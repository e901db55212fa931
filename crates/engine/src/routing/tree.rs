//! The subscriptions of one account as a tree of tokens, so that a subject finds its receivers by walking its own tokens.
//!
//! Invariant: a node without subscriptions and without children does not exist, so the tree is never larger than what is subscribed.

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
    plain: Vec<Arc<Subscription>>,
    groups: Vec<QueueGroup>,
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

    /// What the subscriptions to exactly this subject and queue group weigh together. Without a group one is as good as many.
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
            None => {
                let mut plain = leaf.plain.iter();
                u32::from(plain.any(|subscription| weight_of(subscription) > 0))
            }
            Some(queue) => {
                let mut groups = leaf.groups.iter();
                let group = groups.find(|group| *group.name == *queue);
                let members = group.map_or(&[][..], |group| &group.members);
                let weights = members.iter().map(|member| weight_of(member));
                weights.fold(0, u32::saturating_add)
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
        let mut routes = Routes::default();
        if !subject::has_empty_token(subject) {
            let tokens: Vec<&[u8]> = subject::tokens(subject).collect();
            self.root.collect(&tokens, &mut routes, &mut 0);
            routes.drop_unneeded();
        }
        routes
    }

    /// The same, and how many tokens of the subject that depends on: whatever has the same ones first, and as many in all, has the same receivers.
    pub fn find_deciding(&self, subject: &[u8]) -> (Routes, usize) {
        let mut routes = Routes::default();
        let mut deciding = 0;
        if subject::has_empty_token(subject) {
            return (routes, usize::MAX);
        }
        let tokens: Vec<&[u8]> = subject::tokens(subject).collect();
        self.root.collect(&tokens, &mut routes, &mut deciding);
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
    fn collect(&self, tokens: &[&[u8]], routes: &mut Routes, deciding: &mut usize) {
        let mut waiting = vec![(self, 0)];
        while let Some((node, depth)) = waiting.pop() {
            let Some(first) = tokens.get(depth) else {
                node.leaf.collect(routes);
                continue;
            };
            if let Some(rest) = &node.rest {
                rest.collect(routes);
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
        let Some(queue) = subscription.queue.clone() else {
            self.plain.push(subscription);
            return;
        };
        add_to_group(&mut self.groups, &queue, std::iter::once(subscription));
    }

    fn remove(&mut self, subscription: &Arc<Subscription>) -> bool {
        let Some(queue) = &subscription.queue else {
            return remove_from(&mut self.plain, subscription);
        };
        let Some(index) = self.groups.iter().position(|group| group.name == *queue) else {
            return false;
        };
        let removed = remove_from(&mut self.groups[index].members, subscription);
        if self.groups[index].members.is_empty() {
            self.groups.swap_remove(index);
        }
        removed
    }

    fn collect(&self, routes: &mut Routes) {
        routes.plain.extend(self.plain.iter().cloned());
        for group in &self.groups {
            // The same group name on another matching subject is the same group.
            add_to_group(
                &mut routes.groups,
                &group.name,
                group.members.iter().cloned(),
            );
        }
    }

    fn list(&self, all: &mut Vec<Arc<Subscription>>) {
        all.extend(self.plain.iter().cloned());
        for group in &self.groups {
            all.extend(group.members.iter().cloned());
        }
    }

    fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.groups.is_empty()
    }
}

fn add_to_group(
    groups: &mut Vec<QueueGroup>,
    name: &[u8],
    members: impl Iterator<Item = Arc<Subscription>>,
) {
    match groups.iter_mut().find(|group| *group.name == *name) {
        Some(group) => group.members.extend(members),
        None => groups.push(QueueGroup {
            name: name.into(),
            members: members.collect(),
        }),
    }
}

fn remove_from(list: &mut Vec<Arc<Subscription>>, subscription: &Arc<Subscription>) -> bool {
    match list
        .iter()
        .position(|other| Arc::ptr_eq(other, subscription))
    {
        Some(index) => {
            list.swap_remove(index);
            true
        }
        None => false,
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
