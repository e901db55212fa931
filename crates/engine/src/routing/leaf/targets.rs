//! The links that the present message goes to.
//!
//! Invariant: each link is in it once, with all queue groups behind it that must get the message.

use std::sync::Arc;

use super::link::LeafLink;

#[derive(Default)]
pub struct LeafTargets {
    /// Those in use come first; the others keep their room.
    targets: Vec<LeafTarget>,
    used: usize,
}

pub struct LeafTarget {
    pub link: Option<Arc<LeafLink>>,
    /// Names of queue groups, each followed by a blank.
    pub queues: Vec<u8>,
}

impl LeafTargets {
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    pub fn add(&mut self, link: &Arc<LeafLink>, queue: Option<&[u8]>) {
        let is_it = |target: &LeafTarget| {
            let noted = target.link.as_ref();
            noted.is_some_and(|noted| Arc::ptr_eq(noted, link))
        };
        let position = match self.targets[..self.used].iter().position(is_it) {
            Some(position) => position,
            None => self.begin(link),
        };
        if let Some(queue) = queue {
            let queues = &mut self.targets[position].queues;
            queues.extend_from_slice(queue);
            queues.push(b' ');
        }
    }

    fn begin(&mut self, link: &Arc<LeafLink>) -> usize {
        let position = self.used;
        if position == self.targets.len() {
            self.targets.push(LeafTarget {
                link: None,
                queues: Vec::new(),
            });
        }
        self.targets[position].link = Some(Arc::clone(link));
        self.used += 1;
        position
    }

    /// Hands each target to `send`, and forgets them.
    pub fn drain(&mut self, mut send: impl FnMut(&Arc<LeafLink>, &[u8])) {
        for target in &mut self.targets[..self.used] {
            if let Some(link) = target.link.take() {
                send(&link, &target.queues);
            }
            target.queues.clear();
        }
        self.used = 0;
    }
}
